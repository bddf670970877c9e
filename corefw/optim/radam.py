"""RAdam."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corefw.optim.optimizer import Optimizer, options_of, run_step
from corefw.tensor import Tensor


def radam(
    params: Sequence[Tensor], grads: Sequence[Tensor], exp_avgs: Sequence[Tensor], exp_avg_sqs: Sequence[Tensor],
    state_steps: Sequence[Tensor], decoupled_weight_decay: bool = False, foreach: bool | None = None,
    differentiable: bool = False, capturable: bool = False, has_complex: bool = False, maximize: bool = False, *,
    beta1: float, beta2: float, lr: float, weight_decay: float, eps: float,
) -> None:  # fmt: skip
    """A step of `RAdam` on lists of parameters, gradients and states, which change in place."""
    options = beta1, beta2, eps, weight_decay, decoupled_weight_decay, maximize
    states = exp_avgs, exp_avg_sqs, state_steps
    run_step(
        "radam_step", params, grads, *states, lr=lr, options=options, capturable=capturable,
        differentiable=differentiable,
    )  # fmt: skip


class RAdam(Optimizer):
    """Rectified Adam (Liu et al. 2019): momentum alone until the variance of the gradient is known, then Adam.

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        betas: decay rates of the running means of the gradient and its square.
        eps: added to the denominator.
        weight_decay: adds ``weight_decay * p`` to the gradient; with `decoupled_weight_decay` the parameter shrinks
            instead.
        maximize: ascend instead.
        capturable: as for Adam.
        foreach, differentiable: accepted; a step is always one kernel call per group.

    >>> import corefw as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> torch.optim.RAdam([w], lr=0.1).step(w.sum().backward)
    >>> w.data
    tensor([0.9000, 0.9000])
    """

    step_op = "radam_step"

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        super().__init__(params, options_of(locals()))
