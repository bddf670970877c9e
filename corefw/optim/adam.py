"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from corefw.optim.optimizer import Optimizer, options_of, run_step
from corefw.tensor import Tensor


def adam(
    params: Sequence[Tensor], grads: Sequence[Tensor], exp_avgs: Sequence[Tensor], exp_avg_sqs: Sequence[Tensor],
    max_exp_avg_sqs: Sequence[Tensor], state_steps: Sequence[Tensor], foreach: bool | None = None,
    capturable: bool = False, differentiable: bool = False, fused: bool | None = None, grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None, has_complex: bool = False, decoupled_weight_decay: bool = False, *, amsgrad: bool,
    beta1: float, beta2: float, lr: float, weight_decay: float, eps: float, maximize: bool,
) -> None:  # fmt: skip
    """A step of `Adam` on lists of parameters, gradients and states, which change in place.

    >>> import corefw as torch
    >>> from corefw.optim.adam import adam
    >>> p, m, v, t = torch.ones(2), torch.zeros(2), torch.zeros(2), torch.tensor(0.0)
    >>> rates = {"beta1": 0.9, "beta2": 0.999, "lr": 0.1, "weight_decay": 0, "eps": 1e-8}
    >>> adam([p], [torch.ones(2)], [m], [v], [], [t], amsgrad=False, maximize=False, **rates)
    >>> p, t
    (tensor([0.9000, 0.9000]), tensor(1.))
    """
    options = (float(beta1), float(beta2), eps, weight_decay, decoupled_weight_decay, amsgrad, maximize)
    states = exp_avgs, exp_avg_sqs, max_exp_avg_sqs if amsgrad else [], state_steps
    run_step(
        *("adam_step", params, grads, *states), lr=lr, options=options, capturable=capturable,
        differentiable=differentiable, grad_scale=grad_scale, found_inf=found_inf,
    )  # fmt: skip


def adamw(
    params: Sequence[Tensor], grads: Sequence[Tensor], exp_avgs: Sequence[Tensor], exp_avg_sqs: Sequence[Tensor],
    max_exp_avg_sqs: Sequence[Tensor], state_steps: Sequence[Tensor], foreach: bool | None = None,
    capturable: bool = False, differentiable: bool = False, fused: bool | None = None, grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None, has_complex: bool = False, **options: Any,
) -> None:  # fmt: skip
    """A step of `AdamW`; arguments as for `adam`."""
    adam(
        *(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, foreach, capturable, differentiable),
        *(fused, grad_scale, found_inf, has_complex, True), **options,
    )  # fmt: skip


class Adam(Optimizer):
    """Adam (Kingma & Ba 2014).

    Args:
        params: parameters or groups of them.
        lr: learning rate.
        betas: decay rates of the running means of the gradient and its square.
        eps: added to the denominator.
        weight_decay: adds ``weight_decay * p`` to the gradient; with `decoupled_weight_decay` the parameter shrinks
            instead.
        amsgrad: use the largest mean square so far (Reddi et al. 2018).
        maximize: ascend instead.
        capturable: count the steps where the parameters are, and read a learning rate that is a tensor there, so that a
            graph with a step in it can be replayed (`corefw.cuda.CUDAGraph`).
        foreach, fused: accepted; a step is always one kernel call per group.
    """

    step_op = "adam_step"
    _decoupled = False

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):  # fmt: skip
        decoupled_weight_decay = decoupled_weight_decay or self._decoupled
        super().__init__(params, options_of(locals()))


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov & Hutter 2017); arguments as for Adam, `weight_decay` 0.01."""

    _decoupled = True

    def __init__(
        self, params: Iterable[Any], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    ):  # fmt: skip
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
        )
