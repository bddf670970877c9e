"""Random numbers: tensors filled from a generator's stream."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from corefw import dtypes
from corefw.declarations._shared import factories
from corefw.declarations._shared.batching import differ, drawn, example_dims, full, the_same
from corefw.declarations._shared.drawing import (
    MISSING,
    SIGNIFICAND,
    check_bounds,
    integer_argument,
    refusal,
)
from corefw.declarations._shared.factories import (
    ArgumentError,
    Ints,
    factory,
    given_size,
    into_out,
    order_like,
    out_key,
    require_grad,
    size_argument,
    target,
    target_like,
)
from corefw.declarations._shared.families import family
from corefw.devices import DispatchKey
from corefw.dispatch.batching.calls import one_by_one
from corefw.dispatch.declare import composite, ops, primitive
from corefw.dispatch.numbers import fitting_number
from corefw.dispatch.random_generator import Generator, defaults, in_examples, source
from corefw.dispatch.rules import floats, index, ordered, real_floats, real_numbers
from corefw.errors import ShapeError
from corefw.tensor import Tensor, wrap


# -- what backends compute: the kinds of docs/random.md ---------------------------------------------------------------
@primitive(dtype=floats, shape=given_size, public="")
def uniform_at(dispatch_key: DispatchKey, size: tuple, seed: int, offset: int, low: float, high: float, dtype: Any):
    """Uniform numbers in ``[low, high)``."""


uniform_at.batching(drawn)


@primitive(dtype=ordered, shape=given_size, public="")
def integers_at(dispatch_key: DispatchKey, size: tuple, seed: int, offset: int, low: int, high: int, dtype: Any):
    """Integers in ``[low, high)``."""


integers_at.batching(drawn)


@primitive(dtype=floats, shape=given_size, public="")
def normal_at(dispatch_key: DispatchKey, size: tuple, seed: int, offset: int, mean: float, std: float, dtype: Any):
    """Normal numbers."""


normal_at.batching(drawn)


@primitive(dtype=ordered, shape=lambda p, size, *attributes: size, public="")
def bernoulli_at(dispatch_key: DispatchKey, p, size: tuple, seed: int, offset: int, dtype: Any):
    """One with probability `p`, a tensor that broadcasts to `size`, else zero."""


@bernoulli_at.batching
def bernoulli_batching(call, examples, p, size, seed, offset, dtype):
    if not differ():
        return one_by_one(call, examples, p, size, seed, offset, dtype)
    p = p.reshape(p.shape[0], *(1,) * (len(size) - example_dims(p)), *p.shape[1:])
    return call(p, (examples, *size), seed, offset, dtype)


@primitive(dtype=real_floats, shape=given_size, public="")
def exponential_at(dispatch_key: DispatchKey, size: tuple, seed: int, offset: int, lambd: float, dtype: Any):
    """Exponential numbers of rate `lambd`."""


exponential_at.batching(drawn)


@primitive(dtype=real_floats, shape=given_size, public="")
def cauchy_at(dispatch_key: DispatchKey, size: tuple, seed: int, offset: int, median: float, sigma: float, dtype: Any):
    """Cauchy numbers."""


cauchy_at.batching(drawn)


@primitive(dtype=real_floats, shape=given_size, public="")
def log_normal_at(dispatch_key: DispatchKey, size: tuple, seed: int, offset: int, mean: float, std: float, dtype: Any):
    """Exponentials of normal numbers."""


log_normal_at.batching(drawn)


@primitive(dtype=real_numbers, shape=given_size, public="")
def geometric_at(dispatch_key: DispatchKey, size: tuple, seed: int, offset: int, p: float, dtype: Any):
    """The number of trials up to the first success, each of probability `p`."""


geometric_at.batching(drawn)


@primitive(dtype=real_numbers, shape=lambda n, *attributes: (n,), public="")
def permutation_at(dispatch_key: DispatchKey, n: int, seed: int, offset: int, dtype: Any):
    """A permutation of the numbers below `n`."""


@permutation_at.batching
def permutation_batching(call, examples, n, seed, offset, dtype):
    if not differ():
        return the_same(call, examples, n, seed, offset, dtype)
    apart = -(-n * 2 // 4)
    return ops.stack([call(n, seed, offset + i * apart, dtype) for i in range(examples)])


@primitive(
    dtype=replace(index, promotes=False).without("bool", "integer", "complex"),
    shape=lambda input, num_samples, *attributes: (*input[:-1], num_samples),
    public="",
)
def multinomial_at(input, num_samples: int, replacement: bool, seed: int, offset: int):
    """Positions along the last dimension, in proportion to the weights there."""


@multinomial_at.batching
def multinomial_batching(call, examples, input, *rest):
    if not differ():  # the numbers of a row would depend on how many are before it
        return one_by_one(call, examples, input, *rest)
    weights = full(input, examples)
    rows = call(weights.reshape(-1, weights.shape[-1]), *rest)
    return rows.reshape(*weights.shape[:-1], rows.shape[-1])


# -- by size ----------------------------------------------------------------------------------------------------------
@family(public="corefw")
def _drawn(name: str, kind: str, refused_by: str):
    """Functions that give numbers in a given shape, which the op `kind` draws with the parameters 0 and 1.

    Args:
        kind: the op.
        refused_by: the name by which the error calls what does not take other dtypes.
    """

    @factory
    def function(
        *size: Ints, generator: Generator | None = None, out, dtype, layout, device, requires_grad, pin_memory, **named
    ):
        if out is None:
            shape, dispatch_key = factories.size_and_target(name, size, named, dtype, device, layout, pin_memory)
        else:
            shape, dispatch_key = size_argument(name, size, named), out_key(name, out, dtype, device)
        if dispatch_key.dtype.category < dtypes.FLOATING:
            raise refusal(refused_by, dispatch_key.dtype)
        where = dispatch_key.device
        usual = defaults[where] if generator is None else source(generator, where)
        result = usual.draw(kind, dispatch_key, shape, (0.0, 1.0))
        if out is not None:
            return into_out(name, out, result)
        return require_grad(result) if requires_grad else result

    return function


@_drawn("uniform_at", "check_uniform_bounds")
def rand():
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


@_drawn("normal_at", "normal_kernel_cpu")
def randn():
    """Normal random numbers of mean 0 and variance 1 of shape `size`. Arguments as for `rand`.

    >>> import corefw as torch
    >>> _ = torch.manual_seed(0)
    >>> torch.randn(2).shape
    torch.Size([2])
    """


@composite()
@factory
def randint(
    low: int = MISSING, high: Any = MISSING, size: Sequence[int] = MISSING, *, generator: Generator | None = None, out,
    dtype, layout, device, requires_grad, pin_memory,
):  # fmt: skip
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
    tensor([8, 6, 3])
    """
    if size is MISSING and isinstance(high, (list, tuple)):
        low, high, size = 0, low, high
    else:
        if high is MISSING and low is not MISSING:
            low, high = 0, low
        elif low is MISSING:
            low = 0
        if high is MISSING or not isinstance(size, (list, tuple)):
            raise TypeError(
                "randint() received an invalid combination of arguments: expected (int high, tuple of ints size) or "
                "(int low, int high, tuple of ints size)"
            )
    if not low.__class__ is high.__class__ is int:
        low, high = integer_argument("randint", "low", low), integer_argument("randint", "high", high)
    sizes = (*size,) or (size,)
    if out is None:
        wanted = dtype or dtypes.int64
        shape, dispatch_key = factories.size_and_target("randint", sizes, None, wanted, device, layout, pin_memory)
    else:
        shape, dispatch_key = size_argument("randint", sizes), out_key("randint", out, dtype, device)
    check_bounds(low, high, dispatch_key.dtype)
    where = dispatch_key.device
    usual = defaults[where] if generator is None else source(generator, where)
    result = usual.draw("integers_at", dispatch_key, shape, (low, high))
    if out is not None:
        return into_out("randint", out, result)
    return require_grad(result) if requires_grad else result


