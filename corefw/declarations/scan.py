"""Scans along one dimension: running sums, products and extremes, differences and integrals."""

from __future__ import annotations

from corefw import dtypes
from corefw.dispatch.declare import Dim, composite, ops, primitive
from corefw.dispatch.rules import accumulate, floats, picks, same
from corefw.dtypes import dtype
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import Shape, canonical_dim, same_shape, values_and_indices


# -- linear recurrences: the gradients of products without division ---------------------------------------------------
def recurrence_shape(factor: Shape, input: Shape, dim: int) -> Shape:
    """Both tensors have the result's shape."""
    if factor != input:
        raise ShapeError(f"linear_recurrence: shapes {list(factor)} and {list(input)} differ")
    return input


@composite(dtype=same, shape=recurrence_shape, public="")
def linear_recurrence(factor, input, dim: Dim):
    """``y[j] = input[j] + factor[j] * y[j - 1]`` along `dim`, where ``y[-1] = 0``.

    Two steps make one of the same form, so neighbours are joined and the recurrence of half the length solved first
    (Blelloch, Prefix sums and their applications, 1990).
    """
    size = input.shape[dim]
    if size < 2:
        return input.clone()
    factor, input = factor.movedim(dim, 0), input.movedim(dim, 0)
    even, odd = slice(0, size - 1, 2), slice(1, size, 2)
    joined = ops.linear_recurrence(factor[odd] * factor[even], input[odd] + factor[odd] * input[even], 0)
    between = input[2::2] + factor[2::2] * joined[: (size - 1) // 2]
    first = ops.cat([input[:1], between])
    result = ops.stack([first[: size // 2], joined], 1).reshape((size // 2 * 2, *input.shape[1:]))
    if size % 2:
        result = ops.cat([result, first[-1:]])
    return result.movedim(0, dim)


def delayed(input, dim: int, start):
    """`input` moved one step on along `dim`, beginning with `start`."""
    return ops.cat([start, input.narrow(dim, 0, input.shape[dim] - 1)], dim)


def adjoint_recurrence(grad, factor, dim: int):
    """``u[j] = grad[j] + conj(factor[j + 1]) * u[j + 1]`` along `dim`."""
    reverse = factor.conj().flip(dim)
    following = delayed(reverse, dim, reverse.narrow(dim, 0, 1))
    return ops.linear_recurrence(following, grad.flip(dim), dim).flip(dim)


@linear_recurrence.gradient("factor", "input")
def linear_recurrence_vjp(grad, factor, out, dim):
    if not factor.numel():
        return grad, grad
    through = adjoint_recurrence(grad, factor, dim)
    return through * delayed(out, dim, out.narrow(dim, 0, 1) * 0).conj(), through


# -- running sums and products ----------------------------------------------------------------------------------------
@primitive(dtype=accumulate, shape=same_shape, rewrites=("dtype",), inplace=True, out=True)
def cumsum(input, dim: Dim, *, dtype: dtype | None = None):
    """The running sum along `dim`: ``y[i] = x[0] + ... + x[i]``; integers and bool are summed in int64.

    Args:
        input: any shape.
        dim: the dimension to run along.
        dtype: convert the elements to this dtype first.

    >>> import corefw as torch
    >>> torch.tensor([1, 2, 3]).cumsum(0)
    tensor([1, 3, 6])
    """
    return input.to(dtype).cumsum(dim).to(dtype)


cumsum.gradients(input=lambda grad, dim: grad.flip(dim).cumsum(dim).flip(dim) if grad.ndim else grad)


@primitive(dtype=accumulate, shape=same_shape, rewrites=("dtype",), inplace=True, out=True)
def cumprod(input, dim: Dim, *, dtype: dtype | None = None):
    """The running product along `dim`: ``y[i] = x[0] * ... * x[i]``. Arguments as for `cumsum`.

    >>> import corefw as torch
    >>> torch.tensor([1, 2, 3]).cumprod(0)
    tensor([1, 2, 6])
    """
    return input.to(dtype).cumprod(dim).to(dtype)


@cumprod.gradient("input")
def cumprod_vjp(grad, input, out, dim):
    # y[i] depends on x[j] as (product before j) * (product after j up to i); zeros do no harm, for nothing is divided
    if not input.ndim or not input.numel():
        return grad
    before = delayed(out, dim, ops.ones_like(out.narrow(dim, 0, 1)))
    return adjoint_recurrence(grad, input, dim) * before.conj()


@composite(dtype=floats, shape=same_shape, out=True)
def logcumsumexp(input, dim: Dim):
    """The running ``log(sum(exp(x)))`` along `dim`, without overflow.

    Of complex elements it is the logarithm whose imaginary part lies between -pi and pi.

    >>> import corefw as torch
    >>> torch.tensor([1000.0, 1000.0]).logcumsumexp(0)
    tensor([1000.0000, 1000.6932])
    """
    if not input.ndim:
        return ops.logcumsumexp(input.reshape(1), 0).reshape(())
    if not input.numel():
        return input.clone()
    # the sum so far is kept as a multiple of exp(largest), where largest is the largest real part so far
    largest = ops.cummax(input.real, dim)[0]
    finite = largest.masked_fill(largest == -float("inf"), 0)
    factor = (delayed(largest, dim, largest.narrow(dim, 0, 1)) - finite).exp()
    return ops.linear_recurrence(factor.to(input.dtype), (input - finite).exp(), dim).log() + finite


@logcumsumexp.gradient("input")
def logcumsumexp_vjp(grad, input, out, dim):
    # dy[i]/dx[j] = exp(x[j] - y[i]), with exp(y[j] - y[i]) as a product of steps, at most 1 where x is real
    if not input.ndim or not input.numel():
        return grad
    steps = (delayed(out, dim, out.narrow(dim, 0, 1)) - out).masked_fill(out.real == -float("inf"), 0).exp()
    shares = (input - out).masked_fill(input.real == -float("inf"), -float("inf")).exp()
    return adjoint_recurrence(grad, steps, dim) * shares.conj()


# -- running extremes -------------------------------------------------------------------------------------------------
@primitive(dtype=picks, shape=values_and_indices, outputs=("values", "indices"), out=True)
def cummax(input, dim: Dim):
    """The largest element so far along `dim`, and the last position where it was found; from a NaN on it is NaN.

    >>> import corefw as torch
    >>> torch.tensor([1, 3, 2, 3]).cummax(0).indices
    tensor([0, 1, 1, 3])
    """


@primitive(dtype=picks, shape=values_and_indices, outputs=("values", "indices"), out=True)
def cummin(input, dim: Dim):
    """The smallest element so far along `dim`, and the last position where it was found; from a NaN on it is NaN.

    >>> import corefw as torch
    >>> torch.tensor([3, 1, 2, 1]).cummin(0).values
    tensor([3, 1, 1, 1])
    """


def _extreme_gradient(grad, indices, dim, input_shape):
    return grad.new_zeros(input_shape).scatter_add(dim, indices, grad) if input_shape else grad


for _extreme in (cummax, cummin):
    _extreme.gradient("input")(_extreme_gradient)


# -- differences and integrals ----------------------------------------------------------------------------------------
@composite(out=True)
def diff(input, n: int = 1, dim: int = -1, prepend=None, append=None):
    """The `n`-th difference of neighbours along `dim`: ``y[i] = x[i + 1] - x[i]``, `n` times.

    Of bool it says whether they differ.

    Args:
        input: at least one dimension.
        n: how often.
        dim: the dimension to run along.
        prepend, append: set before and after `input` along `dim`.

    >>> import corefw as torch
    >>> torch.tensor([1, 4, 9, 16]).diff()
    tensor([3, 5, 7])
    """
    if not input.ndim:
        raise ShapeError("diff expects input to be at least one-dimensional")
    if n < 0:
        raise ShapeError(f"order must be non-negative but got {n}")
    dim = canonical_dim(dim, input.ndim)
    parts = [part for part in (prepend, input, append) if part is not None]
    if any(part.ndim != input.ndim for part in parts):
        raise ShapeError(
            f"diff expects prepend or append to be the same dimension as input: got {[part.ndim for part in parts]}"
        )
    result = ops.cat(parts, dim) if len(parts) > 1 else input
    if n == 0:
        return input.clone()
    for _ in range(n):
        size = result.shape[dim]
        if size < 2:
            return result.narrow(dim, 0, 0).clone()
        following, current = result.narrow(dim, 1, size - 1), result.narrow(dim, 0, size - 1)
        result = following != current if result.dispatch_key.dtype.category == dtypes.BOOL else following - current
    return result


def _samples(name: str, values):
    """What can be added and subtracted without overflow: integers as int64."""
    if values.dispatch_key.dtype.category == dtypes.BOOL:
        raise DtypeError(f"{name}: received a bool input for `x` or `y`, but bool is not supported; convert it")
    return values.to(dtypes.int64) if values.dispatch_key.dtype.category == dtypes.INTEGER else values


def _panels(name: str, y, x, dx, dim: int):
    """The areas of the trapezoids between neighbours along `dim`."""
    if x is not None and dx is not None:
        raise TypeError("x and dx both give the spacing; give one of them")
    y, x = _samples(name, y), None if x is None else _samples(name, x)
    dim = canonical_dim(dim, y.ndim)
    size = y.shape[dim]
    if not size:
        return y.narrow(dim, 0, 0) * 1.0
    heights = y.narrow(dim, 1, size - 1) + y.narrow(dim, 0, size - 1)
    if x is None:
        return heights * ((1.0 if dx is None else dx) / 2)
    if x.ndim == 1 and x.shape[0] != size:
        raise ShapeError(f"There must be one `x` value for each sample point: {x.shape[0]} for {size}")
    if x.ndim == 1:
        return heights * x.diff().reshape((-1, *(1,) * (y.ndim - dim - 1))) / 2
    return heights * x.diff(dim=dim - y.ndim) / 2


@composite(aliases=("trapz",))
def trapezoid(y, x=None, *, dx: float | None = None, dim: int = -1):
    """The integral of samples `y` along `dim` by the trapezoidal rule.

    Args:
        y: the samples.
        x: where they were taken; 1-d or of the shape of `y`.
        dx: the distance between them, 1 unless given.
        dim: the dimension to integrate along.

    >>> import corefw as torch
    >>> torch.trapezoid(torch.tensor([1.0, 5.0, 10.0]))
    tensor(10.5000)
    """
    return _panels("trapezoid", y, x, dx, dim).sum(dim)


@composite()
def cumulative_trapezoid(y, x=None, *, dx: float | None = None, dim: int = -1):
    """The running integral of samples `y` along `dim` by the trapezoidal rule. Arguments as for `trapezoid`.

    >>> import corefw as torch
    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 5.0, 10.0]))
    tensor([ 3.0000, 10.5000])
    """
    return _panels("cumulative_trapezoid", y, x, dx, dim).cumsum(dim)
