"""Data sets of images, in torchvision's form."""

from corefw.vision import datasets

__all__ = ["datasets"]
