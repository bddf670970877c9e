"""Ranges of numbers at equal distances, and the identity matrix."""

from __future__ import annotations

import math
from typing import Any

from corefw import dtypes
from corefw.declarations._shared.batching import the_same
from corefw.declarations._shared.factories import factory, into_out, number_argument, out_key, require_grad, target
from corefw.devices import DispatchKey
from corefw.dispatch.declare import composite, ops, primitive
from corefw.dispatch.numbers import Number, fitting_number
from corefw.dispatch.rules import same
from corefw.dtypes import dtype
from corefw.errors import KernelNotFoundError, ShapeError
from corefw.shapes import MOST_ELEMENTS, check_storage
from corefw.tensor import Tensor
from corefw.tracebacks import warn


# -- what backends compute --------------------------------------------------------------------------------------------
@primitive(dtype=same, shape=lambda start, step, count, dtype: (count,), public="")
def arange_at(dispatch_key: DispatchKey, start: Number, step: Number, count: int, dtype: Any):
    """``start + i * step`` for `count` numbers i from 0: integers in int64, floating types in float64, then rounded."""


arange_at.batching(the_same)


@primitive(dtype=same, shape=lambda start, end, steps, dtype: (steps,), public="")
def linspace_at(dispatch_key: DispatchKey, start: Number, end: Number, steps: int, dtype: Any):
    """`steps` numbers at equal distances from `start` to `end`, both exact; integers are cut off."""


linspace_at.batching(the_same)


@primitive(dtype=same, shape=lambda n, m, dtype: (n, m), public="")
def eye_at(dispatch_key: DispatchKey, n: int, m: int, dtype: Any):
    """Ones on the main diagonal of `n` rows and `m` columns, zeros elsewhere."""


eye_at.batching(the_same)


_SMALL = 1 << 53  # integers below are the same in every wide type
End = float | None  # of a range; missing if there is one number


# -- ranges -----------------------------------------------------------------------------------------------------------
def _not_implemented(name: str, d: dtype) -> KernelNotFoundError:
    return KernelNotFoundError(f"\"{name}\" not implemented for '{d.title}'")


def _check_range(start: float, end: float, step: float) -> None:
    if step == 0:
        raise ShapeError("step must be nonzero")
    if not math.isfinite(start) or not math.isfinite(end):
        raise ShapeError(f"unsupported range: {start} -> {end}")
    if (step > 0) != (end > start) and start != end:
        raise ShapeError("upper bound and lower bound inconsistent with step sign")


@composite()
@factory
def arange(
    start: float = 0, end: End = None, step: float = 1, *, out, dtype, layout, device, requires_grad, pin_memory
):
    """The numbers ``start, start + step, ...`` below `end`.

    Args:
        start, end, step: one number is the end, two are start and end. A negative step counts down.
        dtype: int64 if all three are integers, else the default floating type.

    Other arguments as for `zeros`. Raises RuntimeError if the step is zero or leads away from `end`.

    >>> import corefw as torch
    >>> torch.arange(3), torch.arange(1, 2, 0.5)
    (tensor([0, 1, 2]), tensor([1.0000, 1.5000]))
    """
    if end is None:
        start, end = 0, start
    ints = start.__class__ is end.__class__ is step.__class__ is int
    if not ints:
        start = number_argument("arange", "start", start, 1)
        end = number_argument("arange", "end", end, 1 if start == 0 else 2)
        step = number_argument("arange", "step", step, 3)
    if out is not None:
        dispatch_key = out_key("arange", out, dtype, device)
    else:
        if dtype is None:
            whole = ints or not (start.__class__ is float or end.__class__ is float or step.__class__ is float)
            dtype = dtypes.int64 if whole else dtypes.get_default_dtype()
        dispatch_key = target("arange", dtype, device, layout, pin_memory)
    d = dispatch_key.dtype
    if d.is_complex or d is dtypes.bool_:
        raise _not_implemented("arange_cpu", d)
    if ints and -_SMALL < start < _SMALL and -_SMALL < end < _SMALL and -_SMALL < step < _SMALL:
        integers: tuple = (start, end, step)
    else:
        integers = () if d.is_floating_point else tuple([fitting_number(v, dtypes.int64) for v in (start, end, step)])
    if complex in (start.__class__, end.__class__, step.__class__):
        raise _not_implemented("arange_cpu", dtypes.complex64)
    _check_range(start, end, step)
    if d is dtypes.int64:
        start, end, step = integers
        if step == 0:
            raise ShapeError("step must be nonzero")
        count = -((start - end) // step)
    else:  # narrower integers too are counted by the numbers as they are given, as PyTorch does
        count = math.ceil((end - start) / step)
        start, end, step = integers or (start, end, step)
    if count > MOST_ELEMENTS:
        check_storage((int(count),), 8)
    result = arange_at(dispatch_key, start, step, count, d.numpy)
    if out is not None:
        return into_out("arange", out, result)
    return require_grad(result) if requires_grad else result


@composite(name="range")
@factory
def range_(
    start: float = 0, end: End = None, step: float = 1, *, out, dtype, layout, device, requires_grad, pin_memory
):
    """The numbers ``start, start + step, ...`` up to and including `end`. Deprecated: use `arange`.

    >>> import corefw as torch
    >>> torch.range(1, 3)  # doctest: +SKIP
    tensor([1., 2., 3.])
    """
    if end is None:
        raise TypeError('range() missing 1 required positional arguments: "end"')
    warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
    )
    start, end, step = (
        number_argument("range", n, v, i)
        for i, (n, v) in enumerate({"start": start, "end": end, "step": step}.items(), 1)
    )
    dispatch_key = (
        target("range", dtype, device, layout, pin_memory) if out is None else out_key("range", out, dtype, device)
    )
    _check_range(start, end, step)
    count = math.floor((end - start) / step) + 1
    if count > MOST_ELEMENTS:
        check_storage((int(count),), 8)
    result = arange_at(dispatch_key, start, step, count, dispatch_key.dtype.numpy)
    if out is not None:
        return into_out("range", out, result)
    return require_grad(result) if requires_grad else result


