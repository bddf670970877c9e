"""Kernels of optimizer steps: they return the new values of what the op changes in place."""

from functools import partial

import jax
import jax.numpy as jnp


def sgd_step(params, grads, buffers, lr, momentum, dampening, weight_decay, nesterov, first, maximize):
    """Stochastic gradient descent: the new parameters and momentum buffers."""
    steps = [(-grad if maximize else grad) + weight_decay * param for param, grad in zip(params, grads)]
    if momentum:
        buffers = steps if first else [momentum * b + (1 - dampening) * step for step, b in zip(steps, buffers)]
        steps = [step + momentum * b if nesterov else b for step, b in zip(steps, buffers)]
    return [param - lr * step for param, step in zip(params, steps)], buffers


@partial(jax.jit, static_argnames=("decoupled", "maximize"))
def _adam(param, grad, average, square, largest, rates, decoupled, maximize):
    """One parameter's step of Adam, compiled once for each shape; `rates` are numbers."""
    lr, beta1, beta2, eps, weight_decay, left1, left2 = (rate.astype(param.dtype) for rate in rates)
    grad = -grad if maximize else grad
    if decoupled:
        param = param * (1 - lr * weight_decay)
    else:
        grad = grad + weight_decay * param
    average = average + (grad - average) * (1 - beta1)
    square = beta2 * square + (1 - beta2) * grad * grad
    if largest is not None:
        largest = jnp.maximum(largest, square)
    root = jnp.sqrt((square if largest is None else largest) / left2)
    return param - lr / left1 * (average / (root + eps)), average, square, largest


def adam_step(
    params, grads, averages, squares, largest, steps, lr, beta1, beta2, eps, weight_decay, decoupled, amsgrad, maximize
):
    """Adam: the new parameters, averages of gradients and of their squares, largest averages, and counts of steps."""
    found = []
    for i, (param, grad) in enumerate(zip(params, grads)):
        count = float(steps[i]) + 1
        rates = (lr, beta1, beta2, eps, weight_decay, 1 - beta1**count, 1 - beta2**count)
        rates = tuple(jnp.asarray(rate, jnp.float64) for rate in rates)
        most = largest[i] if amsgrad else None
        found.append(_adam(param, grad, averages[i], squares[i], most, rates, decoupled, maximize))
    new = [list(column) for column in zip(*found)]
    return (*new[:3], new[3] if amsgrad else largest, [step + 1 for step in steps])
