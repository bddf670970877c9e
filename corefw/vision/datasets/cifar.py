"""CIFAR-10 and CIFAR-100: colour images in pickled batches, read by an unpickler that makes arrays and nothing else."""

from __future__ import annotations

import io
import os
import pickle
import shutil
import tarfile
from typing import Any

import numpy as np

from corefw.files import replacing
from corefw.vision.datasets.base import PublishedDataset
from corefw.vision.datasets.download import CorruptedError, check_integrity, fetch
from corefw.vision.pillow import image_from_array

#: what a pickled NumPy array is made by; the function's home has changed its name
_MAKERS = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    **dict.fromkeys(
        [("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct")],
        np.empty(0).__reduce__()[0],
    ),
}


class _ArrayUnpickler(pickle.Unpickler):
    """Reads containers, numbers, strings and arrays; a pickle that names anything else is refused, not run."""

    def find_class(self, module: str, name: str) -> Any:
        try:
            return _MAKERS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"a batch has no business with {module}.{name}") from None


def read_batch(path: str | os.PathLike) -> dict[str, Any]:
    """The dictionary in a batch file that Python 2 pickled.

    Raises:
        CorruptedError: the file is no pickle, or one that asks for more than arrays.
    """
    with open(path, "rb") as file:
        stored = file.read()
    try:
        batch = _ArrayUnpickler(io.BytesIO(stored), encoding="latin1").load()
    except Exception as error:  # a damaged pickle raises nearly anything
        raise CorruptedError(f"{path} is no batch of images: {error}") from error
    if not isinstance(batch, dict):
        raise CorruptedError(f"{path} is no batch of images: it holds a {type(batch).__name__}")
    return batch


class CIFAR10(PublishedDataset):
    """60,000 colour images of 32 by 32 pixels in 10 classes, 50,000 of them to train with.

    Args:
        root: the folder that has ``cifar-10-batches-py``, or the published archive, or is to have them.
        train: the images to train with if true, else the 10,000 held out.
        transform: applied to each image, a Pillow image of mode "RGB".
        target_transform: applied to each target, an int.
        download: fetch and unpack the archive if `root` lacks its files.

    Attributes:
        data: uint8 array of shape (images, 32, 32, 3).
        targets: list of ints.
        classes: the names of the classes; `class_to_idx` has their numbers.

    Raises:
        DownloadError: the archive could not be fetched.
        RuntimeError: `root` lacks the files, or they are corrupted.

    Source: A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
    """

    base_folder = "cifar-10-batches-py"
    url = "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz"
    filename = "cifar-10-python.tar.gz"
    tgz_md5 = "c58f30108f718f92721af3b95e74349a"
    train_list = [
        ["data_batch_1", "c99cafc152244af753f735de768cd75f"],
        ["data_batch_2", "d4bba439e000b95fd0a9bffe97cbabec"],
        ["data_batch_3", "54ebc095f3ab1f0389bbae665268c751"],
        ["data_batch_4", "634d18415352ddfa80567beed471001a"],
        ["data_batch_5", "482c414d41f54cd18b22e5b47cb7c3cb"],
    ]
    test_list = [["test_batch", "40351d587109b95175f43aff81a1287e"]]
    meta = {"filename": "batches.meta", "key": "label_names", "md5": "5ff9c542aee3614f3951f8cda6e48888"}

    def _load(self) -> None:
        if bad := self._missing():
            raise RuntimeError(
                f"Dataset not found or corrupted: {os.path.join(self.root, self.base_folder)} lacks {', '.join(bad)} "
                "as published. You can use download=True to download it"
            )
        batches = [read_batch(self._path(name)) for name, _ in (self.train_list if self.train else self.test_list)]
        rows = np.concatenate([batch["data"] for batch in batches])
        self.data = np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
        kind = "labels" if "labels" in batches[0] else "fine_labels"
        self.targets: list[int] = [target for batch in batches for target in batch[kind]]
        self.classes: list[str] = read_batch(self._path(self.meta["filename"]))[self.meta["key"]]
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}

    def _path(self, name: str) -> str:
        return os.path.join(self.root, self.base_folder, name)

    def _published(self) -> dict[str, str]:
        return {**dict(self.train_list + self.test_list), self.meta["filename"]: self.meta["md5"]}

    def _missing(self) -> list[str]:
        return [name for name, md5 in self._published().items() if not check_integrity(self._path(name), md5)]

    def download(self) -> None:
        """Fetch the archive and unpack the files of the data set from it; nothing else in it is looked at."""
        if not self._missing():
            return
        archive = os.path.join(self.root, self.filename)
        fetch([self.url], archive, self.tgz_md5)
        os.makedirs(os.path.join(self.root, self.base_folder), exist_ok=True)
        wanted = {f"{self.base_folder}/{name}": name for name in self._published()}
        with tarfile.open(archive, "r:gz") as members:
            for member in members:
                if member.isfile() and member.name in wanted:
                    source = members.extractfile(member)
                    assert source is not None  # only of what is no file
                    with source, replacing(self._path(wanted[member.name])) as file:
                        shutil.copyfileobj(source, file)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """The image, a Pillow image, and its target, an int; each through its transform if given."""
        return self._transformed(image_from_array(self.data[index]), self.targets[index])


class CIFAR100(CIFAR10):
    """60,000 colour images of 32 by 32 pixels in 100 classes, in CIFAR-10's form, in ``root/cifar-100-python``.

    Source: A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
    """

    base_folder = "cifar-100-python"
    url = "https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz"
    filename = "cifar-100-python.tar.gz"
    tgz_md5 = "eb9058c3a382ffc7106e4002c42a8d85"
    train_list = [["train", "16019d7e3df5f24257cddd939b257f8d"]]
    test_list = [["test", "f0ef6b0ae62326f3e7ffdfab6717acfc"]]
    meta = {"filename": "meta", "key": "fine_label_names", "md5": "7973b15100ade9c7d40fb424638fde48"}
