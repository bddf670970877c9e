"""Schedules made of schedules."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from corefw.optim.lr_scheduler.plateau import ReduceLROnPlateau
from corefw.optim.lr_scheduler.scheduler import LRScheduler, assign, values
from corefw.optim.optimizer import Optimizer


class _Combined(LRScheduler):
    _schedulers: Sequence[LRScheduler]

    def _check(self, optimizer: Optimizer | None) -> None:
        name = type(self).__name__
        for i, scheduler in enumerate(self._schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be "
                    f"specified when calling `step`, but got one at index {i} in the given schedulers sequence."
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} of another {type(scheduler.optimizer).__name__}."
                )

    def get_lr(self) -> list[float]:
        raise NotImplementedError(
            f"{type(self).__name__} has no rates of its own: in a SequentialLR it can only be the first"
        )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the schedulers."""
        return {**super().state_dict(), "_schedulers": [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave, in all schedulers."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_schedulers"})
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Combined):
    """One scheduler after the other: the next one begins at each milestone.

    Args:
        optimizer: whose rates are set.
        schedulers: in order, each made for `optimizer`.
        milestones: the epochs at which the second and later ones begin.
        last_epoch: see `LRScheduler`.

    >>> import corefw as torch
    >>> from corefw.optim.lr_scheduler import ConstantLR, ExponentialLR, SequentialLR
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> parts = [ConstantLR(optimizer, 0.5, total_iters=9), ExponentialLR(optimizer, 0.5)]
    >>> scheduler = SequentialLR(optimizer, parts, milestones=[2])
    >>> rates = []
    >>> for epoch in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [0.5, 0.5, 1.0, 0.5]
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ):
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        self._schedulers = schedulers
        self._check(optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # each scheduler made its first step when it was built: undo them all, then let the first one make it again
        for group in optimizer.param_groups:
            assign(group, "lr", group["initial_lr"])
        for scheduler in schedulers:
            _step_back(scheduler)
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def step(self) -> None:  # type: ignore[override]
        """Step the scheduler of the present epoch."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Combined):
    """Several schedulers stepped together: their factors multiply.

    Args:
        schedulers: all for one optimizer.
        optimizer: that optimizer; the first scheduler's if None.

    >>> import corefw as torch
    >>> from corefw.optim.lr_scheduler import ChainedScheduler, ConstantLR, ExponentialLR
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = ChainedScheduler([ConstantLR(optimizer, 0.5, total_iters=9), ExponentialLR(optimizer, 0.5)])
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        if not schedulers:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        self._schedulers = schedulers
        self._check(getattr(schedulers[0], "optimizer", None) if optimizer is None else optimizer)
        self.optimizer = schedulers[0].optimizer
        self._last_lr = values(self.optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Step all schedulers."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = values(self.optimizer, "lr")


def _step_back(scheduler: LRScheduler) -> None:
    if isinstance(scheduler, _Combined):
        for part in scheduler._schedulers:
            _step_back(part)
    else:
        scheduler.last_epoch -= 1
