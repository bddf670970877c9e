"""Notes of the node that is running, for what makes further nodes on the way."""

from __future__ import annotations

import traceback as _traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = [
    "annotate",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]

current_meta: dict[str, Any] = {}
_preserving = False


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """Keep the notes of the node that runs, inside of it."""
    global _preserving
    before, meta = _preserving, dict(current_meta)
    _preserving = enable
    try:
        yield
    finally:
        _preserving = before
        _put(meta)


def _put(meta: dict[str, Any]) -> None:
    current_meta.clear()
    current_meta.update(meta)


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """Add entries to the notes under "custom", inside of it."""
    before = dict(current_meta)
    current_meta["custom"] = {**current_meta.get("custom", {}), **annotation_dict}
    try:
        yield
    finally:
        _put(before)


@contextmanager
def set_current_meta(node: Any, pass_name: str = "") -> Iterator[None]:
    """Let a node be the one that runs, if notes are kept."""
    if not (_preserving and node.meta):
        yield
        return
    before = dict(current_meta)
    _put(node.meta)
    try:
        yield
    finally:
        _put(before)


def get_current_meta() -> dict[str, Any]:
    """The notes of the node that runs."""
    return current_meta


def has_preserved_node_meta() -> bool:
    """Whether notes are kept."""
    return _preserving


def set_stack_trace(stack: list[str]) -> None:
    """Note where the program is, if notes are kept."""
    if _preserving and stack:
        current_meta["stack_trace"] = "".join(stack)


def format_stack() -> list[str]:
    """Where the program is: as noted, else the lines of the stack."""
    if _preserving:
        return [current_meta.get("stack_trace", "")]
    return _traceback.format_list(_traceback.extract_stack()[:-1])
