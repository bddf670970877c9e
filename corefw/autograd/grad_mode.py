"""Grad modes: context managers, also decorators, that say whether gradients are recorded in this thread."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from threading import get_ident
from typing import Any, Self, TypeVar, overload

from corefw.graph.grad_mode import mode
from corefw.versions import inferring

F = TypeVar("F", bound=Callable[..., Any])


def _record(enabled: bool) -> None:
    mode.recording = mode.recorder if enabled and not mode.inference else False


def _infer(inside: bool) -> None:
    mode.inference = inside
    (inferring.add if inside else inferring.discard)(get_ident())


class _GradMode:
    """A with-block, or a decorated function, with another grad mode; thread-local."""

    enabled = True
    _before: tuple = ()  # the modes around the block, and those around the blocks that it is in

    def __enter__(self) -> None:
        self._before = mode.recording is not False, mode.inference, self._before
        self._start()

    def _start(self) -> None:
        _record(self.enabled)

    def __exit__(self, *exception: object) -> None:
        enabled, inference, self._before = self._before
        if mode.inference is not inference:
            _infer(inference)
        mode.recording = mode.recorder if enabled and not inference else False

    def __call__(self, function: F) -> F:
        if inspect.isclass(function):
            function.__init__ = self(function.__init__)  # type: ignore[method-assign]
            return function
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)

        @functools.wraps(function)
        def decorated(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return decorated  # type: ignore[return-value]

    def _again(self):
        return type(self)()

    def _decorate_generator(self, function):
        """Between its steps a generator leaves the caller's mode as it is."""

        @functools.wraps(function)
        def decorated(*args, **kwargs):
            generator = function(*args, **kwargs)
            value, resume = None, generator.send
            while True:
                try:
                    with self._again():
                        given = resume(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    value, resume = (yield given), generator.send
                except GeneratorExit:
                    with self._again():
                        generator.close()
                    raise
                except BaseException as error:
                    value, resume = error, generator.throw

        return decorated


class no_grad(_GradMode):
    """Gradients are not recorded inside.

    >>> import corefw as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    enabled = False

    @overload
    def __new__(cls, orig_func: F) -> F: ...  # type: ignore[misc]
    @overload
    def __new__(cls, orig_func: None = None) -> Self: ...
    def __new__(cls, orig_func: Any = None) -> Any:
        self = object.__new__(cls)
        return self if orig_func is None else self(orig_func)


class enable_grad(_GradMode):
    """Gradients are recorded inside, also within no_grad.

    >>> import corefw as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad(), torch.enable_grad():
    ...     (x * 2).requires_grad
    True
    """

    @overload
    def __new__(cls, orig_func: F) -> F: ...  # type: ignore[misc]
    @overload
    def __new__(cls, orig_func: None = None) -> Self: ...
    def __new__(cls, orig_func: Any = None) -> Any:
        self = object.__new__(cls)
        return self if orig_func is None else self(orig_func)


class set_grad_enabled(_GradMode):
    """Record gradients or not, from the call on; as a context manager until its end.

    Args:
        mode: whether to record.

    >>> import corefw as torch
    >>> with torch.set_grad_enabled(False):
    ...     torch.is_grad_enabled()
    False
    """

    def __init__(self, mode: bool):
        self.enabled = self.mode = bool(mode)
        _GradMode.__enter__(self)

    def __enter__(self) -> None:
        if not self._before:  # entered again
            _GradMode.__enter__(self)

    def __call__(self, function: F) -> F:
        self.__exit__()  # a decorator changes nothing where it stands
        return super().__call__(function)

    def _again(self):
        return type(self)(self.enabled)


class inference_mode(_GradMode):
    """As no_grad, also for enable_grad blocks inside: code that will never be differentiated. Tensors made inside are
    neither changed in place outside nor saved for a backward.

    Args:
        mode: False makes the block an ordinary one.

    >>> import corefw as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.inference_mode():
    ...     (x * 2).requires_grad
    False
    """

    @overload
    def __new__(cls, mode: bool = True) -> Self: ...
    @overload
    def __new__(cls, mode: F) -> F: ...  # type: ignore[misc]
    def __new__(cls, mode: Any = True) -> Any:
        self = object.__new__(cls)
        if callable(mode):
            self.mode = True
            return self(mode)
        return self

    def __init__(self, mode: bool = True):
        self.mode = bool(mode)

    def _start(self) -> None:
        _infer(self.mode)
        _record(not self.mode)

    def _again(self):
        return type(self)(self.mode)


class set_multithreading_enabled(_GradMode):
    """Accepted for compatibility: the engine runs in the calling thread.

    Args:
        mode: without effect.
    """

    def __init__(self, mode: bool):
        self.mode = bool(mode)

    def _start(self) -> None:
        pass

    def _again(self):
        return type(self)(self.mode)


def is_grad_enabled() -> bool:
    """Whether this thread records gradients.

    >>> import corefw as torch
    >>> torch.is_grad_enabled()
    True
    """
    return mode.recording is not False


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside inference_mode.

    >>> import corefw as torch
    >>> torch.is_inference_mode_enabled()
    False
    """
    return mode.inference


__all__ = [
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
