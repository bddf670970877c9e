"""Data sets of the files in folders, a folder for each class."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from corefw.vision.datasets.base import VisionDataset
from corefw.vision.pillow import pillow

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def has_file_allowed_extension(filename: str, extensions: str | tuple[str, ...]) -> bool:
    """Whether a file's name ends in one of `extensions`, which are lower-case; its own case does not matter.

    >>> has_file_allowed_extension("Cat.PNG", IMG_EXTENSIONS)
    True
    """
    return filename.lower().endswith(extensions if isinstance(extensions, str) else tuple(extensions))


def is_image_file(filename: str) -> bool:
    """Whether a file's name ends as an image's does."""
    return has_file_allowed_extension(filename, IMG_EXTENSIONS)


def find_classes(directory: str | os.PathLike) -> tuple[list[str], dict[str, int]]:
    """The names of the folders in `directory`, sorted, and the number of each.

    Raises:
        FileNotFoundError: there is no folder in it.
    """
    with os.scandir(os.fspath(directory)) as entries:
        classes = sorted(entry.name for entry in entries if entry.is_dir())
    if not classes:
        raise FileNotFoundError(f"Couldn't find any class folder in {directory}.")
    return classes, {name: number for number, name in enumerate(classes)}


def make_dataset(
    directory: str | os.PathLike,
    class_to_idx: dict[str, int] | None = None,
    extensions: str | tuple[str, ...] | None = None,
    is_valid_file: Callable[[str], bool] | None = None,
    allow_empty: bool = False,
) -> list[tuple[str, int]]:
    """The path of every file below the folder of a class, with the number of the class.

    Args:
        directory: the folder of the classes' folders.
        class_to_idx: the number of each class; that of `find_classes` if missing.
        extensions: of the files that count; either they or `is_valid_file`.
        is_valid_file: whether a file, given its path, counts.
        allow_empty: accept classes without files.

    Raises:
        FileNotFoundError: a class has no files, unless `allow_empty`.
    """
    directory = os.path.expanduser(directory)
    if class_to_idx is None:
        _, class_to_idx = find_classes(directory)
    elif not class_to_idx:
        raise ValueError("'class_to_index' must have at least one entry to collect any samples.")
    if (extensions is None) == (is_valid_file is None):
        raise ValueError("Both extensions and is_valid_file cannot be None or not None at the same time")
    found = []
    for name in sorted(class_to_idx):
        for folder, _, files in sorted(os.walk(os.path.join(directory, name), followlinks=True)):
            for path in (os.path.join(folder, file) for file in sorted(files)):
                if is_valid_file(path) if is_valid_file is not None else has_file_allowed_extension(path, extensions):  # type: ignore[arg-type]
                    found.append((path, class_to_idx[name]))
    filled = {number for _, number in found}
    empty = sorted(name for name, number in class_to_idx.items() if number not in filled)
    if empty and not allow_empty:
        text = f"Found no valid file for the classes {', '.join(empty)}. "
        if extensions is not None:
            text += f"Supported extensions are: {extensions if isinstance(extensions, str) else ', '.join(extensions)}"
        raise FileNotFoundError(text)
    return found


class DatasetFolder(VisionDataset):
    """The files below ``root/<class>/``, at any depth; the classes are numbered in the order of their names.

    Args:
        root: the folder of the classes' folders.
        loader: makes a sample from a path.
        extensions: of the files that count; either they or `is_valid_file`.
        transform: applied to each sample.
        target_transform: applied to each target, the number of the class.
        is_valid_file: whether a file, given its path, counts.
        allow_empty: accept classes without files.

    Attributes:
        classes: the names of the classes; `class_to_idx` has their numbers.
        samples: the path and target of each sample.
        targets: the targets alone.

    Raises:
        FileNotFoundError: there are no classes, or a class has no files.
    """

    def __init__(
        self, root: str | os.PathLike, loader: Callable[[str], Any], extensions: tuple[str, ...] | None = None,
        transform: Callable | None = None, target_transform: Callable | None = None, is_valid_file: Callable[[str],
        bool] | None = None, allow_empty: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(root, transform=transform, target_transform=target_transform)
        self.loader = loader
        self.extensions = extensions
        self.classes, self.class_to_idx = self.find_classes(self.root)
        self.samples = self.make_dataset(self.root, self.class_to_idx, extensions, is_valid_file, allow_empty)
        self.targets = [target for _, target in self.samples]

    @staticmethod
    def make_dataset(
        directory: str | os.PathLike,
        class_to_idx: dict[str, int],
        extensions: tuple[str, ...] | None = None,
        is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> list[tuple[str, int]]:
        """The samples; a subclass may find them in another way."""
        if class_to_idx is None:
            raise ValueError("The class_to_idx parameter cannot be None.")
        return make_dataset(directory, class_to_idx, extensions, is_valid_file, allow_empty)

    def find_classes(self, directory: str | os.PathLike) -> tuple[list[str], dict[str, int]]:
        """The classes and their numbers; a subclass may find them in another way."""
        return find_classes(directory)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """The sample and its target; each through its transform if given."""
        path, target = self.samples[index]
        return self._transformed(self.loader(path), target)

    def __len__(self) -> int:
        return len(self.samples)


def default_loader(path: str | os.PathLike) -> Any:
    """The image in a file, a Pillow image of mode "RGB"."""
    with open(path, "rb") as file:
        return pillow().open(file).convert("RGB")


class ImageFolder(DatasetFolder):
    """The images below ``root/<class>/``, as ``root/cat/123.png``; classes are numbered in the order of their names.

    Args:
        root: the folder of the classes' folders.
        transform: applied to each image, a Pillow image of mode "RGB".
        target_transform: applied to each target, the number of the class.
        loader: makes an image from a path.
        is_valid_file: whether a file, given its path, counts; by its extension if missing.
        allow_empty: accept classes without files.

    Attributes:
        classes: the names of the classes; `class_to_idx` has their numbers.
        imgs: the path and target of each image, the same as `samples`.
    """

    def __init__(
        self, root: str | os.PathLike, transform: Callable | None = None, target_transform: Callable | None = None,
        loader: Callable[[str], Any] = default_loader, is_valid_file: Callable[[str], bool] | None = None,
        allow_empty: bool = False,
    ) -> None:  # fmt: skip
        extensions = IMG_EXTENSIONS if is_valid_file is None else None
        super().__init__(root, loader, extensions, transform, target_transform, is_valid_file, allow_empty)
        self.imgs = self.samples
