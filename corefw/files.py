"""Writing files so that a crash leaves the old one whole."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows: nothing tells there whose temporary files are abandoned, and none is removed
    fcntl = None  # type: ignore[assignment]

_PREFIX = ".corefw-save-"  # of the names of temporary files


def replacing(path: str | os.PathLike) -> AbstractContextManager[BinaryIO]:
    """A binary file to write; it takes the place of `path` when the block ends without an error, else it is removed.

    Links are followed. A file that was there hands on its mode, owner and extended attributes, and must be writable.
    What is no regular file (a pipe, a device) is written directly, and so is a file in a directory where no second one
    can be made. Temporary files that killed programs left in the directory are removed.

    >>> import os, pathlib, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "note")
    >>> with replacing(path) as file:
    ...     _ = file.write(b"done")
    >>> pathlib.Path(path).read_bytes()
    b'done'
    """
    path = os.fsdecode(path)
    target = os.path.realpath(path)
    try:
        old = os.stat(path)
    except FileNotFoundError:
        return _beside(target, None)
    if not stat.S_ISREG(old.st_mode) or not _is(target, old) or not os.access(os.path.dirname(target), os.W_OK):
        return _directly(path)
    open(target, "r+b").close()  # raises what writing to it would
    return _beside(target, old)


def _is(path: str, status: os.stat_result) -> bool:
    """Whether a file with this status has that name; the links of open files in /proc may lead to none."""
    try:
        return os.path.samestat(os.stat(path), status)
    except FileNotFoundError:
        return False


@contextmanager
def _directly(path: str) -> Iterator[BinaryIO]:
    with open(path, "wb") as file:
        yield file
        file.flush()
        with suppress(OSError):  # pipes and devices keep nothing
            os.fsync(file.fileno())


@contextmanager
def _beside(target: str, old: os.stat_result | None) -> Iterator[BinaryIO]:
    """A temporary file in the directory of `target`, which then takes its name; `old` is the status of what is there.

    Its lock is held until it has that name: a file that can be locked has been abandoned.
    """
    directory = os.path.dirname(target)
    _remove_abandoned(directory)
    temporary, descriptor = _temporary(directory, 0o666 if old is None else 0o600)
    with os.fdopen(descriptor, "wb") as file:
        try:
            if old is not None:
                _inherit(temporary, target, old)
            yield file
            file.flush()
            os.fsync(descriptor)
            if fcntl is None:
                file.close()  # Windows renames no open file
            os.replace(temporary, target)
        except BaseException:
            file.close()
            with suppress(FileNotFoundError):
                os.unlink(temporary)
            raise
    with suppress(OSError):  # not every system can
        _synchronize(directory)


def _temporary(directory: str, mode: int) -> tuple[str, int]:
    """The name and the descriptor of a new, locked file."""
    while True:
        path = os.path.join(directory, _PREFIX + secrets.token_hex(8))
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
        _lock(descriptor, waits=True)
        if os.path.exists(path):
            return path, descriptor
        os.close(descriptor)  # another program took it for abandoned before it was locked


def _lock(descriptor: int, waits: bool = False) -> bool:
    """Lock a file; False if another program has, unless this `waits` for it, or the system knows no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if waits else fcntl.LOCK_NB))
    except OSError:
        return False
    return True


def _remove_abandoned(directory: str) -> None:
    with suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and entry.is_file(follow_symlinks=False):
                with suppress(OSError):  # another user's, or just removed by another program
                    _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    descriptor = os.open(path, os.O_RDWR)
    try:
        if _lock(descriptor):
            os.unlink(path)
    finally:
        os.close(descriptor)


def _inherit(path: str, target: str, old: os.stat_result) -> None:
    """Give a file the owner, as far as the user may, the mode and the extended attributes of `target`."""
    own = os.stat(path)
    if own.st_gid != old.st_gid:
        with suppress(PermissionError):
            os.chown(path, -1, old.st_gid)
    if own.st_uid != old.st_uid:
        with suppress(PermissionError):
            os.chown(path, old.st_uid, -1)
    shutil.copystat(target, path)
    if os.stat(path).st_gid != old.st_gid:
        os.chmod(path, stat.S_IMODE(old.st_mode) & ~stat.S_IRWXG)  # what its group might do, another one may not


def _synchronize(directory: str) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
