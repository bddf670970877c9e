"""Rows of the ops that gather and scatter along a dimension, and by positions in the flattened tensor."""

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.indexing import values

COMBINE = {
    "sum": sum,
    "prod": lambda v: np.prod(v, dtype=v[0].dtype),
    "amax": np.maximum.reduce,
    "amin": np.minimum.reduce,
}


def gather(x, dim, index):
    out = np.empty(index.shape, x.dtype)
    for at in np.ndindex(index.shape):
        where = list(at)
        if where:
            where[dim] = index[at]
        out[at] = x[tuple(where)]
    return out


def scatter(x, dim, index, src):
    out = x.copy()
    for at in np.ndindex(index.shape):
        where = list(at)
        if where:
            where[dim] = index[at]
        out[tuple(where)] = src[at] if isinstance(src, np.ndarray) else src
    return out


def scatter_reduce(x, dim, index, src, reduce, include_self=True):
    out = x.copy()
    arriving = {}
    for at in np.ndindex(index.shape):
        where = list(at)
        if where:
            where[dim] = index[at]
        arriving.setdefault(tuple(where), [x[tuple(where)]] if include_self else []).append(src[at])
    for where, several in arriving.items():
        if reduce == "sum":
            total = several[0]
            for value in several[1:]:
                total = total + value
            out[where] = total
        elif reduce == "mean":
            total = sum(several)
            out[where] = total // len(several) if x.dtype.kind in "iu" else total / len(several)
        else:
            out[where] = COMBINE[reduce](several)
    return out


def _along(dim, index, ndim):
    return (slice(None),) * dim + (index,) + (slice(None),) * (ndim - dim - 1) if ndim else ()


def index_add(x, dim, index, source, alpha=1):
    out = x.copy()
    for i, position in enumerate(index.reshape(-1)):
        part = source[_along(dim, i, source.ndim)]
        out[_along(dim, position, x.ndim)] += part if alpha == 1 else np.asarray(alpha).astype(x.dtype) * part
    return out


def index_copy(x, dim, index, source):
    out = x.copy()
    for i, position in enumerate(index.reshape(-1)):
        out[_along(dim, position, x.ndim)] = source[_along(dim, i, source.ndim)]
    return out


def index_fill(x, dim, index, value):
    out = x.copy()
    for position in index.reshape(-1):
        out[_along(dim, position, x.ndim)] = np.asarray(value).astype(x.dtype)
    return out


def index_reduce(x, dim, index, source, reduce, include_self=True):
    wide = np.broadcast_to(index.reshape([-1 if i == dim else 1 for i in range(x.ndim)]), source.shape)
    return scatter_reduce(x, dim, wide, source, reduce, include_self)


def take_along_dim(x, indices, dim=None):
    if dim is None:
        return x.reshape(-1)[indices.reshape(-1)]
    return np.take_along_axis(x, indices, dim)


def put(x, index, source, accumulate=False):
    out = x.copy()
    for position, value in zip(index.flat, source.flat):
        out.flat[position] = out.flat[position] + value if accumulate else value
    return out


def gather_samples(rng, dtype):
    x = values(rng, dtype, 2, 3, 4)
    return [
        ([x, 0, rng.integers(0, 2, (3, 3, 4))], {}),
        ([x, 1, rng.integers(0, 3, (1, 5, 2))], {}),
        ([x, 2, rng.integers(0, 4, (2, 2, 1)).astype(np.int32)], {}),
        ([values(rng, dtype), 0, np.array(0)], {}),
        ([x, 1, np.zeros((2, 0, 4), np.int64)], {}),
    ]


def distinct(rng, size, *shape):
    """Positions below `size`, distinct along the last dimension."""
    return np.stack([rng.permutation(size)[: shape[-1]] for _ in range(int(np.prod(shape[:-1])))]).reshape(shape)


def scatter_samples(rng, dtype):
    x = values(rng, dtype, 2, 3, 4)
    return [
        ([x, 2, distinct(rng, 4, 2, 3, 4), values(rng, dtype, 2, 3, 4)], {}),
        ([x, 2, distinct(rng, 4, 1, 2, 3), values(rng, dtype, 1, 2, 3)], {}),
        ([values(rng, dtype, 5), 0, distinct(rng, 5, 3).astype(np.int32), values(rng, dtype, 3)], {}),
        ([values(rng, dtype), 0, np.array(0), values(rng, dtype)], {}),
        ([x, 1, np.zeros((2, 0, 4), np.int64), values(rng, dtype, 2, 0, 4)], {}),
    ]


def scatter_value_samples(rng, dtype):
    return [([x, dim, index, 1], {}) for (x, dim, index, _), _ in scatter_samples(rng, dtype)]


def scatter_add_samples(rng, dtype):
    x = values(rng, dtype, 2, 3, 4)
    return [
        ([x, 0, rng.integers(0, 2, (5, 3, 4)), values(rng, dtype, 5, 3, 4)], {}),
        ([x, 1, rng.integers(0, 3, (1, 2, 2)), values(rng, dtype, 1, 2, 2)], {}),
        ([values(rng, dtype, 3), 0, rng.integers(0, 3, (6,)).astype(np.int32), values(rng, dtype, 6)], {}),
        ([values(rng, dtype), 0, np.array(0), values(rng, dtype)], {}),
        ([x, 1, np.zeros((2, 0, 4), np.int64), values(rng, dtype, 2, 0, 4)], {}),
    ]


