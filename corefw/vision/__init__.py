"""Images: data sets, transforms and grids of pictures, in torchvision's form."""

from corefw.vision import datasets, transforms, utils

__all__ = ["datasets", "transforms", "utils"]
