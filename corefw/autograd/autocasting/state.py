"""What autocast is set to in each thread, and the blocks that set it, which may be entered again by another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

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
        self.blocks: list[Settings] = []
        self.counted = False


state = State()
#: who is told that a thread's settings have changed: `casting`, once it is imported
watchers: list[Callable[[], None]] = []


class Settings(NamedTuple):
    """What a block sets, as `State` has it. It is the block, too: one may be entered several times."""

    on: frozenset[str]
    dtypes: dict[str, dtype]
    caching: bool

    def __enter__(self) -> None:
        enter(self)

    def __exit__(self, *exception: object) -> None:
        leave()


def settle() -> None:
    """Tell of a change of the thread's settings."""
    for watcher in watchers:
        watcher()


def present() -> Settings:
    """The settings of now."""
    return Settings(state.on, state.dtypes, state.caching)


def enter(settings: Settings) -> None:
    """Begin a block."""
    state.blocks.append(present())
    state.nesting += 1
    state.on, state.dtypes, state.caching = settings
    settle()


def leave() -> None:
    """End it; the casts of weights are forgotten at the end of the outermost."""
    state.on, state.dtypes, state.caching = state.blocks.pop()
    state.nesting -= 1
    if not state.nesting:
        state.cache.clear()
    settle()
