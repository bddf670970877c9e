"""Processes in an array, which are not there yet."""

from corefw.distributed.tensor import DeviceMesh, init_device_mesh

__all__ = ["DeviceMesh", "init_device_mesh"]
