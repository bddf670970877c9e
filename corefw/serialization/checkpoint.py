"""Saving objects to files and loading them: `corefw.save` and `corefw.load`."""

from __future__ import annotations

import ctypes
import io
import mmap as mapping
import os
import pickle
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import IO, Any

import numpy as np

from corefw.dtypes import dtype
from corefw.files import replacing
from corefw.serialization.allowance import granted
from corefw.serialization.archive import MAGIC, Reader, Writer
from corefw.serialization.full_unpickler import full_unpickler
from corefw.serialization.legacy import load_legacy
from corefw.serialization.locations import MapLocation, restored
from corefw.serialization.pickler import Pickler
from corefw.serialization.restricted_unpickler import Skimmer, Unpickler
from corefw.serialization.safetensors import load_file
from corefw.serialization.storages import StorageType
from corefw.tensor_api.memory import UntypedStorage

#: the version of pickle's format that `save` writes
DEFAULT_PROTOCOL = 2
File = str | os.PathLike | IO[bytes]

_HINT = (
    " By default (`weights_only=True`) only tensors and plain containers are loaded. If, and only if, you trust the "
    "source of the file, `weights_only=False` loads everything: it can execute arbitrary code."
)


def save(
    obj: Any,
    f: File,
    pickle_module: Any = pickle,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Save an object to a file, in PyTorch's format: PyTorch loads it too.

    Tensors that share memory share it again when loaded; all of that memory is saved, also where a tensor shows a part
    of it. A path is written under another name in its directory first, so that a crash leaves the old file whole; the
    new one has its mode and owner. Links are followed, and pipes and devices written to. What a killed program leaves
    under the other name, ``.corefw-save-*``, is removed by the next save to the directory.

    Args:
        obj: tensors, parameters, containers of them, a `state_dict`, or anything that can be pickled.
        f: a path, or a binary file open for writing.
        pickle_module, pickle_protocol: the pickle module; only Python's own is supported.
        _use_new_zipfile_serialization: True; the format of PyTorch before 1.6 can only be loaded.

    >>> import corefw as torch, io
    >>> file = io.BytesIO()
    >>> torch.save({"weight": torch.ones(2)}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'weight': tensor([1., 1.])}
    """
    if not _use_new_zipfile_serialization:
        raise RuntimeError("save: the format of PyTorch before 1.6 is not written: _use_new_zipfile_serialization=True")
    if pickle_module is not pickle:
        raise RuntimeError(f"save: pickle_module must be Python's pickle, not {pickle_module!r}")
    if isinstance(f, str | os.PathLike):
        directory = os.path.dirname(os.fspath(f))
        if directory and not os.path.isdir(directory):
            raise RuntimeError(f"Parent directory {directory} does not exist.")
    elif not hasattr(f, "write"):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    pickled = io.BytesIO()
    pickler = Pickler(pickled, pickle_protocol)
    pickler.dump(obj)  # before a file is touched
    with replacing(f) if isinstance(f, str | os.PathLike) else nullcontext(f) as file, Writer(file) as writer:
        writer.write("data.pkl", pickled.getbuffer())
        writer.write("byteorder", sys.byteorder.encode())
        for key, memory in pickler.memories.items():
            writer.write(f"data/{key}", memory.content())


def load(
    f: File, map_location: MapLocation = None, pickle_module: Any = None, *, weights_only: bool | None = None,
    mmap: bool | None = None, check: bool | None = None, **pickle_load_args,
) -> Any:  # fmt: skip
    """Load what `save`, or PyTorch's, has written.

    Args:
        f: a path, or a seekable binary file. A path that ends in ".safetensors" is loaded by `load_file`.
        map_location: where tensors go: a device, a dict from saved locations to others, or a function of a storage on
            the CPU and its saved location that returns a storage (or None, to leave it there). Missing, they go where
            they were.
        pickle_module: used instead of `pickle`, with ``weights_only=False`` only.
        weights_only: whether to load tensors and plain containers only (see `serialization.add_safe_globals`): a file
            can then do no harm. False runs the code that the file asks for; load only files you trust. Missing means
            True, unless `pickle_module` is given.
        mmap: let tensors show the file itself, whose parts are read when they are needed; changes stay in memory.
        check: whether the content is compared with its checksums. Missing, it is where it is read, but not what `mmap`
            leaves in the file. True reads that too, once; the file must have checksums, which safetensors files, those
            of PyTorch before 1.6 and those that it was told to write without lack. False compares nothing.
        pickle_load_args: for the pickle module; ``encoding`` is that of text written by Python 2.

    A file takes as much memory as it stores. For copies and for records that another tool has compressed it may ask for
    16 times its size and 16 MiB more.

    Raises pickle.UnpicklingError for content that is not allowed, RuntimeError for files that are damaged or in no
    known format, EOFError for empty ones.

    >>> import corefw as torch, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "model.pt")
    >>> torch.save(torch.nn.Linear(2, 1).state_dict(), path)
    >>> sorted(torch.load(path, map_location="cpu"))
    ['bias', 'weight']
    """
    if weights_only is None:
        weights_only = pickle_module is None
    if weights_only and pickle_module is not None:
        raise RuntimeError("Can not safely load weights when explicit pickle_module is specified")
    module = None if weights_only else pickle_module or pickle
    is_path = isinstance(f, str | os.PathLike)
    if mmap and not is_path:
        raise ValueError("f must be a file path in order to use the mmap argument")
    if is_path and os.fspath(f).endswith(".safetensors"):  # type: ignore[arg-type]
        if map_location is not None and (callable(map_location) or isinstance(map_location, dict)):
            raise RuntimeError("Loading safetensors file with callable or dict map_location is not supported.")
        if check:
            raise RuntimeError("load: check=True, but safetensors files have no checksums")
        return load_file(f, "cpu" if map_location is None else map_location)  # type: ignore[arg-type]
    with _opened(f) as file:
        begin = file.read(len(MAGIC))
        file.seek(-len(begin), 1)
        if not begin:
            raise EOFError("Ran out of input: the file is empty")
        try:
            if begin != MAGIC:
                if mmap:
                    raise RuntimeError("mmap can only be used with files in PyTorch's zip format: save it anew")
                if check:
                    raise RuntimeError("load: check=True, but files of PyTorch before 1.6 have no checksums")
                return load_legacy(file, map_location, module, pickle_load_args)
            return _Archive(file, map_location, bool(mmap), check).load(module, pickle_load_args)
        except pickle.UnpicklingError as error:
            if not weights_only:
                raise
            raise pickle.UnpicklingError(f"Weights only load failed. {error}{_HINT}") from None


@contextmanager
def _opened(f: File) -> Iterator[IO[bytes]]:
    """The file, whose content may from now on ask for memory in proportion to its size."""
    if isinstance(f, str | os.PathLike):
        with open(f, "rb") as file, granted(os.fstat(file.fileno()).st_size):
            yield file
    elif all(hasattr(f, name) for name in ("read", "readline", "seek", "tell")):
        position = f.tell()
        length = f.seek(0, 2) or f.tell()
        f.seek(position)
        with granted(length):
            yield f
    else:
        raise AttributeError(
            "expected 'f' to be string, path, or a binary file-like object with 'read', 'readline', 'seek' and 'tell'"
        )


class _Archive:
    """One zip archive being loaded: its storages, each made once."""

    def __init__(self, file: IO[bytes], map_location: MapLocation, mapped: bool, check: bool | None):
        self._reader = Reader(file)
        if check and not self._reader.has_checksums:
            raise RuntimeError("load: check=True, but the file was written without checksums")
        self._check, self._check_mapped = check is not False, bool(check)
        if "constants.pkl" in self._reader:
            raise RuntimeError(
                "the file is a TorchScript archive: programs are not supported, save a state_dict instead"
            )
        self._map_location = map_location
        self._storages: dict[str, tuple[dtype, UntypedStorage]] = {}  # as the pickle calls them
        self._mapping = _mapped(file) if mapped else None
        order = self._reader.read("byteorder", self._check) if "byteorder" in self._reader else b"little"
        if order not in (b"little", b"big"):
            raise ValueError(f"Unknown endianness type: {order!r:.40}")
        self._swapped = order.decode() != sys.byteorder

    def load(self, pickle_module: Any, arguments: dict[str, Any]) -> Any:
        """The object; by the restricted unpickler if no module is given."""
        content = io.BytesIO(self._reader.read("data.pkl", self._check))
        if pickle_module is None:
            return Unpickler(content, self.storage, **arguments).load()
        return full_unpickler(pickle_module, content, self.storage, arguments).load()

    def storage(self, identity: tuple) -> UntypedStorage:
        """The storage that the pickle describes as ("storage", type, key, location, numel)."""
        match identity:
            case ("storage", StorageType() as kind, str(key), str(location), int(numel)):
                pass
            case _:
                raise pickle.UnpicklingError(f"Only persistent_load of storage is allowed, but got {identity[0]!r:.40}")
        if key not in self._storages:
            host = self._content(f"data/{key}", kind.dtype, numel)
            self._storages[key] = kind.dtype, restored(host, kind.dtype, location, self._map_location)
        held, found = self._storages[key]
        if held is not kind.dtype:
            raise RuntimeError(f"the file refers to the storage {key!r:.40} as {held!r} and as {kind.dtype!r}")
        return found

    def _content(self, name: str, d: dtype, numel: int) -> np.ndarray:
        size = self._reader.size(name)
        if size != numel * d.itemsize:
            raise RuntimeError(f"record {name!r} has {size} bytes, but its storage {numel} elements of {d!r}")
        start = self._reader.offset(name) if self._mapping is not None else None
        if self._mapping is not None and start is not None and start % d.itemsize == 0 and size:
            host = np.ndarray((numel,), d.numpy, self._mapping, start)
            if self._check_mapped:
                self._reader.verify(name, host.view(np.uint8).data)
        else:
            host = np.empty(numel, d.numpy)
            self._reader.read_into(name, host.view(np.uint8), self._check)
        return host.byteswap(inplace=True) if self._swapped else host


def _mapped(file: IO[bytes]) -> Any:
    """The whole file in memory; private, changes do not reach the file.

    The array hides the map itself, which would count as memory that processes share.
    """
    private = mapping.mmap(file.fileno(), 0, access=mapping.ACCESS_COPY)
    return (ctypes.c_char * len(private)).from_buffer(private)


def get_unsafe_globals_in_checkpoint(f: File) -> list[str]:
    """Full names of what a checkpoint asks for that ``load(f, weights_only=True)`` would refuse; nothing is run.

    Args:
        f: a path, or a seekable binary file, in the zip format.
    """
    with _opened(f) as file:
        content = io.BytesIO(Reader(file).read("data.pkl"))
        skimmer = Skimmer(content)
        skimmer.load()
    return sorted(set(skimmer.refused))
