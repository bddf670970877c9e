"""Groups made of a group by its own processes: divided into parts, or without those that are lost."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from corefw.distributed.groups import ProcessGroup, chosen_group, part_of, seconds, world

SHRINK_DEFAULT, SHRINK_ABORT = 0, 1


def split_group(
    parent_pg: ProcessGroup | None = None, split_ranks: Sequence[Sequence[int]] | None = None,
    timeout: timedelta | None = None, pg_options: Any = None, group_desc: str | None = None,
    backend: str | None = None,
) -> ProcessGroup | None:  # fmt: skip
    """The part of a group that this process is in. All processes of the group call this, and no others need to.

    Args:
        parent_pg: the group; all processes if missing.
        split_ranks: the parts, by ranks in the group.
        timeout: for what a part does together; the group's if missing.
        pg_options: accepted for PyTorch's sake.
        group_desc: a description.
        backend: the engine, one of the group's.

    Returns:
        The group; None if this process is in no part.

    Raises:
        ValueError: a part is empty, names a rank twice or one that the group does not have, or parts overlap.
    """
    parent = chosen_group(parent_pg)
    if not split_ranks:
        raise ValueError("split_ranks cannot be None or empty")
    if parent is None:
        return None
    everyone = [rank for ranks in split_ranks for rank in ranks]
    if not all(len(ranks) for ranks in split_ranks):
        raise ValueError("the split group cannot be empty")
    if len(set(everyone)) != len(everyone):
        raise ValueError("the split group cannot have duplicate ranks")
    if any(not 0 <= rank < parent.size() for rank in everyone):
        raise ValueError(f"split_group: split_ranks {list(split_ranks)} of a group of {parent.size()}")
    world.count += 1
    own = next((sorted(ranks) for ranks in split_ranks if parent.rank() in ranks), None)
    if own is None:
        return None
    return part_of(parent, own, parent.timeout if timeout is None else seconds(timeout), group_desc)


def shrink_group(
    ranks_to_exclude: Sequence[int], group: Any = None, shrink_flags: int = SHRINK_DEFAULT, pg_options: Any = None
) -> ProcessGroup:
    """A group without some of its processes, which may be lost. The others call this; the old group is at its end. Of
    the group of all processes, the new one takes its place, and its ranks are counted anew.

    Args:
        ranks_to_exclude: by ranks in the group.
        group: all processes if missing.
        shrink_flags: SHRINK_ABORT if something of the old group may still be on its way.
        pg_options: accepted for PyTorch's sake.

    Raises:
        ValueError: this process is excluded, nobody is, or a rank is none of the group's.
    """
    found = chosen_group(group)
    lost = set(ranks_to_exclude)
    if found is None or not lost or not lost <= set(range(found.size())):
        raise ValueError(
            f"shrink_group: ranks_to_exclude {sorted(lost)} must be ranks of the group that this process is in"
        )
    if found.rank() in lost:
        raise ValueError(f"shrink_group: rank {found.rank()} calls this, but is excluded")
    kept = [rank for rank in range(found.size()) if rank not in lost]
    world.count += 1
    made = part_of(found, kept, found.timeout, found.group_desc)
    if shrink_flags != SHRINK_ABORT:
        for communicator in {id(c): c for _, c in found.joined.values()}.values():
            communicator.close()
    found.joined = {}
    world.groups.remove(found)
    if found is world.default:
        made.ranks = list(range(len(kept)))
        world.default, world.rank, world.size = made, made.rank(), made.size()
        world.groups = [made]
    return made
