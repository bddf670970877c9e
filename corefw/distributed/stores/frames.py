"""Frames: commands and answers of stores as bytes, in a file or on the way to another process.

A frame is the number of its fields, then of each field the size and the bytes; numbers have four bytes, the lowest
first. Sizes are checked before anything is read, since whoever finds the port can write there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

FIELDS = 1 << 16  # that a frame may have
SIZE = 1 << 26  # bytes that they may have together
_NUMBER = struct.Struct("<I")


def packed(fields: Sequence[bytes]) -> bytes:
    """The bytes of a frame.

    Raises:
        ValueError: it has more than FIELDS fields or more than SIZE bytes.

    >>> packed([b"get", b"key"])
    b'\\x02\\x00\\x00\\x00\\x03\\x00\\x00\\x00get\\x03\\x00\\x00\\x00key'
    """
    if len(fields) > FIELDS or (size := sum(map(len, fields))) > SIZE:
        told = f"{len(fields)} fields" if len(fields) > FIELDS else f"{size} bytes"
        raise ValueError(f"store: {told} at once; at most {FIELDS} fields and {SIZE} bytes are taken")
    return _NUMBER.pack(len(fields)) + b"".join(_NUMBER.pack(len(field)) + field for field in fields)


def unpacked(read: Callable[[int], bytes]) -> list[bytes]:
    """The fields of the next frame.

    Args:
        read: gives as many bytes as it is asked for, or raises EOFError.

    Raises:
        ValueError: a size is larger than a frame may have.
        EOFError: there are fewer bytes.
    """
    (count,) = _NUMBER.unpack(read(_NUMBER.size))
    if count > FIELDS:
        raise ValueError(f"store: a frame of {count} fields is refused")
    fields, left = [], SIZE
    for _ in range(count):
        (size,) = _NUMBER.unpack(read(_NUMBER.size))
        if size > left:
            raise ValueError(f"store: a field of {size} bytes is refused")
        left -= size
        fields.append(read(size) if size else b"")
    return fields
