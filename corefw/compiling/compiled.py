"""Compiled functions: calls that are replayed where a recording holds, and else run, and are recorded, as ever."""

from __future__ import annotations

import functools
import logging
import weakref
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from threading import Lock
from types import CodeType
from typing import Any

from corefw.compiling.arguments import OTHER, Look, key_of
from corefw.compiling.entering import entering
from corefw.compiling.entries import Entry
from corefw.compiling.environment import hindered
from corefw.compiling.frames import Watching, can_watch
from corefw.compiling.guards import Option
from corefw.compiling.recording import record
from corefw.compiling.schedules import Given, Stepping, restore, snapshot
from corefw.compiling.surroundings import Surroundings
from corefw.compiling.tape import Tape
from corefw.dispatch.plan import Plan
from corefw.errors import CompileError, DifferenceError
from corefw.nn.modules.module import Module
from corefw.tensor import Tensor
from corefw.utils._pytree import tree_flatten

MOST_RECORDINGS = 8  # of one function
MOST_TRIES = 16  # of recording, one after another in vain, or each for something else
MOST_KINDS = 64  # of arguments that are seen before it is clear that they differ in each call
_TRIES = 3  # of a call that changes what it depends on

#: how all compiled functions may behave (see `corefw.compiler.set_stance`)
STANCES = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")
_OTHERS = "others"  # the key of all arguments for which there is no recording yet
#: held by the thread that looks at a call or records it: calls of kernels are written down by one at a time
_recording = Lock()
_logger = logging.getLogger("corefw.compiler")
#: all that live, for `reset`
_made: weakref.WeakSet[Compiled] = weakref.WeakSet()


@dataclass(frozen=True)
class Options:
    """How a function is compiled.

    Attributes:
        fullgraph: whether a call that cannot be recorded raises CompileError.
        check: every how many replays the function runs too, and what both give is compared; 0 for never.
        passes: the names of the passes that improve plans; None for all.
        inner: is called with the compiled function where a call cannot be replayed.
        least: how many calls of kernels are worth a replay.
    """

    fullgraph: bool = False
    check: int = 0
    passes: Sequence[str] | None = None
    inner: Callable[[Compiled], None] | None = None
    least: int = 1


