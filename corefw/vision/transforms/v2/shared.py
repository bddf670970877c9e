"""The transforms of `transforms` as ones of samples: what draws the parameters and applies them is the same."""

from __future__ import annotations

from typing import Any

from corefw.vision import transforms as v1
from corefw.vision.transforms.v2.transform import (
    Keeping,
    LonePictureTransform,
    PictureTransform,
    TensorTransform,
    Transform,
)


def _shared(base: type[Transform], kind: type) -> Any:
    """The class `kind` of `transforms` as one of samples."""
    told = (kind.__doc__ or "").partition(">>>")[0].rstrip()  # the example shows another text of it
    fields = {"__doc__": told, "__module__": __name__, "__qualname__": kind.__name__}
    return type(kind.__name__, (base, kind), fields)


# of everything
CenterCrop = _shared(Keeping, v1.CenterCrop)
ElasticTransform = _shared(Keeping, v1.ElasticTransform)
Pad = _shared(Keeping, v1.Pad)
RandomAffine = _shared(Keeping, v1.RandomAffine)
RandomCrop = _shared(Keeping, v1.RandomCrop)
RandomHorizontalFlip = _shared(Keeping, v1.RandomHorizontalFlip)
RandomPerspective = _shared(Keeping, v1.RandomPerspective)
RandomResizedCrop = _shared(Keeping, v1.RandomResizedCrop)
RandomRotation = _shared(Keeping, v1.RandomRotation)
RandomVerticalFlip = _shared(Keeping, v1.RandomVerticalFlip)
Resize = _shared(Keeping, v1.Resize)

# of pictures: the others stay as they are
ColorJitter = _shared(PictureTransform, v1.ColorJitter)
GaussianBlur = _shared(PictureTransform, v1.GaussianBlur)
Grayscale = _shared(PictureTransform, v1.Grayscale)
RandomAdjustSharpness = _shared(PictureTransform, v1.RandomAdjustSharpness)
RandomAutocontrast = _shared(PictureTransform, v1.RandomAutocontrast)
RandomEqualize = _shared(PictureTransform, v1.RandomEqualize)
RandomGrayscale = _shared(PictureTransform, v1.RandomGrayscale)
RandomInvert = _shared(PictureTransform, v1.RandomInvert)
RandomPosterize = _shared(PictureTransform, v1.RandomPosterize)
RandomSolarize = _shared(PictureTransform, v1.RandomSolarize)

# of tensors
ConvertImageDtype = _shared(TensorTransform, v1.ConvertImageDtype)
LinearTransformation = _shared(TensorTransform, v1.LinearTransformation)
Normalize = _shared(TensorTransform, v1.Normalize)
RandomErasing = _shared(TensorTransform, v1.RandomErasing)

# of pictures without masks and boxes
AugMix = _shared(LonePictureTransform, v1.AugMix)
AutoAugment = _shared(LonePictureTransform, v1.AutoAugment)
FiveCrop = _shared(LonePictureTransform, v1.FiveCrop)
RandAugment = _shared(LonePictureTransform, v1.RandAugment)
TenCrop = _shared(LonePictureTransform, v1.TenCrop)
TrivialAugmentWide = _shared(LonePictureTransform, v1.TrivialAugmentWide)
