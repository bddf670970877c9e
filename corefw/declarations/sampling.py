"""Samples of distributions whose parameters are tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from corefw.declarations._shared.drawing import (
    check_floating,
    check_probabilities,
    check_probability,
    check_std,
    draw,
    draw_bernoulli,
    probability_tensor,
    wide_key,
)
from corefw.declarations._shared.factories import (
    ArgumentError,
    factory,
    into_out,
    out_key,
    require_grad,
    size_argument,
    target,
)
from corefw.dispatch.batching.tensors import all_examples
from corefw.dispatch.declare import composite, ops
from corefw.dispatch.random_generator import Generator, differing, source
from corefw.dispatch.rules import ordered, real_floats, same
from corefw.errors import ShapeError
from corefw.shapes import broadcast, same_shape
from corefw.tensor import Tensor
from corefw.tracebacks import warn


@composite()
@factory
def normal(
    mean: Any = 0.0, std: Any = 1.0, size: Sequence[int] | None = None, *, generator: Generator | None = None, out,
    dtype, layout, device, requires_grad, pin_memory,
):  # fmt: skip
    """Normal random numbers.

    Args:
        mean: a number, or a floating tensor that broadcasts with `std`.
        std: the standard deviation, not negative: a number or a tensor.
        size: the shape, where both are numbers.

    Other arguments as for `rand`. The gradients of `mean` and `std` are 0.

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
        dispatch_key = (
            target("normal", dtype, device, layout, pin_memory)
            if out is None
            else out_key("normal", out, dtype, device)
        )
        check_floating("normal_kernel_cpu", dispatch_key.dtype)
        check_std(std)
        result = draw("normal_at", dispatch_key, shape, generator, (float(mean), float(std)))
        if out is not None:
            return into_out("normal", out, result)
        return require_grad(result) if requires_grad else result
    dispatch_key = tensors[0].dispatch_key
    for tensor in tensors:
        check_floating("normal_kernel_cpu", tensor.dispatch_key.dtype)
    if not isinstance(std, Tensor):
        check_std(std)
    elif dispatch_key.device.type != "meta" and not all_examples(std >= 0).all():
        raise ArgumentError("normal expects all elements of std >= 0.0")
    shape = broadcast(*(tuple(tensor.array.shape) for tensor in tensors))
    result = draw("normal_at", dispatch_key, shape, generator, (0.0, 1.0))
    for combine, parameter in ((ops.mul, std), (ops.add, mean)):
        if isinstance(parameter, Tensor) or parameter != (1 if parameter is std else 0):
            result = combine(
                result, parameter.detach().to(dispatch_key.dtype) if isinstance(parameter, Tensor) else float(parameter)
            )
    for tensor in tensors:
        if tensor.requires_grad:
            result = ops.independent(result, tensor.to(dispatch_key.dtype))
    return result if out is None else into_out("normal", out, result)


@composite(dtype=same, shape=lambda numbers, parameter: numbers, public="", grad_name="Normal")
def independent(numbers, parameter):
    """Random numbers that were drawn with a parameter, whose gradient is 0."""
    return numbers


independent.gradients(
    numbers=lambda grad: grad,
    parameter=lambda grad, parameter_shape: grad.new_zeros(parameter_shape),
)


@composite(dtype=ordered, shape=same_shape, public="", grad_name="Bernoulli")
def bernoulli_from(input, p: float | None, generator: Generator | None):
    """`bernoulli` with its options in order."""
    if p is None:
        check_probabilities(input)
        probability = input
    else:
        check_probability(p)
        probability = probability_tensor(input.dispatch_key, p)
    return draw_bernoulli(input.dispatch_key, probability, tuple(input.array.shape), generator)


bernoulli_from.gradients(input=lambda grad: ops.zeros_like(grad))


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
    return bernoulli_from(differing(input), p, generator)


@composite(dtype=real_floats, shape=same_shape, public="", grad_name="Poisson")
def poisson_from(input, generator: Generator | None):
    """`poisson` of rates that are in order, by inversion: the smallest k with ``Q(k + 1, rate) > U``.

    The quantile of Cornish and Fisher's expansion is too large by at most 12 and too small by at most 2, but beyond the
    accuracy of Q; the rest is bisection.
    """
    wide = wide_key(input.dispatch_key)
    rate = input.detach().to(wide.dtype)
    level = draw("uniform_at", wide, tuple(input.array.shape), generator, (0.0, 1.0))
    z = ops.special_ndtri(level).clamp(-8.5, 8.5)
    guess = (rate + z * rate.sqrt() + (z * z - 1) / 6).floor().clamp_min(0)
    below, found = guess - 13, guess + 3
    for _ in range(4):  # found - below is 16 before, and 1 at last
        middle = ((below + found) / 2).floor()
        beyond = (ops.igammac(middle.clamp_min(0) + 1, rate) > level).logical_and(middle >= 0)
        below, found = ops.where(beyond, below, middle), ops.where(beyond, middle, found)
    return found.to(input.dtype)


poisson_from.gradients(input=lambda grad: ops.zeros_like(grad))


@composite()
def poisson(input, generator: Generator | None = None, *, out: Tensor | None = None):
    """Numbers of events, of Poisson distributions with the rates that the elements of `input` give.

    Args:
        input: rates, floating, not negative.
        generator: the stream; the device's default one if missing.
        out: a tensor to write to.

    Raises RuntimeError for a negative rate. The gradient is zero.

    >>> import corefw as torch
    >>> torch.poisson(torch.zeros(2))
    tensor([0., 0.])
    """
    check_floating("poisson_cpu", input.dispatch_key.dtype, complex_too=False)
    if input.dispatch_key.device.type != "meta" and not all_examples(input >= 0).all():
        raise ArgumentError("invalid Poisson rate, expected rate to be non-negative")
    if out is not None:
        return into_out("poisson", out, poisson_from(input.detach(), generator))
    return poisson_from(differing(input), generator)


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
    if not input.dispatch_key.dtype.is_floating_point:
        raise ArgumentError(
            f"multinomial only supports floating-point dtypes for input, got: {input.dispatch_key.dtype.title}"
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
    weights = differing(input.detach())
    if input.dispatch_key.device.type != "meta" and math.prod(shape):
        if not all_examples((weights >= 0) & (weights < math.inf)).all():
            raise ArgumentError("probability tensor contains either `inf`, `nan` or element < 0")
        if not all_examples(weights.sum(-1) > 0).all():
            raise ArgumentError("invalid multinomial distribution (sum of probabilities <= 0)")
    result = source(generator, weights.dispatch_key.device).multinomial(weights, num_samples, bool(replacement))
    return result if out is None else into_out("multinomial", out, result)


# -- relaxed samples --------------------------------------------------------------------------------------------------
@composite(public="nn.functional")
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
        warn("`eps` parameter is deprecated and has no effect.")
    noise = -ops.empty_like(differing(logits)).exponential_().log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    return ops.zeros_like(soft).scatter(dim, index, 1.0) - soft.detach() + soft
