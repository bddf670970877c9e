"""How often values occur."""

import numpy as np

from corefw.testing.case import Case

REALS = ("float32", "float64")


def _bins(rng, dtype):
    return [([rng.integers(0, 6, 9).astype(dtype)], {}), ([rng.integers(0, 6, 9).astype(dtype)], {"minlength": 10})]


def _histc(a, bins=100, min=0, max=0):
    return np.histogram(a, bins, (min, max) if min != max else None)[0]


def _histogram(a, bins=100, range=None, weight=None, density=False):
    return np.histogram(a, bins, range, density, weight)


def _histogram_samples(rng, dtype):
    values, weights = rng.uniform(-1, 1, (3, 9)).astype(dtype), rng.uniform(0.5, 1, (3, 9)).astype(dtype)
    return [
        ([values, 4], {}),
        ([values, 5], {"range": (-0.5, 0.75), "weight": weights, "density": True}),
        ([np.array([1, 2, 2, 3, np.nan]).astype(dtype), np.array([0, 1, 2, 2.5]).astype(dtype)], {}),
    ]


def _grid(a, bins, range=None, weight=None, density=False):
    points = a.reshape(-1, a.shape[-1])
    pairs = None if range is None else np.reshape(range, (-1, 2))
    return np.histogramdd(points, bins, pairs, density, None if weight is None else weight.reshape(-1))


def _grid_samples(rng, dtype):
    points, weights = rng.uniform(-1, 1, (4, 5, 2)).astype(dtype), rng.uniform(0.5, 1, (4, 5)).astype(dtype)
    edges = [np.array([-1, -0.25, 1]).astype(dtype), np.array([-0.5, 0.5]).astype(dtype)]
    return [
        ([points, 3], {}),
        ([points, [2, 3]], {"range": [-0.5, 1.0, -1.0, 0.5], "density": True}),
        ([points, edges], {"weight": weights}),
    ]


CASES = (
    Case(
        "bincount",
        lambda a, minlength=0: np.bincount(a, minlength=minlength),
        make=_bins,
        dtypes=("int64", "uint8"),
        meta=False,
    ),
    Case(
        "histc",
        _histc,
        (((3, 9),),),
        ({"bins": 5}, {"bins": 4, "min": -1, "max": 2}),
        dtypes=("float32", "float64"),
        special=False,
        gradient=False,
        meta=False,
    ),
    Case("histogram", _histogram, make=_histogram_samples, dtypes=REALS, special=False, gradient=False, meta=False),
    Case(
        "histogramdd",
        _grid,
        make=_grid_samples,
        dtypes=REALS,
        special=False,
        gradient=False,
        meta=False,
    ),
)
