"""Processes in an array, which cannot be joined here."""

from corefw.distributed.tensor import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
