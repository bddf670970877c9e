"""Schedulers inside of what is compiled: their steps are Python's, made after each run; options are given to runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import get_ident
from typing import Any

from corefw.compiling.guards import Option
from corefw.dispatch.plan import Plan, Rate
from corefw.optim.lr_scheduler.scheduler import LRScheduler


class Given:
    """Options that are others in each run: while a call is recorded they are numbers that note what is computed with
    them.

    Attributes: ``changed`` the key of one that the program has set to something else; "" if it has set none.
    """

    def __init__(self, options: Sequence[Option]):
        self._options = options
        self._plain: list[float] = []
        self._noting: list[Rate] = []
        self.changed = ""

    def begin(self) -> None:
        """Put numbers that note what is computed with them in the place of plain ones."""
        self._plain = [option.get() for option in self._options]
        self._noting = [Rate(number, i) for i, number in enumerate(self._plain)]
        for option, rate in zip(self._options, self._noting):
            option.put(rate)

    def end(self) -> None:
        """Put plain numbers back."""
        for option, rate, number in zip(self._options, self._noting, self._plain):
            if option.get() is rate:
                option.put(number)
            else:
                self.changed = self.changed or option.key


class Stepping:
    """A with-block that hears of the steps of schedulers in this thread, and of other looks at them.

    Args:
        given: the options that are others in each run.
        plan: the calls that were written down.

    Attributes:
        steps: the schedulers that made a step, in order.
        options: what may have been changed by that in their optimizers' groups.
        looks: by the id of a scheduler, what else the program asked of it.
    """

    def __init__(self, given: Given, plan: Plan):
        self._given, self._plan, self._thread, self._inside = given, plan, get_ident(), False
        self._first = 0  # how many calls there were at the first step
        self.steps: list[LRScheduler] = []
        self.options: dict[tuple[int, str], Option] = {}
        self.looks: dict[int, str] = {}
        self._refusal = ""

    def __enter__(self) -> Stepping:
        def __getattribute__(scheduler: LRScheduler, name: str) -> Any:
            found = object.__getattribute__(scheduler, name)
            if self._inside or get_ident() != self._thread or name == "__class__":
                return found
            if name == "step":
                return lambda *args, **kwargs: self._step(scheduler, found, args, kwargs)
            self.looks.setdefault(id(scheduler), name)
            return found

        def __setattr__(scheduler: LRScheduler, name: str, value: Any) -> None:
            if not self._inside and get_ident() == self._thread:
                self.looks.setdefault(id(scheduler), name)
            object.__setattr__(scheduler, name, value)

        LRScheduler.__getattribute__ = __getattribute__  # type: ignore[method-assign, assignment]
        LRScheduler.__setattr__ = __setattr__  # type: ignore[method-assign, assignment]
        return self

    def __exit__(self, *exception: object) -> None:
        del LRScheduler.__getattribute__, LRScheduler.__setattr__

    def _step(self, scheduler: LRScheduler, step: Any, args: tuple, kwargs: dict) -> Any:
        kind, calls = type(scheduler).__name__, len(self._plan.calls)
        if args or kwargs:
            self._refusal = f"step() of {kind} is given arguments"
        self._first = self._first if self.steps else calls
        self.steps.append(scheduler)
        self._inside = True
        self._given.end()
        groups = scheduler.optimizer.param_groups
        before = [dict(group) for group in groups]
        try:
            return step(*args, **kwargs)
        finally:
            for group, then in zip(groups, before):
                for key in group:
                    if key == "lr" or group[key] is not then.get(key):
                        self._note(key, group, then)
            self._given.begin()
            self._inside = False
            if len(self._plan.calls) > calls:
                self._refusal = f"step() of {kind} computes with tensors"

    def refuse(self) -> str:
        """Why the steps cannot be made after a run; "" if they can."""
        for call in self._plan.calls[self._first :] if self.steps else ():
            if any(isinstance(argument, Rate) for argument in call.arguments):
                return f"a scheduler steps before {call.op.name} ({call.where})"
        return self._refusal

    def _note(self, key: str, group: dict, then: dict) -> None:
        """Note an option that may have been changed, if it is a number, or one of a tuple of numbers."""
        value, before = group.get(key), then.get(key)
        if value.__class__ is float:
            self.options[id(group), key] = Option(group, key)
        elif value.__class__ is tuple and before.__class__ is tuple and len(value) == len(before):
            places = [i for i, (a, b) in enumerate(zip(value, before)) if a is not b]
            if len(places) == 1 and value[places[0]].__class__ is float:
                self.options[id(group), key] = Option(group, key, places[0])


def snapshot(schedulers: Iterable[LRScheduler]) -> list[tuple]:
    """The states of schedulers and of the groups of their optimizers."""
    return [(s, s.state_dict(), [(group, dict(group)) for group in s.optimizer.param_groups]) for s in schedulers]


def restore(states: list[tuple]) -> None:
    """Put back what `snapshot` gave."""
    for scheduler, state, groups in states:
        scheduler.load_state_dict(state)
        for group, options in groups:
            group.update(options)
