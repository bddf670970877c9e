"""Samples of the gamma, the Dirichlet and the binomial distribution, the first two with gradients.

A sample x of a distribution with the cumulative probability F(x, a) depends on its parameter so that F stays what it
is: ``dx/da = -(dF/da) / (dF/dx)``. Source: Figurnov, Mohamed, Mnih, "Implicit reparameterization gradients", 2018.
"""

from __future__ import annotations

import math

from corefw.declarations._shared.drawing import draw, wide_key
from corefw.declarations._shared.factories import ArgumentError
from corefw.declarations._shared.tail_integrals import beta_tail, gamma_tail
from corefw.dispatch.declare import composite, ops
from corefw.dispatch.random_generator import Generator, differing
from corefw.dispatch.rules import promoted_real_floats, real_floats
from corefw.dtypes import finfo
from corefw.shapes import broadcast, same_shape
from corefw.tensor import Tensor


def _uniform(like: Tensor, generator: Generator | None) -> Tensor:
    """Uniform numbers in (0, 1), in the widest dtype."""
    numbers = draw("uniform_at", wide_key(like.dispatch_key), tuple(like.array.shape), generator, (0.0, 1.0))
    return numbers.clamp_min(2**-54)


def _log_standard_gamma(input: Tensor, generator: Generator | None) -> Tensor:
    """The logarithms of gamma numbers, by inversion; below 1 from those of a + 1, times ``U ** (1 / a)``.

    Halley's method is applied to the logarithm of the smaller of the two incomplete gamma functions, as a function of
    the logarithm of x: there it is concave, and nearly a line in its tail. It begins with Wilson and Hilferty's cube.
    """
    level, power = _uniform(input, generator), _uniform(input, generator)
    given = input.detach().to(level.dtype)
    a = ops.where(given < 1, given + 1, given)
    lower = level < 0.5
    target = ops.where(lower, level.log(), (-level).log1p())
    z = math.sqrt(2) * (2 * level - 1).erfinv()
    cube = (1 - 1 / (9 * a) + z / (3 * a.sqrt())).clamp_min(1e-100)
    # a lower bound, near which the samples in the lower tail are
    tail = (level.log() + (a + 1).lgamma()) / a
    y = (a.log() + 3 * cube.log()).maximum(tail)
    for _ in range(3):  # the first guess is within 30 %, and then 0.2 %, 2e-10, 2e-14
        x = y.exp()
        part = ops.where(lower, ops.igamma(a, x), ops.igammac(a, x))
        slope = ops.where(lower, 1.0, -1.0) * (a * y - x - a.lgamma()).exp() / part
        step = (part.log() - target) / slope
        y = y - step / (1 - 0.5 * step * (a - x - slope))
    return ops.where(given < 1, y + power.log() / given, y)


@composite(dtype=real_floats, shape=same_shape, public="")
def standard_gamma(input, generator: Generator | None = None):
    """Numbers of gamma distributions with the rate 1, positive, with a gradient by the concentration.

    Args:
        input: concentrations, positive, any shape.
        generator: the stream; the device's default one if missing.
    """
    return _log_standard_gamma(input, generator).exp().clamp_min(finfo(input.dtype).tiny).to(input.dtype)


standard_gamma.gradients(input=lambda grad, input, out: grad * ops.standard_gamma_grad(input, out))


@composite(dtype=promoted_real_floats, shape=broadcast, public="")
def standard_gamma_grad(input, output):
    """The derivative of gamma numbers `output` by their concentrations `input`, through the tail beyond them:
    ``dx/da`` is the integral of ``(t / x) ** (a - 1) * exp(x - t) * (log t - digamma(a))`` from x to infinity."""
    wide = wide_key(output.dispatch_key).dtype
    a, x = input.detach().to(wide), output.detach().to(wide)
    mean = a.digamma()
    return (x * gamma_tail(a, x, lambda log_t, sign: sign * (log_t - mean))).to(output.dtype)


@composite(dtype=real_floats, shape=same_shape, public="")
def sample_dirichlet(input, generator: Generator | None = None):
    """Vectors of Dirichlet distributions, along the last dimension, with a gradient by the concentrations.

    Args:
        input: concentrations, positive, shape (..., K).
        generator: the stream; the device's default one if missing.
    """
    parts = _log_standard_gamma(input, generator).softmax(-1)
    return parts.clamp_min(finfo(input.dtype).tiny).to(input.dtype)


@sample_dirichlet.gradient("input")
def sample_dirichlet_vjp(grad, input, out):
    # the derivative of each number by its own concentration; the others share out what it takes
    own = ops.dirichlet_grad(out, input, input.sum(-1, keepdim=True).expand_as(input))
    return own * (grad - (out * grad).sum(-1, keepdim=True))


