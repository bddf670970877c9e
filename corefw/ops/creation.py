"""Functions that make tensors from nothing but arguments, and the conversion of element types."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from corefw import dtypes
from corefw.devices import Place
from corefw.dispatch.declare import Sizes, composite, ops, primitive
from corefw.dispatch.factories import (
    fitting_number,
    into_out,
    new_strided,
    number_argument,
    out_place,
    require_grad,
    size_argument,
    strides_like,
    target,
    target_like,
)
from corefw.dispatch.rules import same
from corefw.dtypes import dtype
from corefw.errors import KernelNotFoundError, ShapeError
from corefw.layouts import contiguous_format
from corefw.shapes import broadcast, contiguous_strides, permuted_strides
from corefw.tensor import Tensor, wrap

#: operands agree already; the result is of the complex dtype of the same precision
to_complex = replace(same.without("bool", "integer", "complex"), results=(dtypes.dtype.to_complex,))
Number = bool | int | float | complex


# -- what backends compute --------------------------------------------------------------------------------------------
# `place` says where the result lies and is the key of dispatch; kernels get its NumPy dtype as `dtype`.
def _sized(size, *statics):
    return size


@primitive(dtype=same, shape=_sized, method=False)
def zeros_at(place: Place, size: Sizes, dtype: Any):
    """Zeros of shape `size`."""


@primitive(dtype=same, shape=_sized, method=False)
def full_at(place: Place, size: Sizes, value: Number, dtype: Any):
    """The number `value`, which `dtype` holds, everywhere in a tensor of shape `size`."""


@primitive(dtype=same, shape=lambda start, step, count, dtype: (count,), method=False)
def arange_at(place: Place, start: Number, step: Number, count: int, dtype: Any):
    """``start + i * step`` for `count` numbers i from 0: integers in int64, floating types in float64, then rounded."""


@primitive(dtype=same, shape=lambda start, end, steps, dtype: (steps,), method=False)
def linspace_at(place: Place, start: Number, end: Number, steps: int, dtype: Any):
    """`steps` numbers at equal distances from `start` to `end`, both exact; integers are cut off."""


@primitive(dtype=same, shape=lambda n, m, dtype: (n, m), method=False)
def eye_at(place: Place, n: int, m: int, dtype: Any):
    """Ones on the main diagonal of `n` rows and `m` columns, zeros elsewhere."""


@primitive(dtype=same, shape=lambda input, dtype, copy: input, method=False, grad_name="ToCopy")
def cast(place: Place, input, dtype: Any, copy: bool):
    """The elements of `input` as `dtype`, converted as C converts; the memory itself if `copy` is false and it is of
    that dtype already."""


@cast.gradient("input")
def _(grad):
    return grad  # the engine brings gradients to dtype and device of what they belong to


# -- by size ----------------------------------------------------------------------------------------------------------
@composite(method=False)
def zeros(
    *size: int | Sequence[int],
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **named,
):
    """Zeros of shape `size`.

    Args:
        size: the shape, as one sequence or separate ints; also ``size=`` by name.
        out: a tensor to write to; its dtype is then the default.
        dtype: the element type; the default floating type if missing.
        layout: `torch.strided`.
        device: where the tensor lies; the default device if missing.
        requires_grad: whether gradients of the result are wanted.
        pin_memory: page-locked memory, from which GPUs copy faster.

    >>> import corefw as torch
    >>> torch.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    shape = size_argument("zeros", size, named)
    if out is not None:
        place = out_place("zeros", out, dtype, device)
        return into_out("zeros", out, ops.zeros_at(place, shape, place.dtype.numpy))
    place = target("zeros", dtype, device, layout, pin_memory)
    result = ops.zeros_at(place, shape, place.dtype.numpy)
    return require_grad(result) if requires_grad else result


@composite(method=False)
def ones(
    *size: int | Sequence[int],
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **named,
):
    """Ones of shape `size`. Arguments as for `zeros`.

    >>> import corefw as torch
    >>> torch.ones(2, dtype=torch.int64)
    tensor([1, 1])
    """
    shape = size_argument("ones", size, named)
    if out is not None:
        place = out_place("ones", out, dtype, device)
        return into_out("ones", out, ops.full_at(place, shape, 1, place.dtype.numpy))
    place = target("ones", dtype, device, layout, pin_memory)
    result = ops.full_at(place, shape, 1, place.dtype.numpy)
    return require_grad(result) if requires_grad else result


