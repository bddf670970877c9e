"""Rows of the ops that show the same elements under other shapes."""

import numpy as np

from corefw import dtypes
from corefw.testing.case import Case
from corefw.testing.samples import draw


def values(rng, dtype, *shape):
    return draw(rng, shape, dtypes.of_numpy(dtype), -3.0, 3.0)


def samples(*calls):
    """Calls given as (shapes, positional attributes, keywords)."""

    def make(rng, dtype):
        return [
            ([*(values(rng, dtype, *s) for s in shapes), *attributes], keywords)
            for shapes, attributes, keywords in calls
        ]

    return make


def lists(*calls):
    """As `samples`, with the arrays as one list."""

    def make(rng, dtype):
        return [
            ([[values(rng, dtype, *s) for s in shapes], *attributes], keywords)
            for shapes, attributes, keywords in calls
        ]

    return make


def unflatten(x, dim, sizes):
    dim %= x.ndim
    return x.reshape(*x.shape[:dim], *sizes, *x.shape[dim + 1 :])


def flatten(x, start_dim=0, end_dim=-1):
    if not x.ndim:
        return x.reshape(1)
    first, last = start_dim % x.ndim, end_dim % x.ndim
    return x.reshape(*x.shape[:first], -1 if x.size else int(np.prod(x.shape[first : last + 1])), *x.shape[last + 1 :])


def expand(x, size):
    lead = len(size) - x.ndim
    return np.broadcast_to(x, [x.shape[i - lead] if n == -1 else n for i, n in enumerate(size)])


def squeeze(x, dim=None):
    dims = range(x.ndim) if dim is None else [d % x.ndim for d in ((dim,) if isinstance(dim, int) else dim) if x.ndim]
    return x.reshape([n for d, n in enumerate(x.shape) if n != 1 or d not in dims])


def swap(x, dim0, dim1):
    return x if not x.ndim else np.swapaxes(x, dim0, dim1)


MANY = (((2, 3),), ((),), ((0, 3),), ((5,),), ((4, 1, 3),))
MATRICES = (((2, 3),), ((4, 2, 3),), ((0, 3),), ((2, 1),))

