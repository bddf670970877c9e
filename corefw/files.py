"""Writing files so that a crash leaves the old one whole."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """A binary file to write; it takes the place of `path` when the block ends without an error, else it is removed.

    >>> import os, pathlib, tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "note")
    >>> with replacing(path) as file:
    ...     _ = file.write(b"done")
    >>> pathlib.Path(path).read_bytes()
    b'done'
    """
    path = os.fspath(path)
    descriptor, temporary = tempfile.mkstemp(prefix=os.path.basename(path) + ".", dir=os.path.dirname(path) or ".")
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(temporary, 0o666 & ~mask)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
