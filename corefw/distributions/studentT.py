"""Student's t-distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.chi2 import Chi2
from corefw.distributions.distribution import Distribution
from corefw.distributions.utils import broadcast_all
from corefw.tensor import Tensor


class StudentT(Distribution):
    """Student's t-distributions, of ``loc + scale * z / sqrt(c / df)`` for normal z and chi-squared c.

    Args:
        df: the degrees of freedom of c, shape (...).
        loc: the middle, shape (...).
        scale: the scale, shape (...).

    >>> import corefw as torch
    >>> torch.distributions.StudentT(4.0).variance
    tensor(2.)
    """

    arg_constraints = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(
        self,
        df: Tensor | float,
        loc: Tensor | float = 0.0,
        scale: Tensor | float = 1.0,
        validate_args: bool | None = None,
    ) -> None:
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return ops.where(self.df > 1, self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        return self.loc

    @property
    def variance(self) -> Tensor:
        finite = self.scale.square() * self.df / (self.df - 2)
        return ops.where(self.df > 1, ops.where(self.df > 2, finite, math.inf), math.nan)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        noise = ops.randn(self._extended_shape(sample_shape), dtype=self.df.dtype, device=self.df.device)
        squares = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * noise * (squares / self.df).rsqrt()

    @property
    def _log_beta(self):
        """``log B(df / 2, 1 / 2)``."""
        return (0.5 * self.df).lgamma() + 0.5 * math.log(math.pi) - (0.5 * (self.df + 1)).lgamma()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        constant = self.scale.log() + 0.5 * self.df.log() + self._log_beta
        return -0.5 * (self.df + 1) * (y.square() / self.df).log1p() - constant

    def entropy(self) -> Tensor:
        half = 0.5 * (self.df + 1)
        return (
            self.scale.log()
            + half * (half.digamma() - (0.5 * self.df).digamma())
            + 0.5 * self.df.log()
            + self._log_beta
        )
