"""Images with annotations in the form of the COCO data sets, one JSON file for all of them."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from corefw.vision.datasets.base import VisionDataset
from corefw.vision.datasets.download import CorruptedError
from corefw.vision.datasets.folder import default_loader


class CocoDetection(VisionDataset):
    """Images, and for each a list of what is on it: dictionaries with "bbox", "category_id", "segmentation" and more.

    Args:
        root: the folder of the images.
        annFile: the JSON file of the annotations.
        transform: applied to each image, a Pillow image of mode "RGB".
        target_transform: applied to each target, the list.
        transforms: of image and target together, given both; excludes the two before.

    Attributes:
        ids: the images' numbers, in order.
        categories: the dictionary of each category, by its number.

    Raises:
        CorruptedError: the file has not the form.

    Source: T.-Y. Lin and others, Microsoft COCO: Common Objects in Context, 2014, arXiv:1405.0312.
    """

    def __init__(
        self,
        root: str | os.PathLike,
        annFile: str | os.PathLike,
        transform: Callable | None = None,
        target_transform: Callable | None = None,
        transforms: Callable | None = None,
    ) -> None:
        super().__init__(root, transforms, transform, target_transform)
        with open(annFile, encoding="utf-8") as file:
            try:
                told = json.load(file)
                self._files = {image["id"]: image["file_name"] for image in told["images"]}
                self.categories = {category["id"]: category for category in told.get("categories", [])}
                self._annotations: dict[int, list[Any]] = defaultdict(list)
                for annotation in told.get("annotations", []):
                    self._annotations[annotation["image_id"]].append(annotation)
            except (ValueError, KeyError, TypeError) as error:
                raise CorruptedError(f"{annFile} has not the form of COCO's annotations: {error!r}") from error
        self.ids = sorted(self._files)

    def _target(self, id: int) -> list[Any]:
        return list(self._annotations.get(id, ()))

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """The image and its target; each through its transform if given."""
        if not isinstance(index, int):
            raise ValueError(f"Index must be of type integer, got {type(index)} instead.")
        id = self.ids[index]
        image, target = default_loader(os.path.join(self.root, self._files[id])), self._target(id)
        return (image, target) if self.transforms is None else self.transforms(image, target)

    def __len__(self) -> int:
        return len(self.ids)


class CocoCaptions(CocoDetection):
    """Images, and for each a list of sentences that say what is on it.

    Args:
        root, annFile, transform, target_transform, transforms: as `CocoDetection` takes them.

    Source: X. Chen and others, Microsoft COCO Captions, 2015, arXiv:1504.00325.
    """

    def _target(self, id: int) -> list[Any]:
        return [annotation["caption"] for annotation in super()._target(id)]
