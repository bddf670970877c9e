"""Optimizer steps: each updates a whole list of parameters in one kernel call.

These ops change their list arguments in place and return nothing; `corefw.optim` calls their kernels with raw arrays.
"""

from __future__ import annotations

from corefw.dispatch.declare import Index, Tensors, composite, ops, primitive
from corefw.dispatch.rules import floats


@primitive(dtype=floats, shape=None, public="")
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


@primitive(dtype=floats, shape=None, public="")
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


@primitive(dtype=floats, shape=None, public="")
def adadelta_step(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    acc_deltas: Tensors,
    steps: Tensors,
    lr: float,
    rho: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
):
    """Adadelta (Zeiler 2012).

    ``v = rho v + (1 - rho) g^2``, ``delta = sqrt(u + eps) / sqrt(v + eps) * g``, ``u = rho u + (1 - rho) delta^2``,
    ``p -= lr * delta``.
    """


@primitive(dtype=floats, shape=None, public="")
def adagrad_step(
    params: Tensors,
    grads: Tensors,
    sums: Tensors,
    steps: Tensors,
    lr: float,
    lr_decay: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
):
    """Adagrad (Duchi et al. 2011): ``s += g^2``, ``p -= lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps)``."""


@primitive(dtype=floats, shape=None, public="")
def adamax_step(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_infs: Tensors,
    steps: Tensors,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    maximize: bool,
):
    """Adamax, Adam by the infinity norm (Kingma & Ba 2014, section 7.1).

    ``m = beta1 m + (1 - beta1) g``, ``u = max(beta2 u, |g| + eps)``, ``p -= lr / (1 - beta1^t) * m / u``.
    """


@primitive(dtype=floats, shape=None, public="")
def nadam_step(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    mu_products: Tensors,
    steps: Tensors,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    momentum_decay: float,
    decoupled: bool,
    maximize: bool,
):
    """Adam with Nesterov momentum (Dozat 2016), the mean's decay warmed up as ``mu_t = beta1 (1 - 0.96^(t psi) / 2)``.

    With m and v as in Adam, psi the momentum decay and ``M_t`` the product of the mu up to t,
    ``p -= lr ((1 - mu_t) / (1 - M_t) g + mu_(t+1) / (1 - M_(t+1)) m) / (sqrt(v / (1 - beta2^t)) + eps)``.
    """


@primitive(dtype=floats, shape=None, public="")
def radam_step(
    params: Tensors,
    grads: Tensors,
    exp_avgs: Tensors,
    exp_avg_sqs: Tensors,
    steps: Tensors,
    lr: float,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
):
    """Rectified Adam (Liu et al. 2019).

    With m and v as in Adam, the length ``rho_t = rho_inf - 2 t beta2^t / (1 - beta2^t)``,
    ``rho_inf = 2 / (1 - beta2) - 1``: where ``rho_t > 5`` the step is Adam's times the rectification
    ``sqrt((rho_t - 4)(rho_t - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho_t))``, before that
    ``p -= lr / (1 - beta1^t) * m``.
    """


@primitive(dtype=floats, shape=None, public="")
def rmsprop_step(
    params: Tensors,
    grads: Tensors,
    square_avgs: Tensors,
    momentum_buffers: Tensors,
    grad_avgs: Tensors,
    steps: Tensors,
    lr: float,
    alpha: float,
    eps: float,
    weight_decay: float,
    momentum: float,
    centered: bool,
    maximize: bool,
):
    """RMSprop (Hinton 2012), optionally centered (Graves 2013) and with momentum.

    ``v = alpha v + (1 - alpha) g^2``; `centered` subtracts the squared mean of g from v; ``d = g / (sqrt(v) + eps)``;
    ``b = momentum * b + d``; ``p -= lr * b`` (d without momentum).
    """


@composite(dtype=floats, shape=lambda tensors, norm_type: (), public="")
def total_norm(tensors: Tensors, norm_type: float):
    """The norm of order `norm_type` of all elements of all `tensors`, seen as one vector."""
    return ops.vector_norm(ops.stack([ops.vector_norm(tensor, norm_type) for tensor in tensors]), norm_type)


@primitive(dtype=floats, shape=None, public="")
def scale_step(tensors: Tensors, factor: Index):
    """Multiply all `tensors` by `factor`, a 0-d array of their dtype, in place."""
