"""Sums, means and other summaries of the elements that a mask lets take part.

In all of them `input` is a tensor, `dim` a dimension or several (all if missing), `keepdim` says whether these stay
with size 1, `dtype` is what is computed in, and `mask` broadcasts to the input's shape.
"""

from __future__ import annotations

from math import inf, nan

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.masked.masks import all_dims, filled, fitting, floating, summed
from corefw.tensor import Tensor


def sum(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The sum; 0 where nothing takes part. Of integers it is int64.

    >>> import corefw as torch
    >>> torch.masked.sum(torch.tensor([1.0, 2.0, 4.0]), mask=torch.tensor([True, False, True]))
    tensor(5.)
    """
    of = summed(input, dtype)
    return filled("sum", input, mask, 0, of).sum(all_dims(input, dim), keepdim, dtype=of)


def prod(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The product; 1 where nothing takes part. Of integers it is int64.

    >>> import corefw as torch
    >>> torch.masked.prod(torch.tensor([3.0, 2.0, 4.0]), mask=torch.tensor([True, False, True]))
    tensor(12.)
    """
    of, dims = summed(input, dtype), all_dims(input, dim)
    result = filled("prod", input, mask, 1, of)
    for one in dims:
        result = result.prod(one, True, dtype=of)
    return _dropped(result, dims, keepdim)


def _counts(name: str, input: Tensor, mask: Tensor | None, dim: tuple[int, ...]) -> Tensor:
    """How many elements take part, with the reduced dimensions kept."""
    found = fitting(name, input, mask)
    ones = ops.ones(input.shape, dtype=dtypes.bool_, device=input.device) if found is None else found
    return ones.sum(dim, True)


def _mean(name: str, input: Tensor, dim: tuple[int, ...], mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """Means and counts, with the reduced dimensions kept."""
    count = _counts(name, input, mask, dim)
    return filled(name, input, mask, 0).sum(dim, True) / count, count


def _dropped(result: Tensor, dim: tuple[int, ...], keepdim: bool) -> Tensor:
    return result if keepdim or not result.ndim else result.squeeze(dim)


def mean(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The mean; NaN where nothing takes part. Integers are refused unless `dtype` is given.

    >>> import corefw as torch
    >>> torch.masked.mean(torch.tensor([1.0, 2.0, 4.0]), mask=torch.tensor([True, False, True]))
    tensor(2.5000)
    """
    input = input.to(floating("mean", input, dtype))
    dims = all_dims(input, dim)
    return _dropped(_mean("mean", input, dims, mask)[0], dims, keepdim)


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The lower median along one dimension; NaN where nothing takes part, which for integers is refused.

    >>> import corefw as torch
    >>> torch.masked.median(torch.tensor([9.0, 2.0, 4.0, 3.0]), mask=torch.tensor([True, False, True, True]))
    tensor(4.)
    """
    input = input if dtype is None else input.to(dtype)
    if input.dtype.is_floating_point:
        return filled("median", input, mask, nan).nanmedian(dim, keepdim).values
    if mask is None:
        return input.median(dim, keepdim).values
    found = fitting("median", input, mask)
    assert found is not None
    last = found.sum(dim, True) - 1
    if (last < 0).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    ascending, order = input.sort(dim, stable=True)
    first = found.take_along_dim(order, dim).logical_not().to(dtypes.int64).argsort(dim, stable=True)
    result = ascending.take_along_dim(first, dim).take_along_dim(last // 2, dim)
    return result if keepdim else result.squeeze(dim)


def norm(
    input: Tensor, ord: float = 2.0, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None
) -> Tensor:
    """The vector norm of order `ord`; 0 where nothing takes part, infinity for negative orders. (PyTorch takes what is
    masked out for 0 also in norms of negative order, which are 0 then.)

    >>> import corefw as torch
    >>> torch.masked.norm(torch.tensor([3.0, 9.0, 4.0]), mask=torch.tensor([True, False, True]))
    tensor(5.)
    """
    values = filled("norm", input, mask, inf if ord < 0 else 0, floating("norm", input, dtype))
    return ops.linalg_vector_norm(values, ord, all_dims(input, dim), keepdim)


def var(
    input: Tensor, dim=None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False,
    dtype=None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The variance: squared distances from the mean by their number less `correction` (1 if missing; 0 for
    ``unbiased=False``). NaN where nothing takes part; integers are computed in the default dtype.

    >>> import corefw as torch
    >>> torch.masked.var(torch.tensor([1.0, 9.0, 3.0]), mask=torch.tensor([True, False, True]))
    tensor(2.)
    """
    if unbiased is not None and correction is not None:
        raise RuntimeError("masked.var: only one of unbiased and correction may be given")
    if dtype is None and not (input.dtype.is_floating_point or input.dtype.is_complex):
        dtype = dtypes.get_default_dtype()
    input = input if dtype is None else input.to(dtype)
    dims = all_dims(input, dim)
    less = (0.0 if unbiased is False else 1.0) if correction is None else correction
    average, count = _mean("var", input, dims, mask)
    squares = filled("var", (input - average).abs().square(), mask, 0).sum(dims, True)
    return _dropped(squares / (count - less).clamp(min=0), dims, keepdim)


def std(
    input: Tensor, dim=None, unbiased: bool | None = None, *, correction: float | None = None, keepdim: bool = False,
    dtype=None, mask: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """The standard deviation: the square root of `var`.

    >>> import corefw as torch
    >>> torch.masked.std(torch.tensor([1.0, 9.0, 3.0]), unbiased=False, mask=torch.tensor([True, False, True]))
    tensor(1.)
    """
    return var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask).sqrt()


def logsumexp(input: Tensor, dim=None, *, keepdim: bool = False, dtype=None, mask: Tensor | None = None) -> Tensor:
    """The logarithm of the sum of exponentials; -inf where nothing takes part. Integers are refused unless `dtype` is
    given (PyTorch rounds the result).

    >>> import corefw as torch
    >>> torch.masked.logsumexp(torch.tensor([0.0, 9.0]), mask=torch.tensor([True, False]))
    tensor(0.)
    """
    values = filled("logsumexp", input, mask, -inf, floating("logsumexp", input, dtype))
    return values.logsumexp(all_dims(input, dim), keepdim)
