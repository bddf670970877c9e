"""Rows of the ops that show a part of their input, and of those that change a part of a copy."""

import numpy as np

from corefw import dtypes
from corefw.testing.case import Case
from corefw.testing.samples import draw

WHOLE = slice(None)


def placed(grad, shape, key):
    result = np.zeros(shape, grad.dtype)
    result[key] = grad
    return result


def placed_samples(rng, dtype):
    keys = ((0,), (WHOLE, slice(1, None, 2)), (..., -1), (None, slice(0, 0)), ())
    shapes = [np.empty((2, 3))[key].shape for key in keys]
    return [([draw(rng, s, dtypes.of_numpy(dtype), -3, 3), (2, 3), key], {}) for s, key in zip(shapes, keys)]


def keyed(*keys):
    return tuple({"key": key} for key in keys)


def take(x, key):
    return x[key]


def select(x, dim, index):
    return x[(WHOLE,) * (dim % x.ndim) + (index,)]


def narrow(x, dim, start, length):
    start = start % x.shape[dim] if start < 0 else start
    return x[(WHOLE,) * (dim % x.ndim) + (slice(start, start + length),)]


def split_with_sizes(x, split_sizes, dim=0):
    return tuple(np.split(x, np.cumsum(split_sizes)[:-1], dim))


def split(x, split_size_or_sections, dim=0):
    size, n = split_size_or_sections, x.shape[dim]
    if not isinstance(size, int):
        return split_with_sizes(x, size, dim)
    return tuple(np.split(x, range(size, n, size), dim))


def split_equally(x, split_size, dim=0):
    return split(x, split_size, dim)


