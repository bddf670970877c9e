"""Images: data sets, transforms, boxes and grids of pictures, in torchvision's form."""

from corefw.vision import datasets, ops, transforms, utils

__all__ = ["datasets", "ops", "transforms", "utils"]
