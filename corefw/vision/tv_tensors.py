"""Tensors that say what they are: images, videos, masks and boxes, for the transforms of `transforms.v2`.

What is computed of one is a plain tensor, as in torchvision: a transform, `wrap`, ``clone``, ``to``, ``detach`` and
what returns the tensor itself keep the class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import wraps
from typing import Any, Self

import numpy as np

import corefw
from corefw import Tensor
from corefw.vision.pillow import is_pillow_image, tensor_from_array

__all__ = [
    "BoundingBoxFormat",
    "BoundingBoxes",
    "Image",
    "KeyPoints",
    "Mask",
    "TVTensor",
    "Video",
    "is_rotated_bounding_format",
    "set_return_type",
    "wrap",
]


def _keeping(name: str) -> Callable:
    """Tensor's method of this name, whose result is of the class of the tensor."""
    method = getattr(Tensor, name)

    @wraps(method)
    def kept(self: Any, *args: Any, **kwargs: Any) -> Any:
        return wrap(method(self, *args, **kwargs), like=self)

    return kept


class TVTensor(Tensor):
    """Base of the tensors that say what they are.

    Args:
        data: what `corefw.as_tensor` takes.
        dtype, device: of the tensor; those of `data` if missing.
        requires_grad: that of `data` if missing.
    """

    def __new__(
        cls, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool | None = None, **meaning: Any
    ) -> Self:
        if requires_grad is None:
            requires_grad = data.requires_grad if isinstance(data, Tensor) else False
        tensor: Any = cls._shaped(corefw.as_tensor(data, dtype=dtype, device=device)).as_subclass(cls)
        if requires_grad != tensor.requires_grad:
            tensor.requires_grad_(requires_grad)
        tensor._mean(**meaning)
        return tensor

    @classmethod
    def _shaped(cls, tensor: Tensor) -> Tensor:
        return tensor

    def _mean(self) -> None:
        """Set what the tensor says of itself besides its class."""

    def _meaning(self) -> dict[str, Any]:
        """What `_mean` takes."""
        return {}

    def __repr__(self, **options: Any) -> str:  # type: ignore[override]
        text, told = super().__repr__(**options), [f"{name}={value}" for name, value in self._meaning().items()]
        return f"{text[:-1]}, {', '.join(told)})" if told else text

    clone = _keeping("clone")
    to = _keeping("to")
    detach = _keeping("detach")


class Image(TVTensor):
    """An image, or a batch of images: shape (..., C, H, W); (H, W) becomes (1, H, W), and Pillow's are converted.

    >>> import corefw as torch
    >>> Image([[0, 255]], dtype=torch.uint8).shape
    torch.Size([1, 1, 2])
    """

    def __new__(cls, data: Any, **options: Any) -> Self:
        return super().__new__(cls, tensor_from_array(np.array(data)) if is_pillow_image(data) else data, **options)

    @classmethod
    def _shaped(cls, tensor: Tensor) -> Tensor:
        if tensor.ndim < 2:
            raise ValueError(f"Image: at least 2 dimensions (..., H, W) expected, got shape {tuple(tensor.shape)}")
        return tensor.unsqueeze(0) if tensor.ndim == 2 else tensor


class Video(TVTensor):
    """A video, or a batch of videos: shape (..., T, C, H, W)."""

    @classmethod
    def _shaped(cls, tensor: Tensor) -> Tensor:
        if tensor.ndim < 4:
            raise ValueError(f"Video: at least 4 dimensions (T, C, H, W) expected, got shape {tuple(tensor.shape)}")
        return tensor


class Mask(TVTensor):
    """What each pixel belongs to, or for each of several objects whether it does: shape (..., H, W)."""

    def __new__(cls, data: Any, **options: Any) -> Self:
        return super().__new__(cls, tensor_from_array(np.array(data)) if is_pillow_image(data) else data, **options)


class BoundingBoxFormat(Enum):
    """What the numbers of a box are: two corners, a corner and the size, or the middle and the size.

    The last three, of turned boxes, are named but refused: boxes here have upright sides.
    """

    XYXY = "XYXY"
    XYWH = "XYWH"
    CXCYWH = "CXCYWH"
    XYWHR = "XYWHR"
    CXCYWHR = "CXCYWHR"
    XYXYXYXY = "XYXYXYXY"


def bounding_box_format(given: BoundingBoxFormat | str) -> BoundingBoxFormat:
    """The format itself, or the format of this name, in any case.

    Raises:
        NotImplementedError: it is one of turned boxes.
    """
    found = BoundingBoxFormat[given.upper()] if isinstance(given, str) else given
    if is_rotated_bounding_format(found):
        raise NotImplementedError(
            f"boxes of format {found.value}, which are turned, are not supported; XYXY and such are"
        )
    return found


