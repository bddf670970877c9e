"""A store in a file, for processes that see one file system: the commands that changed something, one after another."""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

from corefw.distributed.stores.frames import packed, unpacked
from corefw.distributed.stores.store import Store
from corefw.distributed.stores.table import CHANGES, COMMANDS, Deadline, Table, number, too_late

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_PAUSE = 0.01  # seconds between two looks at the file
_LEFT = b"\0left"  # the queue of those that are done with the file


class FileStore(Store):
    """A store in a file.

    Args:
        file_name: the file, which is made if it is not there.
        world_size: how many processes use it; when all of these are done, the file is removed. With -1 it stays.

    Attributes: ``path`` of the file.

    >>> import corefw as torch
    >>> store = torch.distributed.FileStore(str(getfixture("tmp_path") / "store"), 2)
    >>> store.set("name", "value")
    >>> store.get("name")
    b'value'
    """

    def __init__(self, file_name: str, world_size: int = -1):
        super().__init__()
        if fcntl is None:
            raise NotImplementedError("FileStore: this system does not lock files; use a TCPStore")
        self.path = os.fspath(file_name)
        self._table, self._read = Table(), 0
        with self._locked():
            pass
        if world_size > 0:
            weakref.finalize(self, _leave, self.path, world_size)

    @contextmanager
    def _locked(self) -> Iterator[IO[bytes]]:
        """The file, for this process alone; the table has what the others wrote."""
        with open(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600), "r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            size = os.fstat(file.fileno()).st_size
            if size < self._read:
                raise ValueError(f"FileStore: {self.path} was replaced by another file")
            file.seek(self._read)
            while self._read < size:
                try:
                    command, *fields = unpacked(lambda count: _exactly(file, count))
                except EOFError:  # a process ended while it wrote
                    file.truncate(self._read)
                    file.seek(self._read)
                    break
                if command.decode(errors="replace") not in COMMANDS:
                    raise ValueError(f"FileStore: {self.path} is not the file of a store")
                self._table.answer(command.decode(), tuple(fields))
                self._read = file.tell()
            yield file

    def _do(self, command: str, fields: tuple[bytes, ...], timeout: float) -> list[bytes]:
        deadline = Deadline(timeout)
        while True:
            with self._table.changed, self._locked() as file:
                if self._table.is_ready(command, fields):
                    return self._done(command, fields, file)
            if not deadline.left():
                raise too_late(command, fields, timeout)
            time.sleep(_PAUSE)

    def _done(self, command: str, fields: tuple[bytes, ...], file: IO[bytes]) -> list[bytes]:
        frame = packed([command.encode(), *fields])
        answer = self._table.answer(command, fields)
        if command in CHANGES:
            file.write(frame)
            file.flush()
            self._read = file.tell()
        return answer


def _exactly(file: IO[bytes], count: int) -> bytes:
    found = file.read(count)
    if len(found) < count:
        raise EOFError
    return found


def _leave(path: str, world_size: int) -> None:
    """One process is done with the file; the last one removes it."""
    with suppress(OSError, ValueError):
        store = FileStore(path)
        store._ask("queue_push", _LEFT, number(os.getpid()))
        if int(store._ask("queue_len", _LEFT)[0]) >= world_size:
            os.remove(path)
