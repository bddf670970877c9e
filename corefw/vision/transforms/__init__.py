"""Transforms of Pillow images and of tensors, in the form of `torchvision.transforms`."""

from corefw.vision.transforms import functional
from corefw.vision.transforms.chance import (
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
from corefw.vision.transforms.modes import InterpolationMode
from corefw.vision.transforms.steady import (
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
