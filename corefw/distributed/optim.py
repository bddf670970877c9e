"""Optimizers over several processes, which cannot be made here; the names are for what asks whether one is."""

from __future__ import annotations

from typing import Any

from corefw.optim.optimizer import Optimizer

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """An optimizer whose state lies in parts on several processes; refused.

    Raises:
        NotImplementedError: always.
    """

    def __init__(self, *arguments: Any, **options: Any):
        raise NotImplementedError("ZeroRedundancyOptimizer: it is not there yet; use the optimizer itself")
