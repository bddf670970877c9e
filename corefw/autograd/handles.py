"""The handle that takes a registered hook away again."""

from __future__ import annotations

from itertools import count
from typing import Any
from weakref import ref


class RemovableHandle:
    """What registering a hook returns; also a context manager that removes the hook at its end.

    Args:
        hooks_dict: the dictionary that holds the hooks; the new one belongs under ``handle.id``.
        extra_dict: further dictionaries that hold something under the same id.
    """

    next_id = count().__next__

    def __init__(self, hooks_dict: dict, *, extra_dict: dict | list[dict] | None = None):
        self.id = RemovableHandle.next_id()
        self._dictionaries = [_reference(hooks_dict)]
        if extra_dict is not None:
            extra = extra_dict if isinstance(extra_dict, list) else [extra_dict]
            self._dictionaries += [_reference(d) for d in extra]

    def remove(self) -> None:
        """Take the hook away; again and after the hooked object died without effect."""
        for reference in self._dictionaries:
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.remove()


def _reference(hooks: dict):
    """A weak reference where the dictionary allows one (a subclass of dict), else a strong one."""
    try:
        return ref(hooks)
    except TypeError:
        return lambda: hooks


__all__ = ["RemovableHandle"]
