"""Data sets of image files that a list tells the classes of: Caltech 101, Food-101, Flowers, Pets and CelebA."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

import corefw
from corefw import Tensor
from corefw.vision.datasets.download import DownloadError, unpack
from corefw.vision.datasets.folder import default_loader
from corefw.vision.datasets.published import ImageFiles, Published, load_mat, one_of
from corefw.vision.pillow import pillow


def _as_stored(path: str) -> Any:
    """The image in a file, in its own mode."""
    with pillow().open(path) as image:
        image.load()
        return image


def _one_or_all(targets: list[Any]) -> Any:
    return targets[0] if len(targets) == 1 else tuple(targets)


class Caltech101(ImageFiles):
    """9,146 pictures of objects in 101 categories, below ``root/caltech101``.

    Args:
        root: the folder that has ``caltech101/101_ObjectCategories`` and ``caltech101/Annotations``.
        target_type: "category", the category's number; "annotation", the outline of the object, an array that SciPy
            reads; or a list of both.
        transform: applied to each image, a Pillow image in its own mode.
        target_transform: applied to each target.
        download: fetch and unpack the archive if `root` lacks its files.

    Attributes:
        categories: their names; `y` has the number of each image's.

    Source: L. Fei-Fei, R. Fergus and P. Perona, One-shot learning of object categories, 2006.
    """

    folder = "caltech101"
    published = (
        Published(
            "https://data.caltech.edu/records/mzrjq-6wc02/files/caltech-101.zip",
            "3138e1922a9193bfa496528edbbc45d0",
            "101_ObjectCategories",
        ),
    )
    #: categories whose outlines lie in a folder of another name
    _outlines = {
        "Faces": "Faces_2",
        "Faces_easy": "Faces_3",
        "Motorbikes": "Motorbikes_16",
        "airplanes": "Airplanes_Side_2",
    }
    loader = staticmethod(_as_stored)

    def __init__(
        self,
        root: str | os.PathLike,
        target_type: list[str] | str = "category",
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        download: bool = False,
    ) -> None:
        kinds = [target_type] if isinstance(target_type, str) else list(target_type)
        self.target_type = [one_of("target_type", kind, ("category", "annotation")) for kind in kinds]
        super().__init__(root, None, transform, target_transform, download)

    def download(self) -> None:
        """Fetch the archive, and unpack it and the archives that are within."""
        if self._is_there(self.published[0]):
            return
        super().download()
        for name in ("101_ObjectCategories.tar.gz", "Annotations.tar"):
            unpack(self._path("caltech-101", name), self._path())

    def _load(self) -> None:
        folder = self._path("101_ObjectCategories")
        self.categories = sorted(set(os.listdir(folder)) - {"BACKGROUND_Google"})  # which is no category
        self.annotation_categories = [self._outlines.get(name, name) for name in self.categories]
        self.index: list[int] = []
        self.y: list[int] = []
        for number, name in enumerate(self.categories):
            count = len(os.listdir(os.path.join(folder, name)))
            self.index += range(1, count + 1)
            self.y += [number] * count
        self._labels = self.y
        self._images = [
            os.path.join(folder, self.categories[label], f"image_{index:04d}.jpg")
            for label, index in zip(self.y, self.index, strict=True)
        ]

    def _target(self, index: int) -> Any:
        targets: list[Any] = []
        for kind in self.target_type:
            if kind == "category":
                targets.append(self.y[index])
            else:
                name = f"annotation_{self.index[index]:04d}.mat"
                path = self._path("Annotations", self.annotation_categories[self.y[index]], name)
                targets.append(load_mat("Caltech101", path)["obj_contour"])
        return _one_or_all(targets)

    def extra_repr(self) -> str:
        return f"Target type: {self.target_type}"


class _Split(ImageFiles):
    """Base of data sets with named parts."""

    _splits: tuple[str, ...]

    def __init__(
        self, root: str | os.PathLike, split: str = "train", transform: Callable | None = None,
        target_transform: Callable | None = None, download: bool = False,
        loader: Callable[[str], Any] = default_loader,
    ) -> None:  # fmt: skip
        self._split = one_of("split", split, self._splits)
        self.loader = loader
        super().__init__(root, None, transform, target_transform, download)

    def extra_repr(self) -> str:
        return f"split={self._split}"


class Food101(_Split):
    """101,000 pictures of 101 dishes, below ``root/food-101``.

    Args:
        root: the folder that has ``food-101/meta`` and ``food-101/images``.
        split: "train" (75,750 images) or "test" (25,250).
        transform: applied to each image, a Pillow image of mode "RGB".
        target_transform: applied to each target, the number of the class.
        download: fetch and unpack the archive if `root` lacks its files.
        loader: makes an image from a path.

    Attributes:
        classes: the names of the classes; `class_to_idx` has their numbers.

    Source: L. Bossard, M. Guillaumin and L. Van Gool, Food-101: Mining Discriminative Components, 2014.
    """

    published = (
        Published(
            "http://data.vision.ee.ethz.ch/cvl/food-101.tar.gz", "85eeb15f3717b99a5da872d97d918f87", "food-101/meta"
        ),
    )
    _splits = ("train", "test")

    def _load(self) -> None:
        with open(self._path("food-101", "meta", f"{self._split}.json")) as file:
            listed = json.load(file)
        self.classes = sorted(listed)
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self._labels = [self.class_to_idx[name] for name, images in listed.items() for _ in images]
        self._images = [
            self._path("food-101", "images", *f"{image}.jpg".split("/"))
            for images in listed.values()
            for image in images
        ]


class Flowers102(_Split):
    """8,189 pictures of 102 flowers, below ``root/flowers-102``.

    Args:
        root: the folder that has ``flowers-102/jpg``, ``imagelabels.mat`` and ``setid.mat``.
        split: "train" (1,020 images), "val" (1,020) or "test" (6,149).
        transform: applied to each image, a Pillow image of mode "RGB".
        target_transform: applied to each target, the number of the class.
        download: fetch what `root` lacks.
        loader: makes an image from a path.

    Raises:
        ImportError: SciPy is not installed, which reads the lists.

    Source: M.-E. Nilsback and A. Zisserman, Automated Flower Classification over a Large Number of Classes, 2008.
    """

    folder = "flowers-102"
    _address = "https://www.robots.ox.ac.uk/~vgg/data/flowers/102/"
    published = (
        Published(f"{_address}102flowers.tgz", "52808999861908f626f3c1f4e79d11fa", "jpg"),
        Published(f"{_address}imagelabels.mat", "e0620be6f572b9609742df49c70aed4d"),
        Published(f"{_address}setid.mat", "a5357ecc9cb78c4bef273ce3793fc85c"),
    )
    _splits = ("train", "val", "test")

    def _load(self) -> None:
        part = {"train": "trnid", "val": "valid", "test": "tstid"}[self._split]
        numbers = load_mat("Flowers102", self._path("setid.mat"))[part].ravel().tolist()
        labels = load_mat("Flowers102", self._path("imagelabels.mat"))["labels"].ravel().astype(np.int64) - 1
        self._labels = [int(labels[number - 1]) for number in numbers]
        self._images = [self._path("jpg", f"image_{number:05d}.jpg") for number in numbers]


class OxfordIIITPet(ImageFiles):
    """7,349 pictures of 37 breeds of cats and dogs, below ``root/oxford-iiit-pet``.

    Args:
        root: the folder that has ``oxford-iiit-pet/images`` and ``oxford-iiit-pet/annotations``.
        split: "trainval" (3,680 images) or "test" (3,669).
        target_types: "category", the number of the breed; "binary-category", 0 for a cat and 1 for a dog;
            "segmentation", a Pillow image of 1 for the animal, 2 around it and 3 between; or a list of them.
        transforms: of image and target together, given both; excludes the next two.
        transform: applied to each image, a Pillow image of mode "RGB".
        target_transform: applied to each target.
        download: fetch and unpack the archives if `root` lacks their files.

    Attributes:
        classes: the names of the breeds; `class_to_idx` has their numbers.

    Source: O. Parkhi and others, Cats and Dogs, 2012.
    """

    folder = "oxford-iiit-pet"
    _address = "https://www.robots.ox.ac.uk/~vgg/data/pets/data/"
    published = (
        Published(f"{_address}images.tar.gz", "5c4f3ee8e5d25df40f4fd59a7f44e54c", "images"),
        Published(f"{_address}annotations.tar.gz", "95a8c909bbe2e81eed6a22bccdf3f68f", "annotations"),
    )

    def __init__(
        self, root: str | os.PathLike, split: str = "trainval", target_types: Sequence[str] | str = "category",
        transforms: Callable | None = None, transform: Callable | None = None,
        target_transform: Callable | None = None, download: bool = False,
    ) -> None:  # fmt: skip
        self._split = one_of("split", split, ("trainval", "test"))
        kinds = [target_types] if isinstance(target_types, str) else target_types
        known = ("category", "binary-category", "segmentation")
        self._target_types = [one_of("target_types", kind, known) for kind in kinds]
        super().__init__(root, transforms, transform, target_transform, download)

    def _load(self) -> None:
        with open(self._path("annotations", f"{self._split}.txt")) as file:
            rows = [line.split() for line in file if line.strip()]
        names = [row[0] for row in rows]
        self._labels = [int(row[1]) - 1 for row in rows]
        self._bin_labels = [int(row[2]) - 1 for row in rows]
        breeds = {label: name.rsplit("_", 1)[0] for name, label in zip(names, self._labels, strict=True)}
        self.classes = [" ".join(part.title() for part in breeds[label].split("_")) for label in sorted(breeds)]
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self.bin_classes = ["Cat", "Dog"]
        self.bin_class_to_idx = {"Cat": 0, "Dog": 1}
        self._images = [self._path("images", f"{name}.jpg") for name in names]
        self._segs = [self._path("annotations", "trimaps", f"{name}.png") for name in names]

    def _target(self, index: int) -> Any:
        found = {
            "category": lambda: self._labels[index],
            "binary-category": lambda: self._bin_labels[index],
            "segmentation": lambda: _as_stored(self._segs[index]),
        }
        return _one_or_all([found[kind]() for kind in self._target_types]) if self._target_types else None


class CelebA(ImageFiles):
    """202,599 pictures of faces with 40 attributes, below ``root/celeba``.

    Its files are on a drive that programs are not let in to: they are fetched by hand, and put into ``root/celeba``.

    Args:
        root: the folder that has ``celeba/img_align_celeba`` and the five lists beside it.
        split: "train", "valid", "test" or "all".
        target_type: "attr", 40 numbers 0 or 1; "identity", the number of the person; "bbox", the face's x, y, width and
            height; "landmarks", x and y of eyes, nose and mouth's corners; a list of them; or [] for no target.
        transform: applied to each image, a Pillow image.
        target_transform: applied to each target.
        download: refused, unless the files are there.

    Attributes:
        attr, identity, bbox, landmarks_align: int64 tensors with a row for each image.
        attr_names: the names of the attributes.

    Source: Z. Liu and others, Deep Learning Face Attributes in the Wild, 2015, arXiv:1411.7766.
    """

    folder = "celeba"
    _page = "http://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
    published = (
        Published("img_align_celeba.zip", "00d2c5bc6d35e252742224ab0c1e8fcb", "img_align_celeba"),
        Published("list_attr_celeba.txt", "75e246fa4810816ffd6ee81facbd244c"),
        Published("identity_CelebA.txt", "32bd1bd63d3c78cd57e08160ec5ed1e2"),
        Published("list_bbox_celeba.txt", "00566efa6fedff7a56946cd1c10f1c16"),
        Published("list_landmarks_align_celeba.txt", "cc24ecafdb5b50baae59b03474781f8c"),
        Published("list_eval_partition.txt", "d32c9cbf5e040fd4025c592c306e6668"),
    )
    loader = staticmethod(_as_stored)

    def __init__(
        self, root: str | os.PathLike, split: str = "train", target_type: list[str] | str = "attr",
        transform: Callable | None = None, target_transform: Callable | None = None, download: bool = False,
    ) -> None:  # fmt: skip
        self.split = one_of("split", split.lower(), ("train", "valid", "test", "all"))
        kinds = [target_type] if isinstance(target_type, str) else target_type
        known = ("attr", "identity", "bbox", "landmarks")
        self.target_type = [one_of("target_type", kind, known) for kind in kinds]
        if not kinds and target_transform is not None:
            raise RuntimeError("target_transform is specified but target_type is empty")
        super().__init__(root, None, transform, target_transform, download)

    def download(self) -> None:
        """Refused, unless the files are there."""
        if missing := [file.name for file in self.published if not self._is_there(file)]:
            self._refuse(missing)

    def _refuse(self, missing: list[str]) -> NoReturn:
        raise DownloadError(
            f"CelebA: programs cannot fetch {', '.join(missing)}; get them by hand from {self._page}, put them into "
            f"{self._path()}, and unpack img_align_celeba.zip there"
        )

    def _table(self, name: str, header: bool) -> tuple[list[str], list[str], Tensor]:
        """The names of a list's columns and of its images, and its numbers."""
        with open(self._path(name)) as file:
            rows = [line.split() for line in file if line.strip()]
        names, rows = (rows[1], rows[2:]) if header else ([], rows)  # the first line tells how many images there are
        return names, [row[0] for row in rows], corefw.tensor([[int(value) for value in row[1:]] for row in rows])

    def _load(self) -> None:
        _, files, parts = self._table("list_eval_partition.txt", False)
        part = {"train": 0, "valid": 1, "test": 2}.get(self.split)
        chosen = [index for index, [number] in enumerate(parts.tolist()) if part is None or number == part]
        self.filename = [files[index] for index in chosen]
        self.identity = self._table("identity_CelebA.txt", False)[2][chosen]
        self.bbox = self._table("list_bbox_celeba.txt", True)[2][chosen]
        self.landmarks_align = self._table("list_landmarks_align_celeba.txt", True)[2][chosen]
        self.attr_names, _, attributes = self._table("list_attr_celeba.txt", True)
        self.attr = (attributes[chosen] + 1) // 2  # from -1 and 1
        self._images = [self._path("img_align_celeba", name) for name in self.filename]

    def _target(self, index: int) -> Any:
        tables = {"attr": self.attr, "bbox": self.bbox, "landmarks": self.landmarks_align}
        targets = [self.identity[index, 0] if kind == "identity" else tables[kind][index] for kind in self.target_type]
        return _one_or_all(targets) if targets else None

    def extra_repr(self) -> str:
        return f"Target type: {self.target_type}\nSplit: {self.split}"
