"""What pictures go through before a trained model sees them, and the weights that are trained so."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import corefw
from corefw import Tensor, nn
from corefw.vision.models.registry import Weights, WeightsEnum
from corefw.vision.transforms import functional
from corefw.vision.transforms.modes import InterpolationMode

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's pictures


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


def trained_on_imagenet(
    module: str, name: str, *files: str, sizes: tuple[int, ...] = (256, 232), smallest: int = 1
) -> type[WeightsEnum]:
    """The enumeration `name` of a model's weights, the best last.

    Args:
        module: where it stands.
        files: their names without ending, at https://download.pytorch.org/models.
        sizes: what the shorter sides of pictures are brought to first.
        smallest: the least height and width of pictures.
    """
    members: dict[str, Any] = {}
    for i, (file, size) in enumerate(zip(files, sizes), 1):
        transforms = partial(ImageClassification, crop_size=224, resize_size=size)
        meta = {"classes": 1000, "min_size": (smallest, smallest)}
        members["DEFAULT"] = members[f"IMAGENET1K_V{i}"] = Weights(
            f"https://download.pytorch.org/models/{file}.pth", transforms, meta
        )
    members["DEFAULT"] = members.pop("DEFAULT")  # another name of the best, which comes last
    make: Any = WeightsEnum  # of an enumeration without members, another one
    return make(name, members, module=module)
