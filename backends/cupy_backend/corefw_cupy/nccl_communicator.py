"""NCCL's communicators as the frontend asks them: work on a stream of their own, between two marks of the program's.

A collective waits for what the current stream was given before, and the current stream waits for it when the program
does; the host waits for barriers alone. NCCL moves bytes; what it has no reductions of is said in `reduction`.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from corefw import dtypes
from corefw.distributed.engine import Communicator, Request

#: ncclDataType_t of the elements that it reduces, by NumPy's names
TYPES = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7, "float64": 8,
    "bfloat16": 9,
}  # fmt: skip
_BYTES = TYPES["uint8"]
#: ncclRedOp_t
OPERATIONS = {"sum": 0, "product": 1, "max": 2, "min": 3}
#: of truth values, where a sum is whether there is a true one
_LOGICAL = {"sum": "max", "bor": "max", "max": "max", "product": "min", "band": "min", "min": "min"}
_COMPLEX = {"complex64": "float32", "complex128": "float64"}
_WIDENED = ("int16", "uint16")  # reduced as int32, whose lower half is the same
_GLANCE = 0.25  # seconds between two looks at what is on its way


class NcclRequest(Request):
    """A collective that a stream was given.

    Args:
        communicator: whose it is.
        arrays: what it reads and writes, kept until it has ended, or the current stream waits for it.
        finish: what is done on the current stream once that waits for it.
        blocking: whether the host waits too.
    """

    def __init__(
        self, communicator: NcclCommunicator, arrays: tuple[Any, ...], finish: Callable[[], None] | None = None,
        blocking: bool = False,
    ):  # fmt: skip
        self._communicator, self.arrays, self._finish, self._blocking = communicator, arrays, finish, blocking
        self.mark: Any = None
        self.due = time.monotonic() + communicator.timeout

    def done(self) -> bool:
        self._communicator.check()
        if self.mark is None or self._communicator.runtime.is_capturing():
            return False
        return self.mark.done

    def wait(self, timeout: float) -> None:
        self._communicator.check()
        if self._blocking:
            self.mark.synchronize()  # it ends: what takes too long is aborted
            self._communicator.check()
        self._communicator.cupy.cuda.get_current_stream().wait_event(self.mark)
        if self._finish is not None:
            self._finish()
        self.arrays = ()  # who takes their memory on the current stream comes after the mark


def reduction(name: str, operation: str) -> tuple[int, int, int, bool]:
    """How NCCL reduces elements: (its type, how many of these an element is, its operation, whether elements are
    widened).

    Args:
        name: NumPy's of the elements.
        operation: one of `corefw.distributed.engine.OPERATIONS`.

    Raises:
        ValueError: NCCL cannot.

    >>> reduction("complex64", "sum"), reduction("bool", "bor")
    ((7, 2, 0, False), (1, 1, 2, False))
    """
    if name == "bool" and operation in _LOGICAL:
        return _BYTES, 1, OPERATIONS[_LOGICAL[operation]], False
    if operation not in OPERATIONS:
        raise ValueError(f"NCCL has no reduction {operation!r} of {name}; gather the tensors and reduce them")
    if name in _COMPLEX and operation == "sum":
        return TYPES[_COMPLEX[name]], 2, OPERATIONS["sum"], False
    if name in _WIDENED:
        return TYPES["int32"], 1, OPERATIONS[operation], True
    if name not in TYPES:
        raise ValueError(f"NCCL has no reduction {operation!r} of {name}")
    return TYPES[name], 1, OPERATIONS[operation], False


class NcclCommunicator(Communicator):
    """This process's end of a group; NCCL's own is made at the first collective, on the device of its arrays.

    Args:
        nccl: CuPy's module.
        runtime: of the device type.
        store: which all ranks of the group see.
        name: of the group, in the store.
        rank, size: this process's rank, and how many there are.
        timeout: seconds for what they do together.
        device: the number of the device; the arrays' if missing.
    """

    host_waits = False

    def __init__(
        self, nccl: Any, runtime: Any, store: Any, name: str, rank: int, size: int, timeout: float,
        device: int | None = None,
    ):  # fmt: skip
        self.nccl, self.runtime, self.cupy = nccl, runtime, runtime.cupy
        self.store, self.name, self.rank, self.size = store, name, rank, size
        self.timeout, self.device = timeout, device
        self._made: Any = None  # NCCL's communicator
        self._stream: Any = None
        self._failure: BaseException | None = None
        self._splits: Counter[tuple[int, ...]] = Counter()
        self._pairs: dict[int, NcclCommunicator] = {}
        self._messages: list[tuple[NcclCommunicator, Callable, NcclRequest]] | None = None  # of an open block
        self._running: deque[NcclRequest] = deque()
        self._pruning, self._closed = threading.Lock(), threading.Event()

    # -- being there ---------------------------------------------------------------------------------------------
    def _comm(self, index: int) -> Any:
        """NCCL's communicator, which the ranks make together: the first one's number for it goes through the store."""
        self.check()
        if self._closed.is_set():
            raise ValueError("this communicator is closed")
        if self._made is None:
            key = f"{self.name}/id"
            self.device = index if self.device is None else self.device
            with self.runtime.on(self.device):
                if self.rank == 0:
                    self.store.set(key, bytes(n & 255 for n in self.nccl.get_unique_id()))
                told = self.store.get(key)
                try:
                    self._made = self.nccl.NcclCommunicator(self.size, told, self.rank)
                except TypeError:  # a CuPy that takes a tuple of signed numbers
                    told = tuple(n - 256 if n > 127 else n for n in told)
                    self._made = self.nccl.NcclCommunicator(self.size, told, self.rank)
                self._stream = self.cupy.cuda.Stream(non_blocking=True)
            if self.rank == 0:
                self.store.delete_key(key)
            threading.Thread(target=self._watch, daemon=True, name="corefw nccl").start()
        return self._made

    def check(self) -> None:
        """Raise what went wrong since the last call."""
        if self._failure is not None:
            raise self._failure

    def _watch(self) -> None:
        """Look after what is on its way: a collective that fails, or does not end in time, is aborted, so that the
        stream goes on and the program is told at its next call."""
        while not self._closed.wait(min(_GLANCE, self.timeout / 4)):
            self._prune()
            try:
                self._made.check_async_error()
                if self._running and time.monotonic() > self._running[0].due:
                    raise TimeoutError
            except (TimeoutError, self.nccl.NcclError) as error:
                self._failure = error
                if not self._closed.is_set():
                    self._made.abort()
                return

    def _prune(self) -> None:
        """Forget what has ended."""
        with self._pruning:
            while self._running and self._running[0].mark.done:
                self._running.popleft()

    def close(self) -> None:
        """Nothing more will be asked."""
        self._closed.set()
        for pair in self._pairs.values():
            pair.close()
        if self._made is not None and self._failure is None:
            self._made.destroy()

    def abort(self) -> None:
        """Let the others find that this one has failed."""
        self._closed.set()
        if self._made is not None and self._failure is None:
            self._made.abort()

    def split(self, ranks: Sequence[int], timeout: float) -> Communicator:
        members = tuple(ranks)
        self._splits[members] += 1  # ranks make the same groups in the same order
        name = f"{self.name}/{'-'.join(map(str, members))}#{self._splits[members]}"
        rank = members.index(self.rank)
        return NcclCommunicator(self.nccl, self.runtime, self.store, name, rank, len(members), timeout, self.device)

    # -- beginning -----------------------------------------------------------------------------------------------
    def _begin(self, call: Callable[[Any, int], None], *arrays: Any, **options: Any) -> NcclRequest:
        """Let the stream do something with arrays, after all that the current stream was given."""
        index = self.runtime.index_of(arrays[0])
        comm, request = self._comm(index), NcclRequest(self, arrays, **options)
        with self.runtime.on(index):
            self._await_program()
            call(comm, self._stream.ptr)
            self._mark(request)
        return request

    def _await_program(self) -> None:
        ready = self.cupy.cuda.Event(disable_timing=True)
        ready.record(self.cupy.cuda.get_current_stream())
        self._stream.wait_event(ready)

    def _mark(self, request: NcclRequest) -> None:
        """Put the mark of a request after it; its arrays live until then."""
        request.mark = self.cupy.cuda.Event(disable_timing=True)
        request.mark.record(self._stream)
        if self.runtime.is_capturing():
            self.runtime.capturing.capture.kept.append(request.arrays)
        else:
            self._prune()
            self._running.append(request)

    @contextmanager
    def _grouped(self) -> Iterator[None]:
        """A block whose calls NCCL begins at once."""
        self.nccl.groupStart()
        try:
            yield
        finally:
            self.nccl.groupEnd()

    # -- reductions ----------------------------------------------------------------------------------------------
    def all_reduce(self, array: Any, operation: str) -> Request | None:
        return self._reduced(array, array, operation, lambda comm, *given: comm.allReduce(*given))

    def reduce(self, array: Any, operation: str, root: int) -> Request | None:
        def call(comm: Any, source: int, target: int, count: int, kind: int, op: int, stream: int) -> None:
            comm.reduce(source, target, count, kind, op, root, stream)

        return self._reduced(array, array, operation, call)

    def reduce_scatter(self, target: Any, source: Any, operation: str) -> Request | None:
        return self._reduced(target, source, operation, lambda comm, *given: comm.reduceScatter(*given))

    def _reduced(self, target: Any, source: Any, operation: str, call: Callable[..., None]) -> Request:
        """Begin a reduction by ``call(communicator, source, target, count, type, operation, stream)``; the count is
        that of the target's elements."""
        kind, parts, number, is_widened = reduction(source.dtype.name, operation)
        given, result, finish = source, target, None
        if is_widened:
            given = self.runtime.cast(source, dtypes.int32)
            result = given if target is source else self.runtime.cast(target, dtypes.int32)

            def finish() -> None:
                self.runtime.copy(target, self.runtime.cast(result, _narrow(target)))

        def begin(comm: Any, stream: int) -> None:
            call(comm, _address(given), _address(result), parts * target.size, kind, number, stream)

        return self._begin(begin, target, source, given, result, finish=finish)

    # -- moves ---------------------------------------------------------------------------------------------------
    def broadcast(self, array: Any, root: int) -> Request | None:
        where, size = _address(array), array.nbytes
        return self._begin(lambda comm, stream: comm.broadcast(where, where, size, _BYTES, root, stream), array)

    def all_gather(self, target: Any, source: Any) -> Request | None:
        def begin(comm: Any, stream: int) -> None:
            comm.allGather(_address(source), _address(target), source.nbytes, _BYTES, stream)

        return self._begin(begin, target, source)

    def gather(self, target: Any, source: Any, root: int) -> Request | None:
        received = [source.nbytes] * self.size if self.rank == root else [0] * self.size
        sent = [source.nbytes if rank == root else 0 for rank in range(self.size)]
        return self._exchange(target, source, received, sent)

    def scatter(self, target: Any, source: Any, root: int) -> Request | None:
        received = [target.nbytes if rank == root else 0 for rank in range(self.size)]
        sent = [target.nbytes] * self.size if self.rank == root else [0] * self.size
        return self._exchange(target, source, received, sent)

    def all_to_all(self, target: Any, source: Any, received: Sequence[int], sent: Sequence[int]) -> Request | None:
        size = source.dtype.itemsize
        return self._exchange(target, source, [size * n for n in received], [size * n for n in sent])

    def _exchange(self, target: Any, source: Any, received: Sequence[int], sent: Sequence[int]) -> Request:
        """Begin to move parts of `source` to the ranks, and parts of `target` from them; the sizes are in bytes, and a
        rank's own part is one like the others."""

        def begin(comm: Any, stream: int) -> None:
            with self._grouped():
                where = _address(source)
                for rank, size in enumerate(sent):
                    if size:
                        comm.send(where, size, _BYTES, rank, stream)
                        where += size
                where = _address(target)
                for rank, size in enumerate(received):
                    if size:
                        comm.recv(where, size, _BYTES, rank, stream)
                        where += size

        return self._begin(begin, target, source)

    # -- messages ------------------------------------------------------------------------------------------------
    def send(self, array: Any, to: int, tag: int) -> Request | None:
        def begin(comm: Any, stream: int) -> None:
            comm.send(_address(array), array.nbytes, _BYTES, int(self.rank < to), stream)

        return self._message(to, begin, array)

    def receive(self, array: Any, source: int | None, tag: int) -> Request | None:
        if source is None:
            raise ValueError("NCCL receives from a rank that is named; pass the sender's, `src`")

        def begin(comm: Any, stream: int) -> None:
            comm.recv(_address(array), array.nbytes, _BYTES, int(self.rank < source), stream)

        return self._message(source, begin, array)

    def _message(self, other: int, begin: Callable[[Any, int], None], array: Any) -> Request:
        """Begin a message, which needs its two ranks alone; in an open block, at its end."""
        if other not in self._pairs:
            low, high = sorted((self.rank, other))
            name, rank = f"{self.name}/{low}-{high}", int(self.rank == high)
            self._pairs[other] = NcclCommunicator(
                self.nccl, self.runtime, self.store, name, rank, 2, self.timeout, self.device
            )
        pair = self._pairs[other]
        if self._messages is None:
            return pair._begin(begin, array)
        request = NcclRequest(pair, (array,))
        self._messages.append((pair, begin, request))
        return request

    @contextmanager
    def together(self) -> Iterator[None]:
        """A block whose messages begin at once, at its end."""
        self._messages = []
        try:
            yield
            messages = self._messages
        finally:
            self._messages = None
        if not messages:
            return
        # All ranks make the communicators of their pairs in one order, so that none waits for one that waits for it.
        for pair, _, request in sorted(messages, key=lambda message: message[0].pair_key()):
            pair._comm(self.runtime.index_of(request.arrays[0]))
        index = self.runtime.index_of(messages[0][2].arrays[0])
        with self.runtime.on(index):
            for pair in {id(pair): pair for pair, _, _ in messages}.values():
                pair._await_program()
            with self._grouped():
                for pair, begin, _ in messages:
                    begin(pair._made, pair._stream.ptr)
            for pair, _, request in messages:
                pair._mark(request)

    def pair_key(self) -> tuple[int, ...]:
        """The two ranks of a pair."""
        return tuple(map(int, self.name.rpartition("/")[2].split("-")))

    # -- meeting -------------------------------------------------------------------------------------------------
    def barrier(self) -> Request | None:
        index = self.runtime.current_device() if self.device is None else self.device
        word = self.runtime.empty((1,), dtypes.uint8, index)

        def begin(comm: Any, stream: int) -> None:
            comm.allReduce(_address(word), _address(word), 1, _BYTES, OPERATIONS["max"], stream)

        return self._begin(begin, word, blocking=True)


def _address(array: Any) -> int:
    return array.data.ptr


def _narrow(array: Any) -> dtypes.dtype:
    return getattr(dtypes, array.dtype.name)
