"""Joining arrays and moving their elements."""

from __future__ import annotations

from corefw.dispatch.registry import Kernel
from corefw_cupy.cuda import Cuda


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    copy = cuda.copying.copy

    def cat(tensors, dim):
        parts = [t for t in tensors if t.shape != (0,)] or tensors
        first = parts[0].shape
        others = {(*t.shape[:dim], *t.shape[dim + 1 :]) for t in parts}
        if len(others) > 1 or not first or any(t.ndim != len(first) for t in parts):
            raise ValueError("shapes differ")
        result = cuda.empty((*first[:dim], sum([t.shape[dim] for t in parts]), *first[dim + 1 :]), parts[0].dtype)
        start, before = 0, (slice(None),) * dim
        for part in parts:
            end = start + part.shape[dim]
            copy(result[(*before, slice(start, end))], part)
            start = end
        return result

    def stack(tensors, dim):
        shape = tensors[0].shape
        if any(t.shape != shape for t in tensors):
            raise ValueError("shapes differ")
        dim %= len(shape) + 1
        result = cuda.empty((*shape[:dim], len(tensors), *shape[dim:]), tensors[0].dtype)
        before = (slice(None),) * dim
        for i, part in enumerate(tensors):
            copy(result[(*before, i, ...)], part)
        return result

    return [Kernel("cat", cat), Kernel("stack", stack)]