@composite()
@factory
def randperm(n: int, *, generator: Generator | None = None, out, dtype, layout, device, requires_grad, pin_memory):
    """A random permutation of the numbers from 0 to ``n - 1``.

    Args:
        n: how many.
        dtype: int64 if missing.

    Other arguments as for `rand`.

    >>> import corefw as torch
    >>> torch.randperm(4).sort().values
    tensor([0, 1, 2, 3])
    """
    if n.__class__ is not int:
        n = integer_argument("randperm", "n", n)
    if n < 0:
        raise ShapeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if out is None:
        dispatch_key = target("randperm", dtype or dtypes.int64, device, layout, pin_memory)
    else:
        dispatch_key = out_key("randperm", out, dtype, device)
    d = dispatch_key.dtype
    if d is dtypes.bool_ or d.is_complex:
        raise refusal("randperm", d)
    if d.is_floating_point and n > (1 << SIGNIFICAND[d]) + 1:
        raise ArgumentError(f"n cannot be greater than {(1 << SIGNIFICAND[d]) + 1} for {d.title} type.")
    if n > 128:  # less is held by all
        fitting_number(n - 1, d)
    where = dispatch_key.device
    result = (defaults[where] if generator is None else source(generator, where)).permutation(dispatch_key, n)
    if out is not None:
        return into_out("randperm", out, result)
    return require_grad(result) if requires_grad else result


