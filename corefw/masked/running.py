"""Running sums and products of the elements that a mask lets take part."""

from __future__ import annotations

from corefw.masked.masks import filled, summed
from corefw.tensor import Tensor


def cumsum(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Running sums along `dim`, in which what is masked out counts 0.

    >>> import corefw as torch
    >>> torch.masked.cumsum(torch.tensor([1.0, 9.0, 3.0]), 0, mask=torch.tensor([True, False, True]))
    tensor([1., 1., 4.])
    """
    of = summed(input, dtype)
    return filled("cumsum", input, mask, 0, of).cumsum(dim, dtype=of)


def cumprod(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """Running products along `dim`, in which what is masked out counts 1.

    >>> import corefw as torch
    >>> torch.masked.cumprod(torch.tensor([2.0, 9.0, 3.0]), 0, mask=torch.tensor([True, False, True]))
    tensor([2., 2., 6.])
    """
    of = summed(input, dtype)
    return filled("cumprod", input, mask, 1, of).cumprod(dim, dtype=of)
