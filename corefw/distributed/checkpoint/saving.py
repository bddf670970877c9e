"""Checkpoints that are written while the program goes on, and PyTorch's older names."""

from __future__ import annotations

import os
from concurrent.futures import Future, ThreadPoolExecutor
from enum import Enum
from typing import Any

from corefw.distributed.checkpoint.storage import load, save
from corefw.distributed.groups import chosen_group, default_group, is_initialized, part_of, world
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor


class AsyncCheckpointerType(Enum):
    """What writes a checkpoint while the program goes on; only a thread."""

    THREAD = "thread"
    PROCESS = "process"


#: {id of a group: (the group, one of the same processes for these messages)}
_GROUPS: dict[int, tuple[Any, Any]] = {}


def async_save(
    state_dict: dict[str, Any], *, checkpoint_id: str | os.PathLike | None = None, storage_writer: Any = None,
    planner: Any = None, process_group: Any = None,
    async_checkpointer_type: AsyncCheckpointerType = AsyncCheckpointerType.THREAD, async_stager: Any = None,
    no_dist: bool = False, use_collectives: bool = True,
) -> Future[None]:  # fmt: skip
    """Copy a state dict to the CPU's memory, and write the copy as `save` does while the program goes on. All processes
    call this.

    Args:
        state_dict: as for `save`; the program may change it once this has returned.
        checkpoint_id, storage_writer, planner, process_group, no_dist: as for `save`.
        async_checkpointer_type: must be that of a thread.
        async_stager: must be missing.
        use_collectives: as for `save`.

    Returns:
        A future, done when the checkpoint is whole; its `result` raises what went wrong. Wait for it before the next.

    >>> import corefw as torch
    >>> import corefw.distributed.checkpoint as dcp
    >>> folder = getfixture("tmp_path") / "last"
    >>> dcp.async_save({"weight": torch.ones(2)}, checkpoint_id=folder).result()
    >>> found = {"weight": torch.zeros(2)}
    >>> dcp.load(found, checkpoint_id=folder)
    >>> found
    {'weight': tensor([1., 1.])}
    """
    if async_stager is not None or async_checkpointer_type is not AsyncCheckpointerType.THREAD:
        raise NotImplementedError(
            "async_save: async_stager and other async_checkpointer_types are not there; the state dict is copied at "
            "once, and a thread writes it"
        )
    alone = no_dist or not is_initialized()
    group = None if alone else _own(chosen_group(process_group) or default_group())
    copied = _copied(state_dict)
    thread = ThreadPoolExecutor(1, "corefw checkpoint")
    future = thread.submit(
        save, copied, checkpoint_id=checkpoint_id, storage_writer=storage_writer, planner=planner, process_group=group,
        no_dist=alone, use_collectives=use_collectives,
    )  # fmt: skip
    thread.shutdown(wait=False)
    return future


def _own(group: Any) -> Any:
    """A group of the same processes, whose messages do not meet those of the program."""
    known, own = _GROUPS.get(id(group), (None, None))
    if known is not group or not own.joined:
        world.count += 1
        own = part_of(group, range(group.size()), group.timeout, "checkpoints")
        _GROUPS[id(group)] = group, own
    return own


def _copied(value: Any) -> Any:
    """Nested dicts and lists with copies of tensors in the CPU's memory, which know what they are parts of."""
    if isinstance(value, dict):
        return {key: _copied(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(inner) for inner in value)
    if not isinstance(value, Tensor):
        return value
    with no_recording():
        made = value.detach().cpu()
        made = made.clone() if made.array is value.array else made
    if hasattr(value, "piece"):
        made.piece = value.piece  # type: ignore[attr-defined]
    return made


def save_state_dict(
    state_dict: dict[str, Any], storage_writer: Any, process_group: Any = None, coordinator_rank: int = 0,
    no_dist: bool = False, planner: Any = None,
) -> None:  # fmt: skip
    """As `save`, by its older name.

    Args:
        state_dict, storage_writer, process_group, no_dist, planner: as for `save`.
        coordinator_rank: without effect: the first process names the files.
    """
    save(state_dict, storage_writer=storage_writer, process_group=process_group, no_dist=no_dist, planner=planner)


def load_state_dict(
    state_dict: dict[str, Any], storage_reader: Any, process_group: Any = None, coordinator_rank: int = 0,
    no_dist: bool = False, planner: Any = None,
) -> None:  # fmt: skip
    """As `load`, by its older name.

    Args:
        state_dict, storage_reader, process_group, no_dist, planner: as for `load`.
        coordinator_rank: without effect.
    """
    load(state_dict, storage_reader=storage_reader, process_group=process_group, no_dist=no_dist, planner=planner)
