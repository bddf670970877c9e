"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from corefw.optim.optimizer import Optimizer, options_of


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
