"""Largest and smallest of the elements that a mask lets take part; arguments as in `corefw.masked.reductions`."""

from __future__ import annotations

from corefw.masked.masks import all_dims, bound, filled
from corefw.tensor import Tensor


def _not_empty(name: str, input: Tensor, dims: tuple[int, ...]) -> None:
    for dim in dims if input.ndim else ():
        if not input.shape[dim]:
            raise IndexError(f"masked.{name}: Expected reduction dim {dim} to have non-zero size.")


def _position(name: str, input: Tensor, dim, keepdim: bool, dtype, mask: Tensor | None, low: bool) -> Tensor:
    input = input if dtype is None else input.to(dtype)
    _not_empty(name, input, all_dims(input, dim))
    return getattr(filled(name, input, mask, bound(input, low)), name)(dim, keepdim).to(input.dtype)


def amax(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The largest element; where none takes part, the smallest number of the dtype (-inf).

    >>> import corefw as torch
    >>> torch.masked.amax(torch.tensor([1.0, 9.0, 3.0]), mask=torch.tensor([True, False, True]))
    tensor(3.)
    """
    input, dims = input if dtype is None else input.to(dtype), all_dims(input, dim)
    _not_empty("amax", input, dims)
    return filled("amax", input, mask, bound(input, False)).amax(dims, keepdim)


def amin(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The smallest element; where none takes part, the largest number of the dtype (inf).

    >>> import corefw as torch
    >>> torch.masked.amin(torch.tensor([4.0, 1.0, 3.0]), mask=torch.tensor([True, False, True]))
    tensor(3.)
    """
    input, dims = input if dtype is None else input.to(dtype), all_dims(input, dim)
    _not_empty("amin", input, dims)
    return filled("amin", input, mask, bound(input, True)).amin(dims, keepdim)


def argmax(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """Where the largest element is, in the dtype of the input, as in PyTorch; 0 where none takes part.

    >>> import corefw as torch
    >>> torch.masked.argmax(torch.tensor([1, 9, 3]), mask=torch.tensor([True, False, True]))
    tensor(2)
    """
    return _position("argmax", input, dim, keepdim, dtype, mask, False)


def argmin(
    input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """Where the smallest element is, in the dtype of the input, as in PyTorch; 0 where none takes part.

    >>> import corefw as torch
    >>> torch.masked.argmin(torch.tensor([4, 1, 3]), mask=torch.tensor([True, False, True]))
    tensor(2)
    """
    return _position("argmin", input, dim, keepdim, dtype, mask, True)
