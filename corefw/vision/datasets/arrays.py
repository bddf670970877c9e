"""Data sets of small images that are published as arrays, and read into memory: SVHN, STL10 and USPS."""

from __future__ import annotations

import bz2
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corefw.vision.datasets.download import CorruptedError
from corefw.vision.datasets.published import Published, PublishedFiles, load_mat, one_of
from corefw.vision.pillow import image_from_array


class _Arrays(PublishedFiles):
    """Base of data sets in memory: `_load` sets ``data`` (images, channels, H, W) and ``labels``."""

    data: np.ndarray
    labels: np.ndarray
    split: str

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """The image, a Pillow image, and its target, an int; each through its transform if given."""
        image = image_from_array(np.ascontiguousarray(self.data[index].transpose(1, 2, 0)))
        return self._transformed(image, int(self.labels[index]))

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {self.split}"


class SVHN(_Arrays):
    """Digits of house numbers in street views, colour images of 32 by 32 pixels.

    Args:
        root: the folder that has ``train_32x32.mat`` and its companions.
        split: "train" (73,257 images), "test" (26,032) or "extra" (531,131 easier ones).
        transform: applied to each image, a Pillow image of mode "RGB".
        target_transform: applied to each target, an int.
        download: fetch the file that `root` lacks.

    Attributes:
        data: uint8 array of shape (images, 3, 32, 32).
        labels: int64 array of the digits.

    Raises:
        ImportError: SciPy is not installed, which reads the files.

    Source: Y. Netzer and others, Reading Digits in Natural Images with Unsupervised Feature Learning, 2011.
    """

    published = (
        Published("http://ufldl.stanford.edu/housenumbers/train_32x32.mat", "e26dedcc434d2e4c54c9b2d4a06d8373"),
        Published("http://ufldl.stanford.edu/housenumbers/test_32x32.mat", "eb5a983be6a315427106f1b164d9cef3"),
        Published("http://ufldl.stanford.edu/housenumbers/extra_32x32.mat", "a93ce644f1a588dc4d68dda5feec44a7"),
    )

    def __init__(
        self,
        root: str | os.PathLike,
        split: str = "train",
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        download: bool = False,
    ) -> None:
        self.split = one_of("split", split, ("train", "test", "extra"))
        super().__init__(root, None, transform, target_transform, download)

    def _wanted(self) -> Sequence[Published]:
        return [file for file in self.published if file.name.startswith(self.split)]

    def _load(self) -> None:
        stored = load_mat("SVHN", self._path(self._wanted()[0].name))
        self.data = stored["X"].transpose(3, 2, 0, 1)
        self.labels = stored["y"].astype(np.int64).reshape(-1) % 10  # the digit 0 is published as 10


