"""Checkpoints in a folder: a file of each process, and one that tells what is where."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from corefw import dtypes
from corefw.distributed.checkpoint.extents import Block, Extent
from corefw.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
    chunk,
)
from corefw.distributed.checkpoint.planners import DefaultLoadPlanner, DefaultSavePlanner, checked
from corefw.distributed.groups import chosen_group, is_initialized
from corefw.distributed.objects import all_gather_object
from corefw.files import replacing
from corefw.graph.grad_mode import no_recording
from corefw.serialization.checkpoint import load as read
from corefw.serialization.checkpoint import save as write
from corefw.shapes import Size
from corefw.tensor import Tensor

METADATA = ".metadata"
_OBJECTS = "objects"  # the key, in the first process's file, of what is no tensor


class CheckpointException(RuntimeError):
    """A process could not write or read its part.

    Attributes: ``failures`` {rank: the error}.
    """

    def __init__(self, msg: str, failures: dict[int, BaseException]):
        told = "".join(f"\n  rank {rank}: {type(e).__name__}: {e}" for rank, e in failures.items())
        super().__init__(msg + told)
        self.failures = failures


class _Folder:
    """A folder of a checkpoint.

    Args:
        path: the folder.
    """

    def __init__(self, path: str | os.PathLike, **options: Any):
        self.path = os.fspath(path)


class FileSystemWriter(_Folder):
    """Where to write a checkpoint; other options of PyTorch's are accepted."""


class FileSystemReader(_Folder):
    """Where to read a checkpoint."""

    def read_metadata(self) -> Metadata:
        """What the checkpoint holds."""
        metadata = _metadata(self.path)
        found: dict[str, Any] = dict.fromkeys(
            _content(self.path, metadata["files"][0])[_OBJECTS], BytesStorageMetadata()
        )
        files = dict.fromkeys(found, metadata["files"][:1])
        for name, facts in metadata["tensors"].items():
            chunks = [chunk(start, stop, facts["shape"], block) for _, start, stop, *block in facts["parts"]]
            properties = TensorProperties(getattr(dtypes, facts["dtype"]))
            found[name] = TensorStorageMetadata(properties, Size(facts["shape"]), chunks)
            files[name] = [file for file, *_ in facts["parts"]]
        return Metadata(
            found, {name: tuple(name.split(".")) for name in found}, files, version=str(metadata["version"])
        )


class _Team:
    """The processes that write or read together; one alone where none are joined."""

    def __init__(self, group: Any, no_dist: bool):
        self.group = chosen_group(group) if not no_dist and (group is not None or is_initialized()) else None
        self.rank = 0 if self.group is None else self.group.rank()
        self.size = 1 if self.group is None else self.group.size()

    def gather(self, value: Any) -> list[Any]:
        """The values of all."""
        if self.group is None:
            return [value]
        found: list[Any] = [None] * self.size
        all_gather_object(found, value, self.group)
        return found

    def together(self, what: str, work: Callable[[], Any]) -> list[Any]:
        """What `work` returns on each; CheckpointException on all if it fails on one."""
        try:
            own, error = work(), None
        except Exception as failure:
            own, error = None, failure
        results = self.gather((own, error))
        failures = {rank: error for rank, (_, error) in enumerate(results) if error is not None}
        if failures:
            raise CheckpointException(what, failures)
        return [own for own, _ in results]


def _folder(checkpoint_id: Any, storage: Any) -> str:
    if checkpoint_id is None and not isinstance(storage, _Folder):
        raise RuntimeError("a checkpoint needs checkpoint_id, the path of a folder, or a FileSystemWriter or -Reader")
    return storage.path if checkpoint_id is None else os.fspath(checkpoint_id)


def _leaves(value: Any, path: tuple = ()) -> Iterator[tuple[tuple, Any]]:
    """(path, value) of what is in nested dicts and lists."""
    if isinstance(value, (dict, list)) and value:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(inner, (*path, key))
    else:
        yield path, value


def _named(state_dict: dict[str, Any]) -> dict[str, tuple[tuple, Any]]:
    """{path with dots: (path, value)}."""
    found: dict[str, tuple[tuple, Any]] = {}
    for path, value in _leaves(state_dict):
        name = ".".join(map(str, path))
        if name in found:
            raise ValueError(f"two values of the state dict have the path {name!r}")
        found[name] = path, value
    return found


