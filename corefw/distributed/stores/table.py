"""The table behind a store: keys, values, and the commands that change them."""

from __future__ import annotations

import time
from collections import deque
from threading import Condition
from typing import Any

from corefw.distributed.errors import DistStoreError, QueueEmptyError

#: which fields of a command are keys; the first one, where a command is not listed
KEYS = {
    "check": slice(None),
    "list_keys": slice(0),
    "multi_get": slice(None),
    "multi_set": slice(None, None, 2),
    "num_keys": slice(0),
    "wait": slice(None),
}
#: the commands that change something
CHANGES = {"set", "add", "append", "compare_set", "delete_key", "multi_set", "queue_push", "queue_pop"}
#: the commands that wait until their keys are there
WAITS = {"get", "multi_get", "wait"}


def number(value: int) -> bytes:
    """A number as it is kept."""
    return b"%d" % value


class Table:
    """Keys and values that several threads use. Each command is a method from fields, which are bytes, to fields."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.queues: dict[bytes, deque[bytes]] = {}
        self.changed = Condition()

    def run(self, command: str, fields: tuple[bytes, ...], timeout: float) -> list[bytes]:
        """The answer to a command, once the keys that it waits for are there.

        Raises:
            DistStoreError: they did not come within `timeout` seconds.
        """
        with self.changed:
            if not self.changed.wait_for(lambda: self.is_ready(command, fields), timeout):
                raise too_late(command, fields, timeout)
            answer = self.answer(command, fields)
            if command in CHANGES:
                self.changed.notify_all()
            return answer

    def is_ready(self, command: str, fields: tuple[bytes, ...]) -> bool:
        """Whether what a command waits for is there."""
        if command == "queue_pop":
            return bool(self.queues.get(fields[0])) or len(fields) > 1
        return command not in WAITS or all(key in self.values for key in fields)

    def answer(self, command: str, fields: tuple[bytes, ...]) -> list[bytes]:
        """What a command does and returns."""
        return getattr(self, f"_{command}")(*fields)

    # -- commands ------------------------------------------------------------------------------------------------
    def _set(self, key: bytes, value: bytes) -> list[bytes]:
        self.values[key] = value
        return []

    def _get(self, key: bytes) -> list[bytes]:
        return [self.values[key]]

    def _add(self, key: bytes, amount: bytes) -> list[bytes]:
        before = self.values.get(key, b"0")
        try:
            self.values[key] = number(int(before) + int(amount))
        except ValueError:
            raise ValueError(f"store: add({key!r}): its value {before[:40]!r} is not a number") from None
        return [self.values[key]]

    def _append(self, key: bytes, value: bytes) -> list[bytes]:
        self.values[key] = self.values.get(key, b"") + value
        return []

    def _compare_set(self, key: bytes, expected: bytes, desired: bytes) -> list[bytes]:
        if self.values.get(key, b"") == expected:
            self.values[key] = desired
        return [self.values.get(key, expected)]

    def _check(self, *keys: bytes) -> list[bytes]:
        return [number(all(key in self.values for key in keys))]

    def _wait(self, *keys: bytes) -> list[bytes]:
        return []

    def _delete_key(self, key: bytes) -> list[bytes]:
        return [number(self.values.pop(key, None) is not None)]

    def _num_keys(self) -> list[bytes]:
        return [number(len(self.values))]

    def _list_keys(self) -> list[bytes]:
        return list(self.values)

    def _multi_get(self, *keys: bytes) -> list[bytes]:
        return [self.values[key] for key in keys]

    def _multi_set(self, *pairs: bytes) -> list[bytes]:
        self.values.update(zip(pairs[::2], pairs[1::2], strict=True))
        return []

    def _queue_push(self, key: bytes, value: bytes) -> list[bytes]:
        self.queues.setdefault(key, deque()).append(value)
        return []

    def _queue_pop(self, key: bytes, at_once: bytes = b"") -> list[bytes]:
        if not (waiting := self.queues.get(key)):
            raise QueueEmptyError(f"store: queue_pop({key!r}): the queue is empty")
        value = waiting.popleft()
        if not waiting:
            del self.queues[key]
        return [value]

    def _queue_len(self, key: bytes) -> list[bytes]:
        return [number(len(self.queues.get(key, ())))]


def too_late(command: str, keys: tuple[bytes, ...], timeout: float) -> DistStoreError:
    """The error of a command whose keys did not come."""
    named = ", ".join(key.decode(errors="replace") for key in keys[:8])
    return DistStoreError(f"store: {command}: wait timeout after {timeout * 1000:.0f}ms, keys: {named}")


class Deadline:
    """The time until which something is waited for."""

    def __init__(self, timeout: float):
        self._end = time.monotonic() + timeout

    def left(self) -> float:
        """Seconds, not below zero."""
        return max(self._end - time.monotonic(), 0.0)


COMMANDS = frozenset(name[1:] for name, member in vars(Table).items() if name[0] == "_" != name[1] and callable(member))

__all__: list[Any] = ["CHANGES", "COMMANDS", "KEYS", "Deadline", "Table", "number", "too_late"]
