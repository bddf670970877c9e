"""Products of matrices: each dimension may be cut, and that summed over gives terms of a sum."""

from __future__ import annotations

from corefw.distributed.tensor.calls import rule


@rule("mm")
def _mm(input, mat2):
    return "mk kn -> mn"


@rule("bmm")
def _bmm(input, mat2):
    return "bmk bkn -> bmn"


@rule("addmm")
def _addmm(input, mat1, mat2, beta=1, alpha=1):
    return "mn + mk kn -> mn"


@rule("baddbmm")
def _baddbmm(input, batch1, batch2, beta=1, alpha=1):
    return "bmn + bmk bkn -> bmn"


@rule("linear")
def _linear(input, weight, bias=None):
    return "...k nk + n -> ...n" if weight.ndim == 2 else "...k k + 1 -> ..."


@rule("matmul")
def _matmul(input, other):
    rows, columns = input.ndim > 1, other.ndim > 1
    left, right = "...mk" if rows else "k", "...kn" if columns else "k"
    return f"{left} {right} -> ...{'m' * rows}{'n' * columns}"
