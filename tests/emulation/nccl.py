"""What stands in for `cupy.cuda.nccl`: ranks are threads, and move elements between each other's emulated memory.

A call reads once the work that its stream was given before is done, and writes as work of that stream, so that a
missing mark shows where launches are deferred. As with the library, sends outside of a group wait for their receives,
groups belong to a thread, and codes of types and operations are checked.
"""

import ctypes
import functools
import itertools
import queue as queues
import threading
from collections import defaultdict

import ml_dtypes
import numpy as np

from tests.emulation import queue

PATIENCE = 3.0  # seconds, after which a rank that waits for the others counts as hanging
TYPES = {
    0: np.int8, 1: np.uint8, 2: np.int32, 3: np.uint32, 4: np.int64, 5: np.uint64, 6: np.float16, 7: np.float32,
    8: np.float64, 9: ml_dtypes.bfloat16,
}  # fmt: skip
OPERATIONS = {0: np.add, 1: np.multiply, 2: np.maximum, 3: np.minimum}
available = True
made: list["NcclCommunicator"] = []  # those that are open

_numbers = itertools.count(1)
_rooms: dict[bytes, "Room"] = {}
_lock = threading.Lock()


class NcclError(RuntimeError):
    """What the library says."""


class Room:
    """Where the ranks with one unique id meet."""

    def __init__(self, size):
        self.size, self.barrier, self.given = size, threading.Barrier(size), [None] * size
        self.messages = defaultdict(queues.Queue)  # by (sender, receiver)


class Group(threading.local):
    """The calls of this thread's open group."""

    depth = 0
    sends: list = []
    receives: list = []


_group = Group()


def get_unique_id():
    """128 bytes, some above 127."""
    return next(_numbers).to_bytes(64, "little").ljust(128, b"\xfe")


def groupStart():
    """Begin to collect calls."""
    if not _group.depth:
        _group.sends, _group.receives = [], []
    _group.depth += 1


def groupEnd():
    """Do what was collected: all sends, then all receives."""
    _group.depth -= 1
    if _group.depth:
        return
    taken = [send() for send in _group.sends]
    for receive in _group.receives:
        receive()
    for one in taken:
        _await(one)


def _await(taken):
    if not taken.wait(PATIENCE):
        raise NcclError("a send waits for a receive that does not come")


def _read(address, count, kind, stream):
    """A copy of elements in emulated memory, once the stream has come there."""
    queue.drain(stream)
    return np.frombuffer(ctypes.string_at(address, count * np.dtype(kind).itemsize), kind).copy()


def _write(address, values, stream):
    """Elements go to emulated memory when the stream comes there."""
    data = values.tobytes()
    queue.submit(lambda: ctypes.memmove(address, data, len(data)), stream)


class NcclCommunicator:
    """A rank's end."""

    def __init__(self, ndev, commId, rank):
        if not isinstance(commId, bytes) or len(commId) != 128 or not 0 <= rank < ndev or _group.depth:
            raise NcclError("invalid argument")
        with _lock:
            self._room = _rooms.setdefault(commId, Room(ndev))
        self._rank, self._open = rank, True
        self._exchange(None)
        made.append(self)

    def _exchange(self, value):
        """What all ranks give."""
        self._room.given[self._rank] = value
        try:
            self._room.barrier.wait(PATIENCE)
            given = list(self._room.given)
            self._room.barrier.wait(PATIENCE)
        except threading.BrokenBarrierError:
            raise NcclError("a rank did not come") from None
        return given

    def _all(self, call, address, count, datatype, stream, *details):
        """What all ranks give to a collective; they must call the same."""
        if not self._open or datatype not in TYPES or _group.depth:
            raise NcclError("invalid argument")
        given = self._exchange(((call, count, datatype, *details), _read(address, count, TYPES[datatype], stream)))
        if len({described for described, _ in given}) > 1:
            raise NcclError(f"the ranks call different things: {[described for described, _ in given]}")
        return [values for _, values in given]

    def _reduction(self, call, address, count, datatype, op, stream, *details):
        if op not in OPERATIONS:
            raise NcclError("invalid argument")
        return functools.reduce(OPERATIONS[op], self._all(call, address, count, datatype, stream, op, *details))

    def allReduce(self, sendbuf, recvbuf, count, datatype, op, stream):
        _write(recvbuf, self._reduction("allReduce", sendbuf, count, datatype, op, stream), stream)

    def reduce(self, sendbuf, recvbuf, count, datatype, op, root, stream):
        result = self._reduction("reduce", sendbuf, count, datatype, op, stream, root)
        if self._rank == root:
            _write(recvbuf, result, stream)

    def broadcast(self, sendbuff, recvbuff, count, datatype, root, stream):
        _write(recvbuff, self._all("broadcast", sendbuff, count, datatype, stream, root)[root], stream)

    def allGather(self, sendbuf, recvbuf, count, datatype, stream):
        _write(recvbuf, np.concatenate(self._all("allGather", sendbuf, count, datatype, stream)), stream)

    def reduceScatter(self, sendbuf, recvbuf, recvcount, datatype, op, stream):
        whole = self._reduction("reduceScatter", sendbuf, recvcount * self._room.size, datatype, op, stream)
        _write(recvbuf, whole.reshape(self._room.size, -1)[self._rank], stream)

    def send(self, sendbuf, count, datatype, peer, stream):
        def put():
            taken = threading.Event()
            values = _read(sendbuf, count, TYPES[datatype], stream)
            self._room.messages[self._rank, peer].put((values, taken))
            return taken

        if _group.depth:
            _group.sends.append(put)
        elif peer == self._rank:
            raise NcclError("a message to the same rank outside of a group")
        else:
            _await(put())

    def recv(self, recvbuf, count, datatype, peer, stream):
        def take():
            try:
                values, taken = self._room.messages[peer, self._rank].get(timeout=PATIENCE)
            except queues.Empty:
                raise NcclError("a message does not come") from None
            if values.size != count or values.dtype != TYPES[datatype]:
                raise NcclError("a message of another size")
            _write(recvbuf, values, stream)
            taken.set()

        if _group.depth:
            _group.receives.append(take)
        else:
            take()

    def check_async_error(self):
        """Nothing."""

    def destroy(self):
        self._open = False
        made.remove(self)

    abort = destroy
