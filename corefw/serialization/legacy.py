"""Loads the format of PyTorch before 1.6: pickles one after the other, then the storages."""

from __future__ import annotations

import pickle
import struct
import sys
from typing import IO, Any

import numpy as np

from corefw.serialization.full_unpickler import full_unpickler
from corefw.serialization.locations import MapLocation, restored
from corefw.serialization.restricted_unpickler import Skimmer, Unpickler
from corefw.serialization.storages import StorageType
from corefw.tensor_api.memory import UntypedStorage

_MAGIC = 0x1950A86A20F9469CFC6C
_PROTOCOL = 1001
_TAR = b"ustar"  # in the header of a tar archive, from byte 257: PyTorch before 0.1.10


def load_legacy(file: IO[bytes], map_location: MapLocation, pickle_module: Any, arguments: dict[str, Any]) -> Any:
    """The object in a file, by the restricted unpickler if `pickle_module` is None.

    The object's pickle comes before the content of its storages, so it is skimmed first, which makes nothing.

    Raises RuntimeError or pickle.UnpicklingError for other files and damaged ones.
    """
    begin = file.tell()
    end = file.seek(0, 2) or file.tell()
    file.seek(begin)
    head = file.read(512)
    file.seek(begin)
    if head[257:262] == _TAR:
        raise RuntimeError("the file is in the tar format of PyTorch before 0.1.10, which is not supported")
    if not head.startswith(pickle.PROTO):
        raise pickle.UnpicklingError(f"invalid load key, {head[:1]!r}: the file is no checkpoint, or damaged")
    if _plain(file) != _MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    if (version := _plain(file)) != _PROTOCOL:
        raise RuntimeError(f"Invalid protocol version: {version!r:.40}")
    information = _plain(file)
    if isinstance(information, dict) and information.get("little_endian") is False:
        raise RuntimeError("the file was written on a big-endian machine in the format of PyTorch before 1.6")
    start = file.tell()
    encoding = arguments.get("encoding", "utf-8")
    skimmer = Skimmer(file, encoding)
    skimmer.load()
    contents = _contents(file, skimmer.identities, end)
    after = file.tell()
    file.seek(start)
    storages: dict[Any, UntypedStorage] = {}

    def persistent_load(identity: tuple) -> Any:
        if _text(identity[0]) == "module":  # a class and its source
            return identity[1]
        key, location = identity[2], identity[3]
        if key not in contents:
            raise pickle.UnpicklingError(f"the content of storage {key!r:.40} is missing")
        if key not in storages:
            host, kind = contents[key]
            storages[key] = restored(host, kind.dtype, _text(location), map_location)
        return storages[key]

    if pickle_module is None:
        loaded = Unpickler(file, persistent_load, encoding).load()
    else:
        loaded = full_unpickler(pickle_module, file, persistent_load, arguments).load()
    file.seek(after)
    return loaded


def _plain(file: IO[bytes]) -> Any:
    def no_storage(identity):
        raise pickle.UnpicklingError("a storage where none belongs")

    return Unpickler(file, no_storage).load()


def _text(value: Any) -> str:
    return value.decode("ascii") if isinstance(value, bytes) else str(value)


def _contents(file: IO[bytes], identities: list[tuple], end: int) -> dict[Any, tuple[np.ndarray, StorageType]]:
    """Read the storages that follow the pickle: the elements and type of each, by key."""
    described: dict[Any, tuple[StorageType, int]] = {}
    for identity in identities:
        match identity:
            case ("module" | b"module", *_):
                pass
            case ("storage" | b"storage", StorageType() as kind, str() | int() | bytes() as key, _, int(numel), None):
                described[key] = kind, numel
            case ("storage" | b"storage", StorageType(), _, _, _, tuple()):
                raise pickle.UnpicklingError("views of storages, as PyTorch before 0.4 wrote them, are not supported")
            case _:
                raise pickle.UnpicklingError("the file refers to something else than a storage of a known type")
    keys = _plain(file)
    if type(keys) is not list or not all(type(key) in (str, int, bytes) and key in described for key in keys):
        raise pickle.UnpicklingError("the list of storages is damaged")
    found = {}
    for key in keys:
        kind, numel = described[key]
        header = file.read(8)
        if len(header) < 8 or struct.unpack("<q", header)[0] != numel:
            raise RuntimeError(f"storage {key!r:.40} has not the {numel} elements that it should: the file is damaged")
        size = numel * kind.dtype.itemsize
        if not 0 <= size <= end - file.tell():
            raise RuntimeError(f"storage {key!r:.40} reaches past the end of the file: it is truncated")
        host = np.frombuffer(bytearray(file.read(size)), kind.dtype.numpy)
        if len(host) != numel:
            raise RuntimeError(f"storage {key!r:.40} is truncated")
        found[key] = (host.byteswap() if sys.byteorder == "big" else host), kind
    return found
