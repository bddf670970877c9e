"""The base of discrete distributions that are relaxed to continuous values, whose samples have gradients.

Sources: Maddison, Mnih, Teh, "The concrete distribution", 2017; Jang, Gu, Poole, "Categorical reparameterization with
Gumbel-softmax", 2017.
"""

from corefw.distributions.transformed_distribution import TransformedDistribution


class Relaxed(TransformedDistribution):
    """Distributions of what a transform makes of its base, which has their parameters."""

    @property
    def temperature(self):
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self):
        """The log-odds of 1, or the logarithms of the probabilities."""
        return self.base_dist.logits

    @property
    def probs(self):
        """The probability of 1, or the probabilities, which sum to 1."""
        return self.base_dist.probs
