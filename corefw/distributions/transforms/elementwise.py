"""Transforms of single numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.constraints.constraint import Constraint
from corefw.distributions.transforms.transform import Transform
from corefw.distributions.utils import broadcast_all, sum_rightmost
from corefw.dtypes import finfo
from corefw.shapes import Size, broadcast
from corefw.tensor import Tensor


class _Increasing(Transform):
    """An increasing function of the real line."""

    domain = constraints.real
    bijective = True
    sign = +1


class AbsTransform(Transform):
    """The absolute value, ``y = |x|``; its inverse takes the positive one of the two values.

    >>> import corefw as torch
    >>> torch.distributions.AbsTransform()(torch.tensor([-2.0, 3.0]))
    tensor([2., 3.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x):
        return x.abs()

    def _inverse(self, y):
        return y


class ExpTransform(_Increasing):
    """The exponential, ``y = exp(x)``.

    >>> import corefw as torch
    >>> torch.distributions.ExpTransform()(torch.tensor([0.0, 1.0]))
    tensor([1.0000, 2.7183])
    """

    codomain = constraints.positive

    def _call(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x


class PowerTransform(Transform):
    """A power of positive numbers, ``y = x ** exponent``.

    Args:
        exponent: a number or a tensor, not 0.
        cache_size: as for `Transform`.

    >>> import corefw as torch
    >>> torch.distributions.PowerTransform(2.0)(torch.tensor([1.0, 3.0]))
    tensor([1., 9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True

    def __init__(self, exponent, cache_size: int = 0):
        super().__init__(cache_size)
        (self.exponent,) = broadcast_all(exponent)

    def _parameters(self):
        return (self.exponent,)

    @property
    def sign(self) -> Tensor | int:
        return self.exponent.sign()

    def _call(self, x):
        return x.pow(self.exponent)

    def _inverse(self, y):
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return Size(broadcast(tuple(shape), tuple(self.exponent.shape)))

    inverse_shape = forward_shape


def _inside(y: Tensor) -> Tensor:
    return y.clamp(finfo(y.dtype).tiny, 1 - finfo(y.dtype).eps)


def _clipped_sigmoid(x: Tensor) -> Tensor:
    return _inside(x.sigmoid())


class SigmoidTransform(_Increasing):
    """The logistic function, ``y = 1 / (1 + exp(-x))``, kept off 0 and 1.

    >>> import corefw as torch
    >>> torch.distributions.SigmoidTransform()(torch.tensor([0.0, 1.0]))
    tensor([0.5000, 0.7311])
    """

    codomain = constraints.unit_interval

    def _call(self, x):
        return _clipped_sigmoid(x)

    def _inverse(self, y):
        y = _inside(y)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -ops.softplus(-x) - ops.softplus(x)


class SoftplusTransform(_Increasing):
    """The softplus, ``y = log(1 + exp(x))``.

    >>> import corefw as torch
    >>> torch.distributions.SoftplusTransform()(torch.tensor([0.0, 1.0]))
    tensor([0.6931, 1.3133])
    """

    codomain = constraints.positive

    def _call(self, x):
        return ops.softplus(x)

    def _inverse(self, y):
        return y + (-(-y).expm1()).log()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -ops.softplus(-x)


class TanhTransform(_Increasing):
    """The hyperbolic tangent. Its inverse is infinite at -1 and 1, to which large values are rounded: use a cache.

    >>> import corefw as torch
    >>> torch.distributions.TanhTransform()(torch.tensor([0.0, 1.0]))
    tensor([0.0000, 0.7616])
    """

    codomain = constraints.interval(-1.0, 1.0)

    def _call(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return 2 * (math.log(2.0) - x - ops.softplus(-2 * x))  # log(1 - tanh(x)²), precise for large x


class AffineTransform(Transform):
    """A line, ``y = loc + scale * x``.

    Args:
        loc: a number or a tensor.
        scale: the slope, a number or a tensor, not 0.
        event_dim: how many of the last dimensions are one value: 0 for numbers, 1 for vectors.
        cache_size: as for `Transform`.

    >>> import corefw as torch
    >>> torch.distributions.AffineTransform(1.0, 2.0)(torch.tensor([0.0, 3.0]))
    tensor([1., 7.])
    """

    bijective = True

    def __init__(self, loc, scale, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale
        self._event_dim = event_dim

    def _parameters(self):
        return self.loc, self.scale, self._event_dim

    @property
    def event_dim(self) -> int:
        return self._event_dim

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    codomain = domain

    @property
    def sign(self) -> Tensor | int:
        if isinstance(self.scale, Tensor):
            return self.scale.sign()
        return (self.scale > 0) - (self.scale < 0)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if isinstance(self.scale, Tensor):
            result = self.scale.abs().log().expand(self.forward_shape(x.shape))
        else:
            result = ops.full_like(x, math.log(abs(self.scale)))
        return sum_rightmost(result, self._event_dim)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        parameters = (tuple(p.shape) for p in (self.loc, self.scale) if isinstance(p, Tensor))
        return Size(broadcast(tuple(shape), *parameters))

    inverse_shape = forward_shape


class CumulativeDistributionTransform(Transform):
    """The cumulative distribution function of a distribution of numbers.

    Args:
        distribution: the distribution, with `cdf` and `icdf`.
        cache_size: as for `Transform`.

    >>> import corefw as torch
    >>> D = torch.distributions
    >>> D.CumulativeDistributionTransform(D.Uniform(0.0, 4.0))(torch.tensor([1.0, 3.0]))
    tensor([0.2500, 0.7500])
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1

    def __init__(self, distribution, cache_size: int = 0):
        super().__init__(cache_size)
        self.distribution = distribution

    def _parameters(self):
        return (self.distribution,)

    @property
    def domain(self) -> Constraint:
        return self.distribution.support

    def _call(self, x):
        return self.distribution.cdf(x)

    def _inverse(self, y):
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return self.distribution.log_prob(x)