# -- like another tensor ----------------------------------------------------------------------------------------------
def _draw_like(kind: str, dispatch_key: DispatchKey, input, memory_format, generator, *parameters) -> Tensor:
    """Numbers of a kind in the shape and memory order of `input`."""
    shape, strides = tuple(input.array.shape), order_like(input, memory_format)
    where = dispatch_key.device
    usual = defaults[where] if generator is None else source(generator, where)
    if strides is None:
        return usual.draw(kind, dispatch_key, shape, parameters)
    dispatch_key = in_examples(dispatch_key)
    runtime = dispatch_key.runtime
    memory = runtime.empty((math.prod(shape),), dispatch_key.dtype, dispatch_key.device.index)
    result = wrap(runtime.as_strided(memory, shape, strides, 0), dispatch_key)
    runtime.copy(result.array, usual.draw(kind, dispatch_key, shape, parameters, result).array)
    return result


@family(public="corefw")
def _drawn_like(name: str, kind: str, refused_by: str):
    """Functions that give numbers in another tensor's shape, which the op `kind` draws with the parameters 0 and 1.
    Arguments as for `_drawn`."""

    @factory
    def function(
        input, *, generator: Generator | None = None, dtype, layout, device, requires_grad, pin_memory, memory_format
    ):
        dispatch_key = target_like(name, input, dtype, device, layout, pin_memory)
        if dispatch_key.dtype.category < dtypes.FLOATING:
            raise refusal(refused_by, dispatch_key.dtype)
        result = _draw_like(kind, dispatch_key, input, memory_format, generator, 0.0, 1.0)
        return require_grad(result) if requires_grad else result

    return function


@_drawn_like("uniform_at", "check_uniform_bounds")
def rand_like():
    """Uniform random numbers in [0, 1) in the shape, dtype, device and memory order of `input`.

    >>> import corefw as torch
    >>> torch.rand_like(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """


@_drawn_like("normal_at", "normal_kernel_cpu")
def randn_like():
    """Normal random numbers of mean 0 and variance 1 in the shape, dtype, device and memory order of `input`.

    >>> import corefw as torch
    >>> torch.randn_like(torch.zeros(2, 3)).shape
    torch.Size([2, 3])
    """


@composite(public="corefw")
@factory
def randint_like(
    input, low: int = MISSING, high: int = MISSING, *, generator: Generator | None = None, dtype, layout, device,
    requires_grad, pin_memory, memory_format,
):  # fmt: skip
    """Random integers in ``[low, high)`` in the shape, dtype, device and memory order of `input`:
    ``randint_like(input, high)`` or ``randint_like(input, low, high)``.

    >>> import corefw as torch
    >>> torch.randint_like(torch.zeros(2, 3), 10).dtype
    torch.float32
    """
    if high is MISSING:
        low, high = 0, low
    elif low is MISSING:
        low = 0
    if high is MISSING:
        raise TypeError('randint_like() missing 1 required positional arguments: "high"')
    low, high = (
        integer_argument("randint_like", n, int(v) if isinstance(v, Tensor) else v)
        for n, v in (("low", low), ("high", high))
    )
    dispatch_key = target_like("randint_like", input, dtype, device, layout, pin_memory)
    check_bounds(low, high, dispatch_key.dtype)
    result = _draw_like("integers_at", dispatch_key, input, memory_format, generator, low, high)
    return require_grad(result) if requires_grad else result
