"""Scans along one dimension: running sums, products and extremes."""

from __future__ import annotations

from corefw.declarations._shared.batching import along
from corefw.dispatch.declare import Dim, composite, ops, primitive
from corefw.dispatch.rules import accumulate, floats, picks, same
from corefw.dtypes import dtype
from corefw.errors import ShapeError
from corefw.shapes import Shape, same_shape, values_and_indices


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


cumsum.batching(along(0))
cumsum.gradients(input=lambda grad, dim: grad.flip(dim).cumsum(dim).flip(dim) if grad.ndim else grad)


@primitive(dtype=accumulate, shape=same_shape, rewrites=("dtype",), inplace=True, out=True)
def cumprod(input, dim: Dim, *, dtype: dtype | None = None):
    """The running product along `dim`: ``y[i] = x[0] * ... * x[i]``. Arguments as for `cumsum`.

    >>> import corefw as torch
    >>> torch.tensor([1, 2, 3]).cumprod(0)
    tensor([1, 2, 6])
    """
    return input.to(dtype).cumprod(dim).to(dtype)


cumprod.batching(along(0))


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


logcumsumexp.batching(along(0))


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


cummax.batching(along(0))


@primitive(dtype=picks, shape=values_and_indices, outputs=("values", "indices"), out=True)
def cummin(input, dim: Dim):
    """The smallest element so far along `dim`, and the last position where it was found; from a NaN on it is NaN.

    >>> import corefw as torch
    >>> torch.tensor([3, 1, 2, 1]).cummin(0).values
    tensor([3, 1, 1, 1])
    """


cummin.batching(along(0))


def _extreme_gradient(grad, indices, dim, input_shape):
    return grad.new_zeros(input_shape).scatter_add(dim, indices, grad) if input_shape else grad


for _extreme in (cummax, cummin):
    _extreme.gradient("input")(_extreme_gradient)
