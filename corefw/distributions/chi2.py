"""The chi-squared distribution."""

from __future__ import annotations

from corefw.distributions import constraints
from corefw.distributions.gamma import Gamma
from corefw.distributions.utils import broadcast_all
from corefw.tensor import Tensor


class Chi2(Gamma):
    """Chi-squared distributions: of the sum of the squares of independent standard normal numbers.

    Args:
        df: how many numbers, the degrees of freedom, shape (...); it need not be whole.

    >>> import corefw as torch
    >>> torch.distributions.Chi2(4.0).variance
    tensor(8.)
    """

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df: Tensor | float, validate_args: bool | None = None) -> None:
        (df,) = broadcast_all(df)
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self) -> Tensor:
        """The degrees of freedom."""
        return self.concentration * 2
