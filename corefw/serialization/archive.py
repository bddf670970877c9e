"""PyTorch's checkpoint container: a zip archive of uncompressed records, each aligned to 64 bytes."""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import IO, Any

import numpy as np

from corefw.serialization.allowance import take

ALIGNMENT = 64  # bytes, so that mapped records can be used where they lie
VERSION = b"3\n"  # of the format; what PyTorch 1.6 and later write
MAGIC = b"PK\x03\x04"  # how the archive's first record begins
_ROOT = "archive"
_HEADER = struct.Struct("<4s5H3L2H")  # of a record: magic, ..., lengths of its name and of the extra field
_ZIP64_EXTRA = 20  # bytes that zipfile puts before our extra field when a size needs 64 bits
_PADDING = 0x4246  # PyTorch's id of the extra field that only takes up room
_CHUNK = 1 << 20  # bytes that are read or written at once: they are still in the cache for the checksum
_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # those that PyTorch reads
_DAMAGE = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, NotImplementedError, OverflowError, ValueError)


class Writer:
    """Writes records into an archive, which ends with the with-block.

    Args:
        file: a binary file open for writing; it need not be seekable.
    """

    def __init__(self, file: IO[bytes]):
        self._zip = zipfile.ZipFile(file, "w", zipfile.ZIP_STORED, allowZip64=True)
        self._checksum = 0

    def write(self, name: str, content: Any) -> None:
        """Add the record `name` with the bytes of a buffer."""
        content = memoryview(content).cast("B")
        info = zipfile.ZipInfo(f"{_ROOT}/{name}")
        info.file_size = content.nbytes
        zip64 = content.nbytes * 1.05 > zipfile.ZIP64_LIMIT  # the test zipfile makes
        start = self._position() + _HEADER.size + len(info.filename) + zip64 * _ZIP64_EXTRA + 4
        padding = -start % ALIGNMENT
        info.extra = struct.pack("<HH", _PADDING, padding) + b"Z" * padding
        with self._zip.open(info, "w", force_zip64=zip64) as record:
            for begin in range(0, content.nbytes, _CHUNK):
                record.write(content[begin : begin + _CHUNK])
        self._checksum = zlib.crc32(struct.pack("<L", info.CRC), self._checksum)

    def _position(self) -> int:
        return self._zip.start_dir  # where zipfile writes next

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind, *exception) -> None:
        """Add what every archive ends with: version and identity, the same for the same content."""
        if kind is not None:
            self._zip.fp = None  # or it would write its directory when it is collected
            return
        self.write("version", VERSION)
        self.write(".data/serialization_id", f"{self._checksum:040d}".encode())
        self._zip.close()


