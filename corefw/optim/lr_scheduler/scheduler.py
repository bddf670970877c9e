"""The base of all schedulers: counting epochs, writing rates into the optimizer's groups, checkpoints."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from corefw.optim.optimizer import Optimizer
from corefw.tensor import Tensor

Rate = Any  # float, or a tensor of one element, which is then changed in place


class LRScheduler:
    """Sets the learning rate of each of an optimizer's groups as epochs pass.

    A subclass defines either ``get_lr()``, the rates of all groups at ``last_epoch``, or ``_rate(lr, base_lr)``, that
    of one group from its present rate and the one it began with; and, where there is one, ``_closed_form(base_lr)``,
    the rate without a memory of the previous one, for ``step(epoch)``.

    Args:
        optimizer: its groups' rates are changed, and keep where they began as "initial_lr".
        last_epoch: -1 begins; otherwise the groups must have an "initial_lr", and the schedule goes on after it.

    Attributes: ``last_epoch`` how many steps were made; ``base_lrs`` the rates the groups began with.

    >>> import corefw as torch
    >>> class Halving(torch.optim.lr_scheduler.LRScheduler):
    ...     def get_lr(self):
    ...         return [lr * 0.5**self.last_epoch for lr in self.base_lrs]
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)
    >>> scheduler = Halving(optimizer)
    >>> optimizer.step()
    >>> scheduler.step()
    >>> scheduler.get_last_lr()
    [0.5]
    """

    _is_initial = False  # inside the step that the constructor makes
    _get_lr_called_within_step = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    f"last_epoch >= 0: load the optimizer's state first, or begin with last_epoch=-1"
                )
        self.base_lrs = values(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _rate(self, lr: Rate, base_lr: Rate) -> Rate:
        raise NotImplementedError(f"{type(self).__name__} defines neither get_lr nor _rate")

    def get_lr(self) -> list[Rate]:
        """The rates at ``last_epoch``, one per group; for use inside ``step`` (see ``get_last_lr``)."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, please use `get_last_lr()`.",
                UserWarning,
                stacklevel=2,
            )
        return [self._rate(lr, base) for lr, base in zip(values(self.optimizer, "lr"), self.base_lrs, strict=True)]

    def get_last_lr(self) -> list[Rate]:
        """The rates set by the last step, one per group."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch.

        Args:
            epoch: deprecated; the epoch to jump to.

        Warns when called before the optimizer's first step, which would skip the first rate.
        """
        if self._step_count == 1 and not self.optimizer._stepped:
            warnings.warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`: call them in the opposite order, "
                "or the first value of the learning rate schedule is skipped.",
                UserWarning,
                stacklevel=2,
            )
        self._step_count += 1
        if epoch is not None:
            warn_epoch()
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        closed_form = getattr(self, "_closed_form", None)
        if epoch is not None and closed_form is not None:
            self.last_epoch = epoch
            self._write([closed_form(base) for base in self.base_lrs])
        else:
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            self._get_lr_called_within_step = True
            try:
                rates = self.get_lr()
            finally:
                self._get_lr_called_within_step = False
            self._write(rates)

    def _write(self, rates: Sequence[Rate]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            assign(group, "lr", rate)
        self._last_lr = values(self.optimizer, "lr")

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, in PyTorch's form."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave; the optimizer's own state is loaded by itself."""
        self.__dict__.update(state_dict)


def copied(value: Any) -> Any:
    """A value of its own: tensors are changed in place."""
    return value.clone() if isinstance(value, Tensor) else value


def values(optimizer: Optimizer, name: str) -> list[Any]:
    """An option of all groups."""
    return [copied(group[name]) for group in optimizer.param_groups]


def assign(group: dict[str, Any], name: str, value: Any) -> None:
    """Set an option of a group; a tensor there keeps its identity."""
    if isinstance(group[name], Tensor):
        group[name].fill_(float(value))
    else:
        group[name] = float(value) if isinstance(value, Tensor) else value


def per_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """`value` as one value per group."""
    groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(groups)]
    if len(value) != groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {groups}."
        )
    return [copied(v) for v in value]


def check_optimizer(optimizer: Any) -> None:
    """Raise TypeError for anything but an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def warn_epoch() -> None:
    """The warning for an epoch given to ``step``."""
    warnings.warn(
        "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible: "
        "call `scheduler.step()`. Where there is a closed form, it is used for the given epoch.",
        UserWarning,
        stacklevel=3,
    )


def function_state(function: Callable | None) -> dict[str, Any] | None:
    """What a checkpoint keeps of a user's function: attributes of a callable object, nothing of a plain function."""
    if function is None or isinstance(function, (types.FunctionType, types.BuiltinFunctionType)):
        return None
    return dict(getattr(function, "__dict__", {}))
