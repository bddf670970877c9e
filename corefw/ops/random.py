"""Random numbers: tensors filled from a generator's stream, and dropout."""

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
    ArgumentError,
    fitting_number,
    into_out,
    out_place,
    require_grad,
    size_argument,
    strides_like,
    target,
    target_like,
)
from corefw.dispatch.generator import Generator, take
from corefw.dispatch.rules import index, same
from corefw.dtypes import dtype
from corefw.errors import KernelNotFoundError, ShapeError
from corefw.shapes import broadcast, contiguous_strides
from corefw.tensor import Tensor, wrap

Number = bool | int | float | complex


# -- what backends compute: the kinds of docs/random.md ---------------------------------------------------------------
def _sized(size, *statics):
    return size


@primitive(dtype=same.without("bool", "integer"), shape=_sized, method=False)
def uniform_at(place: Place, size: Sizes, seed: int, offset: int, low: float, high: float, dtype: Any):
    """Uniform numbers in ``[low, high)``."""


@primitive(dtype=same.without("complex"), shape=_sized, method=False)
def integers_at(place: Place, size: Sizes, seed: int, offset: int, low: int, high: int, dtype: Any):
    """Integers in ``[low, high)``."""


@primitive(dtype=same.without("bool", "integer"), shape=_sized, method=False)
def normal_at(place: Place, size: Sizes, seed: int, offset: int, mean: float, std: float, dtype: Any):
    """Normal numbers."""


@primitive(dtype=same.without("complex"), shape=lambda p, size, *statics: size, method=False)
def bernoulli_at(place: Place, p, size: Sizes, seed: int, offset: int, dtype: Any):
    """One with probability `p`, a tensor that broadcasts to `size`, else zero."""


@primitive(dtype=same.without("bool", "integer", "complex"), shape=_sized, method=False)
def exponential_at(place: Place, size: Sizes, seed: int, offset: int, lambd: float, dtype: Any):
    """Exponential numbers of rate `lambd`."""


@primitive(dtype=same.without("bool", "integer", "complex"), shape=_sized, method=False)
def cauchy_at(place: Place, size: Sizes, seed: int, offset: int, median: float, sigma: float, dtype: Any):
    """Cauchy numbers."""


@primitive(dtype=same.without("bool", "integer", "complex"), shape=_sized, method=False)
def log_normal_at(place: Place, size: Sizes, seed: int, offset: int, mean: float, std: float, dtype: Any):
    """Exponentials of normal numbers."""


@primitive(dtype=same.without("bool", "complex"), shape=_sized, method=False)
def geometric_at(place: Place, size: Sizes, seed: int, offset: int, p: float, dtype: Any):
    """The number of trials up to the first success, each of probability `p`."""


@primitive(dtype=same.without("bool", "complex"), shape=lambda n, *statics: (n,), method=False)
def permutation_at(place: Place, n: int, seed: int, offset: int, dtype: Any):
    """A permutation of the numbers below `n`."""


@primitive(
    dtype=replace(index, promotes=False).without("bool", "integer", "complex"),
    shape=lambda input, num_samples, *statics: (*input[:-1], num_samples),
    method=False,
)
def multinomial_at(input, num_samples: int, replacement: bool, seed: int, offset: int):
    """Positions along the last dimension, in proportion to the weights there."""


# 32-bit words per value of the kinds whose words do not depend on the dtype; the others take one per real number, two
# where the dtype has 53 bits.
_WORDS = {"integers_at": 2, "geometric_at": 2, "permutation_at": 2, "multinomial_at": 2}


