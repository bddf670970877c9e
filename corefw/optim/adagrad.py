"""Adagrad."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corefw.dispatch.declare import ops
from corefw.optim.optimizer import Optimizer, options_of, run_step
from corefw.tensor import Tensor


def adagrad(
    params: Sequence[Tensor], grads: Sequence[Tensor], state_sums: Sequence[Tensor], state_steps: Sequence[Tensor],
    fused: bool | None = None, grad_scale: Tensor | None = None, found_inf: Tensor | None = None,
    has_sparse_grad: bool = False, foreach: bool | None = None, differentiable: bool = False, has_complex: bool = False,
    *, lr: float, weight_decay: float, lr_decay: float, eps: float, maximize: bool,
) -> None:  # fmt: skip
    """A step of `Adagrad` on lists of parameters, gradients and states, which change in place."""
    options = lr_decay, eps, weight_decay, maximize
    states = state_sums, state_steps
    run_step(
        "adagrad_step", params, grads, *states, lr=lr, options=options, differentiable=differentiable,
        grad_scale=grad_scale, found_inf=found_inf,
    )  # fmt: skip


class Adagrad(Optimizer):
    """Adagrad (Duchi et al. 2011): each gradient is divided by the root of the sum of its squares so far.

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        lr_decay: after t steps the rate is ``lr / (1 + t * lr_decay)``.
        weight_decay: adds ``weight_decay * p`` to the gradient.
        initial_accumulator_value: where the sums of squares begin.
        eps: added to the denominator.
        maximize: ascend instead.
        foreach, fused, differentiable: accepted; a step is always one kernel call per group.

    >>> import corefw as torch
    >>> w = torch.ones(2, requires_grad=True)
    >>> torch.optim.Adagrad([w], lr=0.1).step(w.sum().backward)
    >>> w.data
    tensor([0.9000, 0.9000])
    """

    step_op = "adagrad_step"

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ):  # fmt: skip
        super().__init__(params, options_of(locals()))
        for group in self.param_groups:
            for name in ("step", "sum"):
                self.states(name, group["params"])

    def initial(self, name: str, parameter: Tensor) -> Any:
        if name != "sum":
            return super().initial(name, parameter)
        begin = self.defaults["initial_accumulator_value"]
        return ops.full_like(parameter, complex(begin, begin) if parameter.is_complex() else begin).detach()
