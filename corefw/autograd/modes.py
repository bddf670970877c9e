"""Grad modes: no_grad, enable_grad, set_grad_enabled, inference_mode - context managers that also decorate functions."""

from __future__ import annotations

import functools
import inspect

from corefw.dispatch.record import mode


class _GradMode:
    """A with-block, or a decorated function, with another grad mode; thread-local."""

    recording = True
    inference = False

    def __enter__(self):
        self._stack = [*getattr(self, "_stack", ()), (mode.recording, mode.inference)]
        mode.recording = (mode.recording or True) if self.recording else False
        mode.inference = self.inference

    def __exit__(self, *exception):
        mode.recording, mode.inference = self._stack.pop()

    def __call__(self, function):
        if inspect.isclass(function):
            function.__init__ = self(function.__init__)
            return function
        if inspect.isgeneratorfunction(function):
            return self._decorate_generator(function)

        @functools.wraps(function)
        def decorated(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return decorated

    def _again(self):
        return type(self)()

    def _decorate_generator(self, function):
        @functools.wraps(function)
        def decorated(*args, **kwargs):
            generator = function(*args, **kwargs)
            value, send = None, generator.send
            while True:
                try:
                    with self._again():
                        given = send(value)
                except StopIteration as stop:
                    return stop.value
                try:
                    value, send = (yield given), generator.send
                except GeneratorExit:
                    generator.close()
                    raise
                except BaseException as error:
                    value, send = error, generator.throw

        return decorated


class no_grad(_GradMode):
    """Gradients are not recorded inside.

    >>> import corefw as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     (x * 2).requires_grad
    False
    """

    recording = False

    def __new__(cls, function=None):
        self = object.__new__(cls)
        return self if function is None else self(function)


class enable_grad(_GradMode):
    """Gradients are recorded inside, also within no_grad."""

    def __new__(cls, function=None):
        self = object.__new__(cls)
        return self if function is None else self(function)


class set_grad_enabled(_GradMode):
    """Record gradients or not, from the call on; as a context manager until its end.

    Args:
        mode: whether to record.
    """

    def __init__(self, mode: bool):
        self.recording = bool(mode)
        self._stack = [(globals()["mode"].recording, globals()["mode"].inference)]
        globals()["mode"].recording = (globals()["mode"].recording or True) if self.recording else False

    def __enter__(self):
        pass

    def __call__(self, function):
        mode.recording, mode.inference = self._stack.pop()  # a decorator changes nothing where it stands
        return super().__call__(function)

    def _again(self):
        return type(self)(self.recording)


class inference_mode(_GradMode):
    """As no_grad, for code that will never be differentiated.

    Args:
        mode: False makes the block an ordinary one.
    """

    def __new__(cls, mode=True):
        self = object.__new__(cls)
        if callable(mode):
            self.recording, self.inference = False, True
            return self(mode)
        return self

    def __init__(self, mode: bool = True):
        self.inference = bool(mode)
        self.recording = not self.inference

    def _again(self):
        return type(self)(self.inference)


def is_grad_enabled() -> bool:
    """Whether this thread records gradients."""
    return mode.recording is not False


def is_inference_mode_enabled() -> bool:
    """Whether this thread is inside inference_mode."""
    return mode.inference
