"""What pictures go through before a trained model sees them, and the weights that are trained so."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import corefw
from corefw import Tensor, nn
from corefw.vision.models._api import Weights, WeightsEnum
from corefw.vision.transforms import functional
from corefw.vision.transforms.modes import InterpolationMode

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's pictures
BICUBIC = InterpolationMode.BICUBIC


class ImageClassification(nn.Module):
    """A picture resized, cut to its middle, with numbers around 0.

    Args:
        crop_size: height and width of the middle.
        resize_size: of the shorter side before.
        mean, std: what is taken from each channel, and what it is divided by.
        interpolation, antialias: of `transforms.functional.resize`.

    >>> ImageClassification(crop_size=2, resize_size=4)(corefw.zeros(3, 8, 8, dtype=corefw.uint8)).shape
    torch.Size([3, 2, 2])
    """

    def __init__(
        self, *, crop_size: int, resize_size: int = 256, mean: Sequence[float] = MEAN, std: Sequence[float] = STD,
        interpolation: InterpolationMode = InterpolationMode.BILINEAR, antialias: bool | None = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.crop_size, self.resize_size = [crop_size], [resize_size]
        self.mean, self.std = list(mean), list(std)
        self.interpolation, self.antialias = interpolation, antialias

    def forward(self, img: Any) -> Tensor:
        img = functional.resize(img, self.resize_size, interpolation=self.interpolation, antialias=self.antialias)
        img = functional.center_crop(img, self.crop_size)
        if not isinstance(img, Tensor):
            img = functional.pil_to_tensor(img)
        img = functional.convert_image_dtype(img, corefw.float)
        return functional.normalize(img, mean=self.mean, std=self.std)

    def __repr__(self) -> str:
        told = "\n".join(
            f"    {name}={getattr(self, name)}" for name in ("crop_size", "resize_size", "mean", "std", "interpolation")
        )
        return f"{type(self).__name__}(\n{told}\n)"


class Trained(NamedTuple):
    """One training's weights: the file's name without its ending, percents of pictures that were told right by one and
    by five guesses, and the `ImageClassification` that pictures go through."""

    file: str
    first: float
    fifth: float
    resize_size: int = 256
    crop_size: int = 224
    interpolation: InterpolationMode = InterpolationMode.BILINEAR
    mean: Sequence[float] = MEAN
    std: Sequence[float] = STD
    num_params: int = 0  # where it differs from other weights of the model


def trained_on_imagenet(
    module: str, name: str, num_params: int, smallest: int | None = 1, **trainings: Trained
) -> type[WeightsEnum]:
    """The enumeration `name` of a model's weights; ``DEFAULT`` are those of the last plain version.

    Facts are torchvision's: https://github.com/pytorch/vision/tree/main/torchvision/models.

    Args:
        module: where it stands.
        num_params: how many numbers the model learns.
        smallest: the least height and width of pictures; None for those that the weights were trained with.
        trainings: what stands behind "IMAGENET1K_" in the member's name, and its facts.
    """
    members: dict[str, Any] = {}
    for version, row in trainings.items():
        transforms = partial(
            ImageClassification,
            crop_size=row.crop_size,
            resize_size=row.resize_size,
            interpolation=row.interpolation,
            mean=row.mean,
            std=row.std,
        )
        meta = {
            "classes": 1000,
            "num_params": row.num_params or num_params,
            "min_size": (smallest or row.crop_size,) * 2,
            "_metrics": {"ImageNet-1K": {"acc@1": row.first, "acc@5": row.fifth}},
        }
        if version.startswith("SWAG"):
            meta["license"] = "https://github.com/facebookresearch/SWAG/blob/main/LICENSE"
        url = f"https://download.pytorch.org/models/{row.file}.pth"
        members[f"IMAGENET1K_{version}"] = Weights(url, transforms, meta)
    plain = [version for version in trainings if version in ("V1", "V2")] or [*trainings][:1]
    members["DEFAULT"] = members[f"IMAGENET1K_{plain[-1]}"]
    make: Any = WeightsEnum  # of an enumeration without members, another one
    return make(name, members, module=module)
