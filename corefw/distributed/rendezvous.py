"""Who this process is among those of its job: what launchers and PyTorch's environment variables say."""

from __future__ import annotations

import os
from collections.abc import Mapping
from urllib.parse import parse_qs, urlparse

from corefw.distributed.engine import Meeting

#: variables that only a launcher sets, for each process that it starts, of its rank and their number
LAUNCHED_RANK = ("PMI_RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK")
LAUNCHED_SIZE = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE")
#: variables that tell rank, size and the rank on this host, the first that is there
RANK = ("RANK", *LAUNCHED_RANK, "SLURM_PROCID")
SIZE = ("WORLD_SIZE", *LAUNCHED_SIZE, "SLURM_NTASKS")
LOCAL_RANK = ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
LOCAL_SIZE = ("LOCAL_WORLD_SIZE", "MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", "SLURM_NTASKS_PER_NODE")
NODE_RANK = ("GROUP_RANK", "NODE_RANK", "SLURM_NODEID")


def number(names: tuple[str, ...], environment: Mapping[str, str] = os.environ) -> int | None:
    """The number in the first of some variables that is set.

    >>> number(("A", "B"), {"B": "3"})
    3
    """
    for name in names:
        if (text := environment.get(name, "")).lstrip("-").isdigit():
            return int(text)
    return None


def told() -> tuple[int | None, int | None]:
    """The rank of this process and the number of processes of its job, as a launcher told; None where none did."""
    return number(LAUNCHED_RANK), number(LAUNCHED_SIZE)


def meeting(init_method: str | None, size: int, rank: int, timeout: float) -> Meeting:
    """What a program said of its processes, completed by the environment.

    >>> meeting("tcp://10.0.0.1:29500", 2, 1, 60.0)
    Meeting(rank=1, size=2, address='10.0.0.1', port=29500, timeout=60.0)
    """
    address, port = os.environ.get("MASTER_ADDR"), number(("MASTER_PORT",))
    if init_method not in (None, "", "env://"):
        parts = urlparse(str(init_method))
        if parts.scheme == "tcp":
            address, port = parts.hostname, parts.port
            said = parse_qs(parts.query)
            rank, size = int(said.get("rank", [rank])[0]), int(said.get("world_size", [size])[0])
        elif parts.scheme not in ("env", "file"):
            raise ValueError(f"No rendezvous handler for {parts.scheme}://")
    return Meeting(
        rank if rank >= 0 else number(("RANK",)), size if size > 0 else number(("WORLD_SIZE",)), address, port, timeout
    )


def agree(said: Meeting, rank: int | None, size: int | None) -> None:
    """Raise ValueError if the processes of the job, as a launcher or an engine tells, are not those that the program
    means."""
    for meant, found, saying, is_it in (
        (said.size, size, "world size", "this process is alone" if size == 1 else f"its job has {size} processes"),
        (said.rank, rank, "rank", f"this process is rank {rank} of its job"),
    ):
        if meant is None or found is None or meant == found:
            continue
        raise ValueError(
            f"init_process_group: the program says {saying} {meant}, but {is_it}. Start it with `corefw launch -n "
            f"{said.size or 'SIZE'}`, or with the engine's own launcher. Processes that multiprocessing starts are not "
            "joined, but in such a job `multiprocessing.spawn` runs in the processes that exist already"
        )


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank among the processes of this host.

    Args:
        fallback_rank: the answer where no launcher tells.
    """
    found = number(LOCAL_RANK)
    if found is None:
        found = fallback_rank
    if found is None:
        raise RuntimeError("LOCAL_RANK is not in the environment. Consider passing fallback_rank")
    return found
