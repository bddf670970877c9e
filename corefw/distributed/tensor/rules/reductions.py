"""Reductions: a sum over a dimension that is cut gives terms; others want the dimension whole, or are sums of sums."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from string import ascii_lowercase
from typing import Any

from corefw.dispatch.declare import ops
from corefw.distributed.tensor.calls import meaning, rule
from corefw.distributed.tensor.parts import assembled, local_of, placed
from corefw.distributed.tensor.placements import WHOLE, Partial, Placement, Shard
from corefw.graph.grad_mode import mode
from corefw.shapes import canonical_dim


def letters(ndim: int, whole: Iterable[int] = ()) -> list[str]:
    """A letter for each dimension; capitals for those that must be whole."""
    return [letter.upper() if d in whole else letter for d, letter in zip(range(ndim), ascii_lowercase)]


def dims_of(dim: Any, ndim: int) -> list[int]:
    """The dimensions that an argument `dim` names; all for None."""
    given = range(ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    return [canonical_dim(d, ndim) for d in given]


def _reduced(input, dim, keepdim: bool, whole: bool, linear: bool) -> str:
    dims = dims_of(dim, input.ndim)
    names = letters(input.ndim, dims if whole else ())
    left = "1" if keepdim else ""
    result = "".join(left if d in dims else name for d, name in enumerate(names))
    return f"{'' if linear else '~'}{''.join(names) or '...'} -> {result or '...'}"


def _is_cut(input, dim) -> bool:
    """Whether a tensor is cut in one of the dimensions that are reduced."""
    dims = dims_of(dim, input.ndim)
    return any(isinstance(p, Shard) and p.dim in dims for p in input.array.spec.placements)


@rule("sum")
def _sum(input, dim=None, keepdim=False, dtype=None):
    return _reduced(input, dim, keepdim, whole=False, linear=True)


@meaning("mean")
def _mean_of_parts(input, dim=None, keepdim=False, dtype=None):
    if not _is_cut(input, dim):
        return NotImplemented
    count = prod(input.shape[d] for d in dims_of(dim, input.ndim))
    return input.sum(dim, keepdim=keepdim, dtype=dtype) / count


@rule("mean")
def _mean(input, dim=None, keepdim=False, dtype=None):
    return _reduced(input, dim, keepdim, whole=True, linear=True)


@rule("amax", "amin", "prod", "logsumexp", "all", "any", "count_nonzero", "nansum", "argmax", "argmin", "variance")
def _whole(input, dim=None, keepdim=False, *attributes):
    return _reduced(input, dim, bool(keepdim), whole=True, linear=False)


def _extreme(name: str, reduction: str) -> None:
    @meaning(name)
    def extreme(input, dim=None, keepdim=False):
        """The extremes of parts, in terms of one; its gradient would want to know who has them."""
        spec, dims = input.array.spec, dims_of(dim, input.ndim)
        is_linear = any(p.is_partial() for p in spec.placements)
        if (
            is_linear
            or not _is_cut(input, dims)
            or (mode.recording and input.requires_grad)
            or not _all_have_some(input)
        ):
            return NotImplemented
        kept = [d for d in range(input.ndim) if d not in dims or keepdim]
        where = [
            (Partial(reduction) if p.dim in dims else Shard(kept.index(p.dim))) if isinstance(p, Shard) else p
            for p in spec.placements
        ]
        found = getattr(ops, name)(input.array.local, dims, keepdim)
        return assembled(found, [1 if d in dims else input.shape[d] for d in kept], spec.replaced(where))


for _name in ("amax", "amin"):
    _extreme(_name, _name.removeprefix("a"))


@rule("max_dim", "min_dim")
def _extremes(input, dim, keepdim=False):
    said = _reduced(input, dim, keepdim, whole=True, linear=False)
    return f"{said} {said.partition('-> ')[2]}"


@rule("topk")
def _greatest(input, k, dim, *attributes):
    return _ordered(input, dim)


@rule("sort")
def _ordered(input, dim, *attributes):
    names = "".join(letters(input.ndim, dims_of(dim, input.ndim)))
    return f"~{names} -> {names} {names}" if names else None


@rule("softmax", "log_softmax", "cumsum", "cumprod", "logcumsumexp")
def _along(input, dim, *attributes):
    names = "".join(letters(input.ndim, dims_of(dim, input.ndim)))
    return f"~{names} -> {names}" if names else None


# -- norms ------------------------------------------------------------------------------------------------------------
@meaning("vector_norm")
def _norm_of_parts(input, ord, dim=None, keepdim=False):
    """The norm of the norms of parts."""
    dims, spec = dims_of(dim, input.ndim), input.array.spec
    placements = spec.placements
    if not _is_cut(input, dims) or ord == 0 or not _all_have_some(input) or any(p.is_partial() for p in placements):
        return NotImplemented
    kept = [d for d in range(input.ndim) if d not in dims or keepdim]
    where: list[Placement] = [
        Shard(0 if p.dim in dims else kept.index(p.dim) + 1) if isinstance(p, Shard) else p for p in placements
    ]
    count = prod(n for n, p in zip(spec.mesh.shape, placements) if isinstance(p, Shard) and p.dim in dims)
    norms = ops.vector_norm(local_of(input), ord, dims, keepdim).unsqueeze(0)
    shape = [1 if d in dims else input.shape[d] for d in kept]
    gathered = spec.replaced([WHOLE if p.is_shard(0) else p for p in where])
    return ops.vector_norm(placed(assembled(norms, (count, *shape), spec.replaced(where)), gathered), ord, (0,), False)


def _all_have_some(input) -> bool:
    """Whether every process has elements."""
    spec = input.array.spec
    for d, n in enumerate(input.shape):
        for count, p in zip(spec.mesh.shape, spec.placements):
            if p.is_shard(d):
                if Shard.local_shard_size_and_offset(n, count, count - 1)[0] == 0:
                    return False
                n = Shard.local_shard_size_and_offset(n, count, count - 1)[0]
    return True


@rule("vector_norm")
def _norm(input, ord, dim=None, keepdim=False):
    return _reduced(input, dim, keepdim, whole=True, linear=False)


@meaning("total_norm")
def _total_norm(tensors, norm_type):
    norms = [ops.vector_norm(tensor, norm_type) for tensor in tensors]
    return ops.vector_norm(ops.stack(norms), norm_type)
