"""Results that another thread will give."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")


class Future(Generic[T]):
    """A result to come; threads wait for it, and functions are called with it.

    Args:
        devices: accepted for PyTorch's sake: a tensor waits for its own device.

    >>> import corefw as torch
    >>> future = torch.futures.Future()
    >>> doubled = future.then(lambda done: 2 * done.value())
    >>> future.set_result(21)
    >>> doubled.wait()
    42
    """

    def __init__(self, *, devices: Any = None):
        self._done = threading.Event()
        self._drive: Callable[[], Any] | None = None  # makes the result come, where it does not come by itself
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[Future[T]], Any]] = []
        self._result: Any = None
        self._error: BaseException | None = None

    def done(self) -> bool:
        """Whether there is a result or an error."""
        return self._done.is_set()

    def wait(self) -> T:
        """The result, once it is there; raises the error that was set in its place."""
        if self._drive is not None and not self.done():
            self._drive()
        self._done.wait()
        return self.value()

    def value(self) -> T:
        """The result that is there.

        Raises:
            RuntimeError: it is not there yet.
        """
        if not self.done():
            raise RuntimeError("Future.value(): there is no result yet; wait() waits for it")
        if self._error is not None:
            raise self._error
        return self._result

    def set_result(self, result: T) -> None:
        """Give the result, once; callbacks run in this thread.

        Raises:
            RuntimeError: there is one already.
        """
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Give an error, which `wait` and `value` raise."""
        if not isinstance(result, BaseException):
            raise TypeError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, result: Any, error: BaseException | None) -> None:
        with self._lock:
            if self.done():
                raise RuntimeError("Future: a result was set already, and can be set only once")
            self._result, self._error = result, error
            self._done.set()
        for callback in self._callbacks:
            callback(self)

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Call ``callback(future)`` when it is done, at once if it is; what it raises is for the one who sets the
        result."""
        with self._lock:
            if not self.done():
                self._callbacks.append(callback)
                return
        callback(self)

    def then(self, callback: Callable[[Future[T]], Any]) -> Future[Any]:
        """The future of ``callback(future)``, which is called when this one is done."""
        following: Future[Any] = Future()
        following._drive = self._drive

        def follow(done: Future[T]) -> None:
            try:
                result = callback(done)
            except Exception as error:
                following.set_exception(error)
            else:
                following.set_result(result)

        self.add_done_callback(follow)
        return following


def collect_all(futures: Iterable[Future]) -> Future[list[Future]]:
    """The future that has the list of `futures` as its result once all are done."""
    waiting, together = list(futures), Future[list[Future]]()
    if not waiting:
        together.set_result(waiting)
        return together
    left, lock = [len(waiting)], threading.Lock()

    def count(done: Future) -> None:
        with lock:
            left[0] -= 1
            last = not left[0]
        if last:
            together.set_result(waiting)

    for future in waiting:
        future.add_done_callback(count)
    return together


def wait_all(futures: Iterable[Future]) -> list[Any]:
    """The results of all, in order; raises the first error."""
    return [future.wait() for future in collect_all(futures).wait()]
