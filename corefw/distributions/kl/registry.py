"""The table of formulas for Kullback-Leibler divergences, by pairs of classes."""

from __future__ import annotations

from collections.abc import Callable

from corefw.distributions.distribution import Distribution
from corefw.tensor import Tensor

_FORMULAS: dict[tuple[type, type], Callable] = {}


def register_kl(type_p: type, type_q: type) -> Callable[[Callable], Callable]:
    """Decorate the function that computes `kl_divergence` of these two types and their subclasses.

    As in PyTorch the types may also be bases that distributions of other libraries have beside `Distribution`.
    """
    for name, given in (("type_p", type_p), ("type_q", type_q)):
        if not isinstance(given, type):
            raise TypeError(f"Expected {name} to be a Distribution subclass but got {given}")

    def register(formula: Callable) -> Callable:
        _FORMULAS[type_p, type_q] = formula
        return formula

    return register


def kl_divergence(p: Distribution, q: Distribution) -> Tensor:
    """The Kullback-Leibler divergence: the expected value of ``p.log_prob(x) - q.log_prob(x)`` for x from `p`.

    The formula is that of the most specific registered pair of classes.

    Raises:
        NotImplementedError: no formula is registered.

    >>> import corefw as torch
    >>> D = torch.distributions
    >>> D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))
    tensor(0.5000)
    """
    for type_p in type(p).__mro__:
        for type_q in type(q).__mro__:
            formula = _FORMULAS.get((type_p, type_q))
            if formula is not None:
                return formula(p, q)
    raise NotImplementedError(
        f"No KL(p || q) is implemented for p type {type(p).__name__} and q type {type(q).__name__}"
    )
