"""Rows of the ops that join tensors or move their elements."""

from itertools import combinations, combinations_with_replacement, product

import numpy as np

from corefw import dtypes
from corefw.testing.case import Case
from corefw.testing.samples import draw


def values(rng, dtype, *shape):
    return draw(rng, shape, dtypes.of_numpy(dtype), -3.0, 3.0)


def lists(*calls):
    """Calls given as (shapes, keywords); the arrays come as one list."""
    return lambda rng, dtype: [([[values(rng, dtype, *s) for s in shapes]], keywords) for shapes, keywords in calls]


def separate(*calls):
    """As `lists`, with the arrays as separate arguments."""
    return lambda rng, dtype: [([values(rng, dtype, *s) for s in shapes], keywords) for shapes, keywords in calls]


def positional(*calls):
    """Calls given as (shape, attributes)."""
    return lambda rng, dtype: [([values(rng, dtype, *shape), *attributes], {}) for shape, attributes in calls]


def cat(arrays, dim=0):
    return np.concatenate([a for a in arrays if a.shape != (0,)] or arrays, dim)


def block_diag(*arrays):
    blocks = [np.atleast_2d(a) for a in arrays]
    result = np.zeros((sum(b.shape[0] for b in blocks), sum(b.shape[1] for b in blocks)), blocks[0].dtype)
    row = column = 0
    for b in blocks:
        result[row : row + b.shape[0], column : column + b.shape[1]] = b
        row, column = row + b.shape[0], column + b.shape[1]
    return result


def repeat_interleave(x, repeats=None, dim=None):
    return np.repeat(np.arange(x.size), x) if repeats is None else np.repeat(x, repeats, dim)


def repeat_interleave_samples(rng, dtype):
    return [
        ([values(rng, dtype, 2, 3), 2], {}),
        ([values(rng, dtype, 2, 3), 3], {"dim": -1}),
        ([values(rng, dtype, 2, 3), 0], {"dim": 0}),
        ([values(rng, dtype, 3), np.array([2, 0, 1])], {}),
        ([values(rng, dtype, 2, 3), np.array([1, 3])], {"dim": 0}),
    ]


def positions_samples(rng, dtype):
    return [([np.array(repeats).astype(dtype)], {}) for repeats in ([2, 0, 1], [1], [0, 0])]


def flip(x, dims):
    return np.flip(x, dims) if x.ndim else x


def triangle(keep):
    """Zeros where `keep` does not hold for row and column."""

    def reference(x, diagonal=0):
        result = x.copy()
        for i, j in product(range(x.shape[-2]), range(x.shape[-1])):
            if not keep(j - i, diagonal):
                result[..., i, j] = 0
        return result

    return reference


def diag_embed(x, offset=0, dim1=-2, dim2=-1):
    n = x.shape[-1] + abs(offset)
    result = np.zeros((*x.shape[:-1], n, n), x.dtype)
    for i in range(x.shape[-1]):
        result[..., i + max(-offset, 0), i + max(offset, 0)] = x[..., i]
    return np.moveaxis(result, (-2, -1), (dim1, dim2))


def meshgrid(*arrays, indexing="ij"):
    return tuple(np.meshgrid(*arrays, indexing=indexing))


def choose(x, r=2, with_replacement=False):
    chosen = (combinations_with_replacement if with_replacement else combinations)(range(x.size), r)
    return np.array([x[list(c)] for c in chosen]).reshape(-1, r).astype(x.dtype)


def cartesian_prod(*arrays):
    return arrays[0] if len(arrays) == 1 else np.array(list(product(*arrays)), arrays[0].dtype)


