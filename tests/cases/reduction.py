"""Reductions."""

from math import inf

import numpy as np

from corefw.testing import Case

SHAPES = (((2, 3),), ((),), ((4, 1, 3),), ((0, 3),), ((5,),))
FULL = (((2, 3),), ((),), ((4, 1, 3),), ((5,),))  # nothing empty
DIMS = (
    {},
    {"keepdim": True},
    {"dim": 0},
    {"dim": -1, "keepdim": True},
    {"dim": (0, -1)},
    {"dim": (-1, 0), "keepdim": True},
    {"dim": 1},
    {"dim": ()},
)
DIM = ({"dim": 0}, {"dim": -1, "keepdim": True}, {"dim": 1})


def fits(shape, dim=None, **statics):
    """Whether the dimensions exist, once each."""
    ndim = len(shape) or 1
    dims = (dim,) if isinstance(dim, int) else dim or ()
    return len({d % ndim for d in dims}) == len(dims) and all(-ndim <= d < ndim for d in dims)


def over(function):
    """A NumPy reduction with PyTorch's arguments."""

    def reference(a, dim=None, keepdim=False, **statics):
        axis = None if dim is None or dim == () or not a.ndim else dim
        return function(a, axis=axis, keepdims=keepdim, **statics)

    return reference


def line_by_line(function):
    """A reference for one line, applied along `dim`; its results are tuples of numbers."""

    def reference(a, *arguments, dim=-1, keepdim=False):
        if not a.ndim:
            return tuple(np.asarray(part) for part in function(a.reshape(1), *arguments))
        dim %= a.ndim
        moved = np.moveaxis(a, dim, -1)
        results = [function(line, *arguments) for line in moved.reshape(-1, moved.shape[-1])]
        return tuple(
            np.expand_dims(np.array(part).reshape(moved.shape[:-1]), dim)
            if keepdim
            else np.array(part).reshape(moved.shape[:-1])
            for part in zip(*results)
        )

    return reference


def along(function):
    """As `line_by_line`, without positional arguments but the input."""
    reference = line_by_line(function)
    return lambda a, dim=-1, keepdim=False: reference(a, dim=dim, keepdim=keepdim)


def _ranked(line):
    """Positions in ascending order, NaN last."""
    return sorted(range(len(line)), key=lambda i: (line[i] != line[i], line[i], i))


def _largest(line):
    i = next((i for i, v in enumerate(line) if v != v), None)
    i = max(range(len(line)), key=lambda i: (line[i], -i)) if i is None else i
    return line[i], i


def _smallest(line):
    i = next((i for i, v in enumerate(line) if v != v), None)
    i = min(range(len(line)), key=lambda i: (line[i], i)) if i is None else i
    return line[i], i


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


def _vector_norm(a, ord, dim=None, keepdim=False):
    axis = dim if a.ndim and dim != () else None
    modulus = np.abs(a)
    if ord == 0:
        return np.sum(modulus != 0, axis, keepdims=keepdim)
    if ord == inf:
        return np.max(modulus, axis, keepdims=keepdim)
    if ord == -inf:
        return np.min(modulus, axis, keepdims=keepdim)
    return np.sum(modulus**ord, axis, keepdims=keepdim) ** (1 / ord)


def _norm(a, p="fro", dim=None, keepdim=False):
    return _vector_norm(a, 2 if p in (None, "fro") else p, dim, keepdim)


def _spread(a, dim, keepdim, shape):
    for d in () if keepdim or dim is None else dim:
        a = np.expand_dims(a, d)
    return np.broadcast_to(a, shape)


def _spread_samples(rng, dtype):
    def draw(*shape):
        return np.asarray(rng.uniform(-3, 3, shape)).astype(dtype)

    return [
        ([draw(2)], {"dim": (1,), "keepdim": False, "shape": (2, 3)}),
        ([draw(2, 1)], {"dim": (1,), "keepdim": True, "shape": (2, 3)}),
        ([draw(3)], {"dim": (0, 2), "keepdim": False, "shape": (2, 3, 4)}),
        ([draw()], {"dim": None, "keepdim": False, "shape": (2, 3)}),
    ]


def _with_zeros(rng, dtype):
    """Lines with no, one and two zeros, and long ones."""
    samples = []
    for zeros in ((), (1,), (0, 3), (0, 1, 2, 3, 4)):
        line = np.asarray(rng.uniform(0.5, 2, (2, 5))).astype(dtype)
        line[:, list(zeros)] = 0
        samples += [([line], {"dim": 1}), ([line], {}), ([line], {"dim": 0, "keepdim": True})]
    for shape in ((), (1, 3), (0, 3), (3, 0), (7,)):
        samples += [([np.asarray(rng.uniform(-2, 2, shape)).astype(dtype)], {"dim": 0})]
    return samples


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
_ORDERS = tuple({"ord": p} for p in (2, 1, 3, 1.5, 0.5, -1, 0, inf, -inf))
_ORDERS += ({"ord": 2, "dim": 0}, {"ord": 3, "dim": (0, -1), "keepdim": True}, {"ord": inf, "dim": -1})


