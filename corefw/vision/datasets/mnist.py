"""MNIST and the data sets in its format: images and labels in idx files, as they are or gzip-compressed."""

from __future__ import annotations

import gzip
import os
import shutil
from typing import Any

import numpy as np

import corefw
from corefw.files import replacing
from corefw.vision.datasets.base import PublishedDataset
from corefw.vision.datasets.download import CorruptedError, check_integrity, fetch
from corefw.vision.pillow import image_from_array

#: element types by the code in an idx file, all big-endian
_IDX_TYPES = {8: ">u1", 9: ">i1", 11: ">i2", 12: ">i4", 13: ">f4", 14: ">f8"}


def read_idx(path: str | os.PathLike) -> np.ndarray:
    """The array in an idx file, gzip-compressed if its name ends in ``.gz``.

    The format: two zero bytes, a code of the element type, the number of dimensions, each dimension as a 32-bit
    number, and the elements, big-endian, the last dimension changing fastest (Y. LeCun, C. Cortes and C. Burges, The
    MNIST database of handwritten digits).

    Raises:
        CorruptedError: the file is no idx file, or shorter or longer than its header says.
    """
    try:
        with gzip.open(path) if os.fspath(path).endswith(".gz") else open(path, "rb") as file:
            stored = file.read()
    except (EOFError, gzip.BadGzipFile) as error:
        raise CorruptedError(f"{path} is no complete gzip file: {error}") from error
    if len(stored) < 4 or stored[:2] != b"\0\0" or stored[2] not in _IDX_TYPES or len(stored) < 4 + 4 * stored[3]:
        raise CorruptedError(f"{path} is no idx file: it begins with {stored[:4]!r}")
    dtype, start = np.dtype(_IDX_TYPES[stored[2]]), 4 + 4 * stored[3]
    shape = tuple(np.frombuffer(stored, ">u4", stored[3], 4).tolist())
    if len(stored) - start != (wanted := int(np.prod(shape)) * dtype.itemsize):
        raise CorruptedError(f"{path}: an array of shape {shape} takes {wanted} bytes, {len(stored) - start} came")
    return np.frombuffer(stored, dtype, offset=start).reshape(shape).astype(dtype.newbyteorder("="))


