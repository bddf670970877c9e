"""Bernoulli distributions relaxed to [0, 1], whose samples have gradients."""

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.distribution import Distribution
from corefw.distributions.relaxed import Relaxed, uniform_numbers
from corefw.distributions.transforms import SigmoidTransform
from corefw.distributions.utils import ProbsOrLogits, broadcast_all, probs_to_logits


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """Distributions of the log-odds of `RelaxedBernoulli`: logistic ones of the location ``logits / temperature``.

    Args:
        temperature: the lower, the closer to 0 and 1 are the values, a number or shape (...).
        probs: the probability of 1, shape (...), or
        logits: its log-odds.

    >>> import corefw as torch
    >>> distribution = torch.distributions.relaxed_bernoulli.LogitRelaxedBernoulli(torch.tensor(1.0), 0.5)
    >>> distribution.log_prob(torch.tensor(0.0))
    tensor(-1.3863)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._set_parameter(probs, logits)
        (self.temperature,) = broadcast_all(temperature)
        super().__init__(self.param_shape, validate_args=validate_args)

    def rsample(self, sample_shape=()):
        u = uniform_numbers(self._parameter, self._extended_shape(sample_shape))
        return (probs_to_logits(u, is_binary=True) + self.logits) / self.temperature

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value * self.temperature
        return self.temperature.log() + difference - 2 * ops.softplus(difference)


class RelaxedBernoulli(Relaxed):
    """Bernoulli distributions relaxed to [0, 1], so that samples have gradients.

    Args:
        temperature: the lower, the closer to 0 and 1 are the values, a number or shape (...).
        probs: the probability of 1, shape (...), or
        logits: its log-odds.

    Sources: Maddison, Mnih, Teh, "The concrete distribution", 2017; Jang, Gu, Poole, "Categorical reparameterization
    with Gumbel-softmax", 2017.

    >>> import corefw as torch
    >>> torch.distributions.RelaxedBernoulli(torch.tensor(1.0), 0.5).log_prob(torch.tensor(0.25)).exp()
    tensor(1.)
    """

    arg_constraints = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    base, transform = LogitRelaxedBernoulli, SigmoidTransform
