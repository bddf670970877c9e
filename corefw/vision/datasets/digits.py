"""Handwritten digits that come with the package."""

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import numpy as np

import corefw
from corefw.utils.data import Dataset


class Digits(Dataset):
    """1797 real handwritten digits of 8 by 8 pixels: 1347 to train with, 450 held out.

    Each pixel counts the ink of a 4 by 4 block of the scanned bitmap, so its value is 0 to 16. The held-out quarter
    is stratified, and stored with the images: it is the same on every machine.

    Args:
        root: accepted for torchvision's form and not read; the images are inside the package.
        train: the images to train with if true, else the held-out ones.
        transform: applied to each image by `__getitem__`.
        target_transform: applied to each target by `__getitem__`.
        download: accepted for torchvision's form; there is nothing to fetch.

    Attributes:
        data: uint8 tensor of shape (images, 8, 8).
        targets: int64 tensor of shape (images,).
        classes: the names of the ten classes.
        maximum: the value of a pixel full of ink.

    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning Repository, 1998.

    >>> digits = Digits(train=False, transform=lambda image: image.float() / Digits.maximum)
    >>> len(digits)
    450
    >>> image, target = digits[0]
    >>> tuple(image.shape), target
    ((8, 8), 3)
    """

    classes = tuple(str(digit) for digit in range(10))
    maximum = 16

    def __init__(
        self,
        root: Any = None,
        train: bool = True,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        download: bool = False,
    ) -> None:
        self.root = root
        self.train = train
        self.transform = transform
        self.target_transform = target_transform
        with (files("corefw.vision") / "_digits.npz").open("rb") as file, np.load(file) as stored:
            chosen = stored["held_out"] != train
            self.data = corefw.from_numpy(stored["images"][chosen])
            self.targets = corefw.from_numpy(stored["targets"][chosen].astype(np.int64))

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """The image, a uint8 tensor of shape (8, 8), and its target, an int; each through its transform if given."""
        image, target = self.data[index], int(self.targets[index])
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def __repr__(self) -> str:
        return f"Digits(train={self.train}): {len(self)} images of 8 by 8 pixels"