class Reader:
    """Reads records of an archive, none of which it trusts: sizes are compared with the file's before memory is taken.

    No byte of the file belongs to two records, and what compressed ones may unpack to is limited (see `allowance`).

    Args:
        file: a seekable binary file.

    Raises RuntimeError if the file is no archive or is damaged.
    """

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._length = file.seek(0, 2) or file.tell()
        try:
            self._zip = zipfile.ZipFile(file)
        except _DAMAGE as error:
            raise RuntimeError(
                f"failed reading zip archive: {error or 'it is damaged'}; the file is truncated or not a checkpoint"
            ) from None
        infos = self._zip.infolist()
        root = infos[0].filename.partition("/")[0] if infos else ""
        self.records: dict[str, zipfile.ZipInfo] = {}
        for info in infos:
            top, _, name = info.filename.partition("/")
            if top != root or not name or name in self.records:
                raise RuntimeError(f"file in archive is not in a subdirectory, or twice in it: {info.filename!r}")
            self.records[name] = info
        self._lay_out()

    def __contains__(self, name: str) -> bool:
        return name in self.records

    def _lay_out(self) -> None:
        """Find where the room of each record ends, and ask for the memory of the compressed ones."""
        infos = sorted(self.records.values(), key=lambda info: info.header_offset)
        starts = [info.header_offset for info in infos]
        self._ends = dict(zip((info.filename for info in infos), [*starts[1:], self._zip.start_dir]))
        packed = [info.file_size for info in infos if info.compress_type != zipfile.ZIP_STORED]
        take(sum(packed), f"unpacking {len(packed)} compressed records")
        #: whether the writer computed checksums; PyTorch can be told not to, and writes zeros
        self.has_checksums = any(info.CRC for info in infos)

    def _info(self, name: str) -> zipfile.ZipInfo:
        info = self.records.get(name)
        if info is None:
            raise RuntimeError(f"file not found in archive: {name!r}; the checkpoint is damaged or not PyTorch's")
        if info.compress_type not in _PACKINGS or info.flag_bits & 1:  # bit 0: encrypted
            raise RuntimeError(f"record {name!r} is encrypted or compressed in a way that checkpoints never are")
        if not (
            0 <= info.header_offset <= self._length - info.compress_size
            and (info.compress_type != zipfile.ZIP_STORED or info.file_size == info.compress_size)
        ):
            raise RuntimeError(f"record {name!r} claims {info.file_size} bytes, which the file cannot hold")
        return info

    def size(self, name: str) -> int:
        """The number of bytes of a record."""
        return self._info(name).file_size

    def offset(self, name: str) -> int | None:
        """Where in the file the bytes of a record begin; None if it is compressed."""
        info = self._info(name)
        self._file.seek(info.header_offset)
        header = self._file.read(_HEADER.size)
        if len(header) < _HEADER.size or not header.startswith(MAGIC):
            raise RuntimeError(f"record {name!r} is damaged: no header where the directory says")
        *_, name_length, extra_length = _HEADER.unpack(header)
        start = info.header_offset + _HEADER.size + name_length + extra_length
        if start + info.compress_size > self._ends[info.filename]:
            raise RuntimeError(f"record {name!r} reaches into another one, or past the end of the file")
        return start if info.compress_type == zipfile.ZIP_STORED else None

    def read_into(self, name: str, target: np.ndarray, check: bool = True) -> None:
        """Read a record into an array of bytes, which must have its size; RuntimeError if it is damaged.

        Without `check` the checksum is not compared, unless the record is compressed.
        """
        start = self.offset(name)
        if target.nbytes != self.size(name):
            raise RuntimeError(f"record {name!r} has {self.size(name)} bytes where {target.nbytes} are wanted")
        view = memoryview(target.data)
        if start is None:  # as in archives that other tools packed anew
            try:
                with self._zip.open(self.records[name]) as record:
                    self._fill(name, record, view, False)
            except _DAMAGE as error:
                raise RuntimeError(f"record {name!r} cannot be read: {error}") from None
        else:
            self._file.seek(start)
            self._fill(name, self._file, view, check and self.has_checksums)

    def _fill(self, name: str, stream: IO[bytes], view: memoryview, check: bool) -> None:
        done = checksum = 0
        while done < len(view):
            count = _read_into(stream, view[done : done + _CHUNK])
            if not count:
                raise RuntimeError(f"record {name!r} is truncated: {done} of {len(view)} bytes")
            if check:
                checksum = zlib.crc32(view[done : done + count], checksum)
            done += count
        if check:
            self._compare(name, checksum)

    def verify(self, name: str, content: memoryview) -> None:
        """Compare the bytes of a record with its checksum; RuntimeError if they are others."""
        self._compare(name, zlib.crc32(content))

    def _compare(self, name: str, checksum: int) -> None:
        if checksum != self.records[name].CRC:
            raise RuntimeError(f"record {name!r} is damaged: its checksum is another one")

    def read(self, name: str, check: bool = True) -> bytes:
        """The bytes of a record."""
        target = np.empty(self.size(name), np.uint8)
        self.read_into(name, target, check)
        return target.tobytes()


def _read_into(file: IO[bytes], view: memoryview) -> int:
    """Read some bytes into `view`, also from file objects that have only ``read``; returns how many."""
    if hasattr(file, "readinto"):
        return file.readinto(view) or 0
    content = file.read(len(view))
    view[: len(content)] = content
    return len(content)
