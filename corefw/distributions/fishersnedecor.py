"""Fisher's and Snedecor's F-distribution."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.distribution import Distribution
from corefw.distributions.gamma import Gamma
from corefw.distributions.utils import broadcast_all
from corefw.dtypes import finfo
from corefw.tensor import Tensor


class FisherSnedecor(Distribution):
    """F-distributions: of the ratio of two chi-squared numbers, each divided by its degrees of freedom.

    Args:
        df1: the degrees of freedom of the numerator, shape (...).
        df2: those of the denominator, shape (...).

    >>> import corefw as torch
    >>> torch.distributions.FisherSnedecor(1.0, 4.0).mean
    tensor(2.)
    """

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1: Tensor | float, df2: Tensor | float, validate_args: bool | None = None) -> None:
        self.df1, self.df2 = broadcast_all(df1, df2)
        super().__init__(self.df1.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        return ops.where(self.df2 > 2, self.df2 / (self.df2 - 2), float("nan"))

    @property
    def mode(self) -> Tensor:
        mode = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        return ops.where(self.df1 > 2, mode, float("nan"))

    @property
    def variance(self) -> Tensor:
        a, b = self.df1, self.df2
        variance = 2 * b.square() * (a + b - 2) / (a * (b - 2).square() * (b - 4))
        return ops.where(b > 4, variance, float("nan"))

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        tiny = finfo(self.df1.dtype).tiny
        over, under = (
            Gamma(0.5 * df, 0.5 * df, validate_args=False).rsample(sample_shape) for df in (self.df1, self.df2)
        )
        return (over / under).clamp(min=tiny)

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        a, b, ratio = 0.5 * self.df1, 0.5 * self.df2, self.df1 / self.df2
        constant = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return constant + a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p()
