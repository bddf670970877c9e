"""Schedules that cycle the rate and, against it, the momentum (Smith 2015, 2017)."""

from __future__ import annotations

from collections.abc import Callable
from math import cos, floor, pi
from typing import Any, Literal

from corefw.optim.lr_scheduler.scheduler import (
    LRScheduler,
    assign,
    check_optimizer,
    function_state,
    per_group,
)
from corefw.optim.optimizer import Optimizer


class _WithMomentum(LRScheduler):
    """What the two share: the momentum, or the first beta, of each group moves between two bounds."""

    cycle_momentum: bool
    use_beta1: bool

    def _begin_momentum(self, base: Any, most: Any, last_epoch: int) -> tuple[list[float], list[float]]:
        """The bounds per group, noted in the groups where the schedule begins."""
        optimizer = self.optimizer
        if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
            raise ValueError("optimizer must support momentum or beta1 with `cycle_momentum` option enabled")
        self.use_beta1 = "betas" in optimizer.defaults
        bases, mosts = per_group("base_momentum", optimizer, base), per_group("max_momentum", optimizer, most)
        if last_epoch == -1:
            for low, high, group in zip(bases, mosts, optimizer.param_groups, strict=True):
                self._set_momentum(group, high)
                group["max_momentum"] = high
                group["base_momentum"] = low
        return bases, mosts

    def _set_momentum(self, group: dict[str, Any], momentum: float) -> None:
        if self.use_beta1:
            group["betas"] = (momentum, *group["betas"][1:])
        else:
            group["momentum"] = momentum


class CyclicLR(_WithMomentum):
    """The rate goes up from `base_lr` to `max_lr` and down again, over and over (Smith 2015); step once per batch.

    Args:
        optimizer: whose rates are set.
        base_lr, max_lr: the bounds, or lists of one per group.
        step_size_up, step_size_down: steps of the two halves of a cycle; the same if the second is None.
        mode: "triangular"; "triangular2", where each cycle is half as high as the last; "exp_range", where the height
            is scaled by ``gamma ** step``.
        gamma: see `mode`.
        scale_fn: scales the height, in place of `mode`; a function of the cycle's number, from 1, or of the step.
        scale_mode: "cycle" or "iterations": what `scale_fn` is given.
        cycle_momentum: move the momentum (or the first beta) against the rate, between `base_momentum` and
            `max_momentum`.
        last_epoch: see `LRScheduler`.

    >>> import corefw as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], momentum=0.9)
    >>> scheduler = torch.optim.lr_scheduler.CyclicLR(optimizer, base_lr=0.0, max_lr=1.0, step_size_up=2)
    >>> rates = []
    >>> for batch in range(5):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> rates
    [0.0, 0.5, 1.0, 0.5, 0.0]
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: float | list[float], max_lr: float | list[float],
        step_size_up: float = 2000, step_size_down: float | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular", gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None, scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True, base_momentum: float | list[float] = 0.8, max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ):  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = per_group("base_lr", optimizer, base_lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        step_size_down = step_size_up if step_size_down is None else step_size_down
        self.total_size = float(step_size_up + step_size_down)
        self.step_ratio = step_size_up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        if scale_fn is None:
            scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.scale_mode = scale_mode
        self.cycle_momentum = cycle_momentum
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                assign(group, "lr", lr)
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._begin_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The scale of the height at cycle, or step, `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular":
            return 1.0
        return 1 / 2.0 ** (x - 1) if self.mode == "triangular2" else self.gamma**x

    def _height(self) -> tuple[float, float]:
        """How far up the cycle is, from 0 to 1, and its scale."""
        cycle = floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        return height, self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)

    def get_lr(self) -> list[float]:
        height, scale = self._height()
        if self.cycle_momentum:
            for low, high, group in zip(
                self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=True
            ):
                self._set_momentum(group, high - (high - low) * height * scale)
        return [low + (high - low) * height * scale for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of `scale_fn`, only the attributes of a callable object."""
        return {**super().state_dict(), "_scale_fn_custom": function_state(self._scale_fn_custom)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what ``state_dict`` gave; a function stays, a callable object gets its attributes."""
        attributes = state_dict["_scale_fn_custom"]
        super().load_state_dict({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if attributes is not None:
            vars(self._scale_fn_custom).update(attributes)


class OneCycleLR(_WithMomentum):
    """The rate goes up once, to `max_lr`, and down to nearly nothing (Smith & Topin 2017); step once per batch.

    Args:
        optimizer: whose rates are set.
        max_lr: the highest rate, or a list of one per group.
        total_steps: steps of the whole cycle; or give `epochs` and `steps_per_epoch`.
        pct_start: share of the steps that go up.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: move the momentum (or the first beta) against the rate, between `base_momentum` and
            `max_momentum`.
        div_factor: the first rate is ``max_lr / div_factor``.
        final_div_factor: the last rate is the first divided by this.
        three_phase: come down to the first rate as fast as it went up, then on to the last; else straight to the last.
        last_epoch: see `LRScheduler`.

    >>> import corefw as torch
    >>> optimizer = torch.optim.SGD([torch.ones(1, requires_grad=True)], momentum=0.9)
    >>> scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=5, pct_start=0.4)
    >>> rates = []
    >>> for batch in range(4):
    ...     rates += scheduler.get_last_lr()
    ...     optimizer.step()
    ...     scheduler.step()
    >>> [round(rate, 3) for rate in rates]
    [0.04, 1.0, 0.75, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: float | list[float], total_steps: int | None = None,
        epochs: int | None = None, steps_per_epoch: int | None = None, pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos", cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85, max_momentum: float | list[float] = 0.95, div_factor: float = 25.0,
        final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ):  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        if total_steps is not None:
            self.total_steps = _positive("total_steps", total_steps)
        elif epochs is not None and steps_per_epoch is not None:
            self.total_steps = _positive("epochs", epochs) * _positive("steps_per_epoch", steps_per_epoch)
        else:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._anneal_func_type = anneal_strategy
        last = self.total_steps - 1
        up = _phase(pct_start * self.total_steps - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
        if three_phase:
            self._schedule_phases = [
                up,
                _phase(2 * pct_start * self.total_steps - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
                _phase(last, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
            ]
        else:
            self._schedule_phases = [up, _phase(last, "max_lr", "min_lr", "base_momentum", "max_momentum")]
        if last_epoch == -1:
            for highest, group in zip(per_group("max_lr", optimizer, max_lr), optimizer.param_groups, strict=True):
                group["initial_lr"] = highest / div_factor
                group["max_lr"] = highest
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._begin_momentum(base_momentum, max_momentum, last_epoch)
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "cos":
            return end + (start - end) / 2.0 * (cos(pi * share) + 1)
        return (end - start) * share + start

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin = 0.0
        for phase in self._schedule_phases[:-1]:
            if step <= phase["end_step"]:
                break
            begin = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        share = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], share))
            if self.cycle_momentum:
                momentum = self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], share)
                self._set_momentum(group, momentum)
        return rates


def _phase(end_step: float, start_lr: str, end_lr: str, start_momentum: str, end_momentum: str) -> dict[str, Any]:
    """A part of the cycle: until when, and between which of a group's options."""
    return {
        "end_step": float(end_step),
        "start_lr": start_lr,
        "end_lr": end_lr,
        "start_momentum": start_momentum,
        "end_momentum": end_momentum,
    }


def _positive(name: str, value: Any) -> int:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value
