"""Optimizer steps: each updates a whole list of parameters in one kernel call.

A signature here is the only place where the parameters of a step stand: optimizers, the kernels of all backends and the
structs of C and CUDA (scripts/make_steps) read it as a record, `corefw.dispatch.records`. A state is named as in an
optimizer's state, in the plural; an option as in its groups, but for the two `betas`.
"""

from __future__ import annotations

from corefw.dispatch.declare import Changed, Counts, Index, Rate, Tensors, composite, ops, update
from corefw.dispatch.rules import floats


@update(dtype=floats, where={"momentum_buffers": "momentum"}, public="")
def sgd_step(
    params: Changed, grads: Tensors, momentum_buffers: Changed, lr: Rate, momentum: float, dampening: float,
    weight_decay: float, nesterov: bool, first: bool, maximize: bool,
):  # fmt: skip
    """Stochastic gradient descent with momentum (Sutskever et al. 2013, as PyTorch writes it).

    With d the gradient plus ``weight_decay * p``: the buffer becomes ``momentum * b + (1 - dampening) * d`` (d itself
    in the `first` step), the step is ``d + momentum * b`` with nesterov, else b (d without momentum), and
    ``p -= lr * step``.
    """


@update(dtype=floats, where={"max_exp_avg_sqs": "amsgrad"}, public="")
def adam_step(
    params: Changed, grads: Tensors, exp_avgs: Changed, exp_avg_sqs: Changed, max_exp_avg_sqs: Changed, steps: Counts,
    lr: Rate, beta1: float, beta2: float, eps: float, weight_decay: float, decoupled_weight_decay: bool, amsgrad: bool,
    maximize: bool,
):  # fmt: skip
    """Adam (Kingma & Ba 2014) or, with `decoupled_weight_decay`, AdamW (Loshchilov & Hutter 2017).

    ``m = beta1 m + (1 - beta1) g``, ``v = beta2 v + (1 - beta2) g^2``,
    ``p -= lr / (1 - beta1^t) * m / (sqrt(v) / sqrt(1 - beta2^t) + eps)``; with `amsgrad` the largest v so far.
    """


@update(dtype=floats, public="")
def adadelta_step(
    params: Changed, grads: Tensors, square_avgs: Changed, acc_deltas: Changed, steps: Counts, lr: Rate, rho: float,
    eps: float, weight_decay: float, maximize: bool,
):  # fmt: skip
    """Adadelta (Zeiler 2012).

    ``v = rho v + (1 - rho) g^2``, ``delta = sqrt(u + eps) / sqrt(v + eps) * g``, ``u = rho u + (1 - rho) delta^2``,
    ``p -= lr * delta``.
    """


@update(dtype=floats, public="")
def adagrad_step(
    params: Changed, grads: Tensors, sums: Changed, steps: Counts, lr: Rate, lr_decay: float, eps: float,
    weight_decay: float, maximize: bool,
):  # fmt: skip
    """Adagrad (Duchi et al. 2011): ``s += g^2``, ``p -= lr / (1 + (t - 1) lr_decay) * g / (sqrt(s) + eps)``."""


@update(dtype=floats, public="")
def adamax_step(
    params: Changed, grads: Tensors, exp_avgs: Changed, exp_infs: Changed, steps: Counts, lr: Rate, beta1: float,
    beta2: float, eps: float, weight_decay: float, maximize: bool,
):  # fmt: skip
    """Adamax, Adam by the infinity norm (Kingma & Ba 2014, section 7.1).

    ``m = beta1 m + (1 - beta1) g``, ``u = max(beta2 u, |g| + eps)``, ``p -= lr / (1 - beta1^t) * m / u``.
    """


@update(dtype=floats, public="")
def nadam_step(
    params: Changed, grads: Tensors, exp_avgs: Changed, exp_avg_sqs: Changed, mu_products: Counts, steps: Counts,
    lr: Rate, beta1: float, beta2: float, eps: float, weight_decay: float, momentum_decay: float,
    decoupled_weight_decay: bool, maximize: bool,
):  # fmt: skip
    """Adam with Nesterov momentum (Dozat 2016), the mean's decay warmed up as ``mu_t = beta1 (1 - 0.96^(t psi) / 2)``.

    With m and v as in Adam, psi the momentum decay and ``M_t`` the product of the mu up to t,
    ``p -= lr ((1 - mu_t) / (1 - M_t) g + mu_(t+1) / (1 - M_(t+1)) m) / (sqrt(v / (1 - beta2^t)) + eps)``.
    """


@update(dtype=floats, public="")
def radam_step(
    params: Changed, grads: Tensors, exp_avgs: Changed, exp_avg_sqs: Changed, steps: Counts, lr: Rate, beta1: float,
    beta2: float, eps: float, weight_decay: float, decoupled_weight_decay: bool, maximize: bool,
):  # fmt: skip
    """Rectified Adam (Liu et al. 2019).

    With m and v as in Adam, the length ``rho_t = rho_inf - 2 t beta2^t / (1 - beta2^t)``,
    ``rho_inf = 2 / (1 - beta2) - 1``: where ``rho_t > 5`` the step is Adam's times the rectification
    ``sqrt((rho_t - 4)(rho_t - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho_t))``, before that
    ``p -= lr / (1 - beta1^t) * m``.
    """


@update(dtype=floats, where={"grad_avgs": "centered", "momentum_buffers": "momentum"}, public="")
def rmsprop_step(
    params: Changed, grads: Tensors, square_avgs: Changed, grad_avgs: Changed, momentum_buffers: Changed, steps: Counts,
    lr: Rate, alpha: float, eps: float, momentum: float, weight_decay: float, centered: bool, maximize: bool,
):  # fmt: skip
    """RMSprop (Hinton 2012), optionally centered (Graves 2013) and with momentum.

    ``v = alpha v + (1 - alpha) g^2``; `centered` subtracts the squared mean of g from v; ``d = g / (sqrt(v) + eps)``;
    ``b = momentum * b + d``; ``p -= lr * b`` (d without momentum).
    """


@composite(dtype=floats, shape=lambda tensors, norm_type: (), public="")
def total_norm(tensors: Tensors, norm_type: float):
    """The norm of order `norm_type` of all elements of all `tensors`, seen as one vector."""
    return ops.vector_norm(ops.stack([ops.vector_norm(tensor, norm_type) for tensor in tensors]), norm_type)


@update(dtype=floats, public="")
def scale_step(tensors: Changed, factor: Index):
    """Multiply all `tensors` by `factor`, a 0-d array of their dtype, in place."""