class MNIST(PublishedDataset):
    """70,000 handwritten digits of 28 by 28 pixels, 60,000 of them to train with.

    Args:
        root: the folder that has ``MNIST/raw/train-images-idx3-ubyte`` and its companions, as they are or with ``.gz``.
        train: the images to train with if true, else the 10,000 held out.
        transform: applied to each image, a Pillow image of mode "L".
        target_transform: applied to each target, an int.
        download: fetch the files that `root` lacks.

    Attributes:
        data: uint8 tensor of shape (images, 28, 28).
        targets: int64 tensor of shape (images,).
        classes: the names of the ten classes; `class_to_idx` has their numbers.

    Raises:
        DownloadError: a file could not be fetched.
        RuntimeError: `root` lacks the files, or they are corrupted.

    Source: Y. LeCun, C. Cortes and C. Burges, The MNIST database of handwritten digits, 1998.
    """

    mirrors = ["https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/"]
    #: the published files and their MD5 sums
    resources = [
        ("train-images-idx3-ubyte.gz", "f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        ("train-labels-idx1-ubyte.gz", "d53e105ee54ea40749a09fcbcd1e9432"),
        ("t10k-images-idx3-ubyte.gz", "9fb629c4189551a2d022fa330f9573f3"),
        ("t10k-labels-idx1-ubyte.gz", "ec29112dd5afa0611ce80d1b7f02629c"),
    ]
    classes = [
        "0 - zero",
        "1 - one",
        "2 - two",
        "3 - three",
        "4 - four",
        "5 - five",
        "6 - six",
        "7 - seven",
        "8 - eight",
        "9 - nine",
    ]

    def _load(self) -> None:
        self._require([name for name, _ in self.resources])
        part = "train" if self.train else "t10k"
        self._load_pair(part, f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz")

    def _require(self, names: list[str]) -> None:
        if missing := [name for name in names if self._present(name) is None]:
            raise RuntimeError(
                f"Dataset not found: {self.raw_folder} has no {', '.join(missing)}. "
                "You can use download=True to download it"
            )

    def _load_pair(self, part: str, images_file: str, labels_file: str) -> None:
        images, labels = self._read(images_file, 3), self._read(labels_file, 1)
        if len(images) != len(labels):
            raise CorruptedError(f"{self.raw_folder}: {len(images)} {part} images, but {len(labels)} labels")
        self.data = corefw.from_numpy(images)
        self.targets = corefw.from_numpy(labels.astype(np.int64))

    @property
    def raw_folder(self) -> str:
        """The folder of the idx files."""
        return os.path.join(self.root, type(self).__name__, "raw")

    @property
    def class_to_idx(self) -> dict[str, int]:
        """The number of each class, by its name."""
        return {name: number for number, name in enumerate(self.classes)}

    def _present(self, name: str) -> str | None:
        """The path of a published file or of its decompressed form, None if neither is there."""
        path = os.path.join(self.raw_folder, name)
        return next((p for p in (path.removesuffix(".gz"), path) if os.path.isfile(p)), None)

    def _read(self, name: str, dimensions: int) -> np.ndarray:
        path = self._present(name) or name
        array = read_idx(path)
        if array.dtype != np.uint8 or array.ndim != dimensions:
            raise CorruptedError(
                f"{path} has {array.ndim}-dimensional {array.dtype}, not {dimensions}-dimensional uint8"
            )
        return array

    def download(self) -> None:
        """Fetch the files that are missing, and decompress them."""
        for name, md5 in self.resources:
            if self._present(name) is None:
                fetch([mirror + name for mirror in self.mirrors], os.path.join(self.raw_folder, name), md5)
            path = os.path.join(self.raw_folder, name)
            if not os.path.isfile(path.removesuffix(".gz")) and check_integrity(path, md5):
                with gzip.open(path) as source, replacing(path.removesuffix(".gz")) as file:
                    shutil.copyfileobj(source, file)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """The image, a Pillow image, and its target, an int; each through its transform if given."""
        return self._transformed(image_from_array(self.data[index].numpy(), "L"), int(self.targets[index]))


class FashionMNIST(MNIST):
    """70,000 pictures of clothes of 28 by 28 pixels, in MNIST's form, below ``root/FashionMNIST/raw``.

    Source: H. Xiao, K. Rasul and R. Vollgraf, Fashion-MNIST, 2017, arXiv:1708.07747.
    """

    mirrors = ["http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "8d4fb7e6c68d591d4c3dfef9ec88bf0d"),
        ("train-labels-idx1-ubyte.gz", "25c81989df183df01b3e8a0aad5dffbe"),
        ("t10k-images-idx3-ubyte.gz", "bef4ecab320f06d8554ea6380940ec79"),
        ("t10k-labels-idx1-ubyte.gz", "bb300cfdad3c16e7a12a480ee83cd310"),
    ]
    classes = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"]


class KMNIST(MNIST):
    """70,000 handwritten characters of cursive Japanese of 28 by 28 pixels, in MNIST's form, below ``root/KMNIST/raw``.

    Source: T. Clanuwat and others, Deep Learning for Classical Japanese Literature, 2018, arXiv:1812.01718.
    """

    mirrors = ["http://codh.rois.ac.jp/kmnist/dataset/kmnist/"]
    resources = [
        ("train-images-idx3-ubyte.gz", "bdb82020997e1d708af4cf47b453dcf7"),
        ("train-labels-idx1-ubyte.gz", "e144d726b3acfaa3e44228e80efcd344"),
        ("t10k-images-idx3-ubyte.gz", "5c965bf0a639b31b8f53240b1b52f4d7"),
        ("t10k-labels-idx1-ubyte.gz", "7320c461ea6c1c855c0b718fb2a4b134"),
    ]
    classes = ["o", "ki", "su", "tsu", "na", "ha", "ma", "ya", "re", "wo"]
