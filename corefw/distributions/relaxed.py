"""The base of discrete distributions that are relaxed to continuous values, whose samples have gradients.

Sources: Maddison, Mnih, Teh, "The concrete distribution", 2017; Jang, Gu, Poole, "Categorical reparameterization with
Gumbel-softmax", 2017.
"""

from __future__ import annotations

from typing import Any, ClassVar

from corefw.dispatch.declare import ops
from corefw.distributions.transformed_distribution import TransformedDistribution
from corefw.distributions.transforms import Transform
from corefw.distributions.utils import clamp_probs
from corefw.tensor import Tensor


class Relaxed(TransformedDistribution):
    """Distributions of what the transform of a class makes of its base, which has their parameters."""

    base: ClassVar[type[Any]]
    transform: ClassVar[type[Transform]]
    has_rsample = True

    def __init__(
        self,
        temperature: Tensor | float,
        probs: Tensor | float | None = None,
        logits: Tensor | float | None = None,
        validate_args: bool | None = None,
    ) -> None:
        base = self.base(temperature, probs, logits, validate_args=False)
        super().__init__(base, self.transform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log-odds of 1, or the logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of 1, or the probabilities, which sum to 1."""
        return self.base_dist.probs


def uniform_numbers(like, shape):
    """Uniform random numbers in (0, 1), of the dtype and device of a tensor."""
    return clamp_probs(ops.rand(shape, dtype=like.dtype, device=like.device))
