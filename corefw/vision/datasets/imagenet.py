"""The images of the ImageNet challenge of 2012, from its archives."""

from __future__ import annotations

import os
import tarfile
import tempfile
from typing import Any

from corefw.serialization import load, save
from corefw.vision.datasets.download import CorruptedError, check_integrity
from corefw.vision.datasets.folder import ImageFolder

#: the archive of each part, and its MD5 sum
ARCHIVES = {
    "train": ("ILSVRC2012_img_train.tar", "1d675b47d978889d74fa0da5fadfb00e"),
    "val": ("ILSVRC2012_img_val.tar", "29b22e2961454d5413ddabcf34fc5622"),
    "devkit": ("ILSVRC2012_devkit_t12.tar.gz", "fa75699e90414af021442c21a62c3abf"),
}
META_FILE = "meta.bin"


class ImageNet(ImageFolder):
    """The 1000 classes of the ImageNet challenge of 2012: 1,281,167 images to train with, 50,000 to validate.

    The archives are not free to download: they are fetched from https://image-net.org by who has an account there, and
    put into `root`. What they hold is unpacked beside them the first time, as ``root/train/<wnid>/`` and
    ``root/val/<wnid>/``.

    Args:
        root: the folder of the archives, or of what was unpacked and ``meta.bin``.
        split: "train" or "val".
        kwargs: as `ImageFolder`: `transform`, `target_transform`, `loader`.

    Attributes:
        wnids: the name of each class in WordNet, as that of its folder; `wnid_to_idx` has their numbers.
        classes: for each class the words that mean it, a tuple; `class_to_idx` has the number of each word.

    Raises:
        RuntimeError: an archive is needed and is not there, or is not what was published.
        ValueError: there is no such split.

    Source: Russakovsky et al., "ImageNet large scale visual recognition challenge" (2015).
    """

    def __init__(self, root: str | os.PathLike, split: str = "train", **kwargs: Any) -> None:
        if split not in ("train", "val"):
            raise ValueError(f"Unknown value '{split}' for argument split. Valid values are {{'train', 'val'}}.")
        self.split = split
        root = self.root = os.path.expanduser(os.fspath(root))
        if not os.path.isfile(os.path.join(root, META_FILE)):
            parse_devkit_archive(root)
        wnid_to_classes, val_wnids = load(os.path.join(root, META_FILE), weights_only=True)
        if not os.path.isdir(self.split_folder):
            if split == "train":
                parse_train_archive(root)
            else:
                parse_val_archive(root, val_wnids)
        super().__init__(self.split_folder, **kwargs)
        self.root = root
        self.wnids, self.wnid_to_idx = self.classes, self.class_to_idx
        self.classes = [wnid_to_classes[wnid] for wnid in self.wnids]
        self.class_to_idx = {word: number for number, words in enumerate(self.classes) for word in words}

    @property
    def split_folder(self) -> str:
        """The folder of the classes' folders."""
        return os.path.join(self.root, self.split)

    def extra_repr(self) -> str:
        """What the repr says besides."""
        return f"Split: {self.split}"


def _archive(root: str, part: str) -> str:
    """The path of an archive, which is there and whole."""
    name, md5 = ARCHIVES[part]
    path = os.path.join(root, name)
    if not check_integrity(path, md5):
        raise CorruptedError(
            f"The archive {name} is not present in the root directory or is corrupted: get it from "
            f"https://image-net.org and put it at {path} (MD5 sum {md5})."
        )
    return path


def parse_devkit_archive(root: str) -> None:
    """Write what the development kit says of classes, and of the validation's images, to ``meta.bin``."""
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise ImportError("ImageNet: reading the development kit takes SciPy: pip install scipy") from error
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(_archive(root, "devkit")) as archive:
            archive.extractall(folder, filter="data")
        data = os.path.join(folder, "ILSVRC2012_devkit_t12", "data")
        synsets = loadmat(os.path.join(data, "meta.mat"), squeeze_me=True)["synsets"].tolist()
        with open(os.path.join(data, "ILSVRC2012_validation_ground_truth.txt")) as file:
            numbers = [int(line) for line in file]
    leaves = [synset[:3] for synset in synsets if synset[4] == 0]
    wnids = {int(number): str(wnid) for number, wnid, _ in leaves}
    words = {str(wnid): tuple(str(said).split(", ")) for _, wnid, said in leaves}
    save((words, [wnids[number] for number in numbers]), os.path.join(root, META_FILE))


def parse_train_archive(root: str) -> None:
    """Unpack the images to train with, which are an archive for each class, into ``root/train``."""
    with _into(os.path.join(root, "train")) as folder, tarfile.open(_archive(root, "train")) as archive:
        for member in archive:
            inner = archive.extractfile(member)
            if inner is not None:
                with tarfile.open(fileobj=inner) as images:
                    images.extractall(os.path.join(folder.path, os.path.splitext(member.name)[0]), filter="data")


def parse_val_archive(root: str, wnids: list[str]) -> None:
    """Unpack the images to validate with into ``root/val``, each into the folder of its class."""
    with _into(os.path.join(root, "val")) as folder, tarfile.open(_archive(root, "val")) as archive:
        archive.extractall(folder.path, filter="data")
        for wnid in set(wnids):
            os.mkdir(os.path.join(folder.path, wnid))
        images = sorted(entry.name for entry in os.scandir(folder.path) if entry.is_file())
        if len(images) != len(wnids):
            raise CorruptedError(f"ImageNet: {len(wnids)} classes are told, {len(images)} images came")
        for name, wnid in zip(images, wnids, strict=True):
            os.rename(os.path.join(folder.path, name), os.path.join(folder.path, wnid, name))


class _into:
    """A folder that has its name only when all is in it, so that what is interrupted leaves nothing behind."""

    def __init__(self, path: str):
        self.final = path

    def __enter__(self) -> _into:
        self.temporary = tempfile.TemporaryDirectory(dir=os.path.dirname(self.final))
        self.path = os.path.join(self.temporary.name, "unpacked")
        os.mkdir(self.path)
        return self

    def __exit__(self, kind, *_) -> None:
        if kind is None:
            os.rename(self.path, self.final)
        self.temporary.cleanup()