def is_rotated_bounding_format(format: BoundingBoxFormat | str) -> bool:
    """Whether boxes of this format may be turned."""
    if not isinstance(format, BoundingBoxFormat | str):
        raise ValueError(f"format should be str or BoundingBoxFormat, got {type(format)}")
    name = format.value if isinstance(format, BoundingBoxFormat) else format
    return name in ("XYWHR", "CXCYWHR", "XYXYXYXY")


class BoundingBoxes(TVTensor):
    """Boxes around the objects of one image: shape (N, 4), or (4,) for one.

    Args:
        data: what `corefw.as_tensor` takes.
        format: what the four numbers are.
        canvas_size: height and width of the image.
        clamping_mode: "soft" or "hard" cut boxes off at the image's edges after a transform, None leaves them.
        dtype, device, requires_grad: as `TVTensor` takes them.

    >>> BoundingBoxes([1, 2, 3, 4], format="XYXY", canvas_size=(10, 20))
    BoundingBoxes([[1, 2, 3, 4]], format=BoundingBoxFormat.XYXY, canvas_size=(10, 20), clamping_mode=soft)
    """

    format: BoundingBoxFormat
    canvas_size: tuple[int, int]
    clamping_mode: str | None

    def __new__(
        cls, data: Any, *, format: BoundingBoxFormat | str, canvas_size: Sequence[int],
        clamping_mode: str | None = "soft", **options: Any,
    ) -> Self:  # fmt: skip
        return super().__new__(
            cls, data, format=format, canvas_size=canvas_size, clamping_mode=clamping_mode, **options
        )

    @classmethod
    def _shaped(cls, tensor: Tensor) -> Tensor:
        if tensor.ndim not in (1, 2):
            raise ValueError(f"Expected a 1D or 2D tensor, got {tensor.ndim}D")
        return tensor.unsqueeze(0) if tensor.ndim == 1 else tensor

    def _mean(  # type: ignore[override]
        self, format: BoundingBoxFormat | str, canvas_size: Sequence[int], clamping_mode: str | None
    ) -> None:
        if clamping_mode not in (None, "hard", "soft"):
            raise ValueError(f"clamping_mode must be None, hard or soft, got {clamping_mode}.")
        self.format = bounding_box_format(format)
        self.canvas_size = (int(canvas_size[0]), int(canvas_size[1]))
        self.clamping_mode = clamping_mode

    def _meaning(self) -> dict[str, Any]:
        return {"format": self.format, "canvas_size": self.canvas_size, "clamping_mode": self.clamping_mode}


class KeyPoints(TVTensor):
    """Points of one image, each x and y: shape (..., 2).

    Args:
        data: what `corefw.as_tensor` takes.
        canvas_size: height and width of the image.
        dtype, device, requires_grad: as `TVTensor` takes them.

    >>> KeyPoints([[1, 2]], canvas_size=(10, 20))
    KeyPoints([[1, 2]], canvas_size=(10, 20))
    """

    canvas_size: tuple[int, int]

    def __new__(cls, data: Any, *, canvas_size: Sequence[int], **options: Any) -> Self:
        return super().__new__(cls, data, canvas_size=canvas_size, **options)

    @classmethod
    def _shaped(cls, tensor: Tensor) -> Tensor:
        if tensor.ndim == 0 or tensor.shape[-1] != 2:
            raise ValueError(f"Expected a tensor of shape (..., 2), not {tuple(tensor.shape)}")
        return tensor.unsqueeze(0) if tensor.ndim == 1 else tensor

    def _mean(self, canvas_size: Sequence[int]) -> None:  # type: ignore[override]
        self.canvas_size = (int(canvas_size[0]), int(canvas_size[1]))

    def _meaning(self) -> dict[str, Any]:
        return {"canvas_size": self.canvas_size}


def wrap(wrappee: Tensor, *, like: Any, **kwargs: Any) -> Any:
    """A tensor as one of the class of `like`, which says the same of itself but for what `kwargs` say.

    >>> import corefw as torch
    >>> boxes = BoundingBoxes([1, 2, 3, 4], format="XYXY", canvas_size=(10, 20))
    >>> wrap(boxes + 1, like=boxes, canvas_size=(30, 40)).canvas_size
    (30, 40)
    """
    if not isinstance(like, TVTensor):
        return wrappee
    wrapped: Any = wrappee.as_subclass(type(like))
    wrapped._mean(**{**like._meaning(), **kwargs})
    return wrapped


def set_return_type(return_type: str) -> Any:
    """Say what operations on these tensors return: "Tensor", which they do; a statement or a context manager.

    Raises:
        NotImplementedError: "TVTensor" is asked for; `wrap` makes one of a result.
    """
    if return_type.lower() == "tvtensor":
        raise NotImplementedError(
            "set_return_type: operations return plain tensors; tv_tensors.wrap(result, like=input) makes another"
        )
    if return_type.lower() != "tensor":
        raise ValueError(f"return_type must be 'TVTensor' or 'Tensor', got {return_type}")
    return _unchanged()


@contextmanager
def _unchanged() -> Iterator[None]:
    yield
