"""Adadelta."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corefw.optim.optimizer import Optimizer, options_of, run_step
from corefw.tensor import Tensor


def adadelta(
    params: Sequence[Tensor], grads: Sequence[Tensor], square_avgs: Sequence[Tensor], acc_deltas: Sequence[Tensor],
    state_steps: Sequence[Tensor], capturable: bool = False, foreach: bool | None = None, differentiable: bool = False,
    has_complex: bool = False, *, lr: float, rho: float, eps: float, weight_decay: float, maximize: bool,
) -> None:  # fmt: skip
    """A step of `Adadelta` on lists of parameters, gradients and states, which change in place."""
    options = rho, eps, weight_decay, maximize
    states = square_avgs, acc_deltas, state_steps
    run_step(
        "adadelta_step", params, grads, *states, lr=lr, options=options, capturable=capturable,
        differentiable=differentiable,
    )  # fmt: skip


class Adadelta(Optimizer):
    """Adadelta (Zeiler 2012): the step is the gradient times the ratio of the root mean squares of steps and gradients.

    Args:
        params: parameters or groups of them.
        lr: factor of the step.
        rho: decay rate of the running means of squares.
        eps: added to both means of squares.
        weight_decay: adds ``weight_decay * p`` to the gradient.
        maximize: ascend instead.
        capturable: as for Adam.
        foreach, differentiable: accepted; a step is always one kernel call per group.

    >>> import corefw as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> torch.optim.Adadelta([w]).step(w.sum().backward)
    >>> w.data
    tensor([0.9968, 0.9968])
    """

    step_op = "adadelta_step"

    def __init__(
        self, params: Iterable[Any], lr: float = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        if not 0 <= rho <= 1:
            raise ValueError(f"Invalid rho value: {rho}")
        super().__init__(params, options_of(locals()))
