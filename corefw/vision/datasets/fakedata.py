"""Images of noise, to try a program without data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import corefw
from corefw.vision.datasets.base import VisionDataset
from corefw.vision.transforms import functional


class FakeData(VisionDataset):
    """Images of noise with random targets, the same at each visit.

    Args:
        size: how many images there are.
        image_size: their shape (channels, height, width).
        num_classes: targets are 0 to ``num_classes - 1``.
        transform: applied to each image, a Pillow image.
        target_transform: applied to each target, an int.
        random_offset: other numbers give other images.

    >>> data = FakeData(size=2, image_size=(3, 4, 5))
    >>> image, target = data[0]
    >>> image.size, image == data[0][0]
    ((5, 4), True)
    """

    def __init__(
        self, size: int = 1000, image_size: tuple[int, int, int] = (3, 224, 224), num_classes: int = 10,
        transform: Callable | None = None, target_transform: Callable | None = None, random_offset: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(transform=transform, target_transform=target_transform)
        self.size = size
        self.num_classes = num_classes
        self.image_size = image_size
        self.random_offset = random_offset

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """The image and its target; each through its transform if given."""
        if index >= len(self):
            raise IndexError(f"{type(self).__name__} index out of range")
        generator = corefw.Generator().manual_seed(index + self.random_offset)
        image = corefw.randn(*self.image_size, generator=generator)
        target = int(corefw.randint(0, self.num_classes, (1,), generator=generator))
        return self._transformed(functional.to_pil_image(image), target)

    def __len__(self) -> int:
        return self.size
