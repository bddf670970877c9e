"""Where the processes of a program meet, for engines that no launcher joins: a store that all of them see."""

from __future__ import annotations

import os
import socket
from datetime import timedelta
from typing import Any

import numpy as np

from corefw.distributed import engines
from corefw.distributed.engine import Communicator, Meeting
from corefw.distributed.errors import DistNetworkError
from corefw.distributed.rendezvous import Place, rendezvous
from corefw.distributed.stores import HashStore, PrefixStore, TCPStore

_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


def place(said: Meeting, init_method: str | None, store: Any, joined: list[Communicator]) -> Place:
    """A store that all processes see, this one's rank, and how many there are.

    Args:
        said: what the program said of its processes.
        init_method: an address, if it gave one.
        store: a store, if it gave one.
        joined: communicators of engines that are joined already.

    Raises:
        DistNetworkError: nothing tells where the others are.
    """
    rank, size = (-1 if value is None else value for value in (said.rank, said.size))
    timeout = timedelta(seconds=said.timeout)
    if store is not None:
        return PrefixStore("default_pg", store), rank, size
    if init_method not in (None, "", "env://"):
        return next(rendezvous(str(init_method), rank, size, timeout=timeout))
    if rank >= 0 and size >= 0 and all(name in os.environ for name in _VARIABLES[2:]):
        return next(rendezvous("env://", rank, size, timeout=timeout))
    if joined:
        return over(joined[0], said.timeout)
    launchers = [e for e in engines.load().values() if "cpu" in e.devices and not e.unusable and e.launched()]
    if launchers:
        return over(launchers[0].join(said), said.timeout)
    if rank in (-1, 0) and size in (-1, 1):
        return HashStore(), 0, 1
    raise DistNetworkError(
        f"init_process_group: nothing tells how the {size} processes find each other: start them with `corefw launch`, "
        f"set {', '.join(_VARIABLES)}, or give init_method='tcp://host:port' or a store"
    )


def over(communicator: Communicator, timeout: float) -> Place:
    """A store that rank 0 serves, whose address the others are told by a communicator."""
    rank, size, told = communicator.rank, communicator.size, np.zeros(256, np.uint8)
    store: TCPStore | None = None
    limit = timedelta(seconds=timeout)
    if rank == 0:
        host = socket.gethostname() if size > 1 else "127.0.0.1"
        store = TCPStore(host, 0, is_master=True, timeout=limit)
        text = f"{host} {store.port}".encode()
        told[: len(text)] = np.frombuffer(text, np.uint8)
    if (request := communicator.broadcast(told, 0)) is not None:
        request.wait(timeout)
    if store is None:
        host, port = bytes(told).rstrip(b"\0").decode().split()
        store = TCPStore(host, int(port), timeout=limit)
    return store, rank, size
