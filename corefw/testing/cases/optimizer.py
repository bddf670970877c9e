"""Rows of the optimizers' steps: each changes a list of parameters and their states."""

from collections.abc import Callable
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.dispatch.records import record
from corefw.testing.case import Case
from corefw.testing.samples import draw

SHAPES = ((5,), (3, 4), (), (0, 2), (70, 6), (1,))

# -- the papers' formulas: what becomes of one parameter p with gradient g and its states, in step t ------------------


def _descent(s, p, g):
    g = -g if s.maximize else g
    return g if getattr(s, "decoupled_weight_decay", False) else g + s.weight_decay * p


def _shrunk(s, p):
    return p * (1 - s.lr * s.weight_decay) if s.decoupled_weight_decay else p


def _mean(rate, mean, x):
    return rate * mean + (1 - rate) * x


def _squares(rate, square, x):
    """The mean of squares, of the real and the imaginary parts apart."""
    parts = x.real**2 + 1j * x.imag**2 if np.iscomplexobj(x) else x**2
    return _mean(rate, square, parts)


def _by_parts(formula, *arrays):
    """A formula of real numbers, for the real and the imaginary parts of complex ones."""
    if any(map(np.iscomplexobj, arrays)):
        return formula(*(a.real for a in arrays)) + 1j * formula(*(a.imag for a in arrays))
    return formula(*arrays)


def sgd(s, p, g, buffer=None):
    d = _descent(s, p, g)
    if buffer is None:
        return (p - s.lr * d,)
    buffer = d if s.first else s.momentum * buffer + (1 - s.dampening) * d
    return p - s.lr * (d + s.momentum * buffer if s.nesterov else buffer), buffer


def adam(s, t, p, g, mean, square, largest=None):
    d = _descent(s, p, g)
    mean, square = _mean(s.beta1, mean, d), _squares(s.beta2, square, d)
    largest = None if largest is None else _by_parts(np.maximum, largest, square)

    def step(m, v):
        return m / (1 - s.beta1**t) / (np.sqrt(v / (1 - s.beta2**t)) + s.eps)

    p = _shrunk(s, p) - s.lr * _by_parts(step, mean, square if largest is None else largest)
    return (p, mean, square) if largest is None else (p, mean, square, largest)


def adadelta(s, t, p, g, square, moved):
    d = _descent(s, p, g)
    square = _squares(s.rho, square, d)
    delta = _by_parts(lambda g, v, u: np.sqrt(u + s.eps) / np.sqrt(v + s.eps) * g, d, square, moved)
    return p - s.lr * delta, square, _squares(s.rho, moved, delta)


def adagrad(s, t, p, g, total):
    d = _descent(s, p, g)
    total = total + 2 * _squares(0.5, 0 * total, d)
    rate = s.lr / (1 + (t - 1) * s.lr_decay)
    return p - rate * _by_parts(lambda g, v: g / (np.sqrt(v) + s.eps), d, total), total


def adamax(s, t, p, g, mean, norm):
    d = _descent(s, p, g)
    mean = _mean(s.beta1, mean, d)
    norm = _by_parts(lambda u, g: np.maximum(s.beta2 * u, np.abs(g) + s.eps), norm, d)
    return p - s.lr / (1 - s.beta1**t) * _by_parts(np.divide, mean, norm), mean, norm


def nadam(s, product, t, p, g, mean, square):
    d = _descent(s, p, g)
    mean, square = _mean(s.beta1, mean, d), _squares(s.beta2, square, d)
    mu, following = (s.beta1 * (1 - 0.5 * 0.96 ** (i * s.momentum_decay)) for i in (t, t + 1))
    product = product * mu
    looked_ahead = following / (1 - product * following) * mean + (1 - mu) / (1 - product) * d
    step = _by_parts(lambda m, v: m / (np.sqrt(v / (1 - s.beta2**t)) + s.eps), looked_ahead, square)
    return _shrunk(s, p) - s.lr * step, mean, square


def radam(s, t, p, g, mean, square):
    d = _descent(s, p, g)
    mean, square = _mean(s.beta1, mean, d), _squares(s.beta2, square, d)
    step, longest = mean / (1 - s.beta1**t), 2 / (1 - s.beta2) - 1
    length = longest - 2 * t * s.beta2**t / (1 - s.beta2**t)
    if length > 5:
        factor = np.sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length))
        factor = factor * np.sqrt(1 - s.beta2**t)
        step = _by_parts(lambda m, v: factor * m / (np.sqrt(v) + s.eps), step, square)
    return _shrunk(s, p) - s.lr * step, mean, square


