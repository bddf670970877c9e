"""Exponential families: their entropy and divergence follow from one function."""

from __future__ import annotations

from corefw.autograd.differentiate import grad
from corefw.autograd.grad_mode import enable_grad
from corefw.distributions.distribution import Distribution
from corefw.distributions.utils import sum_rightmost
from corefw.tensor import Tensor


class ExponentialFamily(Distribution):
    """Distributions of the density ``exp(t(x) @ theta - F(theta) + k(x))``.

    A subclass gives the natural parameters theta as the tuple `_natural_params`, their function F as
    `_log_normalizer`, and the expected value of the carrier measure k(x), where it is known, as
    `_mean_carrier_measure`. F's gradient is the expected value of the statistics t(x), which gives the entropy.

    Source: Nielsen, Nock, "Entropies and cross-entropies of exponential families", 2010.

    >>> import corefw as torch
    >>> isinstance(torch.distributions.Normal(0.0, 1.0), torch.distributions.ExponentialFamily)
    True
    """

    @property
    def _mean_carrier_measure(self):
        raise NotImplementedError(f"{type(self).__name__} does not give the mean of its carrier measure")

    @property
    def _natural_params(self):
        raise NotImplementedError(f"{type(self).__name__} does not give its natural parameters")

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError(f"{type(self).__name__} does not give its log-normalizer")

    def _normalizer_and_means(self):
        """F, the natural parameters, and F's gradient by each of them."""
        with enable_grad():
            # views: the gradient by one is not to flow through another that is computed from it
            given = self._natural_params
            parameters = [p.view_as(p) if p.requires_grad else p.detach().requires_grad_() for p in given]
            normalizer = self._log_normalizer(*parameters)
            return normalizer, parameters, grad(normalizer.sum(), parameters, create_graph=True)

    def _summed(self, value):
        """The sum over the dimensions of a parameter that are not those of the batch."""
        return sum_rightmost(value, value.ndim - len(self._batch_shape))

    def entropy(self) -> Tensor:
        normalizer, parameters, means = self._normalizer_and_means()
        products = (self._summed(p * mean) for p, mean in zip(parameters, means))
        return normalizer - sum(products) - self._mean_carrier_measure