def pixel_shuffle(x, upscale_factor):
    r, (*batch, c, h, w) = upscale_factor, x.shape
    result = np.empty((*batch, c // r**2, h * r, w * r), x.dtype)
    for i, j in product(range(r), range(r)):
        result[..., i::r, j::r] = x[..., i * r + j :: r * r, :, :]
    return result


def pixel_unshuffle(x, downscale_factor):
    r, (*batch, c, h, w) = downscale_factor, x.shape
    result = np.empty((*batch, c * r**2, h // r, w // r), x.dtype)
    for i, j in product(range(r), range(r)):
        result[..., i * r + j :: r * r, :, :] = x[..., i::r, j::r]
    return result


MANY = (((2, 3),), ((),), ((0, 3),), ((5,),), ((4, 1, 3),))
MATRICES = (((3, 4),), ((2, 3, 2),), ((0, 3),), ((4, 1),))
STACKS = lists(([(3,), (2,)], {}), ([(2, 3), (2, 3), (2, 3)], {}), ([(), ()], {}), ([(2, 2, 1), (2, 2, 1)], {}))

CASES = (
    Case(
        "cat",
        cat,
        make=lists(
            *[
                (shapes, k)
                for shapes, k in (
                    ([(2, 3), (1, 3)], {}),
                    ([(2, 3), (2, 0), (2, 1)], {"dim": 1}),
                    ([(2, 3), (2, 3)], {"dim": -2}),
                    ([(4,)], {}),
                    ([(0,), (2, 3)], {"dim": 1}),
                    ([(0,), (0,)], {}),
                )
            ]
        ),
    ),
    Case(
        "stack",
        lambda x, dim=0: np.stack(x, dim),
        make=lists(
            *[
                (shapes, k)
                for shapes, k in (
                    ([(2, 3)] * 3, {}),
                    ([(2, 3)] * 2, {"dim": 1}),
                    ([(2, 3)] * 2, {"dim": -1}),
                    ([()] * 2, {}),
                    ([(0, 2)] * 2, {"dim": 2}),
                )
            ]
        ),
    ),
    Case("hstack", np.hstack, make=STACKS),
    Case(
        "vstack",
        np.vstack,
        make=lists(([(3,), (3,)], {}), ([(2, 3), (1, 3)], {}), ([(), ()], {}), ([(2, 2, 1), (2, 2, 1)], {})),
    ),
    Case(
        "dstack",
        np.dstack,
        make=lists(([(3,), (3,)], {}), ([(2, 3), (2, 3)], {}), ([(), ()], {}), ([(2, 2, 1), (2, 2, 3)], {})),
    ),
    Case(
        "column_stack",
        np.column_stack,
        make=lists(([(3,), (3,)], {}), ([(2, 3), (2, 1)], {}), ([(3,), (3, 2)], {}), ([(), ()], {})),
    ),
    Case("block_diag", block_diag, make=separate(([(2, 3), (1, 2)], {}), ([(2,), (), (0, 1)], {}), ([(3, 1)], {}))),
    Case(
        "repeat",
        lambda x, repeats: np.tile(x, repeats),
        make=positional(((2, 3), ((2, 1),)), ((2, 3), ((1, 2, 3),)), ((), ((2,),)), ((3,), ((0,),)), ((), ((),))),
    ),
    Case(
        "tile",
        lambda x, dims: np.tile(x, dims),
        make=positional(((2, 3), ((2,),)), ((2, 3), ((1, 2, 3),)), ((), ((2,),)), ((3,), ((2, 2),))),
    ),
    Case(
        "repeated_positions",
        lambda x: np.repeat(np.arange(x.size), x),
        make=positions_samples,
        dtypes=("int32", "int64", "uint8"),
        meta=False,
    ),
    Case("repeat_interleave", repeat_interleave, make=repeat_interleave_samples, meta=False),
    Case("repeat_interleave", repeat_interleave, make=positions_samples, meta=False, dtypes=("int32", "int64")),
    Case(
        "flip",
        flip,
        make=positional(
            ((2, 3), ((0,),)), ((2, 3), ((0, -1),)), ((), ((),)), ((5,), ((-1,),)), ((0, 3), ((1,),)), ((2, 3), ((),))
        ),
    ),
    Case("fliplr", np.fliplr, shapes=MATRICES),
    Case("flipud", np.flipud, shapes=(*MATRICES, ((5,),))),
    Case(
        "roll",
        lambda x, shifts, dims=None: np.roll(x, shifts, dims),
        shapes=(((2, 3),), ((0, 3),), ((4, 1, 3),)),
        attributes=(
            {"shifts": 1},
            {"shifts": -4, "dims": 0},
            {"shifts": (1, 2), "dims": (0, -1)},
            {"shifts": (1, 1), "dims": (1, 1)},
        ),
    ),
    Case("roll", lambda x, shifts, dims=None: np.roll(x, shifts), shapes=(((),), ((5,),)), attributes=({"shifts": 2},)),
    Case(
        "rot90",
        lambda x, k=1, dims=(0, 1): np.rot90(x, k, dims),
        shapes=MATRICES,
        attributes=({}, {"k": 2}, {"k": -1}, {"k": 4}, {"dims": (1, 0)}, {"k": 3, "dims": (-1, 0)}),
    ),
    Case(
        "tril",
        triangle(lambda j, diagonal: j <= diagonal),
        shapes=MATRICES,
        attributes=({}, {"diagonal": 1}, {"diagonal": -2}),
    ),
    Case(
        "triu",
        triangle(lambda j, diagonal: j >= diagonal),
        shapes=MATRICES,
        attributes=({}, {"diagonal": 1}, {"diagonal": -2}),
    ),
    Case(
        "diag_embed", diag_embed, shapes=(((3,),), ((2, 3),), ((0,),)), attributes=({}, {"offset": 1}, {"offset": -2})
    ),
    Case(
        "diag_embed",
        diag_embed,
        shapes=(((2, 3),),),
        attributes=({"dim1": 0, "dim2": 2}, {"offset": 1, "dim1": 1, "dim2": 0}, {"dim1": 2, "dim2": 1, "offset": 1}),
    ),
    Case("diag", np.diag, make=positional(((3,), ()), ((3,), (-1,)), ((3, 4), ()), ((3, 4), (2,)), ((2, 3), (-5,)))),
    Case("diagflat", np.diagflat, make=positional(((3,), ()), ((), (1,)), ((2, 2), (-1,)))),
    Case(
        "meshgrid",
        meshgrid,
        make=separate(
            *[([(3,), (2,)], {"indexing": i}) for i in ("ij", "xy")],
            ([(2,), (), (3,)], {"indexing": "xy"}),
            ([(4,)], {"indexing": "ij"}),
        ),
    ),
    Case("cartesian_prod", cartesian_prod, make=separate(([(3,), (2,)], {}), ([(2,), (1,), (3,)], {}), ([(3,)], {}))),
    Case(
        "combinations",
        choose,
        shapes=(((4,),), ((1,),)),
        attributes=({}, {"r": 3}, {"r": 2, "with_replacement": True}),
        meta=False,
    ),
    Case(
        "pixel_shuffle",
        pixel_shuffle,
        shapes=(((8, 2, 3),), ((2, 4, 1, 2),), ((4, 0, 2),)),
        attributes=({"upscale_factor": 2}, {"upscale_factor": 1}),
    ),
    Case(
        "pixel_unshuffle",
        pixel_unshuffle,
        shapes=(((2, 4, 6),), ((2, 1, 2, 2),)),
        attributes=({"downscale_factor": 2}, {"downscale_factor": 1}),
    ),
)
