"""Functions whose calls are answered by another: by an argument's class or a mode (PyTorch's `__torch_function__`), or
by a stand-in, as autocast puts them in.

Ordinary calls pay nothing: a function has its own code until something may answer. While `asking` is on, the code of
each function is another, which looks through the arguments first, and then runs the function's own; so it is while a
function has a stand-in, which is asked after the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock
from types import CodeType, FunctionType
from typing import Any

from corefw.tensor import Tensor

#: the functions that can ask, those of ops among them
functions: list[FunctionType] = []
#: those of them that are Python's operators: where nobody answers, Python asks the other operand
operators: set[Callable] = set()
#: the modes of `TorchFunctionMode` that are on, innermost last
modes: list[Any] = []
#: what answers a call: of the function, its positional and its named arguments
Answer = Callable[[FunctionType, tuple, dict[str, Any]], Any]


class Explaining:
    """An answer that can say what it makes of a call."""

    def explain(self, say: Callable[..., str], arguments: tuple, named: dict[str, Any]) -> str:
        """What ``say(op, arguments, named, *lines)`` says of the call that the function gets in the end."""
        raise NotImplementedError


#: {function: what is called in its place}
stand_ins: dict[FunctionType, Answer] = {}
#: {function: its own code, while it has another}
dressed: dict[FunctionType, CodeType] = {}
_plain: dict[FunctionType, FunctionType] = {}
_asking = 0
_askers: set[FunctionType] = set()
_lock = RLock()
_FUNCTION, _ASK = "the function", "what looks through the arguments"


def _template(*arguments, **named):
    ask = "what looks through the arguments"
    return ask("the function", arguments, named)  # type: ignore[operator]  # both constants stand for objects


@cache
def _answering_code(function: FunctionType, answer: Answer) -> CodeType:
    """Code that hands each call of `function` to `answer`; it names nothing, so it runs on any globals."""
    stand_for: dict[Any, Any] = {_FUNCTION: function, _ASK: answer}
    constants = tuple(stand_for.get(constant, constant) for constant in _template.__code__.co_consts)
    return _template.__code__.replace(
        co_consts=constants, co_name=function.__name__, co_freevars=function.__code__.co_freevars
    )


def _dress(function: FunctionType) -> None:
    """Give a function the code of who answers its calls now."""
    answer = _ask if function in _askers else stand_ins.get(function)
    if answer is not None:
        dressed.setdefault(function, function.__code__)
        function.__code__ = _answering_code(function, answer)
    elif function in dressed:
        function.__code__ = dressed.pop(function)


def _ask(function: FunctionType, arguments: tuple, named: dict[str, Any]) -> Any:
    """The answer of the innermost mode, else of the first argument that has one, else the function's own result."""
    if modes:
        return ask_mode(function, overriding_types(arguments, named), arguments, named)
    kinds = overriding_types(arguments, named)
    return ask_types(function, kinds, arguments, named) if kinds else own(function)(*arguments, **named)


def ask_mode(function: Callable, kinds: tuple[type, ...], arguments: tuple, named: dict[str, Any]) -> Any:
    """The innermost mode's answer; while it answers, it is off."""
    mode = modes.pop()
    try:
        return mode.__torch_function__(function, kinds, arguments, named)
    finally:
        modes.append(mode)


def ask_types(function: Callable, kinds: tuple[type, ...], arguments: tuple, named: dict[str, Any]) -> Any:
    """The first answer of the classes that override.

    Raises:
        TypeError: all gave `NotImplemented`.
    """
    for kind in kinds:
        answer = kind.__torch_function__(function, kinds, arguments, named)  # type: ignore[attr-defined]
        if answer is not NotImplemented:
            return answer
    if function in operators:
        return NotImplemented
    raise TypeError(
        f"no implementation found for '{function.__module__}.{function.__qualname__}' on types that implement "
        f"__torch_function__: {list(kinds)}"
    )


def overriding_types(arguments: tuple, named: dict[str, Any]) -> tuple[type, ...]:
    """The classes among the arguments that have `__torch_function__`, derived ones before their bases."""
    found: list[type] = []
    for value in (*arguments, *named.values()):
        _collect(value, found)
    return tuple(found)


def _collect(value: Any, found: list[type]) -> None:
    kind = value.__class__
    if kind is list or kind is tuple:
        for item in value:
            _collect(item, found)
    elif kind is slice:
        _collect((value.start, value.stop, value.step), found)
    elif kind not in found and overrides(kind):
        position = next((i for i, other in enumerate(found) if issubclass(kind, other)), len(found))
        found.insert(position, kind)


def overrides(kind: type) -> bool:
    """Whether objects of a class may answer for functions."""
    method = getattr(kind, "__torch_function__", None)
    return method is not None and method is not disabled and method is not getattr(Tensor, "__torch_function__", None)


def disabled(func: Callable, types: tuple, args: tuple = (), kwargs: dict | None = None) -> Any:
    """The `__torch_function__` of classes that are not to be asked: functions take their objects as tensors."""
    return func(*args, **(kwargs or {}))


def own(function: FunctionType) -> Callable:
    """What answers a call of `function` that no argument answers: its stand-in, or itself."""
    answer = stand_ins.get(function)
    return plain(function) if answer is None else lambda *arguments, **named: answer(function, arguments, named)


def plain(function: FunctionType) -> FunctionType:
    """A function that computes what `function` computes by itself."""
    found = _plain.get(function)
    if found is not None:
        return found
    code = dressed.get(function)
    if code is None:
        return function
    scope = function.__globals__
    if _is_stub(code):
        scope["BUILD"]()
        code = dressed[function]
    found = FunctionType(code, scope, function.__name__, function.__defaults__, function.__closure__)
    found.__kwdefaults__ = function.__kwdefaults__
    _plain[function] = found
    return found


def _is_stub(code: CodeType) -> bool:
    """Whether a function with this code compiles itself when it is called for the first time."""
    return code.co_name == "_stub"


def put_code(function: FunctionType, code: CodeType) -> None:
    """Give a function that was a stub its own code; who answers its calls still does."""
    with _lock:
        if function in dressed:
            dressed[function] = code
        else:
            function.__code__ = code
            _dress(function)


def stand_in(answers: dict[FunctionType, Answer]) -> None:
    """Let calls of functions be answered by others from now on, until `stand_down`. Those that nobody has called yet
    follow when they get their code."""
    with _lock:
        stand_ins.update(answers)
        for function in answers:
            if function not in _askers and not _is_stub(function.__code__):
                _dress(function)


def stand_down(answers: dict[FunctionType, Answer]) -> None:
    """Let functions answer for themselves again."""
    with _lock:
        for function in answers:
            del stand_ins[function]
            if function not in _askers and function in dressed:
                function.__code__ = dressed.pop(function)


def begin_asking() -> None:
    """Let all functions ask from now on, until as many `end_asking` as beginnings."""
    global _asking
    with _lock:
        _asking += 1
        if _asking == 1:
            _askers.update(functions)
            for function in functions:
                _dress(function)


def end_asking() -> None:
    """Let functions be themselves again."""
    global _asking
    with _lock:
        _asking -= 1
        if _asking == 0:
            _askers.clear()
            for function in tuple(dressed):
                _dress(function)


@contextmanager
def asking() -> Iterator[None]:
    """Let all functions ask inside of it."""
    begin_asking()
    try:
        yield
    finally:
        end_asking()