def scatter_reduce_samples(rng, dtype):
    kinds = ("sum", "prod", "mean", "amax", "amin") if np.dtype(dtype).kind != "b" else ("sum", "prod", "amax", "amin")
    return [
        ([*arguments, reduce], {"include_self": include_self})
        for arguments, _ in scatter_add_samples(rng, dtype)[1:4]
        for reduce in kinds
        for include_self in (True, False)
    ]


def slices_samples(index):
    def make(rng, dtype):
        x = values(rng, dtype, 4, 3)
        return [
            ([x, 0, index(rng, 4), values(rng, dtype, 3, 3)], {}),
            ([x, 1, index(rng, 3)[:2], values(rng, dtype, 4, 2)], {}),
            ([values(rng, dtype, 4), 0, np.array(2), values(rng, dtype, 1)], {}),
            ([values(rng, dtype), 0, np.array([0]), values(rng, dtype)], {}),
            ([x, 0, np.zeros(0, np.int64), values(rng, dtype, 0, 3)], {}),
        ]

    return make


def repeated(rng, size):
    return np.array([size - 1, 0, size - 1])


def index_add_samples(rng, dtype):
    found = slices_samples(repeated)(rng, dtype)
    return [*found, (found[0][0], {"alpha": 2})]


def index_fill_samples(rng, dtype):
    x = values(rng, dtype, 4, 3)
    return [
        ([x, 0, np.array([1, 3, 1]), values(rng, dtype)], {}),
        ([x, 1, np.array(2), values(rng, dtype)], {}),
        ([x, 1, np.array([0]), 1], {}),
        ([values(rng, dtype), 0, np.array([0]), values(rng, dtype)], {}),
    ]


REAL = ("int64", "float16", "float32", "float64")

CASES = (
    Case(
        "index_select",
        lambda x, dim, index: np.take(x, index.reshape(-1), dim) if x.ndim else x,
        make=lambda rng, dtype: [
            ([values(rng, dtype, 4, 3), 0, np.array([3, 0, 3])], {}),
            ([values(rng, dtype, 4, 3), 1, np.array([2], np.int32)], {}),
            ([values(rng, dtype, 4, 3), 1, np.array(1)], {}),
            ([values(rng, dtype), 0, np.array([0])], {}),
            ([values(rng, dtype, 4, 3), 0, np.zeros(0, np.int64)], {}),
        ],
    ),
    Case("index_add", index_add, make=index_add_samples),
    Case("index_copy", index_copy, make=slices_samples(lambda rng, size: rng.permutation(size)[:3])),
    Case("index_fill", index_fill, make=index_fill_samples),
    Case(
        "index_reduce",
        index_reduce,
        make=lambda rng, dtype: [
            ([*arguments, reduce], {"include_self": include_self})
            for arguments, _ in slices_samples(repeated)(rng, dtype)[:2]
            for reduce in ("prod", "mean", "amax", "amin")
            for include_self in (True, False)
        ],
        dtypes=REAL,
    ),
    Case("gather", gather, make=gather_samples),
    Case("scatter_src", scatter, make=scatter_samples, torch="scatter"),
    Case("scatter_value", scatter, make=scatter_value_samples, torch="scatter"),
    Case(
        "scatter",
        lambda x, dim, index, src, reduce=None: (
            scatter(x, dim, index, src)
            if reduce is None
            else scatter_reduce(x, dim, index, src, {"add": "sum", "multiply": "prod"}[reduce])
        ),
        make=lambda rng, dtype: [
            *scatter_samples(rng, dtype)[:3],
            *(
                (arguments, {"reduce": reduce})
                for arguments, _ in scatter_add_samples(rng, dtype)[:3]
                for reduce in ("add", "multiply")
            ),
        ],
        dtypes=REAL,
        torch=None,
    ),
    Case("scatter_add", lambda x, dim, index, src: scatter_reduce(x, dim, index, src, "sum"), make=scatter_add_samples),
    Case(
        "scatter_reduce",
        scatter_reduce,
        make=scatter_reduce_samples,
        dtypes=("bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32", "float64"),
    ),
    Case(
        "take_along_dim",
        take_along_dim,
        make=lambda rng, dtype: [
            ([values(rng, dtype, 2, 3), np.array([[0, -1, 2], [1, 1, 0]]), 1], {}),
            ([values(rng, dtype, 2, 3), np.array([[1, 0, 1]]), 0], {}),
            ([values(rng, dtype, 2, 3), np.array([[1], [5]])], {}),
            ([values(rng, dtype, 1, 3), np.array([[1], [2]]), 1], {}),
        ],
    ),
    Case(
        "take",
        lambda x, index: x.reshape(-1)[index],
        make=lambda rng, dtype: [
            ([values(rng, dtype, 2, 3), index], {})
            for index in (np.array([0, 5, -1, 0]), np.array([[1], [2]]), np.array(3), np.zeros((0, 2), np.int64))
        ],
    ),
    Case(
        "put",
        put,
        make=lambda rng, dtype: [
            ([values(rng, dtype, 2, 3), np.array([0, 5, -2]), values(rng, dtype, 3)], {}),
            ([values(rng, dtype, 2, 3), np.array([[0], [5]]), values(rng, dtype, 2), False], {}),
            ([values(rng, dtype, 2, 3), np.array([0, 5, -6, 0]), values(rng, dtype, 2, 2), True], {}),
            ([values(rng, dtype), np.array([0, 0]), values(rng, dtype, 2), True], {}),
        ],
    ),
)
