"""Order, distinct values and membership."""

from bisect import bisect_left, bisect_right

import numpy as np

from corefw.testing.case import Case

SHAPES = (((2, 3),), ((),), ((3, 1, 4),), ((0, 3),), ((7,),))
FLOATS_AND_INTS = ("float32", "float64", "int64", "uint8", "float16", "bfloat16")


def fits(shape, dim=-1, **attributes):
    """Whether the dimension exists."""
    return -max(len(shape), 1) <= dim < max(len(shape), 1)


def _order(line, descending):
    """Positions in stable order, NaN as the largest."""
    found = list(range(len(line)))
    found.sort(key=lambda i: (line[i] != line[i], line[i] if line[i] == line[i] else 0), reverse=descending)
    return found  # Python's sort keeps the order of equal elements when reversed, too


def _sort(a, dim=-1, descending=False):
    if not a.ndim:
        return a, np.zeros((), np.int64)
    if not a.size:
        return a, np.zeros(a.shape, np.int64)
    positions = np.apply_along_axis(lambda line: np.array(_order(list(line), descending)), dim, a)
    return np.take_along_axis(a, positions, dim), positions


def _topk(a, k, dim=-1, largest=True):
    values, positions = _sort(a, dim, largest)
    return (values[..., :k], positions[..., :k]) if a.ndim and k else (values, positions)


def _distinct(rng, dtype):
    """Lines without equal elements, so that the positions are determined."""
    lines = np.stack([rng.permutation(9) for _ in range(3)]).astype(dtype)
    return [
        ([lines], {"k": 3}),
        ([lines], {"k": 4, "dim": -1, "largest": False}),
        ([lines], {"k": 9}),
        ([lines[0]], {"k": 1}),
        ([np.asarray(2).astype(dtype)], {"k": 1}),
    ]


def _unique(a, return_inverse=False, return_counts=False, dim=None):
    values = sorted(set(a.reshape(-1).tolist())) if dim is None else sorted({tuple(s) for s in np.moveaxis(a, dim, 0)})
    of = a.reshape(-1).tolist() if dim is None else [tuple(s) for s in np.moveaxis(a, dim, 0)]
    output = np.array(values) if dim is None else np.moveaxis(np.array(values), 0, dim)
    inverse = np.array([values.index(v) for v in of])
    found = [output]
    if return_inverse:
        found.append(inverse.reshape(a.shape) if dim is None else inverse)
    if return_counts:
        found.append(np.array([of.count(v) for v in values]))
    return found


def _unique_consecutive(a, return_inverse=False, return_counts=False, dim=None):
    of = a.reshape(-1).tolist() if dim is None else [tuple(s) for s in np.moveaxis(a, dim, 0)]
    starts = [i for i, v in enumerate(of) if i == 0 or v != of[i - 1]]
    output = np.array([of[i] for i in starts])
    found = [output if dim is None else np.moveaxis(output, 0, dim)]
    inverse = np.array([sum(s <= i for s in starts) - 1 for i in range(len(of))])
    if return_inverse:
        found.append(inverse.reshape(a.shape) if dim is None else inverse)
    if return_counts:
        found.append(np.diff([*starts, len(of)]))
    return found


def _repeating(rng, dtype):
    """Few different elements, and slices that come again."""
    few = rng.integers(0, 3, (4, 5)).astype(dtype)
    return [
        ([few], {}),
        ([few], {"return_inverse": True, "return_counts": True}),
        ([few[:, :1].copy()], {"return_inverse": True, "return_counts": True, "dim": 0}),
        ([np.concatenate([few, few], 1)], {"return_inverse": True, "return_counts": True, "dim": 1}),
        ([few.reshape(-1)], {"return_counts": True}),
    ]


def _rows(rng, dtype):
    """Sorted rows with equal elements, and values below, within, above and equal to them."""
    row = np.sort(rng.integers(0, 20, 8)).astype(dtype)
    rows = np.sort(rng.integers(0, 20, (2, 3, 8)), -1).astype(dtype)
    values = rng.integers(0, 22, (2, 3, 5)).astype(dtype)
    return [
        ([row, values], {}),
        ([row, values], {"right": True}),
        ([rows, values], {}),
        ([rows, values], {"right": True}),
        ([row[:0], values], {}),
    ]


def _search(sequence, values, right=False):
    bisect = bisect_right if right else bisect_left
    rows = np.broadcast_to(sequence, (*values.shape[:-1], sequence.shape[-1]))
    found = np.zeros(values.shape, np.int64)
    for at in np.ndindex(values.shape):
        found[at] = bisect(list(rows[at[:-1]]), values[at])
    return found


def _private(make):
    """Samples of a private op, all of whose attributes are given."""
    return lambda rng, dtype: [(tensors, {"right": False, **attributes}) for tensors, attributes in make(rng, dtype)]


def _buckets(rng, dtype):
    return [([values, row], attributes) for (row, values), attributes in _rows(rng, dtype) if row.ndim == 1]


def _members(rng, dtype):
    def few(*shape):
        found = rng.integers(0, 9, shape)
        return (found % 3 + found // 3 * 1j if dtype.kind == "c" else found).astype(dtype)

    return [
        ([few(2, 3), few(4)], {}),
        ([few(2, 3), few(2, 2)], {"invert": True}),
        ([np.asarray(3).astype(dtype), few(4)], {}),
        ([few(4), 3], {}),
    ]


def _isin(a, b, invert=False):
    return np.vectorize(lambda v: (v in np.reshape(b, -1)) != invert, otypes=[bool])(a)


CASES = (
    Case(
        "sort",
        _sort,
        SHAPES,
        ({}, {"dim": 0}, {"dim": -1, "descending": True}, {"dim": 1, "descending": True}),
        valid=fits,
    ),
    Case(
        "argsort",
        lambda *arguments, **attributes: _sort(*arguments, **attributes)[1],
        SHAPES,
        ({}, {"dim": 0}),
        dtypes=FLOATS_AND_INTS,
        valid=fits,
    ),
    Case("msort", lambda a: _sort(a, 0)[0], SHAPES, dtypes=FLOATS_AND_INTS),
    Case("topk", _topk, make=_distinct),
    Case("unique", _unique, make=_repeating, dtypes=(*FLOATS_AND_INTS, "bool"), gradient=False, meta=False),
    Case(
        "unique_consecutive",
        _unique_consecutive,
        make=_repeating,
        dtypes=(*FLOATS_AND_INTS, "bool"),
        gradient=False,
        meta=False,
    ),
    Case("search", _search, make=_private(_rows), torch="searchsorted"),
    Case("searchsorted", _search, make=_rows, dtypes=FLOATS_AND_INTS),
    Case("bucketize", lambda a, row, right=False: _search(row, a, right), make=_buckets, dtypes=FLOATS_AND_INTS),
    Case("isin", _isin, make=_members, dtypes=(*FLOATS_AND_INTS, "complex64")),
)
