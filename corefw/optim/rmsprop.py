"""RMSprop."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corefw.optim.optimizer import Optimizer, options_of, run_step
from corefw.tensor import Tensor


def rmsprop(
    params: Sequence[Tensor], grads: Sequence[Tensor], square_avgs: Sequence[Tensor], grad_avgs: Sequence[Tensor],
    momentum_buffer_list: Sequence[Tensor], state_steps: Sequence[Tensor], foreach: bool | None = None,
    maximize: bool = False, differentiable: bool = False, capturable: bool = False, has_complex: bool = False, *,
    lr: float, alpha: float, eps: float, weight_decay: float, momentum: float, centered: bool,
) -> None:  # fmt: skip
    """A step of `RMSprop` on lists of parameters, gradients and states, which change in place."""
    options = alpha, eps, momentum, weight_decay, centered, maximize
    states = square_avgs, grad_avgs if centered else [], momentum_buffer_list if momentum else [], state_steps
    run_step(
        "rmsprop_step", params, grads, *states, lr=lr, options=options, capturable=capturable,
        differentiable=differentiable,
    )  # fmt: skip


class RMSprop(Optimizer):
    """RMSprop (Hinton 2012): the gradient is divided by the root of the running mean of its square.

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        alpha: decay rate of the running means.
        eps: added to the denominator.
        weight_decay: adds ``weight_decay * p`` to the gradient.
        momentum: decay rate of the sum of past steps that is followed.
        centered: subtract the squared mean of the gradient first (Graves 2013).
        maximize: ascend instead.
        capturable: as for Adam.
        foreach, differentiable: accepted; a step is always one kernel call per group.

    >>> import corefw as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> torch.optim.RMSprop([w], lr=0.001).step(w.sum().backward)
    >>> w.data
    tensor([0.9900, 0.9900])
    """

    step_op = "rmsprop_step"

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        super().__init__(params, options_of(locals()))
