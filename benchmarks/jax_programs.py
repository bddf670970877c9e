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


def _zeros(parameters: object) -> object:
    return jax.tree.map(jnp.zeros_like, parameters)


def _adam_state(parameters: object) -> tuple:
    return jnp.zeros(()), _zeros(parameters), _zeros(parameters)


def _linear(key: int, a: int, b: int) -> dict:
    return {"weight": _normal(key, a, b, scale=1 / math.sqrt(a)), "bias": jnp.zeros(b)}


def _apply(p: dict, x: jax.Array) -> jax.Array:
    return x @ p["weight"] + p.get("bias", 0)


def _mlp(sizes: tuple[int, ...]) -> list[dict]:
    return [_linear(i, a, b) for i, (a, b) in enumerate(pairwise(sizes))]


def _through(layers: list[dict], x: jax.Array) -> jax.Array:
    for layer in layers[:-1]:
        x = jax.nn.relu(_apply(layer, x))
    return _apply(layers[-1], x)


def _cross_entropy(scores: jax.Array, targets: jax.Array) -> jax.Array:
    return -jnp.take_along_axis(jax.nn.log_softmax(scores), targets[..., None], -1).mean()


def _classes(key: int, *shape: int, classes: int = 10) -> jax.Array:
    return jax.random.randint(jax.random.PRNGKey(key), shape, 0, classes)


def _seed_mlp(update: Callable, state_of: Callable) -> Callable:
    parameters = _mlp((1000, 100, 10))
    inputs, targets = _normal(2, 64, 1000), _normal(3, 64, 10)
    return _step_of(lambda p: jnp.square(_through(p, inputs) - targets).sum(), parameters, update, state_of(parameters))


def seed_mlp_sgd() -> Callable:
    """As in corefw/benchmarks/training.py."""
    return _seed_mlp(_sgd(1e-4, 0.5), _zeros)


def seed_mlp_adam() -> Callable:
    """As in corefw/benchmarks/training.py."""
    return _seed_mlp(_adam(1e-4), _adam_state)


def tiny_mlp_sgd() -> Callable:
    """As in corefw/benchmarks/training.py."""
    parameters = _mlp((2, 8, 1))
    inputs, targets = _normal(2, 4, 2), _normal(3, 4, 1)
    return _step_of(
        lambda p: jnp.square(_through(p, inputs) - targets).mean(), parameters, _sgd(1e-2, 0), _zeros(parameters)
    )


def digits_classifier_adam() -> Callable:
    """As in corefw/benchmarks/training.py."""
    parameters = _mlp((64, 128, 10))
    inputs, targets = _normal(2, 64, 64), _classes(3, 64)
    return _step_of(
        lambda p: _cross_entropy(_through(p, inputs), targets), parameters, _adam(1e-3), _adam_state(parameters)
    )


def _kernel(key: int, size: int, a: int, b: int) -> jax.Array:
    return _normal(key, size, size, a, b, scale=math.sqrt(2 / (size * size * b)))


