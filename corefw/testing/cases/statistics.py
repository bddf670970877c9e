"""Statistics."""

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.reduction import DIM, FULL, along, fits, line_by_line, over

COVARIANT = ("float32", "float64", "complex128", "int64")


def _ranked(line):
    """Positions in ascending order, NaN last."""
    return sorted(range(len(line)), key=lambda i: (line[i] != line[i], line[i], i))


def _median(line):
    i = next((i for i, v in enumerate(line) if v != v), None)
    i = _ranked(line)[(len(line) - 1) // 2] if i is None else i
    return line[i], i


def _nanmedian(line):
    counted = sum(v == v for v in line)
    i = _ranked(line)[max(counted - 1, 0) // 2]
    return line[i], i


def _mode(line):
    values = list(line)
    found = min(values, key=lambda v: (-values.count(v), v))
    return found, max(i for i, v in enumerate(values) if v == found)


def _kth(a, k, dim=-1, keepdim=False):
    def pick(line):
        i = _ranked(line)[k - 1]
        return line[i], i

    return line_by_line(pick)(a, dim=dim, keepdim=keepdim)


def _variance(a, dim=None, keepdim=False, correction=1):
    axis = dim if a.ndim and dim != () else None
    n = a.size if axis is None else np.prod(np.take(a.shape, axis))
    squares = np.abs(a - a.mean(axis, keepdims=True)) ** 2
    return squares.sum(axis, keepdims=keepdim) / max(n - correction, 0)


def _moments(function):
    def reference(a, dim=None, unbiased=None, keepdim=False, correction=None):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        correction = (1 if unbiased in (None, True) else 0) if correction is None else correction
        return function(a, dim, keepdim, correction)

    return reference


def _distinct(rng, dtype):
    """Lines without equal elements, so that the positions are determined."""
    lines = np.stack([rng.permutation(9) for _ in range(3)]).astype(dtype)
    return [
        ([lines], {"k": 3}),
        ([lines.T.copy()], {"k": 9, "dim": 0, "keepdim": True}),
        ([np.asarray(2).astype(dtype)], {"k": 1}),
    ]


_MOMENTS = (
    {},
    {"dim": 0},
    {"dim": (0, -1), "unbiased": False, "keepdim": True},
    {"dim": -1, "correction": 0.5},
)


def _several(shape, **attributes):
    return fits(shape, **attributes) and len(shape) != 0 and shape[0] > 1 and shape[-1] > 1


def _weighted(rng, dtype):
    rows = rng.uniform(-1, 1, (3, 5)) + (1j * rng.uniform(-1, 1, (3, 5)) if dtype.kind == "c" else 0)
    rows = (rows * 5).astype(dtype)
    real = np.zeros(0, dtype).real.dtype if dtype.kind in "fc" else np.float64
    counts, importance = rng.integers(1, 4, 5), rng.uniform(0.5, 1, 5).astype(real)
    return [
        ([rows], {}),
        ([rows[0]], {"correction": 0}),
        ([rows], {"fweights": counts}),
        ([rows], {"aweights": importance}),
        ([rows], {"fweights": counts, "aweights": importance, "correction": 2}),
    ]


def _cov(a, correction=1, fweights=None, aweights=None):
    return np.cov(a, ddof=correction, fweights=fweights, aweights=aweights)


CASES = (
    Case("cov", _cov, make=_weighted, dtypes=COVARIANT, special=False),
    Case("corrcoef", np.corrcoef, (((3, 6),), ((6,),)), dtypes=COVARIANT, special=False),
    Case("median_dim", along(_median), FULL, DIM, valid=fits, torch="median"),
    Case("nanmedian_dim", along(_nanmedian), FULL, DIM, valid=fits, torch="nanmedian"),
    Case("median", lambda a: _median(a.reshape(-1))[0], FULL),
    Case("nanmedian", lambda a: _nanmedian(a.reshape(-1))[0], FULL),
    Case("mode", along(_mode), (((2, 9),), ((),), ((3, 1, 4),), ((5,),)), ({}, *DIM), special=False, valid=fits),
    Case("kthvalue", _kth, make=_distinct),
    Case(
        "quantile",
        lambda a, q, **attributes: over(np.quantile)(a, q=q, **attributes),
        (((2, 5),), ((7,),)),
        ({"q": 0.3}, {"q": 0.5, "dim": 0, "keepdim": True}, {"q": 1.0, "dim": -1}),
        rtol=1e-6,
    ),
    Case(
        "nanquantile",
        lambda a, q, **attributes: over(np.nanquantile)(a, q=q, **attributes),
        (((2, 5),), ((7,),)),
        ({"q": 0.3}, {"q": 0.5, "dim": 0, "keepdim": True}, {"q": 1.0, "dim": -1}),
        special=False,
        rtol=1e-6,
    ),
    Case(
        "variance",
        lambda a, dim, keepdim, correction: _variance(a, dim, keepdim, correction),
        FULL,
        ({"dim": (0,), "keepdim": False, "correction": 0}, {"dim": None, "keepdim": True, "correction": 1}),
        valid=_several,
    ),
    Case(
        "deviation",
        lambda a, dim, keepdim, correction: np.sqrt(_variance(a, dim, keepdim, correction)),
        FULL,
        ({"dim": (0,), "keepdim": False, "correction": 0}, {"dim": None, "keepdim": True, "correction": 1}),
        valid=_several,
    ),
    Case("var", _moments(_variance), FULL, _MOMENTS, valid=_several),
    Case("std", _moments(lambda *arguments: np.sqrt(_variance(*arguments))), FULL, _MOMENTS, valid=_several),
    Case(
        "var_mean",
        _moments(
            lambda a, dim, keepdim, correction: (_variance(a, dim, keepdim, correction), over(np.mean)(a, dim, keepdim))
        ),
        FULL,
        _MOMENTS,
        valid=_several,
    ),
    Case(
        "std_mean",
        _moments(
            lambda a, dim, keepdim, correction: (
                np.sqrt(_variance(a, dim, keepdim, correction)),
                over(np.mean)(a, dim, keepdim),
            )
        ),
        FULL,
        _MOMENTS,
        valid=_several,
    ),
)
