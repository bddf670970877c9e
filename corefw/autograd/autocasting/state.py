"""What autocast is set to, in each thread."""

from __future__ import annotations

import threading
from typing import Any

from corefw.dtypes import dtype


class State(threading.local):
    """A thread's settings.

    Attributes: ``on`` the device types whose ops are cast now, empty inside of an op and of a backward; ``dtypes`` the
    lower precisions that were chosen, by device type; ``caching`` whether casts of weights are kept; ``cache`` these,
    by weight; ``nesting`` how many blocks there are around; ``blocks`` what holds outside of each; ``counted`` whether
    the thread wants the stand-ins of ops.
    """

    def __init__(self):
        self.on: frozenset[str] = frozenset()
        self.dtypes: dict[str, dtype] = {}
        self.caching = True
        self.cache: dict[tuple, tuple] = {}
        self.nesting = 0
        self.blocks: list[tuple[Any, ...]] = []
        self.counted = False


state = State()
