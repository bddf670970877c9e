"""An engine in one process: each rank is a thread, and what ranks give each other lies in a shared list.

It shows all that an engine needs, and lets tests of collectives run without MPI.
"""

from __future__ import annotations

import functools
import queue
import threading
import traceback
from collections import defaultdict
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pluggy

from corefw.distributed import engines
from corefw.distributed.engine import Communicator, Engine, Request
from corefw.distributed.groups import in_a_world_of_its_own, init_process_group, world

REDUCTIONS = {
    "sum": np.add,
    "product": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
    "band": np.bitwise_and,
    "bor": np.bitwise_or,
    "bxor": np.bitwise_xor,
}


class Room:
    """Where the ranks of a group meet."""

    def __init__(self, size: int):
        self.size = size
        self.barrier = threading.Barrier(size)
        self.given: list[Any] = [None] * size
        self.boxes: dict[tuple, queue.Queue] = defaultdict(queue.Queue)
        self.rooms: dict[tuple, Room] = {}
        self.lock = threading.Lock()


class Message(Request):
    """A message that may not be there yet."""

    def __init__(self, room: Room, keys: list[tuple[int, int, int]], array):
        self.room, self.keys, self.array = room, keys, array

    def done(self) -> bool:
        for key in self.keys if self.source is None else ():
            if not self.room.boxes[key].empty():
                self.array.reshape(-1)[:] = self.room.boxes[key].get().reshape(-1)
                self.source = key[0]
                break
        return self.source is not None

    def wait(self, timeout: float) -> None:
        clock = threading.Event()
        waited = 0.0
        while not self.done():
            if waited > timeout:
                raise TimeoutError
            clock.wait(0.001)
            waited += 0.001


class Failure(Request):
    """What did not end in time."""

    def __init__(self, error: TimeoutError):
        self.error = error

    def done(self) -> bool:
        return True

    def wait(self, timeout: float) -> None:
        raise self.error


def collective(method):
    """A method that waits for the other ranks, at most as long as the group's timeout."""

    @functools.wraps(method)
    def call(self, *arguments):
        try:
            method(self, *arguments)
        except TimeoutError as error:
            return Failure(error)

    return call


class ThreadsCommunicator(Communicator):
    """A rank's end of a room."""

    def __init__(self, room: Room, rank: int, timeout: float):
        self.room, self.rank, self.size, self.timeout = room, rank, room.size, timeout

    def _exchange(self, value) -> list:
        """What all ranks give."""
        self.room.given[self.rank] = value
        try:
            self.room.barrier.wait(self.timeout)
            given = list(self.room.given)
            self.room.barrier.wait(self.timeout)
        except threading.BrokenBarrierError:
            raise TimeoutError("a rank did not come") from None
        return given

    def _all(self, array) -> list[np.ndarray]:
        return self._exchange(np.array(array).reshape(-1))

    @collective
    def all_reduce(self, array, operation):
        array.reshape(-1)[:] = functools.reduce(REDUCTIONS[operation], self._all(array))

    @collective
    def reduce(self, array, operation, root):
        parts = self._all(array)
        if self.rank == root:
            array.reshape(-1)[:] = functools.reduce(REDUCTIONS[operation], parts)

    @collective
    def broadcast(self, array, root):
        array.reshape(-1)[:] = self._all(array)[root]

    @collective
    def all_gather(self, target, source):
        target.reshape(-1)[:] = np.concatenate(self._all(source))

    @collective
    def gather(self, target, source, root):
        parts = self._all(source)
        if self.rank == root:
            target.reshape(-1)[:] = np.concatenate(parts)

    @collective
    def scatter(self, target, source, root):
        target.reshape(-1)[:] = self._all(source)[root].reshape(self.size, -1)[self.rank]

    @collective
    def reduce_scatter(self, target, source, operation):
        whole = functools.reduce(REDUCTIONS[operation], self._all(source))
        target.reshape(-1)[:] = whole.reshape(self.size, -1)[self.rank]

    @collective
    def all_to_all(self, target, source, received, sent):
        parts = self._exchange(np.split(np.array(source).reshape(-1), np.cumsum(sent)[:-1]))
        target.reshape(-1)[:] = np.concatenate([part[self.rank] for part in parts])

    def send(self, array, to, tag):
        self.room.boxes[self.rank, to, tag].put(np.array(array))

    def receive(self, array, source, tag):
        sources = [rank for rank in range(self.size) if rank != self.rank] if source is None else [source]
        return Message(self.room, [(rank, self.rank, tag) for rank in sources], array)

    @collective
    def barrier(self):
        self._exchange(None)

    def split(self, ranks, timeout):
        with self.room.lock:
            # Ranks make the same groups in the same order: the n-th of one kind is one room.
            count = sum(key[0] == tuple(ranks) and self.rank in room.came for key, room in self.room.rooms.items())
            room = self.room.rooms.setdefault((tuple(ranks), count), self._new(len(ranks)))
            room.came.add(self.rank)
        return ThreadsCommunicator(room, list(ranks).index(self.rank), timeout)

    @staticmethod
    def _new(size: int) -> Room:
        room = Room(size)
        room.came = set()
        return room


_here = threading.local()
_hook = pluggy.HookimplMarker("corefw")


@_hook
def corefw_engine() -> Engine:
    """The engine; a thread that `run` started knows its rank."""

    def join(meeting):
        return ThreadsCommunicator(_here.room, _here.rank, meeting.timeout)

    return Engine("threads", "1", ("cpu",), join, launched=lambda: hasattr(_here, "rank"))


def installed() -> None:
    """Register the engine, once."""
    if "threads" not in engines._engines:
        engines.register(SimpleNamespace(corefw_engine=corefw_engine), "threads")


def run(size: int, function: Callable[[int], Any], join: Callable[[int], None] | None = None, **options) -> list:
    """What `function` returns for each rank, each in a thread that is joined to the others, by this engine or by what
    `join` does; raises the first error."""
    installed()
    room, results, errors = Room(size), [None] * size, []

    def rank_of(rank: int) -> None:
        _here.room, _here.rank = room, rank

        def work():
            join(rank) if join else init_process_group("threads", **options)
            results[rank] = function(rank)
            world.clear()

        try:
            in_a_world_of_its_own(work)
        except BaseException as error:
            errors.append((rank, error, traceback.format_exc()))
            room.barrier.abort()

    threads = [threading.Thread(target=rank_of, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    if errors:
        raise errors[0][1]
    assert not any(thread.is_alive() for thread in threads), "a rank hangs"
    return results
