"""Images: data sets, transforms, models, boxes and grids of pictures, in torchvision's form."""

from importlib import import_module as _import_module

from corefw.vision import datasets, ops, transforms, tv_tensors, utils

__all__ = ["datasets", "io", "models", "ops", "transforms", "tv_tensors", "utils"]


def __getattr__(name: str):
    """The models, and pictures as files, imported when first asked for."""
    if name not in ("io", "models"):
        raise AttributeError(f"module 'corefw.vision' has no attribute {name!r}")
    return _import_module(f"corefw.vision.{name}")
