"""LU decompositions, and what is solved by them."""

import numpy as np

from corefw.testing.cases.decomposition import adjoint, elements, regular, row

WIDE_AND_TALL = ((3, 3), (2, 2, 2), (4, 2), (2, 2, 3))


def over_batch(function):
    """A function of one matrix, applied to each of a batch; several results are stacked one by one."""

    def applied(A, *others, **attributes):
        batch = A.shape[:-2]
        results = [function(A[i], *(other[i] for other in others), **attributes) for i in np.ndindex(*batch)]
        if isinstance(results[0], tuple):
            return tuple(np.reshape(part, (*batch, *part[0].shape)) for part in map(list, zip(*results, strict=True)))
        return np.reshape(results, (*batch, *results[0].shape))

    return applied


@over_batch
def eliminated(A, pivot=True):
    LU, pivots = A.copy(), []
    for j in range(min(A.shape)):
        column = np.abs(LU[j:, j].real) + np.abs(LU[j:, j].imag)
        at = j + int(column.argmax()) if pivot else j
        pivots.append(at + 1)
        LU[[j, at]] = LU[[at, j]]
        for i in range(j + 1, len(LU)):
            LU[i, j] /= LU[j, j]
            LU[i, j + 1 :] -= LU[i, j] * LU[j, j + 1 :]
    return LU, np.array(pivots, np.int32)


def factors_and_info(A, pivot=True):
    LU, pivots = eliminated(A, pivot=pivot)
    return LU, pivots, np.zeros(A.shape[:-2], np.int32)


@over_batch
def unpacked(LU, pivots):
    (m, n), P = LU.shape, np.eye(len(LU))
    for j, at in list(enumerate(pivots))[::-1]:
        P[[j, at - 1]] = P[[at - 1, j]]
    k = min(m, n)
    return P.astype(LU.dtype), np.tril(LU[:, :k], -1) + np.eye(m, k), np.triu(LU[:k])


def lu(A, pivot=True):
    P, L, U = unpacked(*eliminated(A, pivot=pivot))
    return P if pivot else np.empty((0,)), L, U


def solved(LU, pivots, B, left=True, adjoint=False):
    P, L, U = unpacked(LU, pivots)
    A = P @ L @ U
    A = swapped(A) if adjoint else A
    return np.linalg.solve(A, B) if left else swapped(np.linalg.solve(swapped(A), swapped(B)))


swapped = adjoint


def factored(beside, *attributes):
    """Compact decompositions, and a matrix of a shape for each."""

    def make(rng, dtype):
        calls = []
        for shape, other in zip(((3, 3), (2, 2, 2)), beside, strict=True):
            LU, pivots = eliminated(elements(rng, shape, dtype) + 2 * np.eye(shape[-1], dtype=dtype)[::-1])
            calls += [([LU, pivots, elements(rng, other, dtype)], options) for options in attributes or ({},)]
        return calls

    return make


def compact(rng, dtype):
    return [([*eliminated(elements(rng, shape, dtype))], {}) for shape in WIDE_AND_TALL]


CASES = (
    row("lu_factors", eliminated, regular(WIDE_AND_TALL, {"pivot": True}, {"pivot": False}), second=False),
    row("linalg_lu_factor", eliminated, regular(WIDE_AND_TALL), second=False, meta=False),
    row("linalg_lu_factor_ex", factors_and_info, regular(WIDE_AND_TALL), second=False),
    row("linalg_lu", lu, regular(WIDE_AND_TALL, {}, {"pivot": False}), second=False, meta=False, torch=None),
    row("lu_unpack", lambda *given: unpacked(*given), compact, meta=False),
    row(
        "linalg_lu_solve",
        solved,
        factored([(3, 2), (2, 2, 1)], {}, {"adjoint": True}, {"left": True}),
        meta=False,
    ),
    row(
        "lu_solve",
        lambda b, LU, pivots: solved(LU, pivots, b),
        lambda rng, dtype: [([b, LU, pivots], {}) for (LU, pivots, b), _ in factored([(3, 2), (2, 2, 1)])(rng, dtype)],
        meta=False,
    ),
)