def _take(kind: str, place: Place, count: int, generator: Generator | None) -> tuple[int, int]:
    """Seed and offset for `count` values of a kind at `place`."""
    words = _WORDS.get(kind)
    if words is None:
        d = place.dtype
        words = (2 if d.to_real() is dtypes.float64 else 1) * (2 if d.is_complex else 1)
    return take(generator, place.device, -(-count * words // 4))


def _draw(kind: str, place: Place, shape, generator: Generator | None, *parameters) -> Tensor:
    """A tensor of numbers of a kind."""
    seed, offset = _take(kind, place, math.prod(shape), generator)
    return getattr(ops, kind)(place, shape, seed, offset, *parameters, place.dtype.numpy)


def _in_order(result: Tensor, strides) -> Tensor:
    """The same numbers laid out in memory by `strides`, so that they do not depend on the memory order."""
    shape = tuple(result.array.shape)
    if strides == contiguous_strides(shape):
        return result
    runtime, place = result.place.runtime, result.place
    memory = runtime.empty((math.prod(shape),), place.dtype, place.device.index)
    array = runtime.as_strided(memory, shape, strides, 0)
    runtime.copy(array, result.array)
    return wrap(array, place)


def _refuse(kernel: str, d: dtype) -> KernelNotFoundError:
    return KernelNotFoundError(f"\"{kernel}\" not implemented for '{d.title}'")


def _check_floating(kernel: str, d: dtype, *, complex_too: bool = True) -> None:
    if not (d.is_floating_point or (complex_too and d.is_complex)):
        raise _refuse(kernel, d)


# -- by size ----------------------------------------------------------------------------------------------------------
@composite(method=False)
def rand(
    *size: int | Sequence[int],
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **named,
):
    """Uniform random numbers in [0, 1) of shape `size`.

    Args:
        size: the shape, as one sequence or separate ints; also ``size=`` by name.
        generator: the stream; the device's default one if missing.
        out: a tensor to write to.
        dtype: a floating or complex type; the default floating type if missing.
        layout, device, requires_grad, pin_memory: as for `zeros`.

    The numbers are those of docs/random.md, the same on every backend.

    >>> import corefw as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.rand(2)
    tensor([0.3990, 0.8805])
    """
    shape = size_argument("rand", size, named)
    place = target("rand", dtype, device, layout, pin_memory) if out is None else out_place("rand", out, dtype, device)
    _check_floating("check_uniform_bounds", place.dtype)
    result = _draw("uniform_at", place, shape, generator, 0.0, 1.0)
    if out is not None:
        return into_out("rand", out, result)
    return require_grad(result) if requires_grad else result


@composite(method=False)
def randn(
    *size: int | Sequence[int],
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    **named,
):
    """Normal random numbers of mean 0 and variance 1 of shape `size`. Arguments as for `rand`.

    >>> import corefw as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randn(2).shape
    torch.Size([2])
    """
    shape = size_argument("randn", size, named)
    place = (
        target("randn", dtype, device, layout, pin_memory) if out is None else out_place("randn", out, dtype, device)
    )
    _check_floating("normal_kernel_cpu", place.dtype)
    result = _draw("normal_at", place, shape, generator, 0.0, 1.0)
    if out is not None:
        return into_out("randn", out, result)
    return require_grad(result) if requires_grad else result


_C_TYPES = {
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short",
    "int32": "int",
    "int64": "long",
    "uint16": "unsigned short",
    "uint32": "unsigned int",
    "uint64": "unsigned long",
}
_SIGNIFICAND = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}


def _check_bounds(low: int, high: int, d: dtype) -> None:
    """Refuse a range of integers that is empty or that the dtype does not hold."""
    if low >= high:
        raise ArgumentError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if d.is_complex:
        raise ArgumentError("check_random_bounds handles only integral, floating-point and boolean types")
    if d.is_floating_point:
        limit = 1 << _SIGNIFICAND[d]
        for name, value in (("from", low), ("to - 1", high - 1)):
            if abs(value) > limit:
                warnings.warn(
                    f"{name} is out of bounds [-(2^{_SIGNIFICAND[d]}), 2^{_SIGNIFICAND[d]}]. Due to precision "
                    f"limitations "
                    f"{d.name} can support discrete uniform distribution only within this range.",
                    UserWarning,
                    stacklevel=4,
                )
        return
    smallest, largest = (0, 1) if d is dtypes.bool_ else (dtypes.iinfo(d).min, dtypes.iinfo(d).max)
    name = _C_TYPES.get(d.name, d.name)
    if not smallest <= low <= largest:
        raise ArgumentError(f"from is out of bounds for {name}")
    if high - 1 > largest:
        raise ArgumentError(f"to - 1 is out of bounds for {name}")


def _integer(name: str, argument: str, value) -> int:
    if isinstance(value, float | complex) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}(): argument '{argument}' must be int, not {type(value).__name__}")
    return value.__index__()


_MISSING: Any = object()