def rmsprop(s, t, p, g, square, *others):
    d = _descent(s, p, g)
    square, others = _squares(s.alpha, square, d), list(others)
    mean = None
    if s.centered:
        mean = others[0] = _mean(s.alpha, others[0], d)

    def step(g, v, m=0):
        return g / (np.sqrt(v - m * m) + s.eps)

    delta = _by_parts(step, d, square) if mean is None else _by_parts(step, d, square, mean)
    if s.momentum:
        delta = others[-1] = s.momentum * others[-1] + delta
    return p - s.lr * delta, square, *others


# -- rows -------------------------------------------------------------------------------------------------------------
#: by step its formula, and the numbers of some calls: those left out are zero
STEPS: dict[str, tuple[Callable, tuple[dict[str, Any], ...]]] = {
    "sgd_step": (
        sgd,
        (
            {"lr": 0.1, "weight_decay": 0.1, "maximize": True},
            {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01, "first": True},
            {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01},
            {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "nesterov": True},
        ),
    ),
    "adam_step": (
        adam,
        (
            {"lr": 0.05, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8},
            {"lr": 0.05, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3, "weight_decay": 0.1, "decoupled_weight_decay": True,
             "amsgrad": True, "maximize": True},
        ),
    ),
    "adadelta_step": (adadelta, ({"lr": 0.5, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.1, "maximize": True},)),
    "adagrad_step": (
        adagrad,
        ({"lr": 0.1, "lr_decay": 0.2, "eps": 1e-3, "weight_decay": 0.1, "maximize": True},),
    ),
    "adamax_step": (
        adamax,
        ({"lr": 0.05, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3, "weight_decay": 0.1, "maximize": True},),
    ),
    "nadam_step": (
        nadam,
        (
            {"lr": 0.05, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3, "weight_decay": 0.1, "momentum_decay": 0.05,
             "decoupled_weight_decay": True, "maximize": True},
        ),
    ),
    "radam_step": (
        radam,
        (
            {"lr": 0.05, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3, "weight_decay": 0.1, "maximize": True},
            {"lr": 0.05, "beta1": 0.8, "beta2": 0.2, "eps": 1e-3, "weight_decay": 0.1, "decoupled_weight_decay": True},
        ),
    ),
    "rmsprop_step": (
        rmsprop,
        (
            {"lr": 0.05, "alpha": 0.8, "eps": 1e-2, "momentum": 0.9, "weight_decay": 0.1, "maximize": True},
            {"lr": 0.05, "alpha": 0.8, "eps": 1e-2, "weight_decay": 0.1, "centered": True, "maximize": True},
            {"lr": 0.05, "alpha": 0.8, "eps": 1e-2, "momentum": 0.9, "weight_decay": 0.1, "centered": True},
        ),
    ),
}  # fmt: skip


def arguments(name: str, numbers: dict[str, Any], rng: np.random.Generator, dtype: np.dtype, shapes=SHAPES) -> list:
    """The arguments of a step: mean squares lie above the squared means, some parameters were stepped more often."""
    spec = record(name)
    zeros = {"double": 0.0, "bool": False}
    given = {key: numbers.get(key, zeros[kind]) for key, kind in (spec.rates | spec.numbers).items()}
    element, ranges = dtypes.of_numpy(dtype), {"params": (-2, 2), "grads": (-2, 2)}
    lists: dict[str, list] = {}
    for key in spec.arrays:
        low, high = ranges.get(key, (2, 3) if "sq" in key else (0.1, 0.4))
        absent = key in spec.where and not given[spec.where[key]]
        lists[key] = [] if absent else [draw(rng, shape, element, low, high) for shape in shapes]
    for key in spec.counts:
        first, others = (7, 2) if key == "steps" else (0.5, 0.9)
        lists[key] = [np.array(others if i else first, "f4") for i in range(len(shapes))]
    return list(spec.named(**lists, **given))


def stepped(name: str, formula: Callable) -> Callable:
    """What becomes of the arrays that a step changes, lists as in its signature."""
    spec = record(name)

    def reference(*given):
        s = spec.named(*given)
        counts = [[float(count) + (key == "steps") for count in getattr(s, key)] for key in spec.counts]
        columns = zip(*counts, *spec.present(s), strict=True)
        return [list(column) for column in zip(*(formula(s, *column) for column in columns), strict=True)]

    return reference


CASES = [
    Case(
        name,
        stepped(name, formula),
        make=lambda rng, dtype, name=name, calls=calls: [(arguments(name, c, rng, dtype), {}) for c in calls],
        rtol=1e-7 if name == "nadam_step" else 1e-10,  # which keeps the product of its decay rates in float32
    )
    for name, (formula, calls) in STEPS.items()
] + [
    Case(
        "scale_step",
        lambda tensors, factor: [tensor * factor for tensor in tensors],
        make=lambda rng, dtype: [
            ([[draw(rng, s, dtypes.of_numpy(dtype), -3, 3) for s in SHAPES], np.array(f, dtype)], {}) for f in (1, 0.25)
        ],
    )
]
