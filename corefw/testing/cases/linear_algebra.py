"""Products of vectors and matrices."""

from math import inf

import numpy as np

from corefw.testing.case import Case

NUMBERS = ("uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
MATRICES = (((2, 3), (3, 4)), ((1, 1), (1, 1)), ((3, 0), (0, 2)), ((0, 3), (3, 2)), ((5, 2), (2, 5)))
BATCHES = (((2, 2, 3), (2, 3, 4)), ((1, 1, 2), (1, 2, 1)), ((0, 2, 3), (0, 3, 1)))
PRODUCTS = (
    *MATRICES,
    *BATCHES,
    *(((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((0,), (0,))),
    *(((2, 2, 3), (3, 4)), ((2, 3), (2, 3, 4)), ((2, 1, 2, 3), (3, 3, 2)), ((2, 2, 3), (3,)), ((3,), (2, 3, 2))),
)
SCALES = ({}, {"beta": 2, "alpha": 3}, {"beta": 0})


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


def added(product):
    """What the ops that add a product to a tensor mean."""

    def reference(input, a, b, beta=1, alpha=1):
        result = alpha * product(a, b)
        if beta:
            result = beta * input + result
        return result.astype(input.dtype)

    return reference


def linear(input, weight, bias=None):
    result = np.matmul(input, weight.T)
    return result if bias is None else result + bias


def linear_gradients(gradient, input):
    rows = gradient.reshape(-1, gradient.shape[-1])
    return rows.T @ input.reshape(len(rows), input.shape[-1]), rows.sum(0)


def bilinear(input1, input2, weight, bias=None):
    result = np.einsum("...i,oij,...j->...o", input1, weight, input2)
    return result if bias is None else result + bias


def norm(a, p, dim, keepdim):
    size = np.abs(a)
    if p == inf:
        return size.max(dim, keepdims=keepdim)
    if p == -inf:
        return size.min(dim, keepdims=keepdim)
    if p == 0:
        return (size != 0).sum(dim, keepdims=keepdim) * 1.0
    return (size**p).sum(dim, keepdims=keepdim) ** (1 / p)


def cosine_similarity(x1, x2, dim=1, eps=1e-8):
    def length(x):
        return np.maximum(np.sqrt((x * x).sum(dim, keepdims=True)), eps)

    x1, x2 = np.broadcast_arrays(x1, x2)
    return (x1 / length(x1) * (x2 / length(x2))).sum(dim)


def cross(a, b, dim=None):
    return np.cross(a, b, axis=next(i for i, n in enumerate(a.shape) if n == 3) if dim is None else dim)


CASES = (
    Case("matmul", np.matmul, shapes=PRODUCTS),
    Case("mm", np.matmul, shapes=MATRICES, special=False),
    Case("bmm", np.matmul, shapes=BATCHES, special=False),
    Case("_int_mm", lambda a, b: np.matmul(a, b, dtype=np.int32), shapes=MATRICES, dtypes=("int8",), special=False),
    Case(
        "matmul_adjoint",
        lambda a, b: np.matmul(a, adjoint(b)),
        shapes=(((2, 3), (4, 3)), ((2, 2, 3), (1, 4, 3)), ((0, 3), (2, 3))),
        special=False,
    ),
    Case(
        "adjoint_matmul",
        lambda a, b: np.matmul(adjoint(a), b),
        shapes=(((3, 2), (3, 4)), ((2, 3, 2), (1, 3, 4)), ((0, 3), (0, 2))),
        special=False,
    ),
    Case("mv", np.matmul, shapes=(((2, 3), (3,)), ((0, 3), (3,)), ((2, 0), (0,))), dtypes=NUMBERS, special=False),
    Case("dot", np.dot, shapes=(((3,), (3,)), ((0,), (0,))), dtypes=NUMBERS, special=False),
    Case("vdot", np.vdot, shapes=(((3,), (3,)), ((0,), (0,))), dtypes=NUMBERS, special=False),
    Case(
        "inner",
        np.inner,
        shapes=(((3,), (3,)), ((2, 3), (4, 3)), ((2, 1, 3), (3,)), ((), (2,)), ((2, 0), (3, 0))),
        dtypes=NUMBERS,
        special=False,
    ),
    Case("outer", np.outer, shapes=(((2,), (3,)), ((0,), (2,))), dtypes=(*NUMBERS, "bool"), special=False),
    Case(
        "addmm",
        added(np.matmul),
        shapes=(((2, 4), (2, 3), (3, 4)), ((4,), (2, 3), (3, 4)), ((), (2, 3), (3, 4)), ((2, 1), (2, 0), (0, 4))),
        attributes=SCALES,
        special=False,
    ),
    Case(
        "addmv",
        added(np.matmul),
        shapes=(((2,), (2, 3), (3,)), ((), (2, 3), (3,))),
        attributes=SCALES,
        dtypes=NUMBERS,
        special=False,
    ),
    Case(
        "baddbmm",
        added(np.matmul),
        shapes=(((2, 2, 4), (2, 2, 3), (2, 3, 4)), ((2, 1), (2, 2, 3), (2, 3, 4))),
        attributes=SCALES,
        dtypes=NUMBERS,
        special=False,
    ),
    Case(
        "addbmm",
        added(lambda a, b: np.matmul(a, b).sum(0)),
        shapes=(((2, 4), (2, 2, 3), (2, 3, 4)), ((1,), (2, 2, 3), (2, 3, 4))),
        attributes=SCALES,
        dtypes=NUMBERS,
        special=False,
    ),
    Case(
        "addr",
        added(np.outer),
        shapes=(((2, 3), (2,), (3,)), ((), (2,), (3,))),
        attributes=SCALES,
        dtypes=NUMBERS,
        special=False,
    ),
    Case(
        "linear",
        linear,
        shapes=(
            ((2, 3), (4, 3), (4,)),
            ((2, 3), (4, 3)),
            ((3,), (4, 3), (4,)),
            ((2, 5, 3), (4, 3), (4,)),
            ((2, 3), (3,)),
            ((0, 3), (4, 3), (4,)),
            ((2, 0), (4, 0), (4,)),
        ),
        special=False,
    ),
    Case(
        "linear_gradients",
        linear_gradients,
        shapes=(
            *(((2, 4), (2, 3)), ((2, 5, 4), (2, 5, 3)), ((4,), (3,))),
            *(((0, 4), (0, 3)), ((2, 1), (2, 1)), ((2, 4), (2, 0))),
        ),
        dtypes=("float16", "bfloat16", "float32", "float64"),
        special=False,
    ),
    Case(
        "bilinear",
        bilinear,
        shapes=(((2, 3), (2, 4), (5, 3, 4), (5,)), ((3,), (4,), (2, 3, 4)), ((2, 2, 3), (2, 2, 1), (2, 3, 1))),
        special=False,
    ),
    Case(
        "cross",
        cross,
        shapes=(((3,), (3,)), ((2, 3), (2, 3)), ((3, 2), (3, 2)), ((1, 3), (4, 3))),
        attributes=({}, {"dim": 0}, {"dim": -1}),
        dtypes=NUMBERS,
        special=False,
        valid=lambda a, b, dim=None: dim is None or a[dim] == 3,
        torch=None,
    ),
    Case(
        "cosine_similarity",
        cosine_similarity,
        shapes=(((2, 3), (2, 3)), ((2, 3), (1, 3)), ((4, 2, 2), (4, 2, 2))),
        attributes=({}, {"dim": 0}, {"dim": -1}),
        dtypes=("float32", "float64"),
        special=False,
    ),
)
