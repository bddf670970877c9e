"""The base of distributions of what is drawn from categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from corefw.distributions import constraints
from corefw.distributions.categorical import Categorical
from corefw.distributions.distribution import Distribution
from corefw.shapes import Size
from corefw.tensor import Tensor


class Categories(Distribution):
    """Distributions over vectors with a number for each category, whose parameters are those of `Categorical`."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(
        self,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        self._categorical = Categorical(probs, logits, validate_args=validate_args)
        shape = self._categorical.param_shape
        super().__init__(shape[:-1], shape[-1:], validate_args=False)
        self._validate_args = self._categorical._validate_args

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Self:
        new = super().expand(batch_shape, _instance)
        new._categorical = self._categorical.expand(batch_shape)
        return new

    @property
    def probs(self) -> Tensor:
        """The probabilities, which sum to 1."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return self._categorical.logits

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._categorical.param_shape