def chunk(x, chunks, dim=0):
    return split(x, max(-(-x.shape[dim] // chunks), 1), dim)


def tensor_split(x, indices_or_sections, dim=0):
    return tuple(np.array_split(x, indices_or_sections, dim))


def unbind(x, dim=0):
    return tuple(np.moveaxis(x, dim, 0))


def unfold(x, dimension, size, step):
    if not x.ndim:
        return np.repeat(x, size)
    dimension %= x.ndim
    n = x.shape[dimension]
    windows = [np.take(x, range(i, i + size), dimension) for i in range(0, n - size + 1, step)]
    return np.stack([np.moveaxis(w, dimension, -1) for w in windows], dimension)


def unfold_backward(grad, shape, dimension, size, step):
    result = np.zeros(shape, grad.dtype)
    moved = np.moveaxis(result, dimension, -1)
    for i, window in enumerate(np.moveaxis(grad, dimension, 0)):
        moved[..., i * step : i * step + size] += window
    return result


def diagonal_backward(grad, shape, offset, dim1, dim2):
    result = np.zeros(shape, grad.dtype)
    plane = np.moveaxis(result, (dim1, dim2), (0, 1))
    for i in range(grad.shape[-1]):
        plane[i + max(-offset, 0), i + max(offset, 0)] = grad[..., i]
    return result


def scattered(key):
    """The reference of the ops that replace a part, shown by `key(x, *attributes)`, of a copy."""

    def reference(x, src, **attributes):
        result = x.astype(np.result_type(x, src))
        result[key(x, **attributes)] = src
        return result

    return reference


def at_slice(x, dim=0, start=None, end=None, step=1):
    return (WHOLE,) * (dim % x.ndim) + (slice(start, end, step),)


def at_diagonal(x, offset=0, dim1=0, dim2=1):
    n = x[(slice(None),) * 2].diagonal(offset, dim1, dim2).shape[-1]
    i = np.arange(n)
    return (i + max(-offset, 0), i + max(offset, 0))


MATRICES = (((3, 4),), ((2, 0),))
PARTS = (((5,),), ((4, 6),), ((6, 2, 1),))
PLANES = ({}, {"offset": 1}, {"offset": -2}, {"offset": 5})

CASES = (
    Case("basic_index_backward", placed, make=placed_samples),
    Case(
        "slice_index",
        take,
        shapes=(((4, 6),),),
        attributes=keyed((slice(1, 3),), (0, slice(None, None, 2)), (..., slice(-2, 9)), (slice(3, 1),)),
    ),
    Case(
        "integer_index",
        take,
        shapes=(((4, 6),),),
        attributes=keyed((0,), (slice(1, 3), -1), (..., 2), (None, 1), (1, 2)),
    ),
    Case("new_dimension_index", take, shapes=(((4, 6),), ((),)), attributes=keyed((None,), (..., None))),
    Case(
        "new_dimension_index",
        take,
        shapes=(((4, 6),),),
        attributes=keyed((WHOLE, None), (1, None), (None, ..., 0, None)),
    ),
    Case(
        "basic_index",
        take,
        shapes=(((4, 6),),),
        attributes=keyed((), (...,), (WHOLE, ...), (0,), (1, WHOLE), (WHOLE, None), (slice(1, 2), ...)),
    ),
    Case("select", select, shapes=MATRICES[:1], attributes=({"dim": 0, "index": 1}, {"dim": -1, "index": -1})),
    Case("select", select, shapes=(((5,),),), attributes=({"dim": 0, "index": 4},)),
    *(
        Case(
            name,
            narrow,
            shapes=(((4, 6),), ((5,),)),
            attributes=(
                {"dim": 0, "start": 1, "length": 2},
                {"dim": -1, "start": -2, "length": 2},
                {"dim": 0, "start": 2, "length": 0},
            ),
        )
        for name in ("narrow", "narrow_copy")
    ),
    Case(
        "split_with_sizes",
        split_with_sizes,
        shapes=(((5,),), ((5, 2),)),
        attributes=({"split_sizes": (2, 3)}, {"split_sizes": (5,)}, {"split_sizes": (0, 4, 1), "dim": 0}),
    ),
    Case(
        "unsafe_split_with_sizes",
        split_with_sizes,
        shapes=(((5,),), ((5, 2),)),
        attributes=({"split_sizes": (2, 3)}, {"split_sizes": (5,)}, {"split_sizes": (0, 4, 1), "dim": 0}),
    ),
    Case("unsafe_split", split_equally, shapes=PARTS, attributes=({"split_size": 2}, {"split_size": 7, "dim": -1})),
    Case(
        "equal_split",
        split_equally,
        shapes=PARTS,
        attributes=({"split_size": 2, "dim": 0}, {"split_size": 7, "dim": -1}),
    ),
    Case(
        "split",
        split,
        shapes=PARTS,
        attributes=({"split_size_or_sections": 2}, {"split_size_or_sections": 3, "dim": -1}),
    ),
    Case(
        "split",
        split,
        shapes=(((5, 2),),),
        attributes=({"split_size_or_sections": (1, 4)}, {"split_size_or_sections": [1, 1], "dim": 1}),
    ),
    Case("chunk", chunk, shapes=PARTS, attributes=({"chunks": 2}, {"chunks": 4, "dim": -1}, {"chunks": 1})),
    Case("unsafe_chunk", chunk, shapes=PARTS, attributes=({"chunks": 2}, {"chunks": 4, "dim": -1}, {"chunks": 1})),
    Case(
        "tensor_split",
        tensor_split,
        make=lambda rng, d: [
            ([draw(rng, shape, dtypes.of_numpy(d), -3, 3), *attributes], {})
            for shape in ((5,), (4, 6), (6, 2, 1))
            for attributes in ((3,), ((1, 3),), (2, -1))
        ],
    ),
    Case(
        "hsplit",
        lambda x, n: tuple(np.hsplit(x, n)),
        make=lambda rng, d: [
            ([rng.uniform(size=s).astype(d), n], {}) for s, n in (((4,), 2), ((2, 6), 3), ((2, 6), [1, 4]))
        ],
        dtypes=("float32", "float64"),
    ),
    Case(
        "vsplit",
        lambda x, n: tuple(np.vsplit(x, n)),
        make=lambda rng, d: [([rng.uniform(size=s).astype(d), n], {}) for s, n in (((4, 2), 2), ((6, 2), [1, 4]))],
        dtypes=("float32", "float64"),
    ),
    Case(
        "dsplit",
        lambda x, n: tuple(np.dsplit(x, n)),
        make=lambda rng, d: [
            ([rng.uniform(size=s).astype(d), n], {}) for s, n in (((1, 2, 4), 2), ((1, 2, 4), [1, 2]))
        ],
        dtypes=("float32", "float64"),
    ),
    Case("unbind", unbind, shapes=(((2, 3),), ((5,),), ((2, 1, 3),)), attributes=({}, {"dim": -1})),
    Case(
        "unfold",
        unfold,
        shapes=(((5,),), ((6, 5),)),
        attributes=(
            {"dimension": 0, "size": 3, "step": 1},
            {"dimension": -1, "size": 2, "step": 2},
            {"dimension": 0, "size": 2, "step": 3},
        ),
    ),
    Case(
        "unfold",
        unfold,
        shapes=(((),),),
        attributes=({"dimension": 0, "size": 1, "step": 1},),
    ),
    Case(
        "unfold_backward",
        unfold_backward,
        shapes=(((3, 6, 3),),),
        attributes=({"shape": (5, 6), "dimension": 0, "size": 3, "step": 1},),
        special=False,
        dtypes=("float32", "float64", "complex128"),
    ),
    Case(
        "unfold_backward",
        unfold_backward,
        shapes=(((6, 2, 2),),),
        attributes=({"shape": (6, 5), "dimension": 1, "size": 2, "step": 3},),
        special=False,
        dtypes=("float32", "float64", "complex128"),
    ),
    Case("diagonal", lambda x, offset=0: x.diagonal(offset), shapes=MATRICES, attributes=PLANES),
    Case(
        "diagonal",
        lambda x, offset=0, dim1=0, dim2=1: x.diagonal(offset, dim1, dim2),
        shapes=(((2, 3, 4),),),
        attributes=(*PLANES, {"offset": 1, "dim1": -1, "dim2": 0}),
    ),
    Case(
        "diagonal_backward",
        diagonal_backward,
        shapes=(((3,),),),
        attributes=(
            {"shape": (3, 4), "offset": 1, "dim1": 0, "dim2": 1},
            {"shape": (5, 3), "offset": -2, "dim1": 0, "dim2": 1},
        ),
    ),
    Case(
        "diagonal_backward",
        diagonal_backward,
        shapes=(((2, 3),),),
        attributes=({"shape": (4, 2, 3), "offset": -1, "dim1": 0, "dim2": 2},),
    ),
    Case(
        "select_scatter",
        scattered(lambda x, dim, index: (WHOLE,) * dim + (index,)),
        shapes=(((3, 4), (4,)),),
        attributes=({"dim": 0, "index": -1},),
    ),
    Case(
        "select_scatter",
        scattered(lambda x, dim, index: (WHOLE,) * dim + (index,)),
        shapes=(((3, 4), (3,)),),
        attributes=({"dim": 1, "index": 2},),
    ),
    Case(
        "slice_scatter",
        scattered(at_slice),
        shapes=(((4, 3), (2, 3)),),
        attributes=({"start": 1, "end": 3}, {"step": 2}, {"dim": 0, "start": -2}),
    ),
    Case("diagonal_scatter", scattered(at_diagonal), shapes=(((3, 4), (3,)),), attributes=({}, {"offset": 1})),
    Case(  # the first element, which lies in the same place in every layout; further ones: tests/test_sharing.py
        "as_strided_scatter",
        scattered(lambda x, size, stride: (np.array([0]),)),
        shapes=(((3,), (1,)),),
        attributes=({"size": (1,), "stride": (1,)},),
        torch=None,  # whose gradient of the input is zero or garbage; its values are compared in tests/test_sharing.py
    ),
)
