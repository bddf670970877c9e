"""Statistics of elements over dimensions: medians, quantiles and other ranks, variance and deviation."""

from __future__ import annotations

from math import inf
from typing import overload

from corefw import dtypes, return_types
from corefw.declarations._shared.batching import along
from corefw.declarations._shared.picking import picked_vjp
from corefw.dispatch.batching.tensors import all_examples
from corefw.dispatch.declare import Dim, Dims, composite, ops, primitive
from corefw.dispatch.numbers import Real
from corefw.dispatch.rules import moments, picks
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import Shape, canonical_dim, count_reduced, picked, reduced_shape
from corefw.tensor import Tensor
from corefw.tracebacks import warn


# -- order statistics -------------------------------------------------------------------------------------------------
@primitive(
    dtype=picks.without("bool", "complex"),
    shape=picked("median"),
    public="",
    outputs=("values", "indices"),
    result_name="median",
    grad_name="Median1",
)
def median_dim(input, dim: Dim, keepdim: bool = False):
    """The lower medians along `dim` and their positions; the first NaN where there is one."""


median_dim.batching(along(0))


@primitive(
    dtype=picks.without("bool", "complex"),
    shape=picked("nanmedian"),
    public="",
    outputs=("values", "indices"),
    result_name="nanmedian",
    grad_name="Nanmedian1",
)
def nanmedian_dim(input, dim: Dim, keepdim: bool = False):
    """The lower medians along `dim` of the elements that are not NaN, and their positions."""


nanmedian_dim.batching(along(0))


@overload
def median(input) -> Tensor: ...
@overload
def median(input, dim: int, keepdim: bool = False) -> return_types.median: ...
@composite(out=True)
def median(input, dim: int | None = None, keepdim: bool = False):
    """The median of all elements, or along `dim` as a named tuple ``(values, indices)``.

    Of an even number of elements it is the lower of the two in the middle. NaN where there is one.

    >>> import corefw as torch
    >>> torch.tensor([3.0, 1.0, 4.0, 2.0]).median()
    tensor(2.)
    """
    return _median(input, ops.median_dim) if dim is None else ops.median_dim(input, dim, keepdim)


@overload
def nanmedian(input) -> Tensor: ...
@overload
def nanmedian(input, dim: int, keepdim: bool = False) -> return_types.nanmedian: ...
@composite(out=True)
def nanmedian(input, dim: int | None = None, keepdim: bool = False):
    """As `median`, of the elements that are not NaN.

    >>> import corefw as torch
    >>> torch.tensor([3.0, torch.nan, 4.0]).nanmedian()
    tensor(3.)
    """
    return _median(input, ops.nanmedian_dim) if dim is None else ops.nanmedian_dim(input, dim, keepdim)


def _median(input, median_along):
    if not input.numel():
        nothing = input.new_full((), float("nan"), dtype=dtypes.float64).to(input.dtype)
        return nothing + input.sum() if input.requires_grad else nothing
    return median_along(input.reshape(-1), 0).values


@primitive(dtype=picks, shape=picked("mode"), outputs=("values", "indices"), out=True)
def mode(input, dim: Dim = -1, keepdim: bool = False):
    """The most frequent values along `dim`, the smallest of several, and the positions of their last occurrences.

    >>> import corefw as torch
    >>> torch.tensor([1, 3, 3, 1, 2]).mode().values
    tensor(1)
    """


mode.batching(along(0))


def _kth_shape(input: Shape, k: int, dim: int, keepdim: bool):
    result = picked("kthvalue")(input, dim, keepdim)
    if not 1 <= k <= (input[dim] if input else 1):
        raise ShapeError(f"kthvalue(): selected number k out of range for dimension {dim}")
    return result


