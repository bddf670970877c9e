"""Optimizer steps: each updates a whole list of parameters in one kernel call.

These ops change their list arguments in place and return nothing; `corefw.optim` calls their kernels with raw arrays.
"""

from __future__ import annotations

from corefw.dispatch.declare import Tensors, primitive
from corefw.dispatch.rules import same


@primitive(dtype=same.without("bool", "integer"), shape=None, method=False)
def sgd_step(
    params: Tensors,
    grads: Tensors,
    momentum_buffers: Tensors,
    first: list[bool],
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
):
    """Stochastic gradient descent with momentum (Sutskever et al. 2013, as PyTorch writes it).

    With d the gradient plus ``weight_decay * p``: the buffer becomes ``momentum * b + (1 - dampening) * d`` (d itself
    where `first`), the step is ``d + momentum * b`` with nesterov, else b (d without momentum), and ``p -= lr * step``.
    """


@primitive(dtype=same.without("bool", "integer"), shape=None, method=False)
def adam_step(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    max_exp_avg_sqs: Tensors,
    steps: Tensors,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    amsgrad: bool,
    maximize: bool,
):
    """Adam (Kingma & Ba 2014) or, with `decoupled` weight decay, AdamW (Loshchilov & Hutter 2017).

    ``m = beta1 m + (1 - beta1) g``, ``v = beta2 v + (1 - beta2) g^2``,
    ``p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)``; with `amsgrad` the largest v so far.
    """
