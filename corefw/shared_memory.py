"""Memory that several processes see: files without a name, which the system forgets with the last process that has them
open, however it ends."""

from __future__ import annotations

import mmap
import os
import sys
import tempfile


class Sharing:
    """How tensors travel between processes: "file_descriptor" by their memory, "file_system" as copies."""

    strategy = "file_system" if sys.platform == "win32" else "file_descriptor"


class SharedMemory(mmap.mmap):
    """Bytes that other processes map too; `descriptor` is the open file by which they get it.

    >>> first = SharedMemory.of_size(4)
    >>> second = SharedMemory.of_descriptor(os.dup(first.descriptor), 4)
    >>> first[0] = 7
    >>> second[0]
    7
    """

    descriptor: int

    @classmethod
    def of_size(cls, size: int) -> SharedMemory:
        """New memory of zeros."""
        if sys.platform == "win32":
            made = cls(-1, max(size, 1))
            made.descriptor = -1
            return made
        if hasattr(os, "memfd_create"):
            descriptor = os.memfd_create("corefw")
        else:
            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        os.ftruncate(descriptor, max(size, 1))
        return cls.of_descriptor(descriptor, size)

    @classmethod
    def of_descriptor(cls, descriptor: int, size: int) -> SharedMemory:
        """The memory of an open file, which it closes in the end."""
        made = cls(descriptor, max(size, 1))
        made.descriptor = descriptor
        return made

    def __del__(self) -> None:
        if getattr(self, "descriptor", -1) >= 0:
            os.close(self.descriptor)