@primitive(dtype=picks.without("bool", "complex"), shape=_kth_shape, outputs=("values", "indices"), out=True)
def kthvalue(input, k: int, dim: Dim = -1, keepdim: bool = False):
    """The `k`-th smallest elements along `dim`, counted from 1, and their positions; NaN counts as largest.

    Raises:
        RuntimeError: if there are fewer than `k` elements.

    >>> import corefw as torch
    >>> torch.tensor([3.0, 1.0, 2.0]).kthvalue(2).values
    tensor(2.)
    """


kthvalue.batching(along(1))


for _pick in (median_dim, nanmedian_dim, mode, kthvalue):
    _pick.gradient("input")(picked_vjp)


_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


@composite(out=True)
def quantile(input, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"):
    """The values below which a share `q` of the elements lies, in all or along `dim`. NaN where there is one.

    Args:
        input: any shape, float32 or float64.
        q: the share from 0 to 1; a 1-d tensor of shares gives the result a first dimension of its size.
        dim: the dimension to reduce; None for all.
        keepdim: keep the reduced dimension with size 1.
        interpolation: what to take between two elements: "linear", "lower", "higher", "midpoint" or "nearest".

    >>> import corefw as torch
    >>> torch.tensor([1.0, 2.0, 3.0, 5.0]).quantile(0.5)
    tensor(2.5000)
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation)


@composite(out=True)
def nanquantile(
    input, q: float | Tensor, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
):
    """As `quantile`, of the elements that are not NaN.

    >>> import corefw as torch
    >>> torch.tensor([1.0, torch.nan, 3.0]).nanquantile(0.5)
    tensor(2.)
    """
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation)


def _quantile(name: str, input, q, dim, keepdim: bool, interpolation: str):
    if input.dispatch_key.dtype not in (dtypes.float32, dtypes.float64):
        raise DtypeError(f"{name}() input tensor must be either float or double dtype")
    if interpolation not in _INTERPOLATIONS:
        raise ShapeError(f"{name}() interpolation must be one of {', '.join(_INTERPOLATIONS)}, but got {interpolation}")
    if not input.numel():
        raise ShapeError(f"{name}() input tensor must be non-empty")
    outside = all_examples((q < 0) | (q > 1)).any() if isinstance(q, Tensor) else q < 0 or q > 1
    if not isinstance(q, Tensor):
        q = input.new_full((), q)
    if q.dispatch_key.dtype is not input.dispatch_key.dtype:
        raise DtypeError(f"{name}() q tensor must be same dtype as the input tensor")
    if q.ndim > 1:
        raise ShapeError(f"{name}() q must be a scalar or 1D tensor")
    if outside:
        raise ShapeError(f"{name}() q values must be in the range [0, 1]")
    ndim = input.ndim
    if dim is not None:
        dim = canonical_dim(dim, ndim)
    lines = input.reshape(-1) if dim is None else input.movedim(dim, -1) if ndim else input.reshape(1)
    ordered = lines.sort(-1).values
    shares = q.reshape(-1)
    if name == "nanquantile":
        rank = shares * (lines.isnan().logical_not().sum(-1, True) - 1).clamp(0)
    else:
        rank = (shares * (lines.shape[-1] - 1)).expand((*lines.shape[:-1], shares.numel()))
        rank = rank.masked_fill(lines.isnan().any(-1, True), lines.shape[-1] - 1)  # where NaN has been sorted to
    if interpolation in ("lower", "higher", "nearest"):
        position = (
            rank.floor() if interpolation == "lower" else rank.ceil() if interpolation == "higher" else rank.round()
        )
        result = ordered.gather(-1, position.long())
    else:
        low = ordered.gather(-1, rank.floor().long())
        high = ordered.gather(-1, rank.ceil().long())
        weight = 0.5 if interpolation == "midpoint" else rank - rank.floor()
        result = ops.lerp(low, high, weight)
    result = result.movedim(-1, 0)
    if keepdim:
        if dim is None or not ndim:
            result = result.reshape((shares.numel(), *(1,) * ndim))
        else:
            result = result.unsqueeze(dim + 1)
    return result if q.ndim else result.squeeze(0)


# -- moments ----------------------------------------------------------------------------------------------------------


@composite(dtype=moments, shape=reduced_shape, public="", grad_name="Var")
def variance(input, dim: Dims, keepdim: bool, correction: Real):
    """The mean squared distance from the mean over `dim`, where `correction` is taken off the number of elements."""
    distance = input - input.mean(dim, True)
    squared = distance.abs().square() if input.dispatch_key.dtype.is_complex else distance.square()
    freedom = count_reduced(input.shape, dim) - correction
    return squared.sum(dim, keepdim) / (freedom if freedom > 0 else 0.0)


@variance.gradient("input")
def variance_vjp(grad, input, dim, keepdim, correction):
    return _variance_gradient(grad, input, dim, keepdim, correction)


def _variance_gradient(grad, input, dim, keepdim, correction):
    freedom = count_reduced(input.shape, dim) - correction
    scaled = grad * (2 / freedom if freedom > 0 else inf)
    return ops.expand_reduced(scaled, dim, keepdim, input.array.shape) * (input - input.mean(dim, True))


@composite(dtype=moments, shape=reduced_shape, public="", grad_name="Std")
def deviation(input, dim: Dims, keepdim: bool, correction: Real):
    """The square root of `variance`; where it is zero so is its gradient."""
    return ops.variance(input, dim, keepdim, correction).sqrt()


@deviation.gradient("input")
def deviation_vjp(grad, input, out, dim, keepdim, correction):
    return _variance_gradient((grad / (2 * out)).masked_fill(out == 0, 0), input, dim, keepdim, correction)


def _moment_options(dim, unbiased: bool | None, correction: Real | None):
    """`dim` and the correction meant by the arguments of `var`, `std` and their like."""
    if dim.__class__ is bool:
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    elif unbiased is not None:
        raise TypeError("unbiased and correction say the same thing; give one of them")
    return dim, correction


@composite(out=True)
def var(
    input, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Real | None = None
):
    """The variance of the elements over the dimensions `dim`: ``|x - mean|^2`` summed, over ``n - correction``.

    Args:
        input: any shape, floating or complex.
        dim: the dimensions to reduce; None or () for all. A bool in its place is `unbiased`.
        unbiased: False for ``correction=0``.
        keepdim: keep the reduced dimensions with size 1.
        correction: taken off the number of elements, 1 (Bessel's) unless given. Where nothing is left, the sum is
            divided by zero.

    >>> import corefw as torch
    >>> torch.tensor([1.0, 2.0, 3.0]).var()
    tensor(1.)
    """
    dim, correction = _moment_options(dim, unbiased, correction)
    return ops.variance(input, dim, keepdim, correction)


@composite(out=True)
def std(
    input, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Real | None = None
):
    """The standard deviation of the elements over the dimensions `dim`: the square root of `var`, with its arguments.

    >>> import corefw as torch
    >>> torch.tensor([[1.0, 3.0], [2.0, 2.0]]).std(1, correction=0)
    tensor([1., 0.])
    """
    dim, correction = _moment_options(dim, unbiased, correction)
    return ops.deviation(input, dim, keepdim, correction)


@composite(out=True, public="corefw", outputs=("var", "mean"))
def var_mean(
    input, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Real | None = None
) -> tuple[Tensor, Tensor]:
    """The variance and the mean; arguments as for `var`.

    >>> import corefw as torch
    >>> torch.var_mean(torch.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _moment_options(dim, unbiased, correction)
    return ops.variance(input, dim, keepdim, correction), input.mean(dim, keepdim)


@composite(out=True, public="corefw", outputs=("std", "mean"))
def std_mean(
    input, dim: Dims = None, unbiased: bool | None = None, keepdim: bool = False, *, correction: Real | None = None
) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean; arguments as for `var`.

    >>> import corefw as torch
    >>> torch.std_mean(torch.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    dim, correction = _moment_options(dim, unbiased, correction)
    return ops.deviation(input, dim, keepdim, correction), input.mean(dim, keepdim)


# -- covariance -------------------------------------------------------------------------------------------------------
def _check_variables(name: str, input) -> None:
    if input.ndim > 2:
        raise ShapeError(
            f"{name}(): expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions"
        )
    if input.dtype.category == dtypes.BOOL:
        raise DtypeError(f"{name}(): bool dtype is not supported for input")


def _checked_weights(name: str, weights, count: int, kind: str, categories: tuple[int, ...]):
    """Weights of observations, one for each."""
    if weights.ndim > 1:
        raise ShapeError(
            f"cov(): expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions"
        )
    if weights.dtype.category not in categories:
        raise DtypeError(f"cov(): expected {name} to have {kind} dtype but got {name} with {weights.dtype.title} dtype")
    if weights.numel() != count:
        raise ShapeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights.numel()} != {count}"
        )
    if weights.numel() and float(all_examples(weights).min()) < 0:
        raise ShapeError(f"cov(): {name} cannot be negative")
    return weights.reshape(-1)


@composite(other_names=True)
def cov(input, *, correction: int = 1, fweights=None, aweights=None):
    """The covariances of variables, ``sum_k w_k (x_ik - m_i) conj(x_jk - m_j) / norm``, where m are their means.

    Args:
        input: a variable in each row and an observation in each column, or the observations of one variable.
        correction: what is taken off the number of observations in the norm; times ``sum(w a) / sum(w)`` with
            `aweights` a.
        fweights: how often each observation counts, integers.
        aweights: how important each observation is, floating.

    Returns:
        The matrix of covariances, or the variance of one variable. NaN or infinite with a warning where the norm is not
        positive.

    >>> import corefw as torch
    >>> torch.cov(torch.tensor([[0.0, 1.0, 2.0], [2.0, 1.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    _check_variables("cov", input)
    rows = input if input.ndim == 2 else input.reshape(1, -1)
    count = rows.shape[1]
    weights = None
    if fweights is not None:
        weights = _checked_weights("fweights", fweights, count, "integral", (dtypes.INTEGER,))
    if aweights is not None:
        importance = _checked_weights("aweights", aweights, count, "floating point", (dtypes.FLOATING,))
        weights = importance if weights is None else weights * importance
    total = count if weights is None else weights.sum()
    if weights is not None and count and not all_examples(total).all():
        raise ShapeError("cov(): weights sum to zero, can't be normalized")
    means = (rows if weights is None else rows * weights).sum(1) / total
    norm = total - correction
    if aweights is not None and correction:
        norm = total - correction * (weights * aweights.reshape(-1)).sum() / total
    if all_examples(norm <= 0).any() if isinstance(norm, Tensor) else norm <= 0:
        warn("cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.")
        norm = norm.clamp_min(0) if isinstance(norm, Tensor) else 0.0
    distances = rows - means.unsqueeze(1)
    weighed = distances if weights is None else distances * weights
    return ((distances @ weighed.mH.to(distances.dtype)) / norm).squeeze()


@composite()
def corrcoef(input):
    """Pearson's correlation coefficients of variables: their `cov`, divided by their standard deviations.

    Args:
        input: a variable in each row and an observation in each column, or the observations of one variable.

    Returns:
        The matrix of coefficients, real and imaginary parts between -1 and 1; 1 for one variable. NaN for variables
        that do not vary.

    >>> import corefw as torch
    >>> torch.corrcoef(torch.tensor([[0.0, 1.0, 2.0], [4.0, 2.0, 0.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    _check_variables("corrcoef", input)
    covariance = ops.cov(input)
    if not covariance.ndim:
        return covariance / covariance
    deviations = covariance.diagonal().sqrt()
    result = covariance / deviations.unsqueeze(1) / deviations
    if not result.is_complex():
        return result.clamp(-1, 1)
    return ops.complex(result.real.clamp(-1, 1), result.imag.clamp(-1, 1))
