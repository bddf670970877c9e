"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.exp_family import ExponentialFamily
from corefw.distributions.utils import ProbsOrLogits, broadcast_all, clamp_probs
from corefw.tensor import Tensor


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Distributions on [0, 1] of a density in proportion to ``probs ** x * (1 - probs) ** (1 - x)``.

    Near ``probs = 1/2``, where the formulas divide 0 by 0, Taylor's series are used.

    Args:
        probs: the parameter, in (0, 1), shape (...), or
        logits: its log-odds.
        lims: between which numbers `probs` is near 1/2.

    Source: Loaiza-Ganem, Cunningham, "The continuous Bernoulli: fixing a pervasive error in variational autoencoders",
    2019.

    >>> import corefw as torch
    >>> torch.distributions.ContinuousBernoulli(0.5).mean
    tensor(0.5000)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        lims: Any = (0.499, 0.501),
        validate_args: bool | None = None,
    ) -> None:
        self._set_parameter(probs, logits)
        self._lims = lims
        super().__init__(self.param_shape, validate_args=validate_args)
        if probs is not None:
            self.probs = clamp_probs(self.probs)

    def _by_region(self, formula, series):
        """``formula(probs)`` and, near 1/2, ``series(probs - 1/2)``."""
        low, high = self._lims
        far = (self.probs <= low) | (self.probs > high)
        # neither is given numbers from the other's region, whose gradients might be NaN
        return ops.where(far, formula(ops.where(far, self.probs, low)), series(ops.where(far, 0.0, self.probs - 0.5)))

    @property
    def _log_constant(self):
        """The logarithm of the density's factor, ``2 * atanh(1 - 2 * probs) / (1 - 2 * probs)``."""
        return self._by_region(
            lambda p: ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log(),
            lambda x: math.log(2.0) + (4 / 3 + 104 / 45 * x.square()) * x.square(),
        )

    @property
    def mean(self) -> Tensor:
        return self._by_region(
            lambda p: p / (2 * p - 1) + 1 / ((-p).log1p() - p.log()),
            lambda x: 0.5 + (1 / 3 + 16 / 45 * x.square()) * x,
        )

    @property
    def variance(self) -> Tensor:
        return self._by_region(
            lambda p: p * (p - 1) / (1 - 2 * p).square() + ((-p).log1p() - p.log()).square().reciprocal(),
            lambda x: 1 / 12 - (1 / 15 - 128 / 945 * x.square()) * x.square(),
        )

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        shape = self._extended_shape(sample_shape)
        return self.icdf(ops.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return self._log_constant - ops.binary_cross_entropy_with_logits(logits, value, reduction="none")

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        inside = self._by_region(
            lambda p: (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1),
            lambda x: value - value * (1 - value) * (2 * x - 4 / 3 * (1 - 2 * value) * x.square()),
        )
        return ops.where(value <= 0, 0.0, ops.where(value >= 1, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        return self._by_region(
            lambda p: ((value * (2 * p - 1) - p).log1p() - (-p).log1p()) / (p.log() - (-p).log1p()),
            lambda x: value + value * (1 - value) * (2 * x + 8 / 3 * (1 - 2 * value) * x.square()),
        )

    def entropy(self) -> Tensor:
        log_zero, log_one = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log_zero - log_one) - self._log_constant - log_zero

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        """``log((exp(x) - 1) / x)``."""
        near = x.abs() < 4 * (self._lims[1] - 0.5)
        far = ops.where(near, 1.0, x)
        series = 0.5 * x + x.square() / 24 - x.square().square() / 2880
        return ops.where(near, series, far.expm1().abs().log() - far.abs().log())
