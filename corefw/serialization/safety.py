"""What a restricted load may make beside tensors: plain containers, and what the user calls safe."""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from pickle import UnpicklingError
from typing import Any

from corefw.serialization.names import CALLABLE, KNOWN, Name

#: never loaded, whatever the user calls safe
BLOCKED = frozenset({"sys", "os", "posix", "nt"})
_LARGEST_KEY = 1000  # nested items in a dictionary's key: hashing deep or self-repeating tuples overflows or never ends

Safe = Callable | tuple[Callable, str]
_safe: set[Safe] = set()
_lock = threading.Lock()


def add_safe_globals(safe_globals: list[Safe]) -> None:
    """Allow `load` with ``weights_only=True`` to use these functions and classes.

    Args:
        safe_globals: functions and classes, or pairs of one and the full name under which checkpoints know it.

    >>> import corefw as torch
    >>> import fractions
    >>> torch.serialization.add_safe_globals([fractions.Fraction])
    >>> torch.serialization.get_safe_globals()
    [<class 'fractions.Fraction'>]
    >>> torch.serialization.clear_safe_globals()
    """
    for item in safe_globals:
        _name_of(item)
    with _lock:
        _safe.update(safe_globals)


def get_safe_globals() -> list[Safe]:
    """What `add_safe_globals` was given."""
    return list(_safe)


def clear_safe_globals() -> None:
    """Forget what `add_safe_globals` was given."""
    with _lock:
        _safe.clear()


class safe_globals:
    """Allows `load` to use these functions and classes inside a with-block; see `add_safe_globals`."""

    def __init__(self, safe_globals: list[Safe]):
        self.safe_globals = safe_globals

    def __enter__(self) -> None:
        self._added = set(self.safe_globals) - _safe
        add_safe_globals(self.safe_globals)

    def __exit__(self, *exception) -> None:
        with _lock:
            _safe.difference_update(self._added)


def _name_of(item: Safe) -> str:
    if isinstance(item, tuple):
        if len(item) != 2:
            raise ValueError(
                f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(item)}"
            )
        if type(item[1]) is not str:
            raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(item[1])}")
        return item[1]
    return f"{item.__module__}.{item.__qualname__}"


def user_globals() -> dict[str, Any]:
    """What the user calls safe, by full name."""
    return {_name_of(item): item[0] if isinstance(item, tuple) else item for item in _safe}


# -- plain containers -------------------------------------------------------------------------------------------------
def checked_key(key: Any) -> Any:
    """A dictionary's key or a set's item, if hashing it is harmless; UnpicklingError otherwise."""
    if key.__class__ is tuple or key.__class__ is frozenset:
        pending, count = [key], 0
        while pending:
            item = pending.pop()
            if item.__class__ is tuple or item.__class__ is frozenset:
                count += 1 + len(item)
                if count > _LARGEST_KEY:
                    raise UnpicklingError(f"a key of more than {_LARGEST_KEY} nested items is refused")
                pending.extend(item)
    return key


def _ordered_dict(items: Iterable = ()) -> OrderedDict:
    return OrderedDict((checked_key(key), value) for key, value in items)


def _counter(items: Any = ()) -> Counter:
    if type(items) is not dict:
        items = [checked_key(item) for item in items]
    return Counter(items)


def _set(items: Iterable = ()) -> set:
    return {checked_key(item) for item in items}


def _frozenset(items: Iterable = ()) -> frozenset:
    return frozenset(_set(items))


def _bytes(text: str, encoding: str) -> bytes:
    """Bytes, as older protocols have them: the characters' numbers."""
    if encoding not in ("latin1", "latin-1"):
        raise UnpicklingError(f"bytes in the encoding {encoding!r} are refused")
    return text.encode("latin1")


def _bytearray(content: Any = b"", encoding: str = "latin1") -> bytearray:
    """A bytearray of its content; never one of so many zeros."""
    return bytearray(_bytes(content, encoding) if isinstance(content, str) else bytes(memoryview(content)))


def _empty_bytes() -> bytes:
    return b""


def _complex(real: float = 0.0, imaginary: float = 0.0) -> complex:
    return complex(float(real), float(imaginary))


CONTAINERS: dict[Name, Any] = {
    ("collections", "OrderedDict"): _ordered_dict,
    ("collections", "Counter"): _counter,
    ("builtins", "set"): _set,
    ("builtins", "frozenset"): _frozenset,
    ("builtins", "bytes"): _empty_bytes,
    ("builtins", "bytearray"): _bytearray,
    ("builtins", "complex"): _complex,
    ("_codecs", "encode"): _bytes,
}
_CONTAINERS_CALLABLE = frozenset(id(value) for value in CONTAINERS.values())
FOUND: dict[Name, Any] = {**KNOWN, **CONTAINERS}


def is_callable(found: Any) -> bool:
    """Whether a restricted load may call `found` by its own right."""
    return id(found) in CALLABLE or id(found) in _CONTAINERS_CALLABLE
