"""Contractions of tensors."""

from functools import reduce

import numpy as np

from corefw.testing.case import Case

NUMBERS = ("uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def tensordot(a, b, dims=2):
    return np.tensordot(a, b, dims)


def drawn(rng, numpy_dtype, *shapes):
    """Random arrays of a dtype."""
    kind = np.dtype(numpy_dtype).kind
    if kind in "iu":
        return [rng.integers(0, 4, shape).astype(numpy_dtype) for shape in shapes]
    imaginary = 1j if kind == "c" else 0
    return [(rng.normal(size=shape) + imaginary * rng.normal(size=shape)).astype(numpy_dtype) for shape in shapes]


EQUATIONS = {
    "ij,jk->ik": ((2, 3), (3, 4)),
    "ij,kj": ((2, 3), (4, 3)),
    "ii->": ((3, 3),),
    "ii->i": ((3, 3),),
    "ba": ((2, 3),),
    "i,j->ij": ((2,), (3,)),
    "bij,bjk->bik": ((2, 2, 3), (2, 3, 2)),
    "bij,bij->b": ((2, 2, 3), (2, 2, 3)),
    "...ij,...jk->...ik": ((2, 1, 2, 3), (4, 3, 2)),
    "i...->...": ((2, 3, 4),),
    "ij,jk,kl->il": ((2, 3), (3, 4), (4, 2)),
    "bn,anm,bm->ba": ((2, 3), (4, 3, 2), (2, 2)),
    "ij,j->": ((2, 3), (3,)),
    "ij,ij->ji": ((2, 3), (2, 3)),
    "iij,jk->k": ((2, 2, 3), (3, 2)),
    "ij,ji": ((2, 3), (3, 2)),
    "a,b,ab": ((2,), (3,), (2, 3)),
}


def einsum_calls(rng, numpy_dtype):
    return [([equation, *drawn(rng, numpy_dtype, *shapes)], {}) for equation, shapes in EQUATIONS.items()]


def tensordot_calls(rng, numpy_dtype):
    calls = (
        (((2, 3, 4), (3, 4, 2)), {}),
        (((2, 3), (3, 4)), {"dims": 1}),
        (((2,), (3,)), {"dims": 0}),
        (((2, 3, 4), (4, 5, 2)), {"dims": ([0, 2], [2, 0])}),
        (((2, 3), (2, 3)), {"dims": ([-1], [1])}),
        (((0, 3), (3, 2)), {"dims": 1}),
    )
    return [(drawn(rng, numpy_dtype, *shapes), attributes) for shapes, attributes in calls]


def chain_calls(rng, numpy_dtype):
    return [
        (drawn(rng, numpy_dtype, *shapes), {})
        for shapes in (((2, 3), (3, 1), (1, 4), (4, 2)), ((2, 3), (3, 2)), ((2, 3), (3, 2), (2, 2)))
    ]


CASES = (
    Case("tensordot", tensordot, make=tensordot_calls, dtypes=NUMBERS),
    Case("einsum", np.einsum, make=einsum_calls, dtypes=NUMBERS[2:], requires=("opt_einsum",)),
    Case("chain_matmul", lambda *matrices: reduce(np.matmul, matrices), make=chain_calls, torch=None),
    Case(
        "kron",
        np.kron,
        shapes=(((2, 3), (3, 2)), ((2,), (2, 3)), ((), (2,)), ((2, 1, 2), (3,)), ((0, 2), (2, 2))),
        dtypes=(*NUMBERS, "bool"),
    ),
)
