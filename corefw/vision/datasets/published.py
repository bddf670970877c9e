"""What data sets of published files share: where these are fetched from, their sums, and what archives unpack to."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from corefw.vision.datasets.base import VisionDataset
from corefw.vision.datasets.download import check_integrity, fetch, unpack
from corefw.vision.datasets.folder import default_loader


class Published(NamedTuple):
    """A published file: its address, its MD5 sum, and of an archive the folder that it unpacks to."""

    url: str
    md5: str
    unpacked: str = ""

    @property
    def name(self) -> str:
        """The file's name."""
        return self.url.rsplit("/", 1)[-1]


def one_of(name: str, value: Any, known: Sequence[str]) -> Any:
    """`value`, which is one of `known`."""
    if value not in known:
        raise ValueError(f"Unknown value '{value}' for argument {name}. Valid values are {{{', '.join(known)}}}.")
    return value


def load_mat(data_set: str, path: str) -> dict[str, Any]:
    """The variables in a MATLAB file."""
    try:
        from scipy.io import loadmat
    except ImportError as error:
        raise ImportError(f"{data_set}: reading {os.path.basename(path)} takes SciPy: pip install scipy") from error
    return loadmat(path)


class PublishedFiles(VisionDataset):
    """Base of data sets whose files lie in ``root/folder``: a subclass lists them, and has ``_load``."""

    #: below `root`
    folder = ""
    published: Sequence[Published] = ()

    def __init__(
        self,
        root: str | os.PathLike,
        transforms: Callable | None = None,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(os.path.expanduser(os.fspath(root)), transforms, transform, target_transform)
        if download:
            self.download()
        if missing := [file.unpacked or file.name for file in self._wanted() if not self._is_there(file)]:
            raise RuntimeError(
                f"Dataset not found or corrupted: {self._path()} lacks {', '.join(missing)} as published. "
                "You can use download=True to download it"
            )
        self._load()

    def _load(self) -> None:
        """Read what says which samples there are."""
        raise NotImplementedError

    def _wanted(self) -> Sequence[Published]:
        """The files that this part of the data set needs."""
        return self.published

    def _path(self, *names: str) -> str:
        return os.path.join(self.root, self.folder, *names)

    def _is_there(self, file: Published) -> bool:
        if file.unpacked:
            return os.path.isdir(self._path(*file.unpacked.split("/")))
        return check_integrity(self._path(file.name), file.md5)

    def download(self) -> None:
        """Fetch the files that are missing, and unpack archives."""
        for file in self._wanted():
            if not self._is_there(file):
                fetch([file.url], self._path(file.name), file.md5)
                if file.unpacked:
                    unpack(self._path(file.name), self._path())


class ImageFiles(PublishedFiles):
    """Base of data sets of image files: `_load` sets their paths and their targets."""

    _images: Sequence[str]
    _labels: Sequence[Any]
    loader: Callable[[str], Any] = staticmethod(default_loader)

    def _target(self, index: int) -> Any:
        return self._labels[index]

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """The image and its target; each through its transform if given."""
        image, target = self.loader(self._images[index]), self._target(index)
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self) -> int:
        return len(self._images)