@composite(method=False)
def empty(
    *size: int | Sequence[int],
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format=contiguous_format,
    **named,
):
    """A tensor of shape `size` whose content is arbitrary. Arguments as for `zeros`.

    Args:
        memory_format: the order of the dimensions in memory.

    >>> import corefw as torch
    >>> torch.empty(2, 3).shape
    torch.Size([2, 3])
    """
    shape = size_argument("empty", size, named)
    if out is not None:
        place = out_place("empty", out, dtype, device)
        return into_out("empty", out, wrap(place.runtime.empty(shape, place.dtype, place.device.index), place))
    place = target("empty", dtype, device, layout, pin_memory)
    if memory_format is contiguous_format:
        result = wrap(place.runtime.empty(shape, place.dtype, place.device.index), place)
    else:
        result = new_strided(place, shape, permuted_strides(shape, memory_format.order(len(shape))))
    return require_grad(result) if requires_grad else result


@composite(method=False)
def full(
    size: Sequence[int],
    fill_value: Number,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """`fill_value` everywhere in a tensor of shape `size`.

    Args:
        size: the shape.
        fill_value: a number, whose type decides the dtype if that is missing.

    Other arguments as for `zeros`. Raises RuntimeError if the dtype does not hold the number.

    >>> import corefw as torch
    >>> torch.full((2,), 3.5)
    tensor([3.5000, 3.5000])
    """
    if not isinstance(size, list | tuple):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    shape = size_argument("full", (size,))
    value = number_argument("full", "fill_value", fill_value, 2)
    if out is not None:
        place = out_place("full", out, dtype, device)
        return into_out("full", out, _filled(place, shape, value))
    if dtype is None:
        dtype = fill_value.dtype if isinstance(fill_value, Tensor) else dtypes.of_number(value)
    result = _filled(target("full", dtype, device, layout, pin_memory), shape, value)
    return require_grad(result) if requires_grad else result


def _filled(place: Place, shape, value: Number) -> Tensor:
    return ops.full_at(place, shape, fitting_number(value, place.dtype), place.dtype.numpy)


@composite(method=False)
def scalar_tensor(
    s: Number, *, dtype=None, layout=None, device=None, requires_grad: bool = False, pin_memory: bool = False
):
    """A 0-d tensor of the number `s`; the default floating type unless `dtype` says otherwise.

    >>> import corefw as torch
    >>> torch.scalar_tensor(3)
    tensor(3.)
    """
    value = number_argument("scalar_tensor", "s", s, 1)
    result = _filled(target("scalar_tensor", dtype, device, layout, pin_memory), (), value)
    return require_grad(result) if requires_grad else result


@composite(method=False)
def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """A tensor with arbitrary content whose elements lie `stride` elements apart. Other arguments as for `zeros`.

    >>> import corefw as torch
    >>> torch.empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    shape, strides = size_argument("empty_strided", (size,)), tuple(stride)
    result = new_strided(
        target("empty_strided", dtype, device, layout, pin_memory), shape, _checked_strides(shape, strides)
    )
    return require_grad(result) if requires_grad else result


def _checked_strides(shape, strides):
    if len(shape) != len(strides):
        raise ShapeError(
            f"dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(strides)})"
        )
    if any(stride < 0 for stride in strides):
        raise ShapeError(
            f"empty_strided: strides must not be negative, got sizes={list(shape)} and strides={list(strides)}"
        )
    return strides


@composite(method=False)
def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """A dense tensor with arbitrary content whose dimensions lie in memory in the order `physical_layout`, the slowest
    varying first. Other arguments as for `zeros`.

    >>> import corefw as torch
    >>> torch.empty_permuted((2, 3, 5), (0, 2, 1)).stride()
    (15, 1, 3)
    """
    shape, order = size_argument("empty_permuted", (size,)), tuple(physical_layout)
    if len(shape) != len(order):
        raise ShapeError(
            "Number of dimensions in size does not match the length of the physical_layout; "
            f"i.e. len(size) = {len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    if any(not 0 <= d < len(shape) for d in order):
        raise ShapeError(
            f"Dimension out of range (expected to be between 0 and {len(shape) - 1}, but got {list(order)})"
        )
    if len(set(order)) != len(order):
        raise ShapeError(f"Duplicate dim not allowed: physical_layout {list(order)}")
    place = target("empty_permuted", dtype, device, layout, pin_memory)
    result = new_strided(place, shape, permuted_strides(shape, order))
    return require_grad(result) if requires_grad else result


# -- like another tensor ----------------------------------------------------------------------------------------------
def _new_like(
    name: str, like, dtype, layout, device, pin_memory, memory_format, fill: Number | None, requires_grad: bool
):
    place = target_like(name, like, dtype, device, layout, pin_memory)
    array = like.array
    shape = tuple(array.shape)
    if memory_format is None and like.place.runtime.is_contiguous(array):
        strides = contiguous_strides(shape)
    else:
        strides = strides_like(like, memory_format)
    if fill is None or strides != contiguous_strides(shape):
        result = new_strided(place, shape, strides)
        if fill is not None:
            number = place.runtime.constant(fitting_number(fill, place.dtype), place.dtype, place.device.index)
            place.runtime.copy(result.array, number)
    elif fill == 0:
        result = ops.zeros_at(place, shape, place.dtype.numpy)
    else:
        result = _filled(place, shape, fill)
    return require_grad(result) if requires_grad else result


@composite(method=False)
def zeros_like(
    input,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format=None,
):
    """Zeros in the shape, dtype, device and memory order of `input`.

    Args:
        input: any tensor.
        dtype, device: instead of those of `input`.
        memory_format: the order of the dimensions in memory, instead of that of `input`.

    >>> import corefw as torch
    >>> torch.zeros_like(torch.tensor([1, 2]))
    tensor([0, 0])
    """
    return _new_like("zeros_like", input, dtype, layout, device, pin_memory, memory_format, 0, requires_grad)


@composite(method=False)
def ones_like(
    input,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format=None,
):
    """Ones in the shape, dtype, device and memory order of `input`. Arguments as for `zeros_like`.

    >>> import corefw as torch
    >>> torch.ones_like(torch.tensor([1, 2]))
    tensor([1, 1])
    """
    return _new_like("ones_like", input, dtype, layout, device, pin_memory, memory_format, 1, requires_grad)


@composite(method=False)
def empty_like(
    input,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format=None,
):
    """A tensor with arbitrary content in the shape, dtype, device and memory order of `input`. Arguments as for
    `zeros_like`.

    >>> import corefw as torch
    >>> torch.empty_like(torch.tensor([1, 2])).dtype
    torch.int64
    """
    return _new_like("empty_like", input, dtype, layout, device, pin_memory, memory_format, None, requires_grad)


@composite(method=False)
def full_like(
    input,
    fill_value: Number,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format=None,
):
    """`fill_value` in the shape, dtype, device and memory order of `input`. Arguments as for `zeros_like`.

    >>> import corefw as torch
    >>> torch.full_like(torch.tensor([1, 2]), 7)
    tensor([7, 7])
    """
    value = number_argument("full_like", "fill_value", fill_value, 2)
    return _new_like("full_like", input, dtype, layout, device, pin_memory, memory_format, value, requires_grad)


# -- methods that make tensors of the same dtype and device -----------------------------------------------------------
@composite()
def new_zeros(
    input,
    *size: int | Sequence[int],
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **named,
):
    """Zeros of shape `size`, of the tensor's dtype and device unless others are given.

    >>> import corefw as torch
    >>> torch.tensor([1]).new_zeros(2)
    tensor([0, 0])
    """
    place = target_like("new_zeros", input, dtype, device, layout, pin_memory)
    result = ops.zeros_at(place, size_argument("new_zeros", size, named), place.dtype.numpy)
    return require_grad(result) if requires_grad else result


@composite()
def new_ones(
    input,
    *size: int | Sequence[int],
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **named,
):
    """Ones of shape `size`, of the tensor's dtype and device unless others are given.

    >>> import corefw as torch
    >>> torch.tensor([1]).new_ones(2)
    tensor([1, 1])
    """
    place = target_like("new_ones", input, dtype, device, layout, pin_memory)
    result = ops.full_at(place, size_argument("new_ones", size, named), 1, place.dtype.numpy)
    return require_grad(result) if requires_grad else result


@composite()
def new_empty(
    input,
    *size: int | Sequence[int],
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **named,
):
    """A tensor of shape `size` with arbitrary content, of the tensor's dtype and device unless others are given.

    >>> import corefw as torch
    >>> torch.tensor([1]).new_empty(2).shape
    torch.Size([2])
    """
    place = target_like("new_empty", input, dtype, device, layout, pin_memory)
    result = wrap(place.runtime.empty(size_argument("new_empty", size, named), place.dtype, place.device.index), place)
    return require_grad(result) if requires_grad else result


@composite()
def new_empty_strided(
    input,
    size: Sequence[int],
    stride: Sequence[int],
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """As `empty_strided`, of the tensor's dtype and device unless others are given.

    >>> import corefw as torch
    >>> torch.tensor([1]).new_empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    place = target_like("new_empty_strided", input, dtype, device, layout, pin_memory)
    shape = size_argument("new_empty_strided", (size,))
    result = new_strided(place, shape, _checked_strides(shape, tuple(stride)))
    return require_grad(result) if requires_grad else result


@composite()
def new_full(
    input,
    size: Sequence[int],
    fill_value: Number,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """`fill_value` in a tensor of shape `size`, of the tensor's dtype and device unless others are given.

    >>> import corefw as torch
    >>> torch.tensor([1]).new_full((2,), 3)
    tensor([3, 3])
    """
    value = number_argument("new_full", "fill_value", fill_value, 2)
    place = target_like("new_full", input, dtype, device, layout, pin_memory)
    result = _filled(place, size_argument("new_full", (size,)), value)
    return require_grad(result) if requires_grad else result


# -- ranges -----------------------------------------------------------------------------------------------------------
def _not_implemented(name: str, d: dtype) -> KernelNotFoundError:
    return KernelNotFoundError(f"\"{name}\" not implemented for '{d.title}'")


@composite(method=False)
def arange(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
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
    start = number_argument("arange", "start", start, 1)
    end = number_argument("arange", "end", end, 1 if start == 0 else 2)
    step = number_argument("arange", "step", step, 3)
    if out is not None:
        place = out_place("arange", out, dtype, device)
    else:
        if dtype is None:
            whole = not (start.__class__ is float or end.__class__ is float or step.__class__ is float)
            dtype = dtypes.int64 if whole else dtypes.get_default_dtype()
        place = target("arange", dtype, device, layout, pin_memory)
    d = place.dtype
    if d.is_complex or d is dtypes.bool_:
        raise _not_implemented("arange_cpu", d)
    if not d.is_floating_point:
        start, end, step = (fitting_number(v, dtypes.int64) for v in (start, end, step))
    elif complex in (start.__class__, end.__class__, step.__class__):
        raise _not_implemented("arange_cpu", dtypes.complex64)
    if step == 0:
        raise ShapeError("step must be nonzero")
    if not math.isfinite(start) or not math.isfinite(end):
        raise ShapeError(f"unsupported range: {start} -> {end}")
    if (step > 0) != (end > start) and start != end:
        raise ShapeError("upper bound and lower bound inconsistent with step sign")
    count = math.ceil((end - start) / step) if d.is_floating_point else -((start - end) // step)
    result = ops.arange_at(place, start, step, count, d.numpy)
    if out is not None:
        return into_out("arange", out, result)
    return require_grad(result) if requires_grad else result


@composite(method=False, name="range")
def range_(
    start: float = 0,
    end: float | None = None,
    step: float = 1,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """The numbers ``start, start + step, ...`` up to and including `end`. Deprecated: use `arange`.

    >>> import corefw as torch
    >>> torch.range(1, 3)  # doctest: +SKIP
    tensor([1., 2., 3.])
    """
    if end is None:
        raise TypeError('range() missing 1 required positional arguments: "end"')
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's "
        "range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    start, end, step = (
        number_argument("range", n, v, i)
        for i, (n, v) in enumerate({"start": start, "end": end, "step": step}.items(), 1)
    )
    place = (
        target("range", dtype, device, layout, pin_memory) if out is None else out_place("range", out, dtype, device)
    )
    if step == 0:
        raise ShapeError("step must be nonzero")
    if not math.isfinite(start) or not math.isfinite(end):
        raise ShapeError(f"unsupported range: {start} -> {end}")
    if (step > 0) != (end > start) and start != end:
        raise ShapeError("upper bound and lower bound inconsistent with step sign")
    result = ops.arange_at(place, start, step, math.floor((end - start) / step) + 1, place.dtype.numpy)
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


def _steps_place(name: str, start, end, steps: int, out, dtype, layout, device, pin_memory) -> Place:
    if steps < 0:
        raise ShapeError("number of steps must be non-negative")
    if out is not None:
        place = out_place(name, out, dtype, device)
    else:
        if dtype is None and complex in (start.__class__, end.__class__):
            dtype = dtypes.of_number(1j)
        place = target(name, dtype, device, layout, pin_memory)
    if place.dtype is dtypes.bool_:
        raise _not_implemented(f"{name}_cpu", place.dtype)
    return place


@composite(method=False)
def linspace(
    start: Number,
    end: Number,
    steps: int,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
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
    place = _steps_place("linspace", start, end, steps, out, dtype, layout, device, pin_memory)
    if not place.dtype.is_complex:
        start, end = (_fitting_end(v, place.dtype) for v in (start, end))
    result = ops.linspace_at(place, start, end, steps, place.dtype.numpy)
    if out is not None:
        return into_out("linspace", out, result)
    return require_grad(result) if requires_grad else result


def _fitting_end(value: Number, d: dtype) -> Number:
    return fitting_number(value, d if d.is_floating_point else dtypes.int64)


@composite(method=False)
def logspace(
    start: Number,
    end: Number,
    steps: int,
    base: float = 10.0,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """`base` raised to `steps` exponents at equal distances from `start` to `end`, both included.

    Other arguments as for `linspace`.

    >>> import corefw as torch
    >>> torch.logspace(0, 2, 3)
    tensor([  1.,  10., 100.])
    """
    start, end = _end_point("logspace", "start", start, 1), _end_point("logspace", "end", end, 2)
    place = _steps_place("logspace", start, end, steps, out, dtype, layout, device, pin_memory)
    wide = place.with_dtype(dtypes.complex128 if place.dtype.is_complex else dtypes.float64)
    exponents = ops.linspace_at(wide, start, end, steps, wide.dtype.numpy)
    result = ops.cast(place, base**exponents, place.dtype.numpy, False)
    if out is not None:
        return into_out("logspace", out, result)
    return require_grad(result) if requires_grad else result


@composite(method=False)
def eye(
    n: int,
    m: int | None = None,
    *,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
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
    place = target("eye", dtype, device, layout, pin_memory) if out is None else out_place("eye", out, dtype, device)
    result = ops.eye_at(place, n, m, place.dtype.numpy)
    if out is not None:
        return into_out("eye", out, result)
    return require_grad(result) if requires_grad else result


# -- complex numbers from real ones -----------------------------------------------------------------------------------
@primitive(dtype=to_complex, shape=broadcast, method=False, name="complex", out=True)
def complex_(real, imag):
    """``real + i imag``, elementwise.

    Args:
        real, imag: tensors of the same floating dtype whose shapes broadcast.

    >>> import corefw as torch
    >>> torch.complex(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    tensor([1.+3.j, 2.+4.j])
    """


@complex_.gradient("real")
def _(grad):
    return grad.real


@complex_.gradient("imag")
def _(grad):
    return grad.imag


@composite(method=False, out=True)
def polar(abs, angle):
    """``abs (cos angle + i sin angle)``, elementwise: complex numbers from modulus and argument.

    Args:
        abs, angle: tensors of the same floating dtype whose shapes broadcast.

    >>> import corefw as torch
    >>> torch.polar(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
    tensor([1.+0.j, 2.+0.j])
    """
    return complex_(abs * angle.cos(), abs * angle.sin())
