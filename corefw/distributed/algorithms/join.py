"""Training with uneven inputs: a process that has no more of them answers the collectives of those that have."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple

from corefw.dispatch.declare import ops
from corefw.distributed.collectives import all_reduce
from corefw.distributed.groups import ProcessGroup
from corefw.distributed.work import Work
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor

__all__ = ["Join", "JoinHook", "Joinable"]

_MANY = 1000  # steps answered, from which on the inputs count as very uneven


class JoinHook:
    """What a process that has no more inputs does for one `Joinable`."""

    def main_hook(self) -> None:
        """Answer the collectives of one step of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called once all processes are done.

        Args:
            is_last_joiner: whether this process is one of those that were done last.
        """


@dataclass
class _Config:
    """How a `Joinable` takes part in a `Join`."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False
    told: Work | None = None  # kept until it has ended: its memory is being written

    def finish(self) -> None:
        """Wait until the others know of the last step."""
        if self.told is not None:
            self.told.wait()
        self.told = None


class Joinable(ABC):
    """What can be trained with uneven inputs. Its methods that begin a step call `Join.notify_join_context`."""

    def __init__(self) -> None:
        super().__init__()
        self._join_config = _Config()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What processes without inputs do for it; `kwargs` are those of `Join`."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of its messages."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The processes."""


class _Place(NamedTuple):
    group: ProcessGroup
    device: Any


class Join:
    """A block in which processes train with uneven inputs: at its end a process waits for the others, and answers their
    collectives meanwhile.

    Args:
        joinables: what is trained, such as a `DistributedDataParallel` and a `ZeroRedundancyOptimizer`.
        enable: whether inputs are uneven; if not, the block does nothing.
        throw_on_early_termination: whether all processes raise an error once one has no more inputs.
        kwargs: for the hooks of `joinables`.

    Raises:
        ValueError: they have different process groups or devices.

    >>> import corefw as torch
    >>> from corefw.distributed.algorithms.join import Join
    >>> with Join([], enable=False):
    ...     pass
    """

    def __init__(
        self, joinables: list[Joinable], enable: bool = True, throw_on_early_termination: bool = False, **kwargs: Any
    ):
        if enable and not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables, self._enable, self._throws = joinables, enable, throw_on_early_termination
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables] if enable else []
        self._place = _place_of(joinables) if enable else None

    def __enter__(self) -> Join | None:
        for i, joinable in enumerate(self._joinables):
            joinable._join_config = _Config(self._enable, self._throws, i == 0)
        return self if self._enable else None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if self._place is not None and kind is None:
                self._answer(self._place)
        finally:
            self._disable()

    def _disable(self) -> None:
        for joinable in self._joinables:
            joinable._join_config = _Config()

    def _answer(self, place: _Place) -> None:
        """Answer the others until none has inputs."""
        for joinable in self._joinables:
            joinable._join_config.finish()
        self._disable()  # this process begins no steps
        steps, is_last = 0, True
        while _summed(place, 0):
            if self._throws:
                _summed(place, 1)
                raise RuntimeError(f"Rank {place.group.rank()} exhausted all inputs.")
            for hook in self._hooks:
                hook.main_hook()
            is_last = False
            steps += 1
            if steps == _MANY:
                warnings.warn(
                    f"Detected uneven input skew of greater than {_MANY}. This means that rank {place.group.rank()} "
                    f"has at least {_MANY} fewer inputs than another one.",
                    stacklevel=3,
                )
        for hook in self._hooks:
            hook.post_hook(is_last)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Tell processes without inputs that this one begins a step.

        Args:
            joinable: what begins it; of several in one `Join` the first alone tells.

        Returns:
            The work of counting the processes with inputs, `work.result()[0]`; None if nothing is told.

        Raises:
            RuntimeError: a process has no more inputs, and the block throws then.
        """
        config = joinable._join_config
        if not (config.enable and config.is_first_joinable):
            return None
        place = _Place(joinable.join_process_group, joinable.join_device)
        config.finish()
        config.told = work = all_reduce(_word(place, 1), group=place.group, async_op=True)
        if config.throw_on_early_termination and int(work.wait() and work.result()[0]) < place.group.size():  # type: ignore[union-attr]
            _summed(place, 0)
            raise RuntimeError("Detected at least one rank that exhausted inputs. Throwing across all ranks.")
        return work


def _place_of(joinables: list[Joinable]) -> _Place:
    """The process group and the device of all."""
    group, device = joinables[0].join_process_group, joinables[0].join_device
    for joinable in joinables[1:]:
        if joinable.join_process_group is not group:
            raise ValueError("Using join context manager with multiple process groups")
    return _Place(group, device)


def _word(place: _Place, value: int) -> Tensor:
    with no_recording():
        return ops.full((1,), value, device=place.device)


def _summed(place: _Place, value: int) -> int:
    """The sum of the numbers that all processes give."""
    word = _word(place, value)
    all_reduce(word, group=place.group)
    return int(word)