def _end_point(name: str, argument: str, value, position: int):
    if isinstance(value, Tensor) and value.array.ndim:
        raise ShapeError(
            f"{name} only supports 0-dimensional start and end tensors, but got {argument} with {value.array.ndim} "
            f"dimension(s)."
        )
    return number_argument(name, argument, value, position)


def _steps_place(name: str, start, end, steps: int, out, dtype, layout, device, pin_memory) -> DispatchKey:
    if steps < 0:
        raise ShapeError("number of steps must be non-negative")
    if steps > MOST_ELEMENTS:
        check_storage((steps,), 8)
    if out is not None:
        dispatch_key = out_key(name, out, dtype, device)
    else:
        if dtype is None and complex in (start.__class__, end.__class__):
            dtype = dtypes.of_number(1j)
        dispatch_key = target(name, dtype, device, layout, pin_memory)
    if dispatch_key.dtype is dtypes.bool_:
        raise _not_implemented(f"{name}_cpu", dispatch_key.dtype)
    return dispatch_key


@composite()
@factory
def linspace(start: Number, end: Number, steps: int, *, out, dtype, layout, device, requires_grad, pin_memory):
    """`steps` numbers at equal distances from `start` to `end`, both included.

    Args:
        start, end: numbers or 0-d tensors; complex ones make the result complex.
        steps: how many.

    Other arguments as for `zeros`.

    >>> import corefw as torch
    >>> torch.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    start, end = _end_point("linspace", "start", start, 1), _end_point("linspace", "end", end, 2)
    dispatch_key = _steps_place("linspace", start, end, steps, out, dtype, layout, device, pin_memory)
    start, end = fitting_number(start, dispatch_key.dtype), fitting_number(end, dispatch_key.dtype)
    result = linspace_at(dispatch_key, start, end, steps, dispatch_key.dtype.numpy)
    if out is not None:
        return into_out("linspace", out, result)
    return require_grad(result) if requires_grad else result


@composite()
@factory
def logspace(
    start: Number, end: Number, steps: int, base: float = 10.0, *, out, dtype, layout, device, requires_grad, pin_memory
):
    """`base` raised to `steps` exponents at equal distances from `start` to `end`, both included.

    Other arguments as for `linspace`.

    >>> import corefw as torch
    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    start, end = _end_point("logspace", "start", start, 1), _end_point("logspace", "end", end, 2)
    dispatch_key = _steps_place("logspace", start, end, steps, out, dtype, layout, device, pin_memory)
    if dispatch_key.dtype.category == dtypes.INTEGER and steps != 1:  # PyTorch's exponents, but for a single one
        start, end = (fitting_number(v, dispatch_key.dtype) for v in (start, end))
    wide = dispatch_key.with_dtype(dtypes.complex128 if dispatch_key.dtype.is_complex else dtypes.float64)
    exponents = linspace_at(wide, start, end, steps, wide.dtype.numpy)
    result = ops.cast(dispatch_key, base**exponents, dispatch_key.dtype.numpy, False)
    if out is not None:
        return into_out("logspace", out, result)
    return require_grad(result) if requires_grad else result


@composite()
@factory
def eye(n: int, m: int | None = None, *, out, dtype, layout, device, requires_grad, pin_memory):
    """Ones on the main diagonal of `n` rows and `m` columns (as many as rows if missing), zeros elsewhere.

    Other arguments as for `zeros`.

    >>> import corefw as torch
    >>> torch.eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    m = n if m is None else m
    for name, count in (("n", n), ("m", m)):
        if count < 0:
            raise ShapeError(f"{name} must be greater or equal to 0, got {count}")
    dispatch_key = (
        target("eye", dtype, device, layout, pin_memory) if out is None else out_key("eye", out, dtype, device)
    )
    result = eye_at(dispatch_key, n, m, dispatch_key.dtype.numpy)
    if out is not None:
        return into_out("eye", out, result)
    return require_grad(result) if requires_grad else result