def _convolved(x: jax.Array, kernel: jax.Array, stride: int = 1, padding: str = "SAME") -> jax.Array:
    """In the layout that JAX's libraries prefer: channels last."""
    return jax.lax.conv_general_dilated(
        x, kernel, (stride, stride), padding, dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


def mnist_cnn_adam() -> Callable:
    """As in corefw/benchmarks/training.py, channels last."""
    first, second = (
        {"weight": _kernel(i, 3, a, b), "bias": jnp.zeros(b)} for i, (a, b) in enumerate(((1, 32), (32, 64)))
    )
    parameters = {"first": first, "second": second, "head": _mlp((64 * 12 * 12, 128, 10))}
    images, targets = _normal(2, 64, 28, 28, 1), _classes(3, 64)

    def loss_of(p):
        x = images
        for layer in (p["first"], p["second"]):
            x = jax.nn.relu(_convolved(x, layer["weight"], padding="VALID") + layer["bias"])
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        return _cross_entropy(_through(p["head"], x.reshape(64, -1)), targets)

    return _step_of(loss_of, parameters, _adam(1e-3), _adam_state(parameters))


def _normalized(p: dict, x: jax.Array, running: dict) -> tuple[jax.Array, dict]:
    """A batch norm in training: its result, and its running statistics after."""
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    count = x.size // x.shape[-1]
    new = {
        "mean": 0.9 * running["mean"] + 0.1 * mean,
        "variance": 0.9 * running["variance"] + 0.1 * variance * count / (count - 1),
    }
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["scale"] + p["shift"], new


def resnet18_sgd() -> Callable:
    """As in corefw/benchmarks/training.py, channels last."""
    keys = iter(range(1000))
    parameters, running = [], []  # of each convolution with its norm, in the order in which they run

    def layer(size, a, b):
        parameters.append({"kernel": _kernel(next(keys), size, a, b), "scale": jnp.ones(b), "shift": jnp.zeros(b)})
        running.append({"mean": jnp.zeros(b), "variance": jnp.ones(b)})

    blocks = [(a, b, 2 if a != b else 1) for a, b in pairwise((64, 64, 64, 128, 128, 256, 256, 512, 512))]
    layer(3, 3, 64)
    for a, b, _ in blocks:
        layer(3, a, b)
        layer(3, b, b)
        if a != b:
            layer(1, a, b)
    head = _linear(next(keys), 512, 10)
    images, targets = _normal(2000, 16, 32, 32, 3), _classes(2001, 16)

    def loss_of(p, running):
        layers, new = iter(zip(p["layers"], running, strict=True)), []

        def convolved(x, stride=1):
            layer, before = next(layers)
            x, after = _normalized(layer, _convolved(x, layer["kernel"], stride), before)
            new.append(after)
            return x

        x = jax.nn.relu(convolved(images))
        for a, b, stride in blocks:
            out = convolved(jax.nn.relu(convolved(x, stride)))
            x = jax.nn.relu(out + (convolved(x, stride) if a != b else x))
        return _cross_entropy(_apply(p["head"], x.mean((1, 2))), targets), new

    def step(parameters, state, running):
        (loss, running), gradients = jax.value_and_grad(loss_of, has_aux=True)(parameters, running)
        return (loss, *_sgd(0.01, 0.9)(parameters, gradients, state), running)

    compiled = jax.jit(step, donate_argnums=(0, 1, 2))
    together = {"layers": parameters, "head": head}
    held = [together, _zeros(together), running]

    def run():
        loss, *held[:] = compiled(*held)
        return loss.block_until_ready()

    return run


def lstm_adam() -> Callable:
    """As in corefw/benchmarks/training.py: the products with the inputs of all steps at once, then a scan."""
    width, length, batch = 128, 64, 16
    scale = 1 / math.sqrt(width)
    parameters = [
        {
            "inputs": {"weight": _normal(2 * i, width, 4 * width, scale=scale), "bias": jnp.zeros(4 * width)},
            "hidden": {"weight": _normal(2 * i + 1, width, 4 * width, scale=scale), "bias": jnp.zeros(4 * width)},
        }
        for i in range(2)
    ]
    inputs, targets = (_normal(i, length, batch, width) for i in (10, 11))

    def layer(p, x):
        def step(carry, projected):
            hidden, cell = carry
            i, f, g, o = jnp.split(projected + _apply(p["hidden"], hidden), 4, -1)
            cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
            return (hidden, cell), hidden

        zeros = jnp.zeros((batch, width))
        return jax.lax.scan(step, (zeros, zeros), _apply(p["inputs"], x))[1]

    def loss_of(p):
        return jnp.square(layer(p[1], layer(p[0], inputs)) - targets).mean()

    return _step_of(loss_of, parameters, _adam(1e-3), _adam_state(parameters))


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
    text = _classes(7, batch, length + 1, classes=words)

    def normed(p, x):
        mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
        return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["weight"] + p["bias"]

    def attended(p, x):
        q, k, v = (
            t.reshape(batch, length, heads, -1).transpose(0, 2, 1, 3) for t in jnp.split(_apply(p["qkv"], x), 3, -1)
        )
        scores = q @ k.swapaxes(2, 3) / math.sqrt(width // heads)
        weights = jax.nn.softmax(jnp.where(jnp.tri(length, dtype=bool), scores, -jnp.inf))
        return _apply(p["out"], (weights @ v).transpose(0, 2, 1, 3).reshape(batch, length, width))

    def loss_of(p):
        x = p["words"][text[:, :-1]] + p["positions"]
        for b in p["blocks"]:
            x = x + attended(b, normed(b["first"], x))
            x = x + _apply(b["down"], jax.nn.gelu(_apply(b["up"], normed(b["second"], x)), approximate=False))
        return _cross_entropy(_apply(p["head"], normed(p["norm"], x)), text[:, 1:])

    return _step_of(loss_of, parameters, _adam(1e-3, 0.01), _adam_state(parameters))


def chain(size: int) -> Callable:
    """The chain of elementwise ops of benchmarks/test_compile.py."""
    x, a, b, c = (_normal(i, size) for i in range(4))
    compiled = jax.jit(lambda x, a, b, c: (jax.nn.gelu(x * a + b, approximate=False) * c).sum())
    return lambda: compiled(x, a, b, c).block_until_ready()


PROGRAMS = {
    program.__name__: program
    for program in (
        *(seed_mlp_sgd, seed_mlp_adam, tiny_mlp_sgd, digits_classifier_adam),
        *(mnist_cnn_adam, resnet18_sgd, lstm_adam, gpt_adamw),
    )
}
