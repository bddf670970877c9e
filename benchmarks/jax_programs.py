"""The programs of benchmarks/test_compile.py as JAX wants them: functions of all that they use, under `jit`."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise

import jax
import jax.numpy as jnp


def _normal(key: int, *shape: int, scale: float = 1.0) -> jax.Array:
    return scale * jax.random.normal(jax.random.PRNGKey(key), shape)


def _step_of(loss_of: Callable, parameters: dict, update: Callable, state: object) -> Callable:
    """One training step without arguments, which keeps parameters and the optimizer's state between calls."""

    def step(parameters, state):
        loss, gradients = jax.value_and_grad(loss_of)(parameters)
        return (loss, *update(parameters, gradients, state))

    compiled = jax.jit(step, donate_argnums=(0, 1))
    held = [parameters, state]

    def run():
        loss, *held[:] = compiled(*held)
        return loss.block_until_ready()

    return run


def _sgd(rate: float, momentum: float) -> Callable:
    def update(parameters, gradients, state):
        state = jax.tree.map(lambda m, g: momentum * m + g, state, gradients)
        return jax.tree.map(lambda p, m: p - rate * m, parameters, state), state

    return update


def _adam(rate: float, decay: float = 0.0) -> Callable:
    def update(parameters, gradients, state):
        count, first, second = state
        count = count + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
        step, root = rate / (1 - 0.9**count), jnp.sqrt(1 - 0.999**count)
        new = jax.tree.map(
            lambda p, m, v: (1 - rate * decay) * p - step * m / (jnp.sqrt(v) / root + 1e-8), parameters, first, second
        )
        return new, (count, first, second)

    return update


def _zeros(parameters: dict) -> dict:
    return jax.tree.map(jnp.zeros_like, parameters)


def _adam_state(parameters: dict) -> tuple:
    return jnp.zeros(()), _zeros(parameters), _zeros(parameters)


def _seed_mlp(update: Callable, state_of: Callable) -> Callable:
    parameters = {}
    for i, (a, b) in enumerate(pairwise((1000, 100, 10))):
        parameters[i] = {"weight": _normal(i, a, b, scale=1 / math.sqrt(a)), "bias": jnp.zeros(b)}
    inputs, targets = _normal(2, 64, 1000), _normal(3, 64, 10)

    def loss_of(p):
        hidden = jax.nn.relu(inputs @ p[0]["weight"] + p[0]["bias"])
        return jnp.square(hidden @ p[1]["weight"] + p[1]["bias"] - targets).sum()

    return _step_of(loss_of, parameters, update, state_of(parameters))


def seed_mlp_sgd() -> Callable:
    """As in corefw/benchmarks/training.py."""
    return _seed_mlp(_sgd(1e-4, 0.5), _zeros)


def seed_mlp_adam() -> Callable:
    """As in corefw/benchmarks/training.py."""
    return _seed_mlp(_adam(1e-4), _adam_state)


def gpt_adamw() -> Callable:
    """As in corefw/benchmarks/training.py."""
    words, width, heads, layers, batch, length = 65, 128, 4, 4, 8, 128
    keys = iter(range(1000))

    def linear(a, b, bias=True):
        made = {"weight": _normal(next(keys), a, b, scale=1 / math.sqrt(3 * a))}
        return made | {"bias": jnp.zeros(b)} if bias else made

    def norm():
        return {"weight": jnp.ones(width), "bias": jnp.zeros(width)}

    def block():
        return {
            **{"first": norm(), "second": norm(), "qkv": linear(width, 3 * width), "out": linear(width, width)},
            **{"up": linear(width, 4 * width), "down": linear(4 * width, width)},
        }

    parameters = {
        "words": _normal(next(keys), words, width),
        "positions": _normal(next(keys), length, width),
        "blocks": [block() for _ in range(layers)],
        "norm": norm(),
        "head": linear(width, words, bias=False),
    }
    text = jax.random.randint(jax.random.PRNGKey(7), (batch, length + 1), 0, words)

    def apply(p, x):
        return x @ p["weight"] + p.get("bias", 0)

    def normed(p, x):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["weight"] + p["bias"]

    def attended(p, x):
        q, k, v = (
            t.reshape(batch, length, heads, -1).transpose(0, 2, 1, 3) for t in jnp.split(apply(p["qkv"], x), 3, -1)
        )
        scores = q @ k.swapaxes(2, 3) / math.sqrt(width // heads)
        weights = jax.nn.softmax(jnp.where(jnp.tri(length, dtype=bool), scores, -jnp.inf))
        return apply(p["out"], (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, width))

    def loss_of(p):
        x = p["words"][text[:, :-1]] + p["positions"]
        for b in p["blocks"]:
            x = x + attended(b, normed(b["first"], x))
            x = x + apply(b["down"], jax.nn.gelu(apply(b["up"], normed(b["second"], x)), approximate=False))
        scores = jax.nn.log_softmax(apply(p["head"], normed(p["norm"], x)))
        return -jnp.take_along_axis(scores, text[:, 1:, None], 2).mean()

    return _step_of(loss_of, parameters, _adam(1e-3, 0.01), _adam_state(parameters))


def chain(size: int) -> Callable:
    """The chain of elementwise ops of benchmarks/test_compile.py."""
    x, a, b, c = (_normal(i, size) for i in range(4))
    compiled = jax.jit(lambda x, a, b, c: (jax.nn.gelu(x * a + b, approximate=False) * c).sum())
    return lambda: compiled(x, a, b, c).block_until_ready()


PROGRAMS = {program.__name__: program for program in (seed_mlp_sgd, seed_mlp_adam, gpt_adamw)}
