"""Differences, derivatives and integrals of sampled values."""

import numpy as np

from corefw.testing.case import Case


def _diff(a, n=1, dim=-1, prepend=None, append=None):
    ends = {name: part for name, part in (("prepend", prepend), ("append", append)) if part is not None}
    return np.diff(a, n, dim, **ends)


def _diff_samples(rng, dtype):
    def draw(*shape):
        return np.asarray(rng.uniform(-3, 3, shape)).astype(dtype)

    return [
        ([draw(2, 5)], {}),
        ([draw(2, 5)], {"n": 2, "dim": 1}),
        ([draw(2, 5)], {"n": 3, "dim": 0}),
        ([draw(2, 5)], {"n": 0}),
        ([draw(0, 5)], {"dim": 0}),
        ([draw(2, 5)], {"prepend": draw(2, 1), "append": draw(2, 2)}),
    ]


def _trapezoids(rng, dtype):
    def draw(*shape):
        return np.asarray(rng.uniform(-3, 3, shape)).astype(dtype)

    return [
        ([draw(5)], {}),
        ([draw(2, 5)], {"dx": 0.5}),
        ([draw(3, 5), draw(5)], {}),
        ([draw(3, 5), draw(3)], {"dim": 0}),
        ([draw(3, 5), draw(3, 5)], {"dim": 0}),
    ]


def _running_trapezoid(y, x=None, *, dx=1.0, dim=-1):
    size = y.shape[dim]
    first = [np.take(y, range(n), dim) for n in range(2, size + 1)]
    points = [None if x is None else x[:n] if x.ndim == 1 else np.take(x, range(n), dim) for n in range(2, size + 1)]
    return np.stack([np.trapezoid(part, at, dx, dim) for part, at in zip(first, points)], dim)


def _gradient(a, spacing=None, dim=None, edge_order=1):
    spacing = () if spacing is None else spacing if isinstance(spacing, (list, tuple)) else (spacing,)
    found = np.gradient(a * 1.0, *spacing, axis=dim, edge_order=edge_order)
    return found if isinstance(found, (list, tuple)) else (found,)


def _gradients(rng, dtype):
    def draw(*shape):
        return np.asarray(rng.uniform(-3, 3, shape)).astype(dtype)

    places = np.cumsum(rng.uniform(0.5, 1.5, 5)).astype(dtype)
    return [
        ([draw(5)], {}),
        ([draw(4, 5)], {"spacing": 0.5, "edge_order": 2}),
        ([draw(3, 5)], {"spacing": [places[:3], places], "edge_order": 2}),
        ([draw(3, 5)], {"spacing": [2.0, 0.5]}),
        ([draw(3, 5)], {"spacing": [places], "dim": -1}),
        ([draw(2, 3)], {"dim": (0,)}),
    ]


CASES = (
    Case("diff", _diff, make=_diff_samples),
    Case("trapezoid", lambda y, x=None, dx=1.0, dim=-1: np.trapezoid(y, x, dx, dim), make=_trapezoids),
    Case("cumulative_trapezoid", _running_trapezoid, make=_trapezoids),
    Case("gradient", _gradient, make=_gradients, dtypes=("float32", "float64", "complex128")),
)
