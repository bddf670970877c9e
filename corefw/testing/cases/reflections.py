"""Products of Householder reflections."""

import numpy as np

from corefw.testing.cases.decomposition import adjoint, elements, regular, row
from corefw.testing.cases.elimination import over_batch

SHAPES = ((3, 3), (2, 2, 2), (4, 2))


@over_batch
def compact(A):
    h, tau = np.linalg.qr(A, "raw")
    return h.T.copy(), tau


@over_batch
def multiplied(a, tau):
    """The whole product of reflections, one matrix after the other."""
    Q = np.eye(len(a), dtype=a.dtype)
    for j, factor in enumerate(tau):
        v = np.concatenate([np.zeros(j), [1], a[j + 1 :, j]])
        Q = Q @ (np.eye(len(a)) - factor * np.outer(v, v.conj()))
    return Q


def applied(a, tau, other, left=True, transpose=False):
    Q = multiplied(a, tau)
    Q = adjoint(Q) if transpose else Q
    return Q @ other if left else other @ Q


def samples(*attributes, other=False):
    """Vectors and factors, and matrices to apply the reflections to."""

    def make(rng, dtype):
        calls = []
        for shape in SHAPES:
            given = [elements(rng, shape, dtype), elements(rng, (*shape[:-2], min(shape[-2:])), dtype)]
            for options in attributes or ({},):
                beside = shape[-2:-1] + (2,) if options.get("left", True) else (2, *shape[-2:-1])
                more = [elements(rng, (*shape[:-2], *beside), dtype)] if other else []
                calls.append(([*given, *more], options))
        return calls

    return make


CASES = (
    row("geqrf", compact, regular((*SHAPES, (2, 2, 3))), gradient=False),
    row("linalg_householder_product", lambda a, tau: multiplied(a, tau)[..., : a.shape[-1]], samples(), second=False),
    row("ormqr", applied, samples({}, {"transpose": True}, {"left": False}, other=True), second=False),
)
