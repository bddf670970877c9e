"""What the tests of optimizers share: the papers' formulas, gradients, a look at states."""

import numpy as np


def gradients(rng, shapes):
    return [[rng.standard_normal(shape) for shape in shapes] for _ in range(10)]


def states_in(saved):
    """The names of each parameter's states."""
    return {number: {n for n, value in state.items() if value is not None} for number, state in saved["state"].items()}


# -- a step in float64, from parameter, gradient and state to the parameter ------------------------------------------
def sgd(p, g, s, lr, momentum=0, dampening=0, nesterov=False):
    if not momentum:
        return p - lr * g
    s["b"] = momentum * s["b"] + (1 - dampening) * g if "b" in s else g
    return p - lr * (g + momentum * s["b"] if nesterov else s["b"])


def moments(g, s, betas):
    """Step number, and the running means of the gradient and its square."""
    s["t"] = s.get("t", 0) + 1
    s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    s["v"] = betas[1] * s.get("v", 0) + (1 - betas[1]) * g * g
    return s["t"], s["m"], s["v"]


def adam(p, g, s, lr, betas=(0.9, 0.999), eps=1e-8, amsgrad=False):
    t, m, v = moments(g, s, betas)
    s["most"] = np.maximum(s.get("most", 0), v)
    used = s["most"] if amsgrad else v
    return p - lr / (1 - betas[0] ** t) * m / (np.sqrt(used) / np.sqrt(1 - betas[1] ** t) + eps)


def adadelta(p, g, s, lr, rho=0.9, eps=1e-6):
    s["v"] = rho * s.get("v", 0) + (1 - rho) * g * g
    delta = np.sqrt(s.get("u", 0) + eps) / np.sqrt(s["v"] + eps) * g
    s["u"] = rho * s.get("u", 0) + (1 - rho) * delta * delta
    return p - lr * delta


def adagrad(p, g, s, lr, lr_decay=0, initial_accumulator_value=0, eps=1e-10):
    t = s["t"] = s.get("t", 0) + 1
    s["sum"] = s.get("sum", initial_accumulator_value) + g * g
    return p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s["sum"]) + eps)


def adamax(p, g, s, lr, betas=(0.9, 0.999), eps=1e-8):
    t, m, _ = moments(g, s, betas)
    s["u"] = np.maximum(betas[1] * s.get("u", 0), np.abs(g) + eps)
    return p - lr / (1 - betas[0] ** t) * m / s["u"]


def nadam(p, g, s, lr, betas=(0.9, 0.999), eps=1e-8, momentum_decay=4e-3):
    t, m, v = moments(g, s, betas)
    mu, following = (betas[0] * (1 - 0.5 * 0.96 ** (i * momentum_decay)) for i in (t, t + 1))
    product = s["product"] = s.get("product", 1) * mu
    mean = following * m / (1 - product * following) + (1 - mu) * g / (1 - product)
    return p - lr * mean / (np.sqrt(v / (1 - betas[1] ** t)) + eps)


def radam(p, g, s, lr, betas=(0.9, 0.999), eps=1e-8):
    t, m, v = moments(g, s, betas)
    m = m / (1 - betas[0] ** t)
    longest = 2 / (1 - betas[1]) - 1
    r = longest - 2 * t * betas[1] ** t / (1 - betas[1] ** t)
    if r <= 5:
        return p - lr * m
    factor = np.sqrt((r - 4) * (r - 2) * longest / ((longest - 4) * (longest - 2) * r))
    return p - lr * m * factor * np.sqrt(1 - betas[1] ** t) / (np.sqrt(v) + eps)


def rmsprop(p, g, s, lr, alpha=0.99, eps=1e-8, momentum=0, centered=False):
    _, m, v = moments(g, s, (alpha, alpha))
    s["b"] = momentum * s.get("b", 0) + g / (np.sqrt(v - m * m if centered else v) + eps)
    return p - lr * s["b"]


def rprop(p, g, s, lr, etas=(0.5, 1.2), step_sizes=(1e-6, 50)):
    agreement = g * s.get("before", 0)
    factor = np.where(agreement > 0, etas[1], np.where(agreement < 0, etas[0], 1))
    s["size"] = np.clip(s.get("size", lr) * factor, *step_sizes)
    s["before"] = np.where(agreement < 0, 0, g)
    return p - np.sign(s["before"]) * s["size"]


def asgd(p, g, s, lr, lambd=1e-4, alpha=0.75, t0=1e6):
    s["t"] = s.get("t", -1) + 1
    eta = lr / (1 + lambd * lr * s["t"]) ** alpha
    return p * (1 - lambd * eta) - eta * g


FORMULAS = {
    "SGD": sgd,
    "Adam": adam,
    "AdamW": adam,
    "Adadelta": adadelta,
    "Adagrad": adagrad,
    "Adamax": adamax,
    "NAdam": nadam,
    "RAdam": radam,
    "RMSprop": rmsprop,
    "Rprop": rprop,
    "ASGD": asgd,
}
