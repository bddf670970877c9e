"""Schedules that only shrink, or only grow, the rate."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable

from corefw.optim.lr_scheduler.scheduler import LRScheduler
from corefw.optim.optimizer import Optimizer


class StepLR(LRScheduler):
    """Multiply the rate by `gamma` every `step_size` epochs.

    Args:
        optimizer: whose rates are set.
        step_size: epochs between changes.
        gamma: factor of a change.
        last_epoch: see `LRScheduler`.

    >>> import corefw as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    >>> rates = []
    >>> for epoch in range(5):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rate(self, lr, base_lr):
        return lr * self.gamma if self.last_epoch != 0 and self.last_epoch % self.step_size == 0 else lr

    def _closed_form(self, base_lr):
        return base_lr * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(LRScheduler):
    """Multiply the rate by `gamma` at each milestone.

    Args:
        optimizer: whose rates are set.
        milestones: epochs; one given twice counts twice.
        gamma: factor of a change.
        last_epoch: see `LRScheduler`.

    >>> import corefw as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1, 3], gamma=0.5)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rate(self, lr, base_lr):
        return lr * self.gamma ** self.milestones[self.last_epoch] if self.last_epoch in self.milestones else lr

    def _closed_form(self, base_lr):
        return base_lr * self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(LRScheduler):
    """The rate times `factor`, until `total_iters` epochs have passed.

    Args:
        optimizer: whose rates are set.
        factor: between 0 and 1.
        total_iters: epochs with the factor.
        last_epoch: see `LRScheduler`.

    >>> import corefw as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.5, total_iters=4).get_last_lr()
    [0.5]
    """

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _rate(self, lr, base_lr):
        if self.last_epoch == 0:
            return lr * self.factor
        return lr * (1.0 / self.factor) if self.last_epoch == self.total_iters else lr

    def _closed_form(self, base_lr):
        return base_lr * (self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor))


class LinearLR(LRScheduler):
    """The rate times a factor that goes linearly from `start_factor` to `end_factor` in `total_iters` epochs.

    Args:
        optimizer: whose rates are set.
        start_factor: in (0, 1].
        end_factor: in [0, 1].
        total_iters: epochs until the end factor.
        last_epoch: see `LRScheduler`.

    >>> import corefw as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.5, total_iters=2)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.75]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _rate(self, lr, base_lr):
        if self.last_epoch == 0:
            return lr * self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        change = self.end_factor - self.start_factor
        return lr * (1.0 + change / (self.total_iters * self.start_factor + (self.last_epoch - 1) * change))

    def _closed_form(self, base_lr):
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return base_lr * (self.start_factor + (self.end_factor - self.start_factor) * share)


class ExponentialLR(LRScheduler):
    """Multiply the rate by `gamma` every epoch.

    Args:
        optimizer: whose rates are set.
        gamma: factor of a change.
        last_epoch: see `LRScheduler`.

    >>> import corefw as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> for epoch in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.125]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rate(self, lr, base_lr):
        return lr if self._is_initial else lr * self.gamma

    def _closed_form(self, base_lr):
        return base_lr * self.gamma**self.last_epoch


class PolynomialLR(LRScheduler):
    """The rate falls as ``(1 - epoch / total_iters) ** power``, to zero.

    Args:
        optimizer: whose rates are set.
        total_iters: epochs until zero.
        power: of the polynomial.
        last_epoch: see `LRScheduler`.

    >>> import corefw as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.PolynomialLR(optimizer, total_iters=2, power=2.0)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.25]
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _rate(self, lr, base_lr):
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        left = 1.0 - self.last_epoch / self.total_iters
        left_before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return lr * (left / left_before) ** self.power

    def _closed_form(self, base_lr):
        return base_lr * (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power
