"""Scans along one dimension."""

import numpy as np

from corefw.testing.case import Case, uniform

SHAPES = (((2, 3),), ((),), ((3, 1, 4),), ((0, 3),), ((7,),))
DIMS = ({"dim": 0}, {"dim": -1}, {"dim": 1})


def fits(shape, dim=-1, **attributes):
    """Whether the dimension exists."""
    return -max(len(shape), 1) <= dim < max(len(shape), 1)


def over(function):
    """A NumPy scan with PyTorch's arguments."""
    return lambda a, dim: function(a, axis=dim) if a.ndim else function(a.reshape(1)).reshape(())


def _logcumsumexp(a, axis=0):
    return np.log(np.cumsum(np.exp(a), axis))


def _extremes(better):
    def line(values):
        best = 0
        for i, value in enumerate(values):
            if value != value or (values[best] == values[best] and better(value, values[best])):
                best = i
            yield best

    def positions(a, dim):
        if not a.ndim or not a.size:
            return np.zeros(a.shape, np.int64)
        return np.apply_along_axis(lambda values: np.array(list(line(values))), dim, a)

    def reference(a, dim):
        found = positions(a, dim)
        return np.take_along_axis(a, found, dim) if a.ndim else a, found

    return reference


def _products(rng, dtype):
    """Lines with no, one and several zeros, and of several lengths."""
    samples = [([uniform(rng, -2, 2, shape, dtype)], {"dim": 0}) for shape in ((), (1, 3), (0, 3), (8,))]
    for zeros in ((), (1,), (0, 3), (0, 1, 2, 3, 4)):
        line = np.asarray(rng.uniform(0.5, 2, (2, 5))).astype(dtype)
        line[:, list(zeros)] = 0
        samples += [([line], {"dim": 1}), ([line.T.copy()], {"dim": -2})]
    return samples


def _recurrence(factor, input, dim):
    result = np.zeros_like(np.moveaxis(input, dim, 0))
    for i, (f, x) in enumerate(zip(np.moveaxis(factor, dim, 0), np.moveaxis(input, dim, 0))):
        result[i] = x + (f * result[i - 1] if i else 0)
    return np.moveaxis(result, 0, dim)


CASES = (
    Case("cumsum", over(np.cumsum), SHAPES, DIMS, valid=fits),
    Case("cumprod", over(np.cumprod), make=_products),
    Case("logcumsumexp", over(_logcumsumexp), SHAPES, DIMS, special=False, valid=fits),
    Case(
        "linear_recurrence",
        _recurrence,
        tuple((s, s) for s in ((5,), (1, 3), (4, 2), (0, 2))),
        ({"dim": 0},),
        dtypes=("float32", "float64", "complex128", "int64"),
        special=False,
    ),
    Case("cummax", _extremes(lambda new, best: new >= best), SHAPES, DIMS, valid=fits),
    Case("cummin", _extremes(lambda new, best: new <= best), SHAPES, DIMS, valid=fits),
)