def _several(shape, **statics):
    return fits(shape, **statics) and len(shape) != 0 and shape[0] > 1 and shape[-1] > 1


CASES = (
    Case("sum", over(np.sum), SHAPES, DIMS, valid=fits),
    Case("mean", over(np.mean), SHAPES, DIMS, valid=fits),
    Case("nansum", over(np.nansum), SHAPES, DIMS, valid=fits),
    Case("nanmean", over(np.nanmean), FULL, DIMS, valid=fits),
    Case("prod", over(np.prod), make=_with_zeros),
    Case("spread", _spread, make=_spread_samples, torch=None),
    Case("amax", over(np.max), FULL, DIMS, valid=fits),
    Case("amin", over(np.min), FULL, DIMS, valid=fits),
    Case(
        "aminmax",
        lambda a, dim=None, keepdim=False: (over(np.min)(a, dim, keepdim), over(np.max)(a, dim, keepdim)),
        FULL,
        ({}, *DIM),
        valid=fits,
    ),
    Case("max_dim", along(_largest), FULL, DIM, valid=fits, torch="max"),
    Case("min_dim", along(_smallest), FULL, DIM, valid=fits, torch="min"),
    Case("max", np.max, FULL),
    Case("min", np.min, FULL),
    Case("argmax", over(np.argmax), FULL, ({}, {"keepdim": True}, *DIM), valid=fits),
    Case("argmin", over(np.argmin), FULL, ({}, {"keepdim": True}, *DIM), valid=fits),
    Case("median_dim", along(_median), FULL, DIM, valid=fits, torch="median"),
    Case("nanmedian_dim", along(_nanmedian), FULL, DIM, valid=fits, torch="nanmedian"),
    Case("median", lambda a: _median(a.reshape(-1))[0], FULL),
    Case("nanmedian", lambda a: _nanmedian(a.reshape(-1))[0], FULL),
    Case("mode", along(_mode), (((2, 9),), ((),), ((3, 1, 4),), ((5,),)), ({}, *DIM), special=False, valid=fits),
    Case("kthvalue", _kth, make=_distinct),
    Case(
        "quantile",
        lambda a, q, **statics: over(np.quantile)(a, q=q, **statics),
        (((2, 5),), ((7,),)),
        ({"q": 0.3}, {"q": 0.5, "dim": 0, "keepdim": True}, {"q": 1.0, "dim": -1}),
        rtol=1e-6,
    ),
    Case(
        "nanquantile",
        lambda a, q, **statics: over(np.nanquantile)(a, q=q, **statics),
        (((2, 5),), ((7,),)),
        ({"q": 0.3}, {"q": 0.5, "dim": 0, "keepdim": True}, {"q": 1.0, "dim": -1}),
        special=False,
        rtol=1e-6,
    ),
    Case("all", over(np.all), SHAPES, DIMS[:-1], domain=(0, 2), valid=fits),
    Case("any", over(np.any), SHAPES, DIMS[:-1], domain=(0, 1), valid=fits),
    Case(
        "count_nonzero",
        lambda a, dim=None: np.sum(a != 0, dim if a.ndim else None),
        SHAPES,
        ({}, {"dim": 0}, {"dim": (0, -1)}),
        domain=(0, 2),
        valid=fits,
    ),
    Case(
        "variance",
        lambda a, dim, keepdim, correction: _variance(a, dim, keepdim, correction),
        FULL,
        ({"dim": (0,), "keepdim": False, "correction": 0}, {"dim": None, "keepdim": True, "correction": 1}),
        valid=_several,
        torch=None,
    ),
    Case(
        "deviation",
        lambda a, dim, keepdim, correction: np.sqrt(_variance(a, dim, keepdim, correction)),
        FULL,
        ({"dim": (0,), "keepdim": False, "correction": 0}, {"dim": None, "keepdim": True, "correction": 1}),
        valid=_several,
        torch=None,
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
    Case(
        "logsumexp",
        over(lambda a, axis, keepdims: np.log(np.sum(np.exp(a), axis, keepdims=keepdims))),
        SHAPES,
        DIMS[2:-1],
        valid=fits,
    ),
    Case("vector_norm", _vector_norm, FULL, _ORDERS, valid=fits, torch="linalg.vector_norm"),
    Case(
        "norm",
        _norm,
        FULL,
        ({}, {"p": 1}, {"p": inf, "dim": 0}, {"p": None, "dim": (0, -1), "keepdim": True}),
        valid=fits,
    ),
    Case("dist", lambda a, b, p=2: _vector_norm(a - b, p), (((2, 3), (3,)), ((), ())), ({}, {"p": 1}, {"p": 3})),
    Case("trace", np.trace, (((2, 3),), ((3, 3),), ((0, 3),)), special=False),
    Case(
        "sum_to_size",
        lambda a, size: a.sum(0, keepdims=True).reshape(size),
        (((2, 3),),),
        ({"size": (1, 3)}, {"size": (3,)}),
        special=False,
        torch=None,
    ),
)
