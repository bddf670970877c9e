"""Blocks with settings of autocast: entered, left, and entered again later or in another thread."""

from __future__ import annotations

from typing import NamedTuple

from corefw.autograd.autocasting.casting import settle
from corefw.autograd.autocasting.state import state
from corefw.dtypes import dtype


class Settings(NamedTuple):
    """What a block sets, as `State` has it. It is the block, too: one may be entered several times."""

    on: frozenset[str]
    dtypes: dict[str, dtype]
    caching: bool

    def __enter__(self) -> None:
        enter(self)

    def __exit__(self, *exception: object) -> None:
        leave()


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
