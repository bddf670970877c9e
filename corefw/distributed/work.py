"""Work: a collective that goes on while the program does, or has ended."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from corefw.distributed.engine import Request
from corefw.futures import Future
from corefw.tensor import Tensor

if TYPE_CHECKING:
    from corefw.distributed.groups import ProcessGroup


class Work:
    """A collective on its way.

    Args:
        group: whose it is.
        name: of what was called, for errors.
        tensors: what it was called with.
        requests: what the engine still has to do.
        results: the tensors that will hold the result; `tensors` if missing.
        finish: called when the engine has ended, to put the result in its place.

    Attributes: ``requests`` what the engine still has to do.
    """

    def __init__(
        self, group: ProcessGroup, name: str, tensors: Sequence[Tensor], requests: Sequence[Request],
        finish: Callable[[], None] | None = None, results: Sequence[Tensor] | None = None,
    ):  # fmt: skip
        self._group, self.requests = group, requests
        self._call = (name, tensors, group.sequence)
        self._results = tensors if results is None else results
        self._finish = [] if finish is None else [finish]
        self._error: BaseException | None = None
        self._ended = False
        self._source: int | None = None
        if not requests:
            self._end()

    def wait(self, timeout: Any = None) -> bool:
        """Return True when the result is there.

        Args:
            timeout: a timedelta or seconds to wait at most; the group's if missing.

        Raises:
            DistBackendError: it failed or did not end in time.
        """
        if not self._ended:
            limit = self._group.timeout if timeout is None else getattr(timeout, "total_seconds", lambda: timeout)()
            end = time.monotonic() + limit
            try:
                for request in self.requests:
                    request.wait(max(end - time.monotonic(), 0.0))
            except Exception as error:
                self._fail(error, limit)
            self._end()
        if self._error is not None:
            raise self._error
        return True

    def left_going(self) -> Work:
        """Itself, which now goes on while the program does, and with it what was left so before."""
        group = self._group
        if group.going:
            group.advance()
        if not self._ended:
            group.going.append(self)
        return self

    def advance(self) -> bool:
        """Whether the engine has ended; lets it go on. What went wrong is for `wait` to tell."""
        try:
            is_done = self._ended or all([request.done() for request in self.requests])  # noqa: C419, each is to go on
        except Exception as error:
            self._fail(error, self._group.timeout)
            return True
        if is_done:
            self._leave()
        return is_done

    def _leave(self) -> None:
        if self in self._group.going:
            self._group.going.remove(self)

    def _fail(self, error: Exception, limit: float) -> None:
        self._ended, self._error = True, self._group.failed(self._group.told(*self._call), error, limit)
        self._leave()

    def _end(self) -> None:
        if self._ended:
            return
        self._ended = True
        if self.requests:
            self._source = self.requests[-1].source
            self.requests = ()
            if self._group.going:
                self._leave()
        for step in self._finish:
            step()

    def then(self, step: Callable[[], None]) -> None:
        """Do something more when it has ended."""
        if self._ended:
            step()
        else:
            self._finish.append(step)

    def is_completed(self) -> bool:
        """Whether it has ended; lets the engine go on."""
        if not self._ended and self.advance():
            self.wait()
        return self._ended

    def is_success(self) -> bool:
        """Whether it has ended well."""
        return self.is_completed() and self._error is None

    def exception(self) -> BaseException | None:
        """What went wrong."""
        return self._error

    def result(self) -> list[Any]:
        """The tensors that hold the result."""
        return list(self._results)

    def source_rank(self) -> int:
        """Where a received message came from, as a rank of the whole world."""
        if self._source is None:
            raise RuntimeError("source_rank: nothing was received from any rank")
        return self._group.ranks[self._source]

    def get_future(self) -> Future:
        """A future whose value is `result`; it is done when `wait` has returned."""
        future: Future = Future()
        if not self._ended:
            future._drive = self.wait
        self.then(lambda: future.set_result(self.result()))
        return future

    def synchronize(self) -> None:
        """As `wait`."""
        self.wait()
