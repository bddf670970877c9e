"""Transforms of Pillow images and of tensors, in the form of `torchvision.transforms`."""

from corefw.vision.transforms import functional
from corefw.vision.transforms.deterministic import (
    CenterCrop,
    Compose,
    ConvertImageDtype,
    Grayscale,
    Lambda,
    Normalize,
    Pad,
    PILToTensor,
    Resize,
    ToPILImage,
    ToTensor,
)
from corefw.vision.transforms.modes import InterpolationMode
from corefw.vision.transforms.random import (
    ColorJitter,
    RandomApply,
    RandomChoice,
    RandomCrop,
    RandomErasing,
    RandomGrayscale,
    RandomHorizontalFlip,
    RandomOrder,
    RandomResizedCrop,
    RandomRotation,
    RandomTransforms,
    RandomVerticalFlip,
)

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "Grayscale",
    "InterpolationMode",
    "Lambda",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomApply",
    "RandomChoice",
    "RandomCrop",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomOrder",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomTransforms",
    "RandomVerticalFlip",
    "Resize",
    "ToPILImage",
    "ToTensor",
    "functional",
]
