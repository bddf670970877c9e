"""When, and with whom, processes average their parameters."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from typing import Any

from corefw.distributed.collectives import all_reduce
from corefw.distributed.groups import chosen_group
from corefw.graph.grad_mode import no_recording
from corefw.nn.parallel.buckets import flattened
from corefw.tensor import Tensor

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Averages parameters over processes.

    Args:
        process_group: the processes; all if missing.

    Attributes: ``step`` how often it was called.
    """

    def __init__(self, process_group: Any = None):
        self.process_group = chosen_group(process_group)
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or those of an optimizer's groups, if it is time to."""


class PeriodicModelAverager(ModelAverager):
    """Averages every `period` steps.

    Args:
        period: steps from one average to the next.
        warmup_steps: steps before the first, in which gradients are averaged.
        process_group: the processes; all if missing.

    Raises:
        ValueError: `warmup_steps` is negative, or `period` not positive.
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None):
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period <= 0:
            raise ValueError("Arg ``period`` must be a positive value.")
        self.period, self.warmup_steps = period, warmup_steps

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Average parameters, or those of an optimizer's groups, that have gradients, if it is time to.

        Args:
            params: tensors, or the `param_groups` of an optimizer.
        """
        since = self.step - self.warmup_steps
        if since >= 0 and since % self.period == 0:
            _average(list(_parameters(params)), self.process_group)
        self.step += 1


def _parameters(params: Iterable[Any]) -> Iterator[Tensor]:
    for one in params:
        yield from (p for p in (one["params"] if isinstance(one, dict) else [one]) if p.grad is not None)


def _average(parameters: list[Tensor], group: Any) -> None:
    """Parameters become the averages over the processes of a group."""
    for held, flat in flattened(parameters):
        with no_recording():
            flat.div_(group.size())
            all_reduce(flat, group=group)
            for p, part in zip(held, flat.split([p.numel() for p in held])):
                p.detach().copy_(part.view(p.shape))
