"""Schedules given by functions of the epoch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw.optim.lr_scheduler.scheduler import LRScheduler, check_optimizer, function_state
from corefw.optim.optimizer import Optimizer


class _ByFunction(LRScheduler):
    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | list[Callable[[int], float]],
        last_epoch: int = -1,
    ):
        check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * groups
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(self.lr_lambdas)}")
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, last_epoch)

    def _factors(self) -> list[float]:
        return [function(self.last_epoch) for function in self.lr_lambdas]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of the functions, only the attributes of callable objects."""
        return {**super().state_dict(), "lr_lambdas": [function_state(f) for f in self.lr_lambdas]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave; functions stay, callable objects get their attributes."""
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if attributes is not None:
                vars(function).update(attributes)


class LambdaLR(_ByFunction):
    """Each group's initial rate times a function of the epoch.

    Args:
        optimizer: whose rates are set.
        lr_lambda: a function from the epoch to a factor, or a list of one per group.
        last_epoch: see `LRScheduler`.

    >>> import corefw as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5 / (1 + epoch)).get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[float]:
        return [base * factor for base, factor in zip(self.base_lrs, self._factors(), strict=True)]


class MultiplicativeLR(_ByFunction):
    """Each group's rate is multiplied by a function of the epoch at each step; arguments as for `LambdaLR`.

    >>> import corefw as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = torch.optim.lr_scheduler.MultiplicativeLR(optimizer, lambda epoch: 0.5)
    >>> for _ in range(3):
    ...     optimizer.step()
    ...     scheduler.step()
    >>> scheduler.get_last_lr()
    [0.125]
    """

    def get_lr(self) -> list[float]:
        rates = [group["lr"] for group in self.optimizer.param_groups]
        if self._is_initial:
            return rates
        return [rate * factor for rate, factor in zip(rates, self._factors(), strict=True)]
