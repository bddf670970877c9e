"""The Pascal VOC challenges' images, with what each pixel is or with boxes around objects."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any
from xml.etree import ElementTree

from corefw.vision.datasets.published import ImageFiles, Published, one_of
from corefw.vision.pillow import pillow

_ADDRESS = "https://thor.robots.ox.ac.uk/pascal/VOC/"
#: the archive of each year, and the folder of its images' list
ARCHIVES = {
    year: Published(f"{_ADDRESS}voc{year[:4]}/{name}", md5, folder)
    for year, name, md5, folder in (
        ("2012", "VOCtrainval_11-May-2012.tar", "6cd6e144f989b92b3379bac3b3de84fd", "VOCdevkit/VOC2012"),
        ("2011", "VOCtrainval_25-May-2011.tar", "6c3384ef61512963050cb5d687e5bf1e", "TrainVal/VOCdevkit/VOC2011"),
        ("2010", "VOCtrainval_03-May-2010.tar", "da459979d0c395079b5c75ee67908abb", "VOCdevkit/VOC2010"),
        ("2009", "VOCtrainval_11-May-2009.tar", "a3e00b113cfcfebf17e343f59da3caa1", "VOCdevkit/VOC2009"),
        ("2008", "VOCtrainval_14-Jul-2008.tar", "2629fa636546599198acfcfbfcf1904a", "VOCdevkit/VOC2008"),
        ("2007", "VOCtrainval_06-Nov-2007.tar", "c52e279531787c972589f7e41ab4ae64", "VOCdevkit/VOC2007"),
        ("2007-test", "VOCtest_06-Nov-2007.tar", "b6e924de25625d8de591ea690078ad9f", "VOCdevkit/VOC2007"),
    )
}


class _VOC(ImageFiles):
    """Base of both forms: the folders of the lists and of the targets, and how the targets' files end."""

    _lists: str
    _targets: str
    _extension: str
    archives = ARCHIVES

    def __init__(
        self, root: str | os.PathLike, year: str = "2012", image_set: str = "train", download: bool = False,
        transform: Callable | None = None, target_transform: Callable | None = None,
        transforms: Callable | None = None,
    ) -> None:  # fmt: skip
        self.year = one_of("year", year, tuple(str(number) for number in range(2007, 2013)))
        sets = ("train", "trainval", "val", *(("test",) if year == "2007" else ()))
        self.image_set = one_of("image_set", image_set, sets)
        super().__init__(root, transforms, transform, target_transform, download)

    def _wanted(self) -> Sequence[Published]:
        return (self.archives["2007-test" if self.image_set == "test" else self.year],)

    def _is_there(self, file: Published) -> bool:  # two archives of 2007 unpack to the same folder
        lists = self._path(*file.unpacked.split("/"), "ImageSets", self._lists)
        return os.path.isfile(os.path.join(lists, f"{self.image_set}.txt"))

    def _load(self) -> None:
        folder = self._path(*self._wanted()[0].unpacked.split("/"))
        with open(os.path.join(folder, "ImageSets", self._lists, f"{self.image_set}.txt")) as file:
            names = file.read().split()
        self.images = [os.path.join(folder, "JPEGImages", f"{name}.jpg") for name in names]
        self.targets = [os.path.join(folder, self._targets, name + self._extension) for name in names]
        self._images = self.images


class VOCSegmentation(_VOC):
    """Pictures of 20 kinds of objects, with the kind of each pixel.

    Args:
        root: the folder that has ``VOCdevkit``, or is to have it.
        year: "2007" to "2012".
        image_set: "train", "trainval" or "val", and of 2007 "test".
        download: fetch and unpack the archive if `root` lacks its files.
        transform: applied to each image, a Pillow image of mode "RGB".
        target_transform: applied to each target, a Pillow image of the kinds' numbers, 255 at the objects' edges.
        transforms: of image and target together, given both; excludes the two before.

    Source: M. Everingham and others, The Pascal Visual Object Classes (VOC) Challenge, 2010.
    """

    _lists = "Segmentation"
    _targets = "SegmentationClass"
    _extension = ".png"

    @property
    def masks(self) -> list[str]:
        """The paths of the targets."""
        return self.targets

    def _target(self, index: int) -> Any:
        with pillow().open(self.targets[index]) as image:
            image.load()
            return image


class VOCDetection(_VOC):
    """Pictures of 20 kinds of objects, with boxes around these.

    Args:
        root, year, image_set, download, transform, transforms: as `VOCSegmentation` takes them.
        target_transform: applied to each target, the dictionary of what the picture's XML file says.

    Source: M. Everingham and others, The Pascal Visual Object Classes (VOC) Challenge, 2010.
    """

    _lists = "Main"
    _targets = "Annotations"
    _extension = ".xml"

    @property
    def annotations(self) -> list[str]:
        """The paths of the targets."""
        return self.targets

    def _target(self, index: int) -> Any:
        return self.parse_voc_xml(ElementTree.parse(self.targets[index]).getroot())

    @staticmethod
    def parse_voc_xml(node: ElementTree.Element) -> dict[str, Any]:
        """An element as a dictionary of its children's: a list where several have the same name, or may have."""
        children = list(node)
        if not children:
            return {node.tag: (node.text or "").strip()}
        found: dict[str, list[Any]] = defaultdict(list)
        for child in children:
            for name, value in VOCDetection.parse_voc_xml(child).items():
                found[name].append(value)
        told = {name: values[0] if len(values) == 1 else values for name, values in found.items()}
        if node.tag == "annotation":
            told["object"] = found["object"]
        return {node.tag: told}
