"""Products of matrices: each dimension may be cut, and that summed over gives terms of a sum."""

from __future__ import annotations

from typing import Any

from corefw.dispatch.declare import ops
from corefw.distributed.tensor.calls import meaning, rule
from corefw.distributed.tensor.parts import in_parts, placed


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


# -- what is added to a sum in terms ----------------------------------------------------------------------------------
def _is_cut(tensor: Any, dim: int) -> bool:
    return in_parts(tensor) and any(p.is_shard(dim % tensor.ndim) for p in tensor.array.spec.placements)


def _added(total: Any, other: Any) -> Any:
    """A sum, of which one that is in terms gets the other one as a term."""
    if in_parts(other) and other.ndim <= total.ndim:
        spec = other.array.spec
        pairs = zip(total.array.spec.placements, spec.placements)
        other = placed(other, spec.replaced([a if a.is_partial() else b for a, b in pairs]))
    return total + other


@meaning("linear")
def _linear_in_terms(input, weight, bias=None):
    if bias is None or not (_is_cut(input, -1) or _is_cut(weight, -1)):
        return NotImplemented
    return _added(ops.linear(input, weight), bias)


@meaning("addmm", "baddbmm")
def _products_in_terms(input, first, second, beta=1, alpha=1):
    if not (_is_cut(first, -1) or _is_cut(second, -2)):
        return NotImplemented
    product = ops.matmul(first, second)
    return _added(product if alpha == 1 else product * alpha, input if beta == 1 else input * beta)
