"""What stores are asked, and the two that need neither files nor a network."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from corefw.distributed.stores.table import KEYS, Table, number

Word = str | bytes


def _word(value: Any, what: str) -> bytes:
    """A key or a value as bytes."""
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"store: {what} must be str or bytes, but got {type(value).__name__}")


class Store:
    """Keys and values that all processes of a job see; what one sets, the others find or wait for.

    A store implements `_do`, which answers one command.

    Attributes: ``timeout`` for what is waited for.
    """

    def __init__(self) -> None:
        self._timeout = timedelta(seconds=300)

    def _do(self, command: str, fields: tuple[bytes, ...], timeout: float) -> list[bytes]:
        """The answer to a command of `Table`."""
        raise NotImplementedError(f"{type(self).__name__} answers no commands")

    def _ask(self, command: str, *fields: bytes, timeout: timedelta | None = None) -> list[bytes]:
        return self._do(command, fields, (self.timeout if timeout is None else timeout).total_seconds())

    @property
    def timeout(self) -> timedelta:
        """How long is waited for keys that are not there."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Wait so long for keys that are not there."""
        if not isinstance(timeout, timedelta):
            raise TypeError(f"store: timeout must be a datetime.timedelta, but got {type(timeout).__name__}")
        self._timeout = timeout

    def set(self, key: str, value: Word) -> None:
        """`key` has the value `value`, whatever it had before."""
        self._ask("set", _word(key, "key"), _word(value, "value"))

    def get(self, key: str) -> bytes:
        """The value of `key`, once it is there.

        Raises:
            DistStoreError: it did not come within `timeout`.
        """
        return self._ask("get", _word(key, "key"))[0]

    def add(self, key: str, amount: int) -> int:
        """Count the number of `key`, 0 at first, up by `amount`; returns what it is then.

        Raises:
            ValueError: the value of `key` is no number.
        """
        return int(self._ask("add", _word(key, "key"), number(amount))[0])

    def append(self, key: str, value: Word) -> None:
        """Join `value` to the end of the value of `key`."""
        self._ask("append", _word(key, "key"), _word(value, "value"))

    def compare_set(self, key: str, expected_value: Word, desired_value: Word) -> bytes:
        """Give `key` the desired value if it has the expected one, or if it is not there and that is empty; returns
        what it has then, or the expected value if it is not there."""
        fields = _word(key, "key"), _word(expected_value, "expected_value"), _word(desired_value, "desired_value")
        return self._ask("compare_set", *fields)[0]

    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys are there."""
        return self._ask("check", *(_word(key, "key") for key in keys)) == [b"1"]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Return when all keys are there.

        Args:
            keys: their names.
            timeout: how long to wait; the store's if missing.

        Raises:
            DistStoreError: they did not come in time.
        """
        self._ask("wait", *(_word(key, "key") for key in keys), timeout=timeout)

    def delete_key(self, key: str) -> bool:
        """Forget `key`; returns whether it was there."""
        return self._ask("delete_key", _word(key, "key")) == [b"1"]

    def num_keys(self) -> int:
        """How many keys there are; a `TCPStore` has one of its own."""
        return int(self._ask("num_keys")[0])

    def list_keys(self) -> list[str]:
        """The keys that are there."""
        return [key.decode() for key in self._ask("list_keys")]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys, once all are there."""
        return self._ask("multi_get", *(_word(key, "key") for key in keys))

    def multi_set(self, keys: Sequence[str], values: Sequence[Word]) -> None:
        """Set several keys at once."""
        if len(keys) != len(values):
            raise ValueError(f"store: multi_set: {len(keys)} keys, but {len(values)} values")
        pairs = zip(keys, values)
        self._ask("multi_set", *(_word(w, "key or value") for pair in pairs for w in pair))

    def queue_push(self, key: str, value: Word) -> None:
        """Put `value` at the end of the queue `key`."""
        self._ask("queue_push", _word(key, "key"), _word(value, "value"))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Take the first value of the queue `key`.

        Args:
            key: the queue's name.
            block: whether to wait for one.

        Raises:
            QueueEmptyError: there is none, and `block` is False.
            DistStoreError: none came within `timeout`.
        """
        return self._ask("queue_pop", _word(key, "key"), *(() if block else (b"1",)))[0]

    def queue_len(self, key: str) -> int:
        """How many values the queue `key` has."""
        return int(self._ask("queue_len", _word(key, "key"))[0])

    def has_extended_api(self) -> bool:
        """Whether there are `append`, `multi_get` and `multi_set`: always."""
        return True

    def clone(self) -> Store:
        """A store over the same keys."""
        return self


class HashStore(Store):
    """A store of one process, for its threads.

    >>> import corefw as torch
    >>> store = torch.distributed.HashStore()
    >>> store.set("name", "value")
    >>> store.get("name"), store.add("count", 2), store.add("count", -5)
    (b'value', 2, -3)
    """

    def __init__(self) -> None:
        super().__init__()
        self._table = Table()

    def _do(self, command: str, fields: tuple[bytes, ...], timeout: float) -> list[bytes]:
        return self._table.run(command, fields, timeout)


class PrefixStore(Store):
    """Another store, in which all keys begin with a prefix.

    Args:
        prefix: what they begin with; a slash follows.
        store: the other one.

    >>> import corefw as torch
    >>> store = torch.distributed.HashStore()
    >>> torch.distributed.PrefixStore("one", store).set("name", "value")
    >>> store.get("one/name")
    b'value'
    """

    def __init__(self, prefix: str, store: Store):
        super().__init__()
        self._prefix = _word(prefix, "prefix") + b"/"
        self._store = store

    @property
    def underlying_store(self) -> Store:
        """The other store."""
        return self._store

    @property
    def _underlying_non_prefix_store(self) -> Store:
        store = self._store
        return store._underlying_non_prefix_store if isinstance(store, PrefixStore) else store

    @property
    def timeout(self) -> timedelta:
        """That of the other store."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Let the other store wait so long."""
        self._store.set_timeout(timeout)

    def _do(self, command: str, fields: tuple[bytes, ...], timeout: float) -> list[bytes]:
        named = list(fields)
        which = KEYS.get(command, slice(0, 1))
        named[which] = [self._prefix + key for key in named[which]]
        answer = self._store._do(command, tuple(named), timeout)
        if command == "list_keys":
            return [key.removeprefix(self._prefix) for key in answer if key.startswith(self._prefix)]
        return answer
