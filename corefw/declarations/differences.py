"""Differences, derivatives and integrals of sampled values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corefw import dtypes
from corefw.dispatch.declare import composite, ops
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import canonical_dim
from corefw.tensor import Tensor


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


def _slopes(values, dim: int, spacing: Any, edge_order: int):
    """The derivative along `dim` by second-order differences, at the ends by those of `edge_order`.

    Args:
        spacing: the distance of neighbours, or where values were taken.
    """
    size = values.shape[dim]
    before, current, after = (values.narrow(dim, i, size - 2) for i in range(3))
    if isinstance(spacing, Tensor):
        steps = spacing.diff().reshape((-1, *(1,) * (values.ndim - dim - 1)))
        left, right = steps[:-1], steps[1:]
        inside = after * (left / (right * (left + right))) - before * (right / (left * (left + right)))
        inside = inside + current * ((right - left) / (left * right))
        first, second, last, previous = steps[0], steps[1 % (size - 1)], steps[-1], steps[size - 3]
    else:
        inside = (after - before) / (2 * spacing)
        first = second = last = previous = spacing

    def end(at: int, inwards: int, near, far):
        x = [values.narrow(dim, at + k * inwards, 1) for k in range(edge_order + 1)]
        if edge_order == 1:
            return (x[1] - x[0] if inwards > 0 else x[0] - x[1]) / near
        weights = (-(2 * near + far) / (near * (near + far)), (near + far) / (near * far), -near / (far * (near + far)))
        return sum(value * (weight * inwards) for value, weight in zip(x, weights, strict=True))

    return ops.cat([end(0, 1, first, second), inside, end(size - 1, -1, last, previous)], dim)


@composite(public="corefw", other_names=True)
def gradient(
    input,
    *,
    spacing: float | Tensor | Sequence[float | Tensor] | None = None,
    dim: int | Sequence[int] | None = None,
    edge_order: int = 1,
) -> tuple[Tensor, ...]:
    """The derivatives of sampled values along dimensions, by differences of neighbours exact for parabolas.

    The weights for unequal distances are those of Fornberg, "Generation of finite difference formulas on arbitrarily
    spaced grids" (1988).

    Args:
        input: the values at the points of a grid, floating or complex (signed integers are divided as such).
        spacing: the distance of neighbours: of all dimensions, or for each of `dim` a number or a vector of the places
            where values were taken; 1 unless given.
        dim: the dimensions to differentiate along; all unless given.
        edge_order: 1 or 2, the order of the differences at both ends.

    Returns:
        For each of `dim` a tensor in the shape of `input`.

    >>> import corefw as torch
    >>> torch.gradient(torch.tensor([1.0, 4.0, 9.0, 16.0]))
    (tensor([3., 4., 6., 7.]),)
    """
    if edge_order not in (1, 2):
        raise ShapeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    if input.dtype is dtypes.uint8:
        raise DtypeError("torch.gradient does not support uint8 input.")
    given = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    dims = [canonical_dim(d, input.ndim) for d in given]
    for d in dims:
        if dims.count(d) > 1:
            raise ShapeError(f"dim {d} appears multiple times in the list of dims")
        if input.shape[d] < edge_order + 1:
            raise ShapeError("torch.gradient expected each dimension size to be at least edge_order+1")
    if isinstance(spacing, (list, tuple)):
        if len(spacing) != len(dims):
            raise ShapeError(
                "torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have "
                f"the same length, but got a spacing argument of length {len(spacing)} and a dim argument of length "
                f"{len(dims)}."
            )
        distances = list(spacing)
    else:
        distances = [1.0 if spacing is None else spacing] * len(dims)
    for d, distance in zip(dims, distances, strict=True):
        if isinstance(distance, Tensor) and distance.ndim and tuple(distance.shape) != (input.shape[d],):
            raise ShapeError(
                f"torch.gradient: expected a place for each of the {input.shape[d]} values along dimension {d}, got "
                f"spacing of shape {list(distance.shape)}"
            )
    values = input.to(dtypes.get_default_dtype()) if input.dtype.category == dtypes.INTEGER else input
    return tuple(
        _slopes(values, d, float(s) if isinstance(s, Tensor) and not s.ndim else s, edge_order)
        for d, s in zip(dims, distances, strict=True)
    )


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


@composite(aliases=("trapz",), other_names=True)
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


@composite(other_names=True)
def cumulative_trapezoid(y, x=None, *, dx: float | None = None, dim: int = -1):
    """The running integral of samples `y` along `dim` by the trapezoidal rule. Arguments as for `trapezoid`.

    >>> import corefw as torch
    >>> torch.cumulative_trapezoid(torch.tensor([1.0, 5.0, 10.0]))
    tensor([ 3.0000, 10.5000])
    """
    return _panels("cumulative_trapezoid", y, x, dx, dim).cumsum(dim)
