"""Work that a device does later than the program asks for it: everything happens in order, at the next wait.

In the mode "deferred" launches wait here; otherwise each runs at once.
"""

from collections import deque
from collections.abc import Callable

from tests.emulation.modes import MODES

DEFERRED = "deferred" in MODES
LONGEST = 1000  # launches that may wait; a driver makes the program wait as well

_waiting: deque[Callable[[], None]] = deque()
_kept: list[object] = []  # memory that was given back while work that may use it waits


def submit(work: Callable[[], None]) -> None:
    """Do this after what was submitted before: now, or later where launches are deferred."""
    if not DEFERRED:
        work()
        return
    _waiting.append(work)
    if len(_waiting) > LONGEST:
        drain()


def keep(memory: object) -> None:
    """Let memory that is given back live until the work that was submitted is done."""
    if _waiting:
        _kept.append(memory)


def is_empty() -> bool:
    """Whether all work is done."""
    return not _waiting


def drain() -> None:
    """Do all work that waits."""
    while _waiting:
        _waiting.popleft()()
    _kept.clear()
