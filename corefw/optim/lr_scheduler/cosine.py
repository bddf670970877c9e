"""Cosine annealing (Loshchilov & Hutter 2016, SGDR)."""

from __future__ import annotations

from math import cos, floor, log, pi
from typing import Any

from corefw.optim.lr_scheduler.scheduler import LRScheduler
from corefw.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """The rate follows half a cosine from its initial value to `eta_min` in `T_max` epochs (and back in as many).

    ``lr = eta_min + (base_lr - eta_min) * (1 + cos(pi * epoch / T_max)) / 2``

    Args:
        optimizer: whose rates are set.
        T_max: epochs of the half wave.
        eta_min: the lowest rate.
        last_epoch: see `LRScheduler`.

    >>> import corefw as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
    >>> for epoch in range(2):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> round(scheduler.get_last_lr()[0], 6)
    0.5
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _rate(self, lr, base_lr):
        if self._is_initial:
            return lr
        if self._step_count == 1 and self.last_epoch > 0:
            return self._closed_form(base_lr)
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the rate was lowest: it has no ratio to follow
            return lr + (base_lr - self.eta_min) * (1 - cos(pi / self.T_max)) / 2
        ratio = (1 + cos(pi * self.last_epoch / self.T_max)) / (1 + cos(pi * (self.last_epoch - 1) / self.T_max))
        return ratio * (lr - self.eta_min) + self.eta_min

    def _closed_form(self, base_lr):
        return self.eta_min + (base_lr - self.eta_min) * (1 + cos(pi * self.last_epoch / self.T_max)) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing that starts again from the initial rate after `T_0` epochs, then after `T_mult` times as many.

    Args:
        optimizer: whose rates are set.
        T_0: epochs of the first run.
        T_mult: how much longer each run is than the one before.
        eta_min: the lowest rate.
        last_epoch: see `LRScheduler`.

    >>> import corefw as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2)
    >>> rates = []
    >>> for epoch in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [1.0, 0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: Any = last_epoch
        super().__init__(optimizer, last_epoch)

    def _rate(self, lr, base_lr):
        return self.eta_min + (base_lr - self.eta_min) * (1 + cos(pi * self.T_cur / self.T_i)) / 2

    def step(self, epoch: float | None = None) -> None:
        """Set the rates of the next epoch.

        Args:
            epoch: the epoch to jump to; may have a fraction, ``epoch + batch / batches``.
        """
        if epoch is None and self.last_epoch >= 0:
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
            epoch = self.last_epoch + 1
        else:
            epoch = epoch or 0
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._locate(epoch)
        self._update_lr(floor(epoch))

    def _locate(self, epoch: float) -> None:
        """Find the run that `epoch` falls into, and the place in it."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            restarts = int(log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**restarts - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**restarts