@composite(method=False)
def randint(
    low: int = _MISSING,
    high: Any = _MISSING,
    size: Sequence[int] = _MISSING,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """Random integers in ``[low, high)``: ``randint(high, size)`` or ``randint(low, high, size)``.

    Args:
        low: the smallest one; 0 if missing.
        high: one above the largest.
        size: the shape.
        dtype: int64 if missing; bool and floating types are fine too.

    Other arguments as for `rand`. Raises RuntimeError if the range is empty or does not fit the dtype.

    >>> import corefw as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randint(10, (3,))
    tensor([8, 6, 6])
    """
    if size is _MISSING and isinstance(high, list | tuple):
        low, high, size = 0, low, high
    elif high is _MISSING and low is not _MISSING:
        low, high = 0, low
    elif low is _MISSING:
        low = 0
    if high is _MISSING or not isinstance(size, list | tuple):
        raise TypeError(
            "randint() received an invalid combination of arguments: expected (int high, tuple of ints size) or "
            "(int low, int high, tuple of ints size)"
        )
    low, high = _integer("randint", "low", low), _integer("randint", "high", high)
    shape = size_argument("randint", (size,))
    if out is None:
        place = target("randint", dtype or dtypes.int64, device, layout, pin_memory)
    else:
        place = out_place("randint", out, dtype, device)
    _check_bounds(low, high, place.dtype)
    result = _draw("integers_at", place, shape, generator, low, high)
    if out is not None:
        return into_out("randint", out, result)
    return require_grad(result) if requires_grad else result


@composite(method=False)
def randperm(
    n: int,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """A random permutation of the numbers from 0 to ``n - 1``.

    Args:
        n: how many.
        dtype: int64 if missing.

    Other arguments as for `rand`.

    >>> import corefw as torch
    >>> torch.randperm(4).sort().values
    tensor([0, 1, 2, 3])
    """
    n = _integer("randperm", "n", n)
    if n < 0:
        raise ShapeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if out is None:
        place = target("randperm", dtype or dtypes.int64, device, layout, pin_memory)
    else:
        place = out_place("randperm", out, dtype, device)
    d = place.dtype
    if d is dtypes.bool_ or d.is_complex:
        raise _refuse("randperm", d)
    if d.is_floating_point and n > (1 << _SIGNIFICAND[d]) + 1:
        raise ArgumentError(f"n cannot be greater than {(1 << _SIGNIFICAND[d]) + 1} for {d.title} type.")
    fitting_number(max(n - 1, 0), d)
    seed, offset = _take("permutation_at", place, n, generator)
    result = ops.permutation_at(place, n, seed, offset, d.numpy)
    if out is not None:
        return into_out("randperm", out, result)
    return require_grad(result) if requires_grad else result


# -- like another tensor ----------------------------------------------------------------------------------------------
@composite(method=False)
def rand_like(
    input,
    *,
    generator: Generator | None = None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format=None,
):
    """Uniform random numbers in [0, 1) in the shape, dtype, device and memory order of `input`.

    >>> import corefw as torch
    >>> torch.rand_like(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    place = target_like("rand_like", input, dtype, device, layout, pin_memory)
    _check_floating("check_uniform_bounds", place.dtype)
    result = _draw("uniform_at", place, tuple(input.array.shape), generator, 0.0, 1.0)
    result = _in_order(result, strides_like(input, memory_format))
    return require_grad(result) if requires_grad else result


@composite(method=False)
def randn_like(
    input,
    *,
    generator: Generator | None = None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format=None,
):
    """Normal random numbers of mean 0 and variance 1 in the shape, dtype, device and memory order of `input`.

    >>> import corefw as torch
    >>> torch.randn_like(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """
    place = target_like("randn_like", input, dtype, device, layout, pin_memory)
    _check_floating("normal_kernel_cpu", place.dtype)
    result = _draw("normal_at", place, tuple(input.array.shape), generator, 0.0, 1.0)
    result = _in_order(result, strides_like(input, memory_format))
    return require_grad(result) if requires_grad else result


@composite(method=False)
def randint_like(
    input,
    low: int = _MISSING,
    high: int = _MISSING,
    *,
    generator: Generator | None = None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    memory_format=None,
):
    """Random integers in ``[low, high)`` in the shape, dtype, device and memory order of `input`:
    ``randint_like(input, high)`` or ``randint_like(input, low, high)``.

    >>> import corefw as torch
    >>> torch.randint_like(torch.zeros(2, 3), 10).dtype
    torch.float32
    """
    if high is _MISSING:
        low, high = 0, low
    elif low is _MISSING:
        low = 0
    if high is _MISSING:
        raise TypeError('randint_like() missing 1 required positional arguments: "high"')
    low, high = (
        _integer("randint_like", n, int(v) if isinstance(v, Tensor) else v) for n, v in (("low", low), ("high", high))
    )
    place = target_like("randint_like", input, dtype, device, layout, pin_memory)
    _check_bounds(low, high, place.dtype)
    result = _draw("integers_at", place, tuple(input.array.shape), generator, low, high)
    result = _in_order(result, strides_like(input, memory_format))
    return require_grad(result) if requires_grad else result


# -- distributions whose parameters are tensors -----------------------------------------------------------------------
@composite(method=False)
def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Sequence[int] | None = None,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
    dtype: dtype | None = None,
    layout=None,
    device=None,
    requires_grad: bool = False,
    pin_memory: bool = False,
):
    """Normal random numbers.

    Args:
        mean: a number, or a floating tensor that broadcasts with `std`.
        std: the standard deviation, not negative: a number or a tensor.
        size: the shape, where both are numbers.

    Other arguments as for `rand`. No gradient flows to `mean` and `std`.

    >>> import corefw as torch
    >>> torch.normal(torch.zeros(3), 2.0).shape, torch.normal(0.0, 1.0, (2,)).shape
    (torch.Size([3]), torch.Size([2]))
    """
    tensors = [v for v in (mean, std) if isinstance(v, Tensor)]
    if not tensors:
        if size is None:
            raise TypeError(
                "normal() received an invalid combination of arguments: expected tensors `mean` or `std`, or numbers "
                "and a `size`"
            )
        shape = size_argument("normal", (size,))
        place = (
            target("normal", dtype, device, layout, pin_memory)
            if out is None
            else out_place("normal", out, dtype, device)
        )
        _check_floating("normal_kernel_cpu", place.dtype)
        _check_std(std)
        result = _draw("normal_at", place, shape, generator, float(mean), float(std))
        if out is not None:
            return into_out("normal", out, result)
        return require_grad(result) if requires_grad else result
    place = tensors[0].place
    for tensor in tensors:
        _check_floating("normal_kernel_cpu", tensor.place.dtype)
    if not isinstance(std, Tensor):
        _check_std(std)
    elif place.device.type != "meta" and not bool((std.detach() >= 0).all()):
        raise ArgumentError("normal expects all elements of std >= 0.0")
    shape = broadcast(*(tuple(tensor.array.shape) for tensor in tensors))
    result = _draw("normal_at", place, shape, generator, 0.0, 1.0)
    for combine, parameter in ((ops.mul, std), (ops.add, mean)):
        if isinstance(parameter, Tensor) or parameter != (1 if parameter is std else 0):
            result = combine(
                result, parameter.detach().to(place.dtype) if isinstance(parameter, Tensor) else float(parameter)
            )
    return result if out is None else into_out("normal", out, result)


def _check_std(std) -> None:
    if not std >= 0:
        raise ArgumentError(f"normal expects std >= 0.0, but found std {std}")


def _probability(place: Place, p: float) -> Tensor:
    """A number as a 0-d tensor on the device of `place`."""
    wide = place.with_dtype(dtypes.float64)
    return wrap(place.runtime.constant(float(p), dtypes.float64, place.device.index), wide)


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ArgumentError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")


def _check_probabilities(p: Tensor) -> None:
    if not p.place.dtype.is_floating_point:
        raise _refuse("bernoulli_tensor_cpu_p_", p.place.dtype)
    if p.place.device.type != "meta" and not bool(((p >= 0) & (p <= 1)).all()):
        raise ArgumentError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false: probabilities must be in [0, 1]"
        )


def _draw_bernoulli(place: Place, p: Tensor, shape, generator: Generator | None) -> Tensor:
    if place.dtype.is_complex:
        raise _refuse("bernoulli_scalar_cpu_", place.dtype)
    seed, offset = _take("bernoulli_at", place, math.prod(shape), generator)
    return ops.bernoulli_at(place, p, shape, seed, offset, place.dtype.numpy)


@composite(dtype=same.without("complex"), shape=lambda input, *statics: input, method=False, grad_name="Bernoulli")
def bernoulli_from(input, p: float | None, generator: Generator | None):
    """`bernoulli` with its options in order."""
    if p is None:
        _check_probabilities(input)
        probability = input
    else:
        _check_probability(p)
        probability = _probability(input.place, p)
    return _draw_bernoulli(input.place, probability, tuple(input.array.shape), generator)


@bernoulli_from.gradient("input")
def _(grad):
    return ops.zeros_like(grad)


@composite()
def bernoulli(input, p: float | None = None, *, generator: Generator | None = None, out: Tensor | None = None):
    """One with the probability that each element of `input` gives, else zero.

    Args:
        input: probabilities.
        p: one probability for all instead; `input` then gives only shape and dtype.
        generator: the stream; the device's default one if missing.
        out: a tensor to write to.

    Raises RuntimeError for a probability outside [0, 1]. The gradient is zero.

    >>> import corefw as torch
    >>> torch.bernoulli(torch.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """
    if out is not None:
        return into_out("bernoulli", out, bernoulli_from(input.detach(), p, generator))
    return bernoulli_from(input, p, generator)


@composite()
def multinomial(
    input,
    num_samples: int,
    replacement: bool = False,
    *,
    generator: Generator | None = None,
    out: Tensor | None = None,
):
    """Positions drawn in proportion to the weights in each row of `input`.

    Args:
        input: weights, a vector or the rows of a matrix: finite, not negative, not all zero.
        num_samples: draws per row.
        replacement: whether a position may be drawn again.
        generator: the stream; the device's default one if missing.
        out: a tensor to write to.

    Returns int64 of shape ``(num_samples,)`` or ``(rows, num_samples)``.

    >>> import corefw as torch
    >>> torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 1)
    tensor([1])
    """
    if not input.place.dtype.is_floating_point:
        raise ArgumentError(
            f"multinomial only supports floating-point dtypes for input, got: {input.place.dtype.title}"
        )
    shape = tuple(input.array.shape)
    if not 1 <= len(shape) <= 2:
        raise ShapeError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise ShapeError(f"cannot sample n_sample <= 0 samples, got {num_samples}")
    if not replacement and num_samples > shape[-1]:
        raise ShapeError(
            f"cannot sample n_sample > prob_dist.size(-1) samples without replacement: {num_samples} > {shape[-1]}"
        )
    weights = input.detach()
    if input.place.device.type != "meta" and math.prod(shape):
        if not bool(((weights >= 0) & (weights < math.inf)).all()):
            raise ArgumentError("probability tensor contains either `inf`, `nan` or element < 0")
        if not bool((weights.sum(-1) > 0).all()):
            raise ArgumentError("invalid multinomial distribution (sum of probabilities <= 0)")
    count = math.prod(shape[:-1]) * (num_samples if replacement else shape[-1])
    seed, offset = _take("multinomial_at", input.place, count, generator)
    result = ops.multinomial_at(weights, num_samples, bool(replacement), seed, offset)
    return result if out is None else into_out("multinomial", out, result)


# -- in place ---------------------------------------------------------------------------------------------------------
def _fill(input: Tensor, kind: str, generator: Generator | None, *parameters) -> Tensor:
    """Overwrite a tensor with random numbers; no gradient flows to what was there."""
    return input.copy_(_draw(kind, input.place, tuple(input.array.shape), generator, *parameters))


def _limits(d: dtype) -> tuple[float, float]:
    largest = dtypes.finfo(d).max
    return -largest, largest


def _keyword_from(name: str, low, named: dict[str, Any]):
    """The argument that PyTorch calls `from`, which is no name in Python."""
    if "from" in named:
        low = named.pop("from")
    if named:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(named))}'")
    return low


@composite()
def uniform_(input, low: float = 0.0, to: float = 1.0, *, generator: Generator | None = None, **named):
    """Fill the tensor with uniform random numbers in ``[low, to)``.

    Args:
        low: the lower end; PyTorch calls it ``from``.
        to: the upper end.
        generator: the stream; the device's default one if missing.

    >>> import corefw as torch
    >>> torch.zeros(2).uniform_(3, 3)
    tensor([3., 3.])
    """
    low = _keyword_from("uniform_", low, named)
    d = input.place.dtype
    _check_floating("check_uniform_bounds", d)
    name = {"float32": "float", "float64": "double"}.get(d.to_real().name, f"c10::{d.title}")
    for argument, value in (("from", low), ("to", to)):
        smallest, largest = _limits(d)
        if not smallest <= value <= largest:
            raise ArgumentError(f"{argument} is out of bounds for {name}")
    if low > to:
        raise ArgumentError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={to}")
    if to - low > _limits(d)[1]:
        raise ArgumentError(
            f"uniform_ expects to-from <= std::numeric_limits<{d.title}>::max(), but found to={to} and from={low} "
            f"which result in "
            "to-from to exceed the limit"
        )
    return _fill(input, "uniform_at", generator, float(low), float(to))


@composite()
def normal_(input, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None):
    """Fill the tensor with normal random numbers.

    >>> import corefw as torch
    >>> torch.zeros(2).normal_(3, 0)
    tensor([3., 3.])
    """
    _check_floating("normal_kernel_cpu", input.place.dtype)
    _check_std(std)
    return _fill(input, "normal_at", generator, float(mean), float(std))


@composite()
def random_(input, low: int = _MISSING, to: int | None = _MISSING, *, generator: Generator | None = None, **named):
    """Fill the tensor with random integers: ``random_()``, ``random_(to)`` or ``random_(low, to)``.

    Args:
        low: the smallest one; 0 if missing. PyTorch calls it ``from``.
        to: one above the largest; without it, all numbers that the dtype holds exactly are drawn from `low` on.
        generator: the stream; the device's default one if missing.

    >>> import corefw as torch
    >>> torch.zeros(2).random_(1)
    tensor([0., 0.])
    """
    low = _keyword_from("random_", low, named)
    d = input.place.dtype
    if d.is_complex:
        raise _refuse("random_kernel_cpu", d)
    if to is _MISSING and low is not _MISSING:
        low, to = 0, low
    low = 0 if low is _MISSING else _integer("random_", "from", low)
    if to is _MISSING or to is None:
        if d is dtypes.bool_:
            to = 2
        else:
            to = (1 << _SIGNIFICAND[d]) + 1 if d.is_floating_point else dtypes.iinfo(d).max + 1
    to = _integer("random_", "to", to)
    _check_bounds(low, to, d)
    return _fill(input, "integers_at", generator, low, to)


@composite()
def bernoulli_(input, p: Any = 0.5, *, generator: Generator | None = None):
    """Fill the tensor with ones of probability `p`, a number or a tensor that broadcasts, and zeros.

    >>> import corefw as torch
    >>> torch.zeros(2).bernoulli_(1)
    tensor([1., 1.])
    """
    place, shape = input.place, tuple(input.array.shape)
    if isinstance(p, Tensor):
        _check_probabilities(p)
        probability = p.detach().expand(shape)
    else:
        _check_probability(p)
        probability = _probability(place, p)
    return input.copy_(_draw_bernoulli(place, probability, shape, generator))


@composite()
def exponential_(input, lambd: float = 1.0, *, generator: Generator | None = None):
    """Fill the tensor with exponential random numbers of the rate `lambd`.

    >>> import corefw as torch
    >>> bool((torch.zeros(2).exponential_() > 0).all())
    True
    """
    if not input.place.dtype.is_floating_point:
        raise ArgumentError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but "
            "you specified "
            f"{input.place.dtype.title}"
        )
    if not lambd > 0:
        raise ArgumentError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return _fill(input, "exponential_at", generator, float(lambd))


@composite()
def cauchy_(input, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None):
    """Fill the tensor with Cauchy random numbers of this median and half width at half maximum `sigma`.

    >>> import corefw as torch
    >>> torch.zeros(2).cauchy_().shape
    torch.Size([2])
    """
    if not input.place.dtype.is_floating_point:
        raise ArgumentError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            "specified "
            f"{input.place.dtype.title}"
        )
    if not sigma > 0:
        raise ArgumentError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return _fill(input, "cauchy_at", generator, float(median), float(sigma))


@composite()
def log_normal_(input, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None):
    """Fill the tensor with exponentials of normal random numbers of this `mean` and `std`.

    >>> import corefw as torch
    >>> bool((torch.zeros(2).log_normal_() > 0).all())
    True
    """
    _check_floating("log_normal_cpu", input.place.dtype, complex_too=False)
    if not std > 0:
        raise ArgumentError(f"log_normal_ expects std > 0.0, but found std={std}")
    return _fill(input, "log_normal_at", generator, float(mean), float(std))


@composite()
def geometric_(input, p: float, *, generator: Generator | None = None):
    """Fill the tensor with the number of trials up to the first success, each of probability `p`.

    >>> import corefw as torch
    >>> bool((torch.zeros(2).geometric_(0.5) >= 1).all())
    True
    """
    d = input.place.dtype
    if d is dtypes.bool_ or d.is_complex:
        raise _refuse("geometric_cpu", d)
    if not 0 < p < 1:
        raise ArgumentError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return _fill(input, "geometric_at", generator, float(p))


# -- dropout ----------------------------------------------------------------------------------------------------------
class ProbabilityError(ArgumentError, ValueError):
    """A dropout probability outside [0, 1]."""


def _check_dropout(p: float) -> None:
    if not 0 <= p <= 1:
        raise ProbabilityError(f"dropout probability has to be between 0 and 1, but got {p}")


_floats = same.without("bool", "integer", "complex")


@composite(
    dtype=replace(_floats, results=(*_floats.results, lambda d: dtypes.bool_)),
    shape=lambda input, *statics: (input, input),
    outputs=("output", "mask"),
    method=False,
    grad_name="Mul",
)
def masked_dropout(input, p: float, seed: int, offset: int):
    """`input` with each element zero with probability `p`, else scaled by ``1 / (1 - p)``; and where it was kept."""
    place = input.place
    keep = ops.bernoulli_at(
        place, _probability(place, 1 - p), tuple(input.array.shape), seed, offset, place.dtype.numpy
    )
    scale = 0.0 if p == 1 else 1 / (1 - p)
    return input * (keep * scale), keep.to(dtypes.bool_)


@masked_dropout.gradient("input")
def _(grad, mask, p):
    return grad * (mask.to(grad.dtype) * (0.0 if p == 1 else 1 / (1 - p)))


@composite(method=False)
def dropout(input, p: float = 0.5, training: bool = True, inplace: bool = False, *, train: bool | None = None):
    """In training, each element zero with probability `p`, the others scaled by ``1 / (1 - p)``; else `input` itself.

    Args:
        input: any shape, floating.
        p: the probability of zero.
        training: whether anything happens; ``train`` is another name.
        inplace: overwrite `input`.

    Raises ValueError (a RuntimeError too) for `p` outside [0, 1]. The numbers are drawn as by `bernoulli` with ``1 -
    p``.

    >>> import corefw as torch
    >>> torch.dropout(torch.ones(3), 0.0, True), torch.dropout(torch.ones(3), 1.0, True)
    (tensor([1., 1., 1.]), tensor([0., 0., 0.]))
    """
    _check_dropout(p)
    if not (training if train is None else train) or p == 0 or 0 in input.array.shape:
        return input
    if not input.place.dtype.is_floating_point:
        raise ArgumentError(f"result type Float can't be cast to the desired output type {input.place.dtype.title}")
    seed, offset = _take("bernoulli_at", input.place, math.prod(input.array.shape), None)
    if inplace:
        mask = ops.bernoulli_at(
            input.place,
            _probability(input.place, 1 - p),
            tuple(input.array.shape),
            seed,
            offset,
            input.place.dtype.numpy,
        )
        return input.mul_(mask * (0.0 if p == 1 else 1 / (1 - p)))
    return masked_dropout(input, p, seed, offset)[0]


@composite(method=False)
def native_dropout(input, p: float, train: bool | None = True) -> tuple[Tensor, Tensor]:
    """`dropout`, and a bool tensor that tells which elements were kept.

    >>> import corefw as torch
    >>> torch.native_dropout(torch.ones(2), 0.0, True)
    (tensor([1., 1.]), tensor([True, True]))
    """
    _check_dropout(p)
    if train is False or p == 0 or 0 in input.array.shape:
        return input * 1, ops.ones_like(input, dtype=dtypes.bool_)
    seed, offset = _take("bernoulli_at", input.place, math.prod(input.array.shape), None)
    return tuple(masked_dropout(input, p, seed, offset))


def _noise(input: Tensor, p: float, features: bool) -> Tensor:
    """Ones with probability ``1 - p`` for each element, or for each feature map of the first two dimensions."""
    shape = tuple(input.array.shape)
    if features:
        if len(shape) < 2:
            raise ShapeError("Feature dropout requires at least 2 dimensions in the input")
        shape = (*shape[:2], *(1 for _ in shape[2:]))
    return _draw_bernoulli(input.place, _probability(input.place, 1 - p), shape, None)


@composite(method=False)
def feature_dropout(input, p: float = 0.5, train: bool = True, inplace: bool = False):
    """As `dropout`, for whole feature maps: all elements with the same first two indices go together.

    >>> import corefw as torch
    >>> torch.feature_dropout(torch.ones(1, 2, 3), 0.5, True).std(-1)
    tensor([[0., 0.]])
    """
    _check_dropout(p)
    if not train or p == 0 or 0 in input.array.shape:
        return input
    factor = _noise(input, p, True) * (0.0 if p == 1 else 1 / (1 - p))
    return input.mul_(factor) if inplace else input * factor


# The constants of SELU (Klambauer et al., "Self-normalizing neural networks", 2017): -alpha * scale, where it
# saturates.
_SATURATION = -1.7580993408473766


def _alpha(name: str, input: Tensor, p: float, train: bool, inplace: bool, features: bool) -> Tensor:
    _check_dropout(p)
    if not train or p == 0 or 0 in input.array.shape:
        return input
    if p == 1:
        return input.mul_(0.0) if inplace else input * 0.0
    keep = _noise(input, p, features)
    a = 1 / math.sqrt((_SATURATION * _SATURATION * p + 1) * (1 - p))
    b = (keep - 1) * (-_SATURATION * a) + (-_SATURATION * a * p)
    factor = keep * a
    return input.mul_(factor).add_(b) if inplace else input * factor + b


@composite(method=False)
def alpha_dropout(input, p: float = 0.5, training: bool = False, inplace: bool = False, *, train: bool | None = None):
    """In training, each element with probability `p` at the value where SELU saturates, then an affine map of all, so
    that mean 0 and variance 1 are kept.

    Args:
        input: any shape, floating.
        p: the probability.
        training: whether anything happens; ``train`` is another name.
        inplace: overwrite `input`.

    Source: Klambauer et al., "Self-normalizing neural networks", 2017, section 3.

    >>> import corefw as torch
    >>> torch.alpha_dropout(torch.ones(3), 0.5, False)
    tensor([1., 1., 1.])
    """
    return _alpha("alpha_dropout", input, p, training if train is None else train, inplace, False)


@composite(method=False)
def feature_alpha_dropout(
    input, p: float = 0.5, training: bool = False, inplace: bool = False, *, train: bool | None = None
):
    """As `alpha_dropout`, for whole feature maps: all elements with the same first two indices go together.

    >>> import corefw as torch
    >>> torch.nn.functional.feature_alpha_dropout(torch.ones(1, 2, 3), 0.5, False).shape
    torch.Size([1, 2, 3])
    """
    return _alpha("feature_alpha_dropout", input, p, training if train is None else train, inplace, True)


def _channels(name: str, input: Tensor, p: float, training: bool, inplace: bool, spatial: int) -> Tensor:
    """Feature dropout of an input that may lack its batch dimension."""
    _check_dropout(p)
    ndim = input.array.ndim
    if ndim not in (spatial + 1, spatial + 2):
        advice = (
            f"{name}: Received a {ndim}-D input to {name}, which is deprecated and will result in an error in a "
            f"future release. To "
            "retain the behavior and silence this warning, please use dropout instead. Note that "
            f"{name} exists to provide channel-wise dropout on inputs with {spatial} spatial dimensions, a channel "
            f"dimension, and "
            f"an optional batch dimension (i.e. {spatial + 1}D or {spatial + 2}D inputs)."
        )
        if spatial == 1:
            raise ShapeError(
                f"dropout1d: Expected 2D or 3D input, but received a {ndim}D input. Note that dropout1d exists to "
                f"provide "
                "channel-wise dropout on inputs with 1 spatial dimension, a channel dimension, and an optional batch "
                "dimension "
                "(i.e. 2D or 3D inputs)."
            )
        warnings.warn(advice, UserWarning, stacklevel=4)
        if spatial == 2:
            return feature_dropout(input, p, training, inplace)
    if ndim == spatial + 2:
        return feature_dropout(input, p, training, inplace)
    if spatial == 2:
        warnings.warn(
            "dropout2d: Received a 3D input to dropout2d and assuming that channel-wise 1D dropout behavior is "
            "desired - input is "
            "interpreted as shape (N, C, L), where C is the channel dim. This behavior will change in a future "
            "release to "
            "interpret the input as one without a batch dimension, i.e. shape (C, H, W). To maintain the 1D "
            "channel-wise dropout "
            "behavior, please switch to using dropout1d instead.",
            UserWarning,
            stacklevel=4,
        )
        return feature_dropout(input, p, training, inplace)
    if inplace:
        feature_dropout(input.unsqueeze(0), p, training, True)
        return input
    return feature_dropout(input.unsqueeze(0), p, training).squeeze(0)


@composite(method=False)
def dropout1d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """In training, each channel of ``(C, L)`` or ``(N, C, L)`` zero with probability `p`, the others scaled.

    Args:
        input: floating.
        p: the probability of zero.
        training: whether anything happens.
        inplace: overwrite `input`.

    >>> import corefw as torch
    >>> torch.nn.functional.dropout1d(torch.ones(2, 3), 1.0)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return _channels("dropout1d", input, p, training, inplace, 1)


@composite(method=False)
def dropout2d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """In training, each channel of ``(N, C, H, W)`` zero with probability `p`, the others scaled. Arguments as for
    `dropout1d`; an input of three dimensions counts as ``(N, C, L)``.

    >>> import corefw as torch
    >>> torch.nn.functional.dropout2d(torch.ones(1, 1, 1, 2), 1.0)
    tensor([[[[0., 0.]]]])
    """
    return _channels("dropout2d", input, p, training, inplace, 2)


@composite(method=False)
def dropout3d(input, p: float = 0.5, training: bool = True, inplace: bool = False):
    """In training, each channel of ``(C, D, H, W)`` or ``(N, C, D, H, W)`` zero with probability `p`, the others
    scaled. Arguments as for `dropout1d`.

    >>> import corefw as torch
    >>> torch.nn.functional.dropout3d(torch.ones(1, 1, 1, 2), 1.0)
    tensor([[[[0., 0.]]]])
    """
    return _channels("dropout3d", input, p, training, inplace, 3)


def _inplace_form(declared) -> None:
    """Give a dropout its form ``name_(input, p, train)``, which overwrites `input`."""
    function = declared.op.function

    def inplace(input, p: float, train: bool):
        return function(input, p, train, True)

    inplace.__name__ = inplace.__qualname__ = declared.op.name + "_"
    inplace.__doc__ = f"In-place form of `{declared.op.name}`."
    declared.op.inplace_function = inplace


for _dropout in (dropout, feature_dropout, alpha_dropout, feature_alpha_dropout):
    _inplace_form(_dropout)


# -- relaxed samples --------------------------------------------------------------------------------------------------
@composite(method=False)
def gumbel_softmax(logits, tau: float = 1.0, hard: bool = False, eps: float = 1e-10, dim: int = -1):
    """A differentiable sample of the categories along `dim`: ``softmax((logits + g) / tau)``, g of the Gumbel
    distribution.

    Args:
        logits: unnormalised log-probabilities, any shape.
        tau: the temperature; the lower, the closer to one category.
        hard: whether the result is one-hot; the gradient is still that of the softmax.
        eps: deprecated, without effect.
        dim: the dimension of the categories.

    Source: Jang, Gu, Poole, "Categorical reparameterization with Gumbel-softmax", 2017.

    >>> import corefw as torch
    >>> torch.nn.functional.gumbel_softmax(torch.zeros(2, 3), hard=True).sum(-1)
    tensor([1., 1.])
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=3)
    noise = -ops.empty_like(logits).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    return ops.zeros_like(soft).scatter(dim, index, 1.0) - soft.detach() + soft
