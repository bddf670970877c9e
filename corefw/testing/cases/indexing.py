"""Rows of the ops that read and write parts of tensors."""

import numpy as np

from corefw import dtypes
from corefw.testing.case import Case
from corefw.testing.samples import draw


def values(rng, dtype, *shape):
    return draw(rng, shape, dtypes.of_numpy(dtype), -3.0, 3.0)


def mask(rng, *shape):
    return np.asarray(rng.random(shape) < 0.5)


def index_put(x, indices, v, accumulate=False):
    out = x.copy()
    positions = np.arange(x.size).reshape(x.shape)[tuple(slice(None) if i is None else i for i in indices)]
    for position, value in zip(positions.flat, np.broadcast_to(v, positions.shape).flat):
        out.flat[position] = out.flat[position] + value if accumulate else value
    return out


def fill(x, value):
    return np.full_like(x, value)


def copy(x, src):
    return np.broadcast_to(src, x.shape).astype(x.dtype)


def masked_fill(x, mask, value):
    return np.where(mask, np.asarray(value).astype(x.dtype), x)


def masked_scatter(x, mask, source):
    out = np.broadcast_to(x, np.broadcast_shapes(x.shape, mask.shape)).copy()
    rest = iter(source.flat)
    for position in np.ndindex(out.shape):
        if np.broadcast_to(mask, out.shape)[position]:
            out[position] = next(rest)
    return out


def index_samples(rng, dtype):
    x = values(rng, dtype, 2, 3, 4)
    i, j = np.array([0, 1, -1, 0]), np.array([[2], [-3]])
    return [
        ([x, [i]], {}),
        ([x, [None, j]], {}),
        ([x, [i, j]], {}),
        ([x, [i, None, j]], {}),
        ([x, [None, i.astype(np.int32), np.array(1)]], {}),
        ([x, [np.zeros(0, np.int64)]], {}),
        ([values(rng, dtype, 0, 3), [None, i]], {}),
        *(([values(rng, dtype, *shape), []], {}) for shape in ((), (2, 3), (40, 40))),
    ]


def index_put_samples(rng, dtype):
    x = values(rng, dtype, 2, 3, 4)
    i, j = np.array([0, 1, 0]), np.array([[2], [-3]])
    unique = [np.array([1, 0]), np.array([[2], [0]])]
    return [
        ([x, [np.array([1, 0])], values(rng, dtype, 2, 3, 4)], {}),
        ([x, unique, values(rng, dtype, 4)], {}),
        ([x, [unique[0], None, unique[1]], values(rng, dtype)], {}),
        ([x, [i, j], values(rng, dtype, 2, 3, 4), True], {}),
        ([x, [None, i, j], values(rng, dtype, 2, 1, 3), True], {}),
        ([x, [i, None, j], values(rng, dtype, 3), True], {}),
        ([x, [None, i], values(rng, dtype, 4), True], {}),
        *(
            ([values(rng, dtype, *shape), [], values(rng, dtype, *shape[1:]), add], {})
            for shape in ((), (2, 3), (0, 3), (40, 40))
            for add in (False, True)
        ),
        ([x, [None, None], values(rng, dtype, 4), True], {}),
    ]


CASES = (
    Case(
        "index",
        lambda x, indices: x[tuple(slice(None) if i is None else i for i in indices)],
        make=index_samples,
    ),
    Case("index_put", index_put, make=index_put_samples, torch=None),
    Case(
        "copy",
        copy,
        make=lambda rng, dtype: [
            ([values(rng, dtype, *shape), values(rng, dtype, *src)], {})
            for shape, src in (((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 3), ()), ((), ()), ((0, 3), (3,)))
        ],
    ),
    Case(
        "fill",
        fill,
        make=lambda rng, dtype: [
            ([values(rng, dtype, *shape), values(rng, dtype)], {}) for shape in ((2, 3), (), (0, 3))
        ],
    ),
    Case(
        "choose",
        np.where,
        make=lambda rng, dtype: [
            ([mask(rng, *c), values(rng, dtype, *x), values(rng, dtype, *y)], {})
            for c, x, y in (
                ((2, 3), (2, 3), (2, 3)),
                ((3,), (2, 1), ()),
                ((), (2, 3), (3,)),
                ((2, 1), (), ()),
                ((0, 3), (3,), (1, 3)),
            )
        ],
        torch="where",
    ),
    Case(
        "masked_fill",
        masked_fill,
        make=lambda rng, dtype: [
            *(
                ([values(rng, dtype, *x), mask(rng, *m), values(rng, dtype)], {})
                for x, m in (((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 1)), ((), ()), ((0, 3), (3,)))
            ),
            ([values(rng, dtype, 2, 3), mask(rng, 2, 3), 1], {}),
        ],
    ),
    Case(
        "masked_select",
        lambda x, mask: np.array([e for e, m in zip(*(a.flat for a in np.broadcast_arrays(x, mask))) if m], x.dtype),
        make=lambda rng, dtype: [
            ([values(rng, dtype, *x), mask(rng, *m)], {})
            for x, m in (((2, 3), (2, 3)), ((2, 3), (3,)), ((3,), (2, 1)), ((), ()), ((0, 3), (3,)))
        ],
        meta=False,
    ),
    Case(
        "masked_scatter",
        masked_scatter,
        make=lambda rng, dtype: [
            ([values(rng, dtype, *x), mask(rng, *m), values(rng, dtype, *s)], {})
            for x, m, s in (((2, 3), (2, 3), (2, 3)), ((2, 3), (3,), (7,)), ((3,), (2, 1), (3, 2)), ((), (), (1,)))
        ],
    ),
    Case(
        "where",
        np.where,
        make=lambda rng, dtype: [
            ([mask(rng, *c), values(rng, dtype, *x), values(rng, dtype, *y)], {})
            for c, x, y in (((2, 3), (2, 3), (2, 3)), ((3,), (2, 1), ()), ((), (), ()), ((0, 3), (3,), (1, 1)))
        ],
        dtypes=("bool", "uint8", "int64", "float16", "float32", "float64", "complex128"),
    ),
)
