"""NAdam."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corefw.optim.optimizer import Optimizer, options_of, run_step, scalar
from corefw.tensor import Tensor


def nadam(
    params: Sequence[Tensor], grads: Sequence[Tensor], exp_avgs: Sequence[Tensor], exp_avg_sqs: Sequence[Tensor],
    mu_products: Sequence[Tensor], state_steps: Sequence[Tensor], decoupled_weight_decay: bool = False,
    foreach: bool | None = None, capturable: bool = False, differentiable: bool = False, has_complex: bool = False,
    maximize: bool = False, *, beta1: float, beta2: float, lr: float, weight_decay: float, momentum_decay: float,
    eps: float,
) -> None:  # fmt: skip
    """A step of `NAdam` on lists of parameters, gradients and states, which change in place."""
    options = beta1, beta2, eps, weight_decay, momentum_decay, decoupled_weight_decay, maximize
    states = exp_avgs, exp_avg_sqs, mu_products, state_steps
    run_step(
        "nadam_step", params, grads, *states, lr=lr, options=options, capturable=capturable,
        differentiable=differentiable,
    )  # fmt: skip


class NAdam(Optimizer):
    """NAdam (Dozat 2016): Adam with Nesterov momentum.

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        betas: decay rates of the running means of the gradient and its square.
        eps: added to the denominator.
        weight_decay: adds ``weight_decay * p`` to the gradient; with `decoupled_weight_decay` the parameter shrinks
            instead.
        momentum_decay: how slowly the decay rate of the mean warms up.
        maximize: ascend instead.
        capturable: as for Adam.
        foreach, differentiable: accepted; a step is always one kernel call per group.

    >>> import corefw as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> torch.optim.NAdam([w], lr=0.1).step(w.sum().backward)
    >>> w.data
    tensor([0.8944, 0.8944])
    """

    step_op = "nadam_step"

    def __init__(
        self, params: Iterable[Any], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        super().__init__(params, options_of(locals()))

    def initial(self, name: str, parameter: Tensor) -> Any:
        return scalar(1) if name == "mu_product" else super().initial(name, parameter)
