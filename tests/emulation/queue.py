"""Work that a device does later than the program asks for it: each stream's in order, at the next wait for it.

In the mode "deferred" launches wait here; otherwise each runs at once. Of several streams the one that came last goes
first, so that an event that nobody waited for shows. Several threads may ask for work; it is done one after the other,
since the emulated blocks and their threads are variables of a compiled library.
"""

from collections import deque
from collections.abc import Callable
from threading import RLock

from tests.emulation import capture
from tests.emulation.modes import MODES

DEFERRED = "deferred" in MODES
LONGEST = 1000  # launches that may wait; a driver makes the program wait as well

_waiting: dict[int, deque[Callable[[], None]]] = {}  # by stream
_kept: list[object] = []  # memory that was given back while work that may use it waits
_working = RLock()  # held by the thread that does the device's work, which may wait for other work of the device


def submit(work: Callable[[], None], stream: int) -> None:
    """Do this after what a stream was given before: now, or later where launches are deferred or the stream is
    captured."""
    if capture.record(work, stream):
        return
    if not DEFERRED:
        with _working:
            work()
        return
    with _working:
        _waiting.setdefault(stream, deque()).append(work)
        if sum(map(len, _waiting.values())) > LONGEST:
            drain()


def keep(memory: object, waiting=_waiting, kept=_kept) -> None:  # at the end of the process the names may be gone
    """Let memory that is given back live until the work that was submitted is done."""
    if any(waiting.values()):
        kept.append(memory)


def is_empty(stream: int | None = None) -> bool:
    """Whether all work, or that of a stream, is done."""
    return not (any(_waiting.values()) if stream is None else _waiting.get(stream))


def advance(stream: int, enough: Callable[[], bool]) -> None:
    """Do the work of a stream, until it is enough."""
    with _working:
        waiting = _waiting.get(stream, deque())
        while waiting and not enough():
            try:
                waiting[0]()  # other threads see that it is not done, and memory that is given back meanwhile is kept
            finally:
                waiting.popleft()


def drain(stream: int | None = None) -> None:
    """Do all work that waits, or that of a stream."""
    with _working:
        for one in reversed([*_waiting]) if stream is None else [stream]:
            advance(one, lambda: False)
        if is_empty():
            _kept.clear()