class STL10(_Arrays):
    """Colour images of 96 by 96 pixels in 10 classes: 5,000 to train with, 8,000 held out, 100,000 without labels.

    Args:
        root: the folder that has ``stl10_binary``, or is to have it.
        split: "train", "test", "unlabeled" or "train+unlabeled"; a label that is missing is -1.
        folds: one of the ten parts of the images to train with, 0 to 9; all if missing.
        transform: applied to each image, a Pillow image of mode "RGB".
        target_transform: applied to each target, an int.
        download: fetch and unpack the archive if `root` lacks its files.

    Attributes:
        data: uint8 array of shape (images, 3, 96, 96).
        labels: array of the classes' numbers.
        classes: their names.

    Source: A. Coates, H. Lee and A. Ng, An Analysis of Single Layer Networks in Unsupervised Feature Learning, 2011.
    """

    folder = "stl10_binary"
    url = "http://ai.stanford.edu/~acoates/stl10/stl10_binary.tar.gz"
    published = (Published(url, "91f7769df0f17e558f3565bffb0c7dfb", "stl10_binary"),)
    splits = ("train", "train+unlabeled", "unlabeled", "test")

    def __init__(
        self, root: str | os.PathLike, split: str = "train", folds: int | None = None,
        transform: Callable | None = None, target_transform: Callable | None = None, download: bool = False,
    ) -> None:  # fmt: skip
        self.split = one_of("split", split, self.splits)
        if folds is not None and not isinstance(folds, int):
            raise ValueError(f"Expected type None or int for argument folds, but got type {type(folds)}.")
        if folds is not None and not 0 <= folds < 10:
            raise ValueError(f"Value for argument folds should be in the range [0, 10), but got {folds}.")
        self.folds = folds
        super().__init__(root, None, transform, target_transform, download)

    def _path(self, *names: str) -> str:
        return os.path.join(self.root, *names)  # the archive has the folder's name within

    def _read(self, part: str) -> tuple[np.ndarray, np.ndarray]:
        stored = np.fromfile(self._path(self.folder, f"{part}_X.bin"), np.uint8)
        if stored.size % (3 * 96 * 96):
            raise CorruptedError(f"{self._path(self.folder, f'{part}_X.bin')} holds no whole number of images")
        images = stored.reshape(-1, 3, 96, 96).transpose(0, 1, 3, 2)  # stored column by column
        if part == "unlabeled":
            return images, np.full(len(images), -1)
        labels = np.fromfile(self._path(self.folder, f"{part}_y.bin"), np.uint8).astype(np.int64) - 1
        if len(labels) != len(images):
            raise CorruptedError(f"{self._path(self.folder)}: {len(images)} {part} images, but {len(labels)} labels")
        return images, labels

    def _load(self) -> None:
        parts = []
        for part in self.split.split("+"):
            images, labels = self._read(part)
            if part == "train" and self.folds is not None:
                with open(self._path(self.folder, "fold_indices.txt")) as file:
                    chosen = np.array(file.read().splitlines()[self.folds].split(), np.int64)
                images, labels = images[chosen], labels[chosen]
            parts.append((images, labels))
        self.data, self.labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        with open(self._path(self.folder, "class_names.txt")) as file:
            self.classes = file.read().splitlines()


class USPS(_Arrays):
    """Handwritten digits of envelopes, 16 by 16 pixels: 7,291 to train with, 2,007 held out.

    Args:
        root: the folder that has ``usps.bz2`` and ``usps.t.bz2``.
        train: the images to train with if true, else those held out.
        transform: applied to each image, a Pillow image of mode "L".
        target_transform: applied to each target, an int.
        download: fetch the file that `root` lacks.

    Attributes:
        data: uint8 array of shape (images, 16, 16).
        targets: list of ints.

    Source: J. Hull, A Database for Handwritten Text Recognition Research, 1994.
    """

    _address = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"
    published = (
        Published(f"{_address}usps.bz2", "ec16c51db3855ca6c91edd34d0e9b197"),
        Published(f"{_address}usps.t.bz2", "8ea070ee2aca1ac39742fdd1ef5ed118"),
    )

    def __init__(
        self,
        root: str | os.PathLike,
        train: bool = True,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        download: bool = False,
    ) -> None:
        self.train = train
        self.split = "Train" if train else "Test"
        super().__init__(root, None, transform, target_transform, download)

    def _wanted(self) -> Sequence[Published]:
        return self.published[:1] if self.train else self.published[1:]

    def _load(self) -> None:
        path = self._path(self._wanted()[0].name)
        try:
            with bz2.open(path, "rt") as file:
                rows = [line.split() for line in file]
            values = np.array([[entry.split(":")[1] for entry in row[1:]] for row in rows], np.float32)
            images = values.reshape(-1, 16, 16)
        except (OSError, EOFError, ValueError, IndexError) as error:
            raise CorruptedError(f"{path} is no list of images: {error}") from error
        self.data = ((images + 1) / 2 * 255).astype(np.uint8)
        self.targets = [int(row[0]) - 1 for row in rows]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """The image, a Pillow image, and its target, an int; each through its transform if given."""
        return self._transformed(image_from_array(self.data[index], "L"), self.targets[index])
