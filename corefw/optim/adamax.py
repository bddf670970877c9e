"""Adamax."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corefw.optim.optimizer import Optimizer, options_of, run_step
from corefw.tensor import Tensor


def adamax(
    params: Sequence[Tensor], grads: Sequence[Tensor], exp_avgs: Sequence[Tensor], exp_infs: Sequence[Tensor],
    state_steps: Sequence[Tensor], foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
    capturable: bool = False, has_complex: bool = False, *, eps: float, beta1: float, beta2: float, lr: float,
    weight_decay: float,
) -> None:  # fmt: skip
    """A step of `Adamax` on lists of parameters, gradients and states, which change in place."""
    options = beta1, beta2, eps, weight_decay, maximize
    states = exp_avgs, exp_infs, state_steps
    run_step(
        "adamax_step", params, grads, *states, lr=lr, options=options, capturable=capturable,
        differentiable=differentiable,
    )  # fmt: skip


class Adamax(Optimizer):
    """Adamax (Kingma & Ba 2014, section 7.1): Adam by the largest gradient instead of the mean square.

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        betas: decay rates of the running mean of the gradient and of its largest absolute value.
        eps: added to the absolute values.
        weight_decay: adds ``weight_decay * p`` to the gradient.
        maximize: ascend instead.
        capturable: as for Adam.
        foreach, differentiable: accepted; a step is always one kernel call per group.

    >>> import corefw as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> torch.optim.Adamax([w], lr=0.1).step(w.sum().backward)
    >>> w.data
    tensor([0.9000, 0.9000])
    """

    step_op = "adamax_step"

    def __init__(
        self, params: Iterable[Any], lr: float = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ):  # fmt: skip
        super().__init__(params, options_of(locals()))
