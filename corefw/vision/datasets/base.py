"""The base of image data sets: where they lie, their transforms, and how they print."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from corefw.utils.data import Dataset


def _described(head: str, transform: Callable) -> list[str]:
    first, *rest = repr(transform).splitlines()
    return [head + first, *(" " * len(head) + line for line in rest)]


class StandardTransform:
    """A transform of the image and one of the target, as one transform of both.

    >>> StandardTransform(target_transform=str)("image", 3)
    ('image', '3')
    """

    def __init__(self, transform: Callable | None = None, target_transform: Callable | None = None) -> None:
        self.transform = transform
        self.target_transform = target_transform

    def __call__(self, input: Any, target: Any) -> tuple[Any, Any]:
        if self.transform is not None:
            input = self.transform(input)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return input, target

    def __repr__(self) -> str:
        lines = [type(self).__name__]
        if self.transform is not None:
            lines += _described("Transform: ", self.transform)
        if self.target_transform is not None:
            lines += _described("Target transform: ", self.target_transform)
        return "\n".join(lines)


class VisionDataset(Dataset):
    """Base of data sets of images: a subclass has ``__getitem__`` and ``__len__``.

    Args:
        root: the folder of the data; a leading ``~`` is the home folder.
        transforms: of image and target together, given both; excludes the next two.
        transform: of the image.
        target_transform: of the target.
    """

    def __init__(
        self,
        root: str | os.PathLike | None = None,
        transforms: Callable | None = None,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
    ) -> None:
        self.root: Any = os.path.expanduser(root) if isinstance(root, str) else root
        separate = transform is not None or target_transform is not None
        if transforms is not None and separate:
            raise ValueError("Only transforms or transform/target_transform can be passed as argument")
        self.transform = transform
        self.target_transform = target_transform
        self.transforms = StandardTransform(transform, target_transform) if separate else transforms

    def _transformed(self, image: Any, target: Any) -> tuple[Any, Any]:
        if self.transform is not None:
            image = self.transform(image)
        if self.target_transform is not None:
            target = self.target_transform(target)
        return image, target

    def __getitem__(self, index: int) -> Any:
        raise NotImplementedError

    def __len__(self) -> int:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """What a subclass adds to its text, a line each."""
        return ""

    def __repr__(self) -> str:
        lines = [f"Number of datapoints: {len(self)}"]
        if self.root is not None:
            lines.append(f"Root location: {self.root}")
        lines += self.extra_repr().splitlines()
        if self.transforms is not None:
            lines.append(repr(self.transforms))
        return "\n".join([f"Dataset {type(self).__name__}", *(f"    {line}" for line in lines)])


class PublishedDataset(VisionDataset):
    """Base of data sets that are published in a part to train with and one held out, and are read into memory.

    A subclass has ``download``, which fetches what `root` lacks, and ``_load``, which sets ``data`` or raises
    RuntimeError if files are missing.
    """

    data: Any

    def __init__(
        self,
        root: str | os.PathLike,
        train: bool = True,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        download: bool = False,
    ) -> None:
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.train = train
        if download:
            self.download()
        self._load()

    def download(self) -> None:
        raise NotImplementedError

    def _load(self) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.data)

    def extra_repr(self) -> str:
        return f"Split: {'Train' if self.train else 'Test'}"
