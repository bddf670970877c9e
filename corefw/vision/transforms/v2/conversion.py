"""Transforms from one kind of data to another."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import corefw
from corefw import Tensor
from corefw.vision.pillow import is_pillow_image
from corefw.vision.transforms import functional as v1
from corefw.vision.transforms.v2 import functional as F
from corefw.vision.transforms.v2.transform import Keeping, Transform
from corefw.vision.tv_tensors import Image, TVTensor, Video


class ToImage(Transform):
    """An `Image` of a plain tensor, a Pillow image or an array (H, W, C), with the same numbers.

    >>> ToImage()(np.zeros((2, 3, 1), np.uint8)).shape
    torch.Size([1, 2, 3])
    """

    _transformed_types = (F.is_pure_tensor, is_pillow_image, np.ndarray)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.to_image(inpt)


class ToPureTensor(Transform):
    """A plain tensor of one that says what it is."""

    _transformed_types = (TVTensor,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt.as_subclass(Tensor)


class PILToTensor(Transform):
    """A tensor (C, H, W) of a Pillow image, with the same numbers."""

    _transformed_types = (is_pillow_image,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return v1.pil_to_tensor(inpt)


class ToPILImage(Transform):
    """A Pillow image of a tensor (C, H, W) or of an array (H, W, C); `mode` names the meaning of its channels."""

    _transformed_types = (F.is_pure_tensor, Image, np.ndarray)

    def __init__(self, mode: str | None = None) -> None:
        super().__init__()
        self.mode = mode

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return v1.to_pil_image(inpt, self.mode)


class ToTensor(Transform):
    """A tensor (C, H, W) of a Pillow image or array, bytes as numbers from 0 to 1.

    ``Compose([ToImage(), ToDtype(torch.float32, scale=True)])`` takes its place.
    """

    _transformed_types = (is_pillow_image, np.ndarray)

    def __init__(self) -> None:
        super().__init__()
        warnings.warn(
            "The transform `ToTensor()` is deprecated and will be removed in a future release. Instead, please use "
            "`v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])`.",
            stacklevel=2,
        )

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return v1.to_tensor(inpt)


class ToDtype(Transform):
    """Tensors in another dtype.

    Args:
        dtype: of pictures; or a dictionary by type, where "others" stands for all other types and None for no change.
        scale: full brightness stays full brightness: from bytes, 255 becomes 1.

    >>> import corefw as torch
    >>> ToDtype(torch.float32, scale=True)(torch.tensor([[0, 255]], dtype=torch.uint8))
    tensor([[0., 1.]])
    """

    _transformed_types = (Tensor,)

    def __init__(self, dtype: corefw.dtype | dict[Any, corefw.dtype | None], scale: bool = False) -> None:
        super().__init__()
        if not isinstance(dtype, dict | corefw.dtype):
            raise ValueError(f"dtype must be a dict or a torch.dtype, got {type(dtype)} instead")
        if isinstance(dtype, Mapping) and Tensor in dtype and (Image in dtype or Video in dtype):
            warnings.warn(
                "Got `dtype` values for `torch.Tensor` and either `tv_tensors.Image` or `tv_tensors.Video`. Note that "
                "a plain `torch.Tensor` will *not* be transformed by this (or any other transformation) in case a "
                "`tv_tensors.Image` or `tv_tensors.Video` is present in the input.",
                stacklevel=2,
            )
        self.dtype = dtype
        self.scale = scale

    def _wanted(self, inpt: Any, picture: bool) -> corefw.dtype | None:
        if not isinstance(self.dtype, Mapping):
            return self.dtype if picture else None
        for key in (type(inpt), "others"):
            if key in self.dtype:
                return self.dtype[key]
        raise ValueError(
            f"No dtype was specified for type {type(inpt)}. If you only need to convert the dtype of images or videos, "
            'you can just pass e.g. dtype=torch.float32. If you\'re passing a dict as dtype, you can use "others" as a '
            'catch-all key e.g. dtype={tv_tensors.Mask: torch.int64, "others": None} to pass-through the rest of the '
            "inputs."
        )

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        picture = F.is_pure_tensor(inpt) or isinstance(inpt, Image | Video)
        dtype = self._wanted(inpt, picture)
        if dtype is not None:
            return F.to_dtype(inpt, dtype, self.scale)
        if self.scale and picture:
            warnings.warn(
                "scale was set to True but no dtype was specified for images or videos: no scaling will be done.",
                stacklevel=2,
            )
        return inpt


class Identity(Transform):
    """Everything as it is."""

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt


class Lambda(Transform):
    """A function as a transform, of everything or of what is of one of `types`.

    >>> Lambda(lambda x: x + 1, int)((1, "label"))
    (2, 'label')
    """

    _transformed_types = (object,)

    def __init__(self, lambd: Callable[[Any], Any], *types: type) -> None:
        super().__init__()
        self.lambd = lambd
        self.types = types or (object,)

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return self.lambd(inpt) if isinstance(inpt, self.types) else inpt

    def _chosen(self, flat_inputs: list[Any]) -> list[bool]:
        return [True] * len(flat_inputs)

    def extra_repr(self) -> str:
        name = getattr(self.lambd, "__name__", "")
        return ", ".join(filter(None, [name, f"types={[kind.__name__ for kind in self.types]}"]))


class UniformTemporalSubsample(Keeping):
    """`num_samples` frames of a video (..., T, C, H, W), evenly spaced from the first to the last.

    >>> import corefw as torch
    >>> UniformTemporalSubsample(3)(torch.arange(5).view(5, 1, 1, 1)).flatten()
    tensor([0, 2, 4])
    """

    _transformed_types = (F.is_pure_tensor, Video)

    def __init__(self, num_samples: int) -> None:
        super().__init__()
        self.num_samples = num_samples

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.uniform_temporal_subsample(inpt, self.num_samples)
