"""EMNIST and QMNIST: more handwritten characters in MNIST's format."""

from __future__ import annotations

import gzip
import lzma
import os
import shutil
import string
import zipfile
from typing import Any

import numpy as np

import corefw
from corefw.files import replacing
from corefw.vision.datasets.download import CorruptedError, check_integrity, fetch
from corefw.vision.datasets.mnist import MNIST, read_idx
from corefw.vision.datasets.published import one_of
from corefw.vision.pillow import image_from_array

#: letters whose capitals look the same and share a class in some splits
_MERGED = set("cijklmopsuvwxyz")
_ALL = sorted(string.digits + string.ascii_letters)


class EMNIST(MNIST):
    """Handwritten letters and digits of 28 by 28 pixels, in MNIST's form, below ``root/EMNIST/raw``.

    Args:
        root: the folder that has ``EMNIST/raw/emnist-<split>-train-images-idx3-ubyte`` and its companions, as they are
            or with ``.gz``.
        split: "byclass" (62 classes, 814,255 images), "bymerge" (47), "balanced" (47), "letters" (26), "digits" or
            "mnist".
        kwargs: as `MNIST` takes them: `train`, `transform`, `target_transform`, `download`.

    Source: G. Cohen and others, EMNIST: an extension of MNIST to handwritten letters, 2017, arXiv:1702.05373.
    """

    url = "https://biometrics.nist.gov/cs_links/EMNIST/gzip.zip"
    md5 = "58c8d27c78d21e728a6bc7b3cc06412e"
    splits = ("byclass", "bymerge", "balanced", "letters", "digits", "mnist")
    classes_split_dict = {
        "byclass": _ALL,
        "bymerge": [name for name in _ALL if name not in _MERGED],
        "balanced": [name for name in _ALL if name not in _MERGED],
        "letters": ["N/A", *string.ascii_lowercase],
        "digits": list(string.digits),
        "mnist": list(string.digits),
    }

    def __init__(self, root: str | os.PathLike, split: str, **kwargs: Any) -> None:
        self.split = one_of("split", split, self.splits)
        self.classes = self.classes_split_dict[split]
        super().__init__(root, **kwargs)

    def _names(self) -> tuple[str, str]:
        start = f"emnist-{self.split}-{'train' if self.train else 'test'}"
        return f"{start}-images-idx3-ubyte.gz", f"{start}-labels-idx1-ubyte.gz"

    def _load(self) -> None:
        self._require(list(self._names()))
        self._load_pair(self.split, *self._names())

    def download(self) -> None:
        """Fetch the archive of all splits and unpack their files from it; nothing else in it is looked at."""
        if all(self._present(name) for name in self._names()):
            return
        archive = os.path.join(self.raw_folder, "gzip.zip")
        fetch([self.url], archive, self.md5)
        with zipfile.ZipFile(archive) as members:
            for member in members.namelist():
                name = member.removeprefix("gzip/")
                if name.startswith("emnist-") and name.endswith("-ubyte.gz") and "/" not in name:
                    with (
                        members.open(member) as stored,
                        gzip.open(stored) as source,
                        replacing(os.path.join(self.raw_folder, name.removesuffix(".gz"))) as file,
                    ):
                        shutil.copyfileobj(source, file)


class QMNIST(MNIST):
    """MNIST's digits with their writers, and the 50,000 of its test images that were lost, below ``root/QMNIST/raw``.

    Args:
        root: the folder that has ``QMNIST/raw/qmnist-train-images-idx3-ubyte`` and its companions.
        what: "train", "test" (60,000), "test10k" (MNIST's), "test50k" (the others) or "nist" (402,953 digits); by
            `train` if missing.
        compat: whether a target is the digit, an int, or all that is known, a tensor of 8 numbers: digit, series of the
            writer, writer, number of the image of this writer, code, position in NIST's data, and two more.
        train: as `MNIST` takes it.
        kwargs: `transform`, `target_transform`, `download`, as `MNIST` takes them.

    Source: C. Yadav and L. Bottou, Cold Case: the Lost MNIST Digits, 2019, arXiv:1905.10498.
    """

    mirrors = ["https://raw.githubusercontent.com/facebookresearch/qmnist/master/"]
    subsets = {"train": "train", "test": "test", "test10k": "test", "test50k": "test", "nist": "nist"}
    resources: Any = {
        "train": [
            ("qmnist-train-images-idx3-ubyte.gz", "ed72d4157d28c017586c42bc6afe6370"),
            ("qmnist-train-labels-idx2-int.gz", "0058f8dd561b90ffdd0f734c6a30e5e4"),
        ],
        "test": [
            ("qmnist-test-images-idx3-ubyte.gz", "1394631089c404de565df7b7aeaf9412"),
            ("qmnist-test-labels-idx2-int.gz", "5b5b05890a5e13444e108efe57b788aa"),
        ],
        "nist": [
            ("xnist-images-idx3-ubyte.xz", "7f124b3b8ab81486c9d8c2749c17f834"),
            ("xnist-labels-idx2-int.xz", "5ed0e788978e45d4a8bd4b7caec3d79d"),
        ],
    }

    def __init__(
        self, root: str | os.PathLike, what: str | None = None, compat: bool = True, train: bool = True, **kwargs: Any
    ) -> None:
        part = ("train" if train else "test") if what is None else what
        self.what = one_of("what", part, tuple(self.subsets))
        self.compat = compat
        super().__init__(root, train, **kwargs)

    def _files(self) -> list[tuple[str, str]]:
        return self.resources[self.subsets[self.what]]

    def _plain(self, name: str) -> str:
        return os.path.join(self.raw_folder, os.path.splitext(name)[0])

    def _load(self) -> None:
        for name, _ in self._files():
            if not os.path.isfile(self._plain(name)):
                raise RuntimeError(
                    f"Dataset not found: there is no {self._plain(name)}. You can use download=True to download it"
                )
        images, labels = (read_idx(self._plain(name)) for name, _ in self._files())
        if images.dtype != np.uint8 or images.ndim != 3 or labels.ndim != 2 or len(images) != len(labels):
            raise CorruptedError(
                f"{self.raw_folder}: {images.dtype} images of shape {images.shape} and labels of shape {labels.shape}"
            )
        part = {"test10k": slice(10000), "test50k": slice(10000, None)}.get(self.what, slice(None))
        self.data = corefw.from_numpy(images[part])
        self.targets = corefw.from_numpy(labels[part].astype(np.int64))

    def download(self) -> None:
        """Fetch the files of this part that are missing, and decompress them."""
        for name, md5 in self._files():
            if os.path.isfile(self._plain(name)):
                continue
            path = os.path.join(self.raw_folder, name)
            if not check_integrity(path, md5):
                fetch([mirror + name for mirror in self.mirrors], path, md5)
            with (lzma if name.endswith(".xz") else gzip).open(path) as source, replacing(self._plain(name)) as file:
                shutil.copyfileobj(source, file)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """The image, a Pillow image, and its target; each through its transform if given."""
        target = int(self.targets[index][0]) if self.compat else self.targets[index]
        return self._transformed(image_from_array(self.data[index].numpy(), "L"), target)

    def extra_repr(self) -> str:
        return f"Split: {self.what}"
