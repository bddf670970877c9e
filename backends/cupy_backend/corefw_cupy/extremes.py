"""Largest and smallest elements, and where they are."""

from __future__ import annotations

from corefw.dispatch.registry import Kernel
from corefw_cupy.cuda import Cuda
from corefw_cupy.launch import BOOL, NUMBERS, offered
from corefw_cupy.reducing import Reduction

_ORDERED = {**NUMBERS, **BOOL}


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""

    def extreme(op, operation):
        return Kernel(op, Reduction(cuda, "extremes.cu", operation, _ORDERED, empty=False), offered(_ORDERED))

    return [extreme("amax", "Largest"), extreme("amin", "Smallest")]