CASES = (
    Case(
        "view_size",
        np.reshape,
        make=samples(
            *[
                ((s,), (n,), {})
                for s, n in (
                    ((6,), (2, 3)),
                    ((6,), (-1, 2)),
                    ((), (1, 1)),
                    ((1, 4), (4,)),
                    ((0,), (3, 0)),
                    ((1,), ()),
                    ((6,), 6),
                )
            ]
        ),
    ),
    Case(
        "view",
        lambda x, *n, size=None: x.reshape(size or (n[0] if len(n) == 1 else n)),
        make=samples(
            *[
                ((s,), n, k)
                for s, n, k in (
                    ((6,), (2, 3), {}),
                    ((6,), ((3, -1),), {}),
                    ((), (1,), {}),
                    ((6,), (), {"size": (2, 3)}),
                )
            ]
        ),
    ),
    Case(
        "view_as",
        lambda x, y: x.reshape(y.shape),
        make=samples((((6,), (2, 3)), (), {}), (((), (1, 1)), (), {})),
        constant=(1,),
    ),
    Case(
        "unsafe_view",
        np.reshape,
        make=samples(((((2, 3)),), ((3, 2),), {}), (((4, 1, 3),), ((-1,),), {}), (((0, 3),), ((0,),), {})),
    ),
    Case(
        "reshape",
        np.reshape,
        make=samples(
            *[
                ((s,), (n,), {})
                for s, n in (
                    ((2, 3), (3, 2)),
                    ((2, 3), (-1,)),
                    ((4, 1, 3), (2, -1, 3)),
                    ((), (1, 1)),
                    ((0, 3), (3, 0)),
                    ((1,), ()),
                )
            ]
        ),
    ),
    Case(
        "reshape_as",
        lambda x, y: x.reshape(y.shape),
        shapes=(((2, 3), (3, 2)), ((2, 3), (6,))),
        constant=(1,),
        special=False,
    ),
    Case(
        "flatten",
        flatten,
        shapes=MANY,
        attributes=({}, {"start_dim": 0, "end_dim": 0}, {"start_dim": -1}, {"end_dim": 0}),
    ),
    Case(
        "flatten",
        flatten,
        shapes=(((2, 3, 4, 2),),),
        attributes=({"start_dim": 1}, {"start_dim": 1, "end_dim": 2}, {"end_dim": -2}),
    ),
    Case("ravel", np.ravel, shapes=MANY),
    Case(
        "unflatten",
        unflatten,
        shapes=(((6, 2),), ((6,),)),
        attributes=({"dim": 0, "sizes": (2, 3)}, {"dim": 0, "sizes": (3, 1, 2)}),
    ),
    Case(
        "transpose",
        swap,
        shapes=MATRICES,
        attributes=({"dim0": 0, "dim1": 1}, {"dim0": -1, "dim1": 0}, {"dim0": 1, "dim1": 1}),
    ),
    Case("transpose", swap, shapes=(((),), ((5,),)), attributes=({"dim0": 0, "dim1": -1},)),
    Case("t", np.transpose, shapes=(((2, 3),), ((),), ((0, 3),), ((5,),))),
    Case(
        "permute",
        np.transpose,
        make=samples(
            *[((s,), (d,), {}) for s, d in (((2, 3), (1, 0)), ((4, 1, 3), (-1, 0, 1)), ((), ()), ((0, 3), (1, 0)))]
        ),
    ),
    Case(
        "movedim",
        np.moveaxis,
        shapes=(((2, 3, 4),),),
        attributes=(
            {"source": 0, "destination": -1},
            {"source": (0, 2), "destination": (1, 0)},
            {"source": (-1, 0), "destination": (0, 1)},
        ),
        torch=None,
    ),
    Case("movedim", lambda x, source, destination: x, shapes=(((),),), attributes=({"source": 0, "destination": 0},)),
    Case("alias", np.positive, dtypes=("float32", "float64", "complex64", "complex128")),
    Case("adjoint", lambda x: np.conj(np.swapaxes(x, -1, -2)), shapes=MATRICES),
    Case(
        "expand",
        expand,
        make=samples(
            *[
                ((s,), (n,), {})
                for s, n in (
                    ((2, 1), (2, 3)),
                    ((3,), (2, 3)),
                    ((2, 1), (4, -1, 3)),
                    ((), (2, 2)),
                    ((1,), (0,)),
                    ((2, 3), (2, 3)),
                    ((), ()),
                    ((0, 1), (0, 3)),
                    ((2, 1), (1, 1, 2, 1)),
                )
            ]
        ),
    ),
    Case(
        "expand_as",
        lambda x, y: np.broadcast_to(x, y.shape),
        shapes=(((2, 1), (2, 3)), ((), (2, 3))),
        constant=(1,),
        special=False,
    ),
    Case("broadcast_to", expand, make=samples(*[((s,), (n,), {}) for s, n in (((2, 1), (2, 3)), ((3,), (2, 3)))])),
    Case(
        "broadcast_tensors", np.broadcast_arrays, make=samples((((2, 1), (3,)), (), {}), (((), (2, 3), (1, 3)), (), {}))
    ),
    Case(
        "squeeze",
        squeeze,
        shapes=(((1, 3, 1),), ((),), ((2, 3),), ((1,),), ((0, 1),)),
        attributes=({}, {"dim": 0}, {"dim": -1}, {"dim": (0, -1)}),
        valid=lambda s, dim=None: len(s) > 1 or not isinstance(dim, tuple),
    ),
    Case("unsqueeze", lambda x, dim: np.expand_dims(x, dim), shapes=MANY, attributes=({"dim": 0}, {"dim": -1})),
    Case(
        "unsqueeze",
        lambda x, dim: np.expand_dims(x, dim),
        shapes=(((2, 3),), ((4, 1, 3),)),
        attributes=({"dim": 1}, {"dim": -2}, {"dim": 2}),
    ),
    *(
        Case(
            f"atleast_{n}d",
            lambda *x, f=f: f(*x),
            make=samples(
                (((),), (), {}), (((3,),), (), {}), (((2, 3),), (), {}), (((2, 0, 3, 1),), (), {}), (((), (2,)), (), {})
            ),
        )
        for n, f in ((1, np.atleast_1d), (2, np.atleast_2d), (3, np.atleast_3d))
    ),
)
