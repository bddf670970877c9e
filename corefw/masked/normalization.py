"""Elements beside the others that a mask lets take part."""

from __future__ import annotations

from math import inf

from corefw.dispatch.declare import ops
from corefw.masked.masks import filled
from corefw.masked.reductions import norm
from corefw.tensor import Tensor


def softmax(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The softmax along `dim`: 0 for what is masked out, NaN where nothing takes part.

    >>> import corefw as torch
    >>> torch.masked.softmax(torch.tensor([0.0, 9.0, 0.0]), 0, mask=torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return filled("softmax", input, mask, -inf, dtype).softmax(dim)


def log_softmax(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of `softmax`: -inf for what is masked out.

    >>> import corefw as torch
    >>> torch.masked.log_softmax(torch.tensor([5.0, 9.0]), 0, mask=torch.tensor([True, False]))
    tensor([0., -inf])
    """
    return filled("log_softmax", input, mask, -inf, dtype).log_softmax(dim)


def softmin(input: Tensor, dim: int, *, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The `softmax` of the negative elements.

    >>> import corefw as torch
    >>> torch.masked.softmin(torch.tensor([0.0, 9.0, 0.0]), 0, mask=torch.tensor([True, False, True]))
    tensor([0.5000, 0.0000, 0.5000])
    """
    return filled("softmin", -input, mask, -inf, dtype).softmax(dim)


def normalize(
    input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """Rows along `dim` by their norm of order `ord`, or by `eps` if that is larger; 0 for what is masked out.

    >>> import corefw as torch
    >>> torch.masked.normalize(torch.tensor([3.0, 9.0, 4.0]), 2.0, 0, mask=torch.tensor([True, False, True]))
    tensor([0.6000, 0.0000, 0.8000])
    """
    length = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    return filled("normalize", input, mask, 0, dtype) / length.clamp(min=eps)


def logaddexp(
    input: Tensor, other: Tensor, *, dtype=None, input_mask: Tensor | None = None, other_mask: Tensor | None = None
) -> Tensor:
    """``log(exp(input) + exp(other))``, in which what is masked out counts -inf.

    >>> import corefw as torch
    >>> torch.masked.logaddexp(torch.tensor([1.0]), torch.tensor([9.0]), other_mask=torch.tensor([False]))
    tensor([1.])
    """
    return ops.logaddexp(
        filled("logaddexp", input, input_mask, -inf, dtype), filled("logaddexp", other, other_mask, -inf, dtype)
    )
