"""What the functions that draw random numbers share: the generator that draws and the checks of their parameters."""

from __future__ import annotations

from typing import Any

from corefw import dtypes
from corefw.declarations._shared.factories import ArgumentError
from corefw.devices import DispatchKey
from corefw.dispatch.batching.tensors import all_examples
from corefw.dispatch.numbers import INTEGER_LIMITS
from corefw.dispatch.random_generator import Generator, source
from corefw.dtypes import dtype
from corefw.errors import KernelNotFoundError
from corefw.tensor import Tensor, wrap
from corefw.tracebacks import warn


# -- drawing ----------------------------------------------------------------------------------------------------------
def draw(
    kind: str,
    dispatch_key: DispatchKey,
    shape,
    generator: Generator | None,
    parameters: tuple,
    over: Tensor | None = None,
) -> Tensor:
    """A tensor of numbers of a kind with these parameters, which are to be written `over` a tensor if there is one."""
    return source(generator, dispatch_key.device).draw(kind, dispatch_key, shape, parameters, over)


def wide_key(dispatch_key: DispatchKey) -> DispatchKey:
    """The device of `dispatch_key` with the widest real dtype there."""
    held = dispatch_key.runtime.dtypes
    return dispatch_key.with_dtype(dtypes.float64 if dtypes.float64 in held else dtypes.float32)


def probability_tensor(dispatch_key: DispatchKey, p: float) -> Tensor:
    """A number as a 0-d tensor on the device of `dispatch_key`."""
    wide = wide_key(dispatch_key)
    return wrap(dispatch_key.runtime.constant(float(p), wide.dtype, dispatch_key.device.index), wide)


def draw_bernoulli(
    dispatch_key: DispatchKey, p: Tensor, shape, generator: Generator | None, over: Tensor | None = None
) -> Tensor:
    """Ones with the probabilities `p`, which broadcast to `shape`, and zeros; `over` as for `draw`."""
    if dispatch_key.dtype.is_complex:
        raise refusal("bernoulli_scalar_cpu_", dispatch_key.dtype)
    return source(generator, dispatch_key.device).bernoulli(dispatch_key, p, shape, over)


# -- checks -----------------------------------------------------------------------------------------------------------
def refusal(kernel: str, d: dtype) -> KernelNotFoundError:
    """The error for a dtype that a kind of numbers is not drawn in."""
    return KernelNotFoundError(f"\"{kernel}\" not implemented for '{d.title}'")


def check_floating(kernel: str, d: dtype, *, complex_too: bool = True) -> None:
    """Refuse dtypes that hold no fractions."""
    if not (d.is_floating_point or (complex_too and d.is_complex)):
        raise refusal(kernel, d)


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
SIGNIFICAND = {dtypes.float16: 11, dtypes.bfloat16: 8, dtypes.float32: 24, dtypes.float64: 53}


def check_bounds(low: int, high: int, d: dtype) -> None:
    """Refuse a range of integers that is empty or that the dtype does not hold."""
    limits = INTEGER_LIMITS.get(d)
    if limits is not None and limits[0] <= low < high <= limits[1]:
        return
    if low >= high:
        raise ArgumentError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if d.is_complex:
        raise ArgumentError("check_random_bounds handles only integral, floating-point and boolean types")
    if d.is_floating_point:
        limit = 1 << SIGNIFICAND[d]
        for name, value in (("from", low), ("to - 1", high - 1)):
            if abs(value) > limit:
                warn(
                    f"{name} is out of bounds [-(2^{SIGNIFICAND[d]}), 2^{SIGNIFICAND[d]}]. Due to precision "
                    f"limitations {d.name} can support discrete uniform distribution only within this range."
                )
        return
    smallest, largest = (0, 1) if d is dtypes.bool_ else INTEGER_LIMITS[d]
    if not smallest <= low <= largest:
        raise ArgumentError(f"from is out of bounds for {_C_TYPES.get(d.name, d.name)}")
    if high - 1 > largest:
        raise ArgumentError(f"to - 1 is out of bounds for {_C_TYPES.get(d.name, d.name)}")


def integer_argument(name: str, argument: str, value) -> int:
    """An int given to `name`, or what has an index."""
    if value.__class__ is int:
        return value
    if isinstance(value, (float, complex)) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}(): argument '{argument}' must be int, not {type(value).__name__}")
    return value.__index__()


MISSING: Any = object()  # stands for an argument that was not given


def check_std(std) -> None:
    """Refuse a negative standard deviation."""
    if not std >= 0:
        raise ArgumentError(f"normal expects std >= 0.0, but found std {std}")


def check_probability(p: float) -> None:
    """Refuse a number outside [0, 1]."""
    if not 0 <= p <= 1:
        raise ArgumentError(f"bernoulli_ expects p to be in [0, 1], but got p={p}")


def check_probabilities(p: Tensor) -> None:
    """Refuse a tensor with elements outside [0, 1]."""
    if not p.dispatch_key.dtype.is_floating_point:
        raise refusal("bernoulli_tensor_cpu_p_", p.dispatch_key.dtype)
    if p.dispatch_key.device.type == "meta":
        return
    p = all_examples(p)
    if p.numel() and not (float(p.min()) >= 0 and float(p.max()) <= 1):  # nor is NaN
        raise ArgumentError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false: probabilities must be in [0, 1]"
        )