def save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None, storage_writer: Any = None,
    planner: Any = None, process_group: Any = None, no_dist: bool = False, use_collectives: bool = True,
) -> None:  # fmt: skip
    """Write a checkpoint: each process writes its parts of what lies in parts, the first one all else.

    Files get their names when they are whole, and the one that names them all is the last: whatever happens in between,
    the folder holds the checkpoint that was there before, or the new one.

    Args:
        state_dict: nested dicts and lists of tensors and other values, with the same keys in all processes.
        checkpoint_id: the folder, which all processes see; or `storage_writer`, a `FileSystemWriter`.
        planner: a `DefaultSavePlanner`.
        process_group: the processes; all if missing.
        no_dist: whether this process writes alone.
        use_collectives: must be True: files are named once all are whole.

    Raises:
        CheckpointException: in all processes, if one could not write.
    """
    checked("save", planner, DefaultSavePlanner)
    if not use_collectives:
        raise NotImplementedError(
            "distributed.checkpoint.save: use_collectives=False is not there; no_dist writes alone"
        )
    folder, team = _folder(checkpoint_id, storage_writer), _Team(process_group, no_dist)
    token = team.gather(secrets.token_hex(4))[0]

    def write_own() -> tuple[str, dict[str, Any]]:
        os.makedirs(folder, exist_ok=True)
        content: dict[str, Any] = {}
        index: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, (_, value) in _named(state_dict).items():
            if not isinstance(value, Tensor):
                others[name] = value
                continue
            extent = Extent(value)
            index[name] = {"shape": extent.shape, "dtype": str(value.dtype).rpartition(".")[2], "part": None}
            if extent.is_written_by(team.rank):
                content[name] = extent.values.detach().cpu().reshape(-1).clone()
                index[name]["part"] = extent.facts()
        if team.rank == 0:
            content[_OBJECTS] = others
        file = f"{token}_{team.rank}.pt"
        with replacing(os.path.join(folder, file)) as target:
            write(content, target)
        return file, index

    written = team.together(f"distributed.checkpoint.save: {folder} keeps what was there before", write_own)

    def write_metadata() -> None:
        if team.rank == 0:
            _write_metadata(folder, written)

    team.together(f"distributed.checkpoint.save: {folder} keeps what was there before", write_metadata)


def _write_metadata(folder: str, written: list[tuple[str, dict[str, Any]]]) -> None:
    """Name the files of all processes, and remove those of the checkpoint before."""
    tensors: dict[str, Any] = {}
    for file, index in written:
        for name, facts in index.items():
            known = tensors.setdefault(name, {"shape": facts["shape"], "dtype": facts["dtype"], "parts": []})
            if facts["part"] is not None:
                known["parts"].append([file, *facts["part"]])
    files = [file for file, _ in written]
    with replacing(os.path.join(folder, METADATA)) as target:
        target.write(json.dumps({"version": 1, "files": files, "tensors": tensors}).encode())
    for old in os.listdir(folder):
        if old.endswith(".pt") and old not in files and len(old.partition("_")[0]) == 8:
            with suppress(OSError):
                os.remove(os.path.join(folder, old))


def load(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None, storage_reader: Any = None,
    planner: Any = None, process_group: Any = None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Fill a state dict from a checkpoint, which any number of processes may have written: tensors in place, each
    process's parts from the files that have them; other values are replaced.

    Args:
        state_dict: with the keys that are wanted.
        checkpoint_id: the folder; or `storage_reader`, a `FileSystemReader`.
        planner: a `DefaultLoadPlanner`, which may allow keys that the checkpoint lacks.
        process_group: the processes; all if missing.
        no_dist: whether this process reads alone.

    Raises:
        CheckpointException: in all processes, if one misses a key, finds another shape, or could not read.
    """
    checked("load", planner, DefaultLoadPlanner)
    is_partial = planner is not None and planner.allow_partial_load
    folder, team = _folder(checkpoint_id, storage_reader), _Team(process_group, no_dist)
    team.together(f"distributed.checkpoint.load: {folder}", lambda: _fill(state_dict, folder, is_partial))


def _metadata(folder: str) -> dict[str, Any]:
    with open(os.path.join(folder, METADATA), "rb") as source:
        return json.loads(source.read())


def _fill(state_dict: dict[str, Any], folder: str, is_partial: bool) -> None:
    metadata = _metadata(folder)
    wanted = _named(state_dict)
    known, first = metadata["tensors"], metadata["files"][0]
    objects = _content(folder, first)[_OBJECTS]
    missing = [name for name, (_, v) in wanted.items() if name not in (known if isinstance(v, Tensor) else objects)]
    if is_partial:
        wanted = {name: found for name, found in wanted.items() if name not in missing}
    elif missing:
        raise RuntimeError(f"Missing key in checkpoint state_dict: {', '.join(missing)}")
    extents: dict[str, Extent] = {}
    reads: dict[str, list[tuple[str, Block, range]]] = {}
    for name, (path, value) in wanted.items():
        if not isinstance(value, Tensor):
            _put(state_dict, path, objects[name])
            continue
        extents[name] = extent = Extent(value)
        if extent.shape != known[name]["shape"]:
            raise ValueError(
                f"size mismatch between saved {known[name]['shape']} and current {extent.shape} for {name}"
            )
        for file, start, stop, *block in known[name]["parts"]:
            if extent.wants(Block(*block), range(start, stop)):
                reads.setdefault(file, []).append((name, Block(*block), range(start, stop)))
    with no_recording():
        for file, parts in reads.items():
            content = _content(folder, file)
            for name, block, span in parts:
                extents[name].take(content[name], block, span)
        for extent in extents.values():
            extent.finish()


def _content(folder: str, file: str) -> dict[str, Any]:
    return read(os.path.join(folder, file), map_location="cpu", weights_only=True, mmap=True)


def _put(state_dict: Any, path: tuple, value: Any) -> None:
    for key in path[:-1]:
        state_dict = state_dict[key]
    state_dict[path[-1]] = value
