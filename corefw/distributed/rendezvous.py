"""Who this process is among those of its job: what launchers, PyTorch's environment variables and addresses say."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlparse

from corefw.distributed.engine import Meeting
from corefw.distributed.stores import FileStore, Store, TCPStore

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


# -- addresses at which processes meet --------------------------------------------------------------------------------
Place = tuple[Store, int, int]  # a store that all see, this process's rank, and how many there are
_USUAL = timedelta(minutes=30)


def _served(address: str, port: int, rank: int, size: int, timeout: timedelta) -> TCPStore:
    """The store that rank 0 serves."""
    return TCPStore(address, port, size, rank == 0, timeout, multi_tenant=True)


def _missing(url: str, what: str) -> ValueError:
    return ValueError(f"Error initializing torch.distributed using {url} rendezvous: {what}")


def _said(url: str, rank: int, size: int) -> tuple[int, int]:
    """Rank and size of an address, ``scheme://...?rank=0&world_size=2``, or else of the program."""
    said = parse_qs(urlparse(url).query)
    return int(said.get("rank", [rank])[0]), int(said.get("world_size", [size])[0])


def _needed(url: str, rank: int, size: int) -> tuple[int, int]:
    rank, size = _said(url, rank, size)
    for name, value in (("rank", rank), ("world_size", size)):
        if value < 0:
            raise _missing(f"{urlparse(url).scheme}://", f"{name} parameter missing")
    return rank, size


def _by_environment(url: str, rank: int = -1, world_size: int = -1, timeout: timedelta = _USUAL) -> Iterator[Place]:
    rank, size = _said(url, rank, world_size)
    found: list[Any] = []
    for name, told in (("RANK", rank), ("WORLD_SIZE", size), ("MASTER_ADDR", -1), ("MASTER_PORT", -1)):
        value = os.environ.get(name) if told < 0 else told
        if value is None:
            raise _missing("env://", f"environment variable {name} expected, but not set")
        found.append(value)
    rank, size, address, port = int(found[0]), int(found[1]), found[2], int(found[3])
    if os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        port += 1  # at the port itself PyTorch's launcher serves a store in a protocol of its own
    yield _served(address, port, rank, size, timeout), rank, size


def _by_address(url: str, rank: int = -1, world_size: int = -1, timeout: timedelta = _USUAL) -> Iterator[Place]:
    parts = urlparse(url)
    if parts.port is None:
        raise _missing("tcp://", "port number missing")
    rank, size = _needed(url, rank, world_size)
    yield _served(parts.hostname or "", parts.port, rank, size, timeout), rank, size


def _by_file(url: str, rank: int = -1, world_size: int = -1, timeout: timedelta = _USUAL) -> Iterator[Place]:
    if not (path := urlparse(url).path):
        raise _missing("file://", "path missing")
    rank, size = _needed(url, rank, world_size)
    store = FileStore(path, size)
    store.set_timeout(timeout)
    yield store, rank, size


_handlers: dict[str, Callable[..., Iterator[Place]]] = {
    "env": _by_environment, "file": _by_file, "tcp": _by_address
}  # fmt: skip


def register_rendezvous_handler(scheme: str, handler: Callable[..., Iterator[Place]]) -> None:
    """Let addresses ``scheme://...`` be those of a function.

    Args:
        scheme: the first part of the addresses.
        handler: called with the address and keywords, it yields a store, this process's rank, and how many there are.

    Raises:
        RuntimeError: the scheme has a function.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url: str, rank: int = -1, world_size: int = -1, **kwargs: Any) -> Iterator[Place]:
    """Meet the other processes at an address: yields a store that all see, this one's rank, and how many there are.

    Args:
        url: ``env://``, ``tcp://host:port``, ``file:///path``, or one of `register_rendezvous_handler`; with
            ``?rank=0&world_size=2`` where the program does not tell them.
        rank, world_size: this process's, and how many there are.
        kwargs: ``timeout`` for the others, and what a handler takes.

    Raises:
        ValueError: something that the address needs is missing.
        RuntimeError: there is no handler for it.

    >>> import corefw as torch
    >>> store, rank, size = next(torch.distributed.rendezvous("tcp://127.0.0.1:0", rank=0, world_size=1))
    >>> store.set("here", str(rank))
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    scheme = urlparse(url).scheme
    if scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {scheme}://; there are {', '.join(sorted(_handlers))}")
    return _handlers[scheme](url, rank=rank, world_size=world_size, **kwargs)


# -- what a program says ----------------------------------------------------------------------------------------------
def meeting(init_method: str | None, size: int, rank: int, timeout: float) -> Meeting:
    """What a program said of its processes, completed by the environment.

    >>> meeting("tcp://10.0.0.1:29500", 2, 1, 60.0)
    Meeting(rank=1, size=2, address='10.0.0.1', port=29500, timeout=60.0, device=None)
    """
    address, port = os.environ.get("MASTER_ADDR"), number(("MASTER_PORT",))
    if init_method not in (None, "", "env://"):
        parts = urlparse(str(init_method))
        if parts.scheme not in _handlers:
            raise RuntimeError(f"No rendezvous handler for {parts.scheme}://; there are {', '.join(sorted(_handlers))}")
        rank, size = _said(str(init_method), rank, size)
        if parts.scheme == "tcp":
            address, port = parts.hostname, parts.port
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
