"""Averaged stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corefw.optim.optimizer import Optimizer, options_of, refuse_capturable, scalar
from corefw.tensor import Tensor


def asgd(
    params: Sequence[Tensor], grads: Sequence[Tensor], axs: Sequence[Tensor], mus: Sequence[Tensor],
    etas: Sequence[Tensor], state_steps: Sequence[Tensor], foreach: bool | None = None, maximize: bool = False,
    differentiable: bool = False, capturable: bool = False, has_complex: bool = False, *, lambd: float, lr: float,
    t0: float, alpha: float, weight_decay: float,
) -> None:  # fmt: skip
    """A step of `ASGD` on lists of parameters, gradients and states, which change in place."""
    refuse_capturable("asgd", capturable)
    lr = float(lr)
    for p, gradient, average, mu, eta, step in zip(params, grads, axs, mus, etas, state_steps, strict=True):
        step += 1
        gradient = -gradient if maximize else gradient
        if weight_decay:
            gradient = gradient.add(p, alpha=weight_decay)
        rate, t, share = eta.item(), step.item(), mu.item()
        p.mul_(1 - lambd * rate).add_(gradient, alpha=-rate)
        if share == 1:
            average.copy_(p)
        else:
            average.add_(p - average, alpha=share)
        eta.fill_(lr / (1 + lambd * lr * t) ** alpha)
        mu.fill_(1 / max(1, t - t0))


class ASGD(Optimizer):
    """Averaged stochastic gradient descent (Polyak & Juditsky 1992).

    In step t ``p -= eta * (g + lambd * p)`` with ``eta = lr / (1 + lambd * lr * (t - 1)) ** alpha``; from step `t0` on
    the state "ax" is the mean of the parameters since then, before it the parameters themselves.

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        lambd: the decay term.
        alpha: the power by which the rate falls.
        t0: the step from which parameters are averaged.
        weight_decay: adds ``weight_decay * p`` to the gradient.
        maximize: ascend instead.
        capturable: refused if true.
        foreach, differentiable: accepted.

    >>> import corefw as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> torch.optim.ASGD([w], lr=0.1, lambd=0).step(w.sum().backward)
    >>> w.data
    tensor([0.9000, 0.9000])
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ):  # fmt: skip
        refuse_capturable("ASGD", capturable)
        super().__init__(params, options_of(locals()))

    def initial(self, name: str, parameter: Tensor) -> Any:
        if name == "eta":
            return scalar(float(self.defaults["lr"]))
        return scalar(1) if name == "mu" else super().initial(name, parameter)

    def update(self, group: dict[str, Any], params: list[Any]) -> None:
        steps, etas, mus, axs = (self.states(name, params) for name in ("step", "eta", "mu", "ax"))
        options = {name: group[name] for name in ("lambd", "lr", "t0", "alpha", "weight_decay", "maximize")}
        asgd(params, [p._grad for p in params], axs, mus, etas, steps, **options)
