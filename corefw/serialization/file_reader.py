"""PyTorch's reader of the records in a checkpoint file, for libraries that look into one themselves."""

from __future__ import annotations

import os
from typing import IO

from corefw.serialization.archive import Reader

__all__ = ["PyTorchFileReader"]


class PyTorchFileReader:
    """The records of a checkpoint by name, such as "data.pkl".

    Args:
        file: a path, or a seekable binary file.

    Raises:
        RuntimeError: it is no archive, or is damaged.
    """

    def __init__(self, file: str | os.PathLike | IO[bytes]):
        self._opened = open(file, "rb") if isinstance(file, str | os.PathLike) else None  # noqa: SIM115, lives on
        self._reader = Reader(self._opened or file)  # type: ignore[arg-type]

    def __del__(self) -> None:
        if getattr(self, "_opened", None) is not None:
            self._opened.close()  # type: ignore[union-attr]

    def get_all_records(self) -> list[str]:
        """The names."""
        return [*self._reader.records]

    def has_record(self, name: str) -> bool:
        """Whether there is one of this name."""
        return name in self._reader

    def get_record(self, name: str) -> bytes:
        """The content of one; RuntimeError if it is not there."""
        if name not in self._reader:
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found")
        return bytes(self._reader.read(name))
