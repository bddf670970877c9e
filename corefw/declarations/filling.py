"""Random numbers written over what a tensor holds."""

from __future__ import annotations

from typing import Any

from corefw import dtypes
from corefw.declarations._shared.drawing import (
    MISSING,
    SIGNIFICAND,
    check_bounds,
    check_floating,
    check_probabilities,
    check_probability,
    check_std,
    draw_bernoulli,
    integer_argument,
    probability_tensor,
    refusal,
)
from corefw.declarations._shared.factories import ArgumentError
from corefw.dispatch.declare import composite
from corefw.dispatch.numbers import LARGEST
from corefw.dispatch.random_generator import Generator, defaults, source
from corefw.dtypes import dtype
from corefw.tensor import Tensor


def _fill(input: Tensor, kind: str, generator: Generator | None, parameters: tuple) -> Tensor:
    """Overwrite a tensor with random numbers; no gradient flows to what was there."""
    where = input.dispatch_key.device
    return (defaults[where] if generator is None else source(generator, where)).fill(kind, input, parameters)


def _keyword_from(name: str, low, named: dict[str, Any]):
    """The argument that PyTorch calls `from`, which is no name in Python."""
    if "from" in named:
        low = named.pop("from")
    if named:
        raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(named))}'")
    return low


#: the largest number that a part of an element is
_LARGEST = {d: LARGEST[d.to_real()] for d in dtypes.ALL if d.category >= dtypes.FLOATING}


def _check_range(d: dtype, low: float, to: float) -> None:
    """Refuse a range of real numbers that the dtype does not hold."""
    check_floating("check_uniform_bounds", d)
    largest = _LARGEST[d]
    for argument, value in (("from", low), ("to", to)):
        if not -largest <= value <= largest:
            name = {"float32": "float", "float64": "double"}.get(d.to_real().name, f"c10::{d.title}")
            raise ArgumentError(f"{argument} is out of bounds for {name}")
    if low > to:
        raise ArgumentError(f"uniform_ expects to return a [from, to) range, but found from={low} > to={to}")
    if to - low > largest:
        raise ArgumentError(
            f"uniform_ expects to-from <= std::numeric_limits<{d.title}>::max(), but found to={to} and from={low} "
            "which result in to-from to exceed the limit"
        )


@composite(public="Tensor")
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
    low = _keyword_from("uniform_", low, named) if named else low
    d = input.dispatch_key.dtype
    if not 0 <= low <= to <= 1 or d.category < dtypes.FLOATING:
        _check_range(d, low, to)
    if not low.__class__ is to.__class__ is float:
        low, to = float(low), float(to)
    return _fill(input, "uniform_at", generator, (low, to))


@composite(public="Tensor")
def normal_(input, mean: float = 0.0, std: float = 1.0, *, generator: Generator | None = None):
    """Fill the tensor with normal random numbers.

    >>> import corefw as torch
    >>> torch.zeros(2).normal_(3, 0)
    tensor([3., 3.])
    """
    check_floating("normal_kernel_cpu", input.dispatch_key.dtype)
    check_std(std)
    return _fill(input, "normal_at", generator, (float(mean), float(std)))


@composite(public="Tensor")
def random_(input, low: int = MISSING, to: int | None = MISSING, *, generator: Generator | None = None, **named):
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
    d = input.dispatch_key.dtype
    if d.is_complex:
        raise refusal("random_kernel_cpu", d)
    if to is MISSING and low is not MISSING:
        low, to = 0, low
    low = 0 if low is MISSING else integer_argument("random_", "from", low)
    if to is MISSING or to is None:
        if d is dtypes.bool_:
            to = 2
        else:
            to = (1 << SIGNIFICAND[d]) + 1 if d.is_floating_point else dtypes.iinfo(d).max + 1
    to = integer_argument("random_", "to", to)
    check_bounds(low, to, d)
    return _fill(input, "integers_at", generator, (low, to))


@composite(public="Tensor")
def bernoulli_(input, p: Any = 0.5, *, generator: Generator | None = None):
    """Fill the tensor with ones of probability `p`, a number or a tensor that broadcasts, and zeros.

    >>> import corefw as torch
    >>> torch.zeros(2).bernoulli_(1)
    tensor([1., 1.])
    """
    dispatch_key, shape = input.dispatch_key, tuple(input.array.shape)
    if isinstance(p, Tensor):
        check_probabilities(p)
        probability = p.detach().expand(shape)
    else:
        check_probability(p)
        probability = probability_tensor(dispatch_key, p)
    return input.copy_(draw_bernoulli(dispatch_key, probability, shape, generator, input))


def _check_continuous(distribution: str, d: dtype) -> None:
    if not d.is_floating_point:
        raise ArgumentError(
            f"{distribution} distribution is a continuous probability distribution. dtype must be a floating point but "
            f"you specified {d.title}"
        )


@composite(public="Tensor")
def exponential_(input, lambd: float = 1.0, *, generator: Generator | None = None):
    """Fill the tensor with exponential random numbers of the rate `lambd`.

    >>> import corefw as torch
    >>> bool((torch.zeros(2).exponential_() > 0).all())
    True
    """
    _check_continuous("Exponential", input.dispatch_key.dtype)
    if not lambd > 0:
        raise ArgumentError(f"exponential_ expects lambda > 0.0, but found lambda={lambd}")
    return _fill(input, "exponential_at", generator, (float(lambd),))


@composite(public="Tensor")
def cauchy_(input, median: float = 0.0, sigma: float = 1.0, *, generator: Generator | None = None):
    """Fill the tensor with Cauchy random numbers of this median and half width at half maximum `sigma`.

    >>> import corefw as torch
    >>> torch.zeros(2).cauchy_().shape
    torch.Size([2])
    """
    _check_continuous("Cauchy", input.dispatch_key.dtype)
    if not sigma > 0:
        raise ArgumentError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma}")
    return _fill(input, "cauchy_at", generator, (float(median), float(sigma)))


@composite(public="Tensor")
def log_normal_(input, mean: float = 1.0, std: float = 2.0, *, generator: Generator | None = None):
    """Fill the tensor with exponentials of normal random numbers of this `mean` and `std`.

    >>> import corefw as torch
    >>> bool((torch.zeros(2).log_normal_() > 0).all())
    True
    """
    check_floating("log_normal_cpu", input.dispatch_key.dtype, complex_too=False)
    if not std > 0:
        raise ArgumentError(f"log_normal_ expects std > 0.0, but found std={std}")
    return _fill(input, "log_normal_at", generator, (float(mean), float(std)))


@composite(public="Tensor")
def geometric_(input, p: float, *, generator: Generator | None = None):
    """Fill the tensor with the number of trials up to the first success, each of probability `p`.

    >>> import corefw as torch
    >>> bool((torch.zeros(2).geometric_(0.5) >= 1).all())
    True
    """
    d = input.dispatch_key.dtype
    if d is dtypes.bool_ or d.is_complex:
        raise refusal("geometric_cpu", d)
    if not 0 < p < 1:
        raise ArgumentError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    return _fill(input, "geometric_at", generator, (float(p),))