class Compiled:
    """A function behind `compile`.

    The first call runs as ever, and tells which functions of the program run in it. The second one whose arguments look
    the same is recorded; further ones are replayed, as long as all that the function depends on is as it was.

    Args:
        function: what is called.
        root: what it belongs to, if that is no function: a module.
        options: how.

    Attributes:
        programs: the plans of all recordings, of forwards and of backwards.
        refusals: why calls are not replayed, by what their arguments look like.
    """

    stance = STANCES[0]

    def __init__(self, function: Callable, root: Any = None, options: Options = Options()):
        functools.update_wrapper(self, function, updated=())
        self._function, self._root, self._options = function, function if root is None else root, options
        named = function if root is None else type(root)
        self._name = getattr(named, "__qualname__", type(function).__name__)
        self.reset()
        _made.add(self)

    def reset(self) -> None:
        """Forget all recordings."""
        self._watched = self._given_up = False
        self._kinds: set = set()
        self._recordings = 0
        self._functions: dict[CodeType, dict[str, Any]] = {}
        self._schedulers: dict[int, Any] = {}  # that make a step in it
        self._options_changed: dict[tuple[int, str], Option] = {}  # by them
        self.refusals: dict[Any, str] = {}
        self._entries: dict[Any, list[Entry]] = {}
        self._enter: Callable[[tuple, dict], Any] | None = None  # of the entry that was replayed last
        self._tries: dict[Any, int] = {}

    @property
    def programs(self) -> list[Plan]:
        """The plans of all recordings, of forwards and of backwards."""
        entries = [entry for entries in self._entries.values() for entry in entries]
        return [plan for e in entries for plan in (e.plan, *([e.backward.plan] if e.backward else []))]

    @property
    def replays(self) -> int:
        """How many calls were replayed."""
        return sum(entry.runs for entries in self._entries.values() for entry in entries)

    def __reduce__(self) -> tuple:
        """Copies and pickles keep what is called, not the recordings."""
        return Compiled, (self._function, self._root, self._options)

    def __deepcopy__(self, memo: dict) -> Compiled:
        return Compiled(deepcopy(self._function, memo), deepcopy(self._root, memo), self._options)

    def modules(self) -> list[Module]:
        """The outermost modules that it calls, or those of a module one level down."""
        if isinstance(self._root, Module):
            return list(self._root.children())
        found = self._surroundings().modules()
        inner = {id(part) for module in found for part in module.modules() if part is not module}
        return [module for module in found if id(module) not in inner]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """A compiled function in a class is a method."""
        return self if instance is None else functools.partial(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._enter is not None and Compiled.stance != "force_eager":
            result = self._enter(args, kwargs)
            if result is not OTHER:
                return result
        return self._otherwise(args, kwargs)

    def _otherwise(self, args: tuple, kwargs: dict) -> Any:
        """A call that is not what the last one was."""
        if self._given_up or Compiled.stance == "force_eager" or hindered():
            return self._function(*args, **kwargs)
        key, tensors, others = key_of(args, kwargs)
        for entry in self._entries.get(key, ()):
            if self._options.check and entry.runs % self._options.check == 0 and entry.runs:
                result = self._compared(entry, args, kwargs, tensors)
            else:
                result = entry.enter(args, kwargs)
            if result is not OTHER:
                self._enter = None if self._options.check else entry.enter
                return result
        if key in self.refusals or _OTHERS in self.refusals or Compiled.stance == "eager_on_recompile":
            return self._function(*args, **kwargs)
        if Compiled.stance == "fail_on_recompile":
            raise RuntimeError(f"compile: {self._name} would be recorded, but the stance is 'fail_on_recompile'")
        if not can_watch() or not self._is_to_be_seen(key):
            return self._function(*args, **kwargs)
        if not _recording.acquire(blocking=False):  # another thread has it
            return self._function(*args, **kwargs)
        try:
            return self._seen(key, args, kwargs, tensors, others)
        finally:
            _recording.release()

    # -- calls that run -----------------------------------------------------------------------------------------------
    def _is_to_be_seen(self, key: Any) -> bool:
        """Whether a call is to be looked at or recorded: the first one, and those whose arguments looked so before."""
        known = key in self._kinds or not self._watched
        self._kinds.add(key)
        if len(self._kinds) > MOST_KINDS or self._recordings >= MOST_TRIES:
            self._refuse(_OTHERS, "its arguments or what it depends on are others in each call")
        elif sum(map(len, self._entries.values())) >= MOST_RECORDINGS and known:
            self._refuse(_OTHERS, f"there are {MOST_RECORDINGS} recordings, each for other arguments or settings")
        return known and _OTHERS not in self.refusals

    def _seen(self, key: Any, args: tuple, kwargs: dict, tensors: list[Tensor], others: list) -> Any:
        """A call that runs, and is looked at or recorded."""
        if not self._watched:
            with Tape.nothing(), Stepping(Given(()), Plan()) as stepping, Watching() as watching:
                result = self._function(*args, **kwargs)
            self._functions.update(watching.functions)
            self._note(stepping)
            self._watched = True
            return result
        self._recordings += 1
        rates: list[Option] = []
        for entry in self._entries.get(key, ()):
            rates = rates or entry.rates + entry.held.changed_numbers(entry.groups)
        rates = self._scheduled(rates)
        surroundings = self._surroundings(others)
        look = Look(args, kwargs)  # before the call, which may change them
        recorded = record(self._function, args, kwargs, tensors, surroundings, self._options.passes, rates)
        self._functions.update(recorded.functions)
        self._note(recorded.stepping)
        if recorded.entry is not None and recorded.calls < self._options.least:
            self._refuse(key, f"it has fewer than {self._options.least} calls of kernels")
        elif recorded.entry is not None:
            entries = self._entries.setdefault(key, [])
            recorded.entry.others = others  # held, so that no other object is given its id
            recorded.entry.enter = entering(recorded.entry, look)
            entries.insert(0, recorded.entry)
            self._tries.pop(key, None)
        elif recorded.refusal is not None:
            self._tries[key] = self._tries.get(key, 0) + 1
            if not recorded.refusal.for_now or self._tries[key] >= _TRIES:
                self._refuse(key, str(recorded.refusal))
        return recorded.result

    def _note(self, stepping: Stepping) -> None:
        """Remember schedulers whose steps are part of the function."""
        self._schedulers.update({id(scheduler): scheduler for scheduler in stepping.steps})
        self._options_changed.update(stepping.options)

    def _scheduled(self, rates: list[Option]) -> list[Option]:
        """The options that are given to runs: `rates`, and those that schedulers change."""
        groups = {id(group) for scheduler in self._schedulers.values() for group in scheduler.optimizer.param_groups}
        found = {(id(option.group), option.key): option for option in rates}
        for key, option in self._options_changed.items():
            if id(option.group) in groups and option.get().__class__ is float:
                found.setdefault(key, option)
        return [option.now() for option in found.values()]

    def _surroundings(self, others: Sequence[Any] = ()) -> Surroundings:
        """What the function depends on now, arguments that are no tensors included."""
        found = Surroundings()
        found.schedulers = {*self._schedulers}
        found.add(self._root, self._name)
        found.add_functions(self._functions)
        for value in others:
            found.add(value, "an argument")
        return found

    def _refuse(self, key: Any, reason: str) -> None:
        """Have calls with this key run as ever from now on."""
        if self._options.fullgraph:
            raise CompileError(f"compile: {self._name} cannot be replayed: {reason}")
        if reason not in self.refusals.values():
            _logger.info("%s is not replayed: %s", self._name, reason)
        self.refusals[key] = reason
        self._given_up = _OTHERS in self.refusals and not self._entries
        if self._options.inner is not None and not (key is _OTHERS and self._entries):
            self._options.inner(self)

    def _compared(self, entry: Entry, args: tuple, kwargs: dict, tensors: list[Tensor]) -> Any:
        """A replay beside the function's own result, which counts; they are compared. OTHER if there is no replay."""
        held = [tensor for tensor, _ in self._surroundings().tensors.values()]
        states = [(t, t.array, t.dispatch_key.runtime.clone(t.array), t.version[0]) for t in (*held, *tensors)]
        leaves = [*(tensors[place] for place, _ in entry.leaves), *self._surroundings().leaves()]
        gradients = [(leaf, leaf._grad, None if leaf._grad is None else leaf._grad.detach().clone()) for leaf in leaves]
        generators = [(draw.generator, draw.generator.get_offset()) for draw in entry.draws]
        schedules = snapshot(entry.schedulers)
        replay = entry.enter(args, kwargs)
        if replay is OTHER:
            return OTHER
        restore(schedules)
        replayed = [_host(value) for value in tree_flatten(replay)[0]]
        changed = [_host(tensor) for tensor, *_ in states] + [_host(leaf._grad) for leaf, *_ in gradients]
        for tensor, array, copy, version in states:
            tensor.dispatch_key.runtime.copy(array, copy)
            tensor.version[0] = version
        for leaf, gradient, copy in gradients:
            leaf._grad = gradient
            if copy is not None:
                gradient.dispatch_key.runtime.copy(gradient.array, copy.array)
        for generator, offset in generators:
            generator.set_offset(offset)
        result = self._function(*args, **kwargs)
        expected = [_host(value) for value in tree_flatten(result)[0]]
        expected_state = [_host(tensor) for tensor, *_ in states] + [_host(leaf._grad) for leaf, *_ in gradients]
        for got, wanted in zip([*replayed, *changed], [*expected, *expected_state], strict=True):
            if not _alike(got, wanted):
                raise DifferenceError(
                    f"compile: a replay of {self._name} differs from the function: {got} instead of {wanted}"
                )
        return result

    # -- what can be read ----------------------------------------------------------------------------------------------
    def explain_compiled(self) -> str:
        """What is replayed, how often it was, and why other calls are not."""
        lines = [f"{self._name}: {len(self.programs)} programs, {self.replays} calls replayed"]
        for plan in self.programs:
            lines.append(
                f"  {len(plan.calls)} calls of kernels, {len(plan.given)} arrays given, {len(plan.returned)} returned"
            )
            lines.append(f"  memory: {plan.memory()}")
        lines += [f"  runs as ever: {reason}" for reason in dict.fromkeys(self.refusals.values())]
        if not self._watched:
            lines.append("  it has not been called yet")
        return "\n".join(lines)


def _host(value: Any) -> Any:
    """A value to compare, with its elements in memory of its own."""
    return value.detach().cpu().clone() if isinstance(value, Tensor) else value


def _alike(first: Any, second: Any) -> bool:
    if not isinstance(first, Tensor):
        return first == second or first is second
    if first.dispatch_key.dtype.category < 2:
        return bool((first == second).all())
    return first.allclose(second, rtol=1e-4, atol=1e-5, equal_nan=True)


def forget_all() -> None:
    """Have every compiled function forget its recordings."""
    for compiled in list(_made):
        compiled.reset()