@sample_dirichlet.tangent
def sample_dirichlet_jvp(tangent_input, input, out):
    own = ops.dirichlet_grad(out, input, input.sum(-1, keepdim=True).expand_as(input)) * tangent_input
    return own - out * own.sum(-1, keepdim=True)


@composite(dtype=promoted_real_floats, shape=broadcast, public="")
def dirichlet_grad(x, alpha, total):
    """The derivative of beta numbers by their first concentration, with the sum of both fixed in ``F`` and divided by
    ``1 - x``.

    Args:
        x: numbers of beta distributions, any shape.
        alpha: their first concentrations, which broadcast with `x`.
        total: the sum of both concentrations.
    """
    wide = wide_key(x.dispatch_key).dtype
    value, a, both = (v.detach().to(wide) for v in (x, alpha, total))
    value = value.clamp(finfo(wide).tiny, 1 - finfo(wide).eps / 2)
    mean = a.digamma() - both.digamma()
    tail = beta_tail(a, both - a, value.log(), (-value).log1p(), lambda log_t, sign: sign * (log_t - mean))
    return (value * tail).to(x.dtype)


def _refuse(name: str, argument: str):
    def gradient(grad):
        raise NotImplementedError(f"the derivative for '{name}: {argument}' is not implemented.")

    return gradient


standard_gamma_grad.gradients(
    input=_refuse("_standard_gamma_grad", "self"), output=_refuse("_standard_gamma_grad", "output")
)
dirichlet_grad.gradients(**{name: _refuse("_dirichlet_grad", name) for name in ("x", "alpha", "total")})


def _binomial_cdf(k: Tensor, n: Tensor, p: Tensor) -> Tensor:
    """The probability of at most k successes, the incomplete beta function of 1 - p with n - k and k + 1."""
    a, b = n - k, k + 1
    log_x, log_rest = (-p).log1p(), p.log()
    density = (a * log_x + b * log_rest + (a + b).lgamma() - a.lgamma() - b.lgamma()).exp()
    tail = density * beta_tail(a, b, log_x, log_rest, lambda log_t, sign: 1.0)
    return ops.where(log_x.exp() > a / (a + b), 1 - tail, tail)


@composite(dtype=promoted_real_floats, shape=broadcast, public="", grad_name="Binomial")
def binomial_from(count, prob, generator: Generator | None):
    """`binomial` by inversion, of the smaller of both probabilities: the smallest k with ``F(k) > U``.

    Cornish and Fisher's expansion is too large by at most 12 and too small by at most 2; the rest is bisection.
    """
    count, prob = ops.broadcast_tensors(count.detach(), prob.detach())
    level = draw("uniform_at", wide_key(count.dispatch_key), tuple(count.array.shape), generator, (0.0, 1.0))
    n, given = count.to(level.dtype).floor().clamp_min(0), prob.to(level.dtype).clamp(0, 1)
    p = given.minimum(1 - given).clamp_min(1e-300)
    z = (math.sqrt(2) * (2 * level - 1).erfinv()).clamp(-8.5, 8.5)
    guess = (n * p + z * (n * p * (1 - p)).sqrt() + (1 - 2 * p) * (z * z - 1) / 6).floor().clamp_min(0).minimum(n)
    below, found = guess - 13, guess + 3
    for _ in range(4):  # found - below is 16 before, and 1 at last
        middle = ((below + found) / 2).floor()
        inside = middle.clamp_min(0).minimum((n - 1).clamp_min(0))
        beyond = (_binomial_cdf(inside, n.clamp_min(1), p) > level) & (middle >= 0) | (middle >= n)
        below, found = ops.where(beyond, below, middle), ops.where(beyond, middle, found)
    return ops.where(given > 0.5, n - found, found).to(count.dtype)


binomial_from.gradients(count=_refuse("binomial", "count"), prob=_refuse("binomial", "prob"))


@composite(public="corefw")
def binomial(count, prob, generator: Generator | None = None):
    """Numbers of successes in `count` independent trials, each of the probability `prob`.

    Args:
        count: numbers of trials, whole and floating, any shape.
        prob: probabilities, of the same dtype; it broadcasts with `count`.
        generator: the stream; the device's default one if missing.

    There are no gradients: the backward raises NotImplementedError.

    >>> import corefw as torch
    >>> torch.binomial(torch.tensor([5.0, 5.0]), torch.tensor([0.0, 1.0]))
    tensor([0., 5.])
    """
    for name, tensor in (("count", count), ("prob", prob)):
        if not tensor.dispatch_key.dtype.is_floating_point:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {tensor.dispatch_key.dtype.title}"
            )
    if count.dispatch_key.dtype is not prob.dispatch_key.dtype:
        raise ArgumentError(
            f"binomial: count and prob must have one dtype: Found dtype {prob.dispatch_key.dtype.title} but expected "
            f"{count.dispatch_key.dtype.title}"
        )
    return binomial_from(count, differing(prob), generator)
