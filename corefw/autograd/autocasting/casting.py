"""How ops come to be cast: while autocast is on in any thread, stand-ins answer for the functions of ops.

Outside of that time all functions have their own code, and calls pay nothing. A stand-in casts the arguments by ops,
so that a gradient goes back through the cast, and lets the function compute with autocast off: the body of a composite
and the formula of a gradient know nothing of it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any

from corefw.autograd import engine
from corefw.autograd.autocasting.policies import (
    CPU,
    GPU,
    Call,
    Policy,
    followed,
    lower_dtype,
    policies,
    tensors_in,
)
from corefw.autograd.autocasting.state import settle, state, watchers
from corefw.dispatch.op import Op
from corefw.dispatch.overriding import Answer, Explaining, operators, plain, stand_down, stand_in
from corefw.dispatch.registry import registry

_NOTHING: frozenset[str] = frozenset()
#: families of ops whose bodies, where they have any, use no op of a list
_APART = ("creation", "filling", "like", "memory", "random", "ranges", "slicing", "view", "windowing")
_lock = threading.Lock()
_threads = 0
_answers: dict[FunctionType, Answer] = {}


def _follow() -> None:
    """Put the stand-ins in for this thread, or away, as its settings have become."""
    global _threads
    wanted = bool(state.on) or (state.counted and state.nesting > 0)
    if wanted is state.counted:
        return
    state.counted = wanted
    with _lock:
        _threads += 1 if wanted else -1
        if wanted and _threads == 1:
            stand_in(_answers or _make_answers())
        elif not _threads:
            stand_down(_answers)


def _make_answers() -> dict[FunctionType, Answer]:
    """The stand-ins: of the ops of the lists, of composites, whose bodies run with autocast off, and of the engine."""
    for op in registry.declared.values():
        listed = op.name in CPU or op.name in GPU
        if not listed and (op.primitive or op.view or op.update or op.family in _APART):
            continue
        forms = [op.function, *(f for f in operators if f.__globals__.get("OP") is op)]
        for form in forms:
            if isinstance(form, FunctionType):
                _answers[form] = Casting(op)
        if isinstance(op.inplace_function, FunctionType) and not op.primitive:
            _answers[op.inplace_function] = outside
    _answers[engine.run] = outside  # type: ignore[index]  # a plain def
    return _answers


def outside(function: FunctionType, arguments: tuple, named: dict[str, Any]) -> Any:
    """The answer of a function that computes with autocast off."""
    on, state.on = state.on, _NOTHING
    try:
        return plain(function)(*arguments, **named)
    finally:
        _again(on)


def _again(on: frozenset[str]) -> None:
    """Turn autocast on again for these types of devices."""
    state.on = on
    if on and not state.counted:
        settle()


class Casting(Explaining):
    """The answer of an op's function: it computes, with autocast off, on arguments that were cast."""

    def __init__(self, op: Op):
        self.op = op
        self.parameters = tuple(p.name for p in op.parameters if not p.keyword_only)

    def __call__(self, function: FunctionType, arguments: tuple, named: dict[str, Any]) -> Any:
        on = state.on
        if not on:
            return plain(function)(*arguments, **named)
        found = self.cast_of(arguments, named)
        if found is None:
            return outside(function, arguments, named)
        policy, call = found
        if policy is followed:
            return plain(function)(*arguments, **named)
        state.on = _NOTHING
        try:
            cast = policy(self.op.name, call)
            return plain(function)(*cast.arguments, **cast.named)
        finally:
            _again(on)

    def cast_of(self, arguments: tuple, named: dict[str, Any]) -> tuple[Policy, Call] | None:
        """How a call is cast, if it is: not where it has `out`, nor where autocast is off for its tensors."""
        if named.get("out") is not None:
            return None
        for tensor in tensors_in((*arguments, *named.values())):
            device_type = tensor.dispatch_key.device.type
            if device_type in state.on:
                policy = policies(device_type).get(self.op.name)
                return policy and (policy, Call(arguments, named, self.parameters, device_type))
        return None

    def explain(self, say: Callable[..., str], arguments: tuple, named: dict[str, Any]) -> str:
        """What is said of the op, before it how its arguments were cast."""
        on = state.on
        found = self.cast_of(arguments, named) if on else None
        policy, call = found or (None, None)
        if policy is None or call is None or policy is followed:
            return say(self.op, arguments, named)
        state.on = _NOTHING
        try:
            cast = policy(self.op.name, call)
            how = (policy.__doc__ or "").partition(":")[0].partition(".")[0]
            lower = lower_dtype(call.device_type).name
            return say(self.op, cast.arguments, cast.named, f"autocast to {lower}: {how[:1].lower()}{how[1:]}")
        finally:
            _again(on)


watchers.append(_follow)
