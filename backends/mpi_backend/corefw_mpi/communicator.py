"""MPI's communicators as the frontend asks them: every call is MPI's non-blocking one, on the arrays' own memory."""

from __future__ import annotations

import atexit
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from mpi4py import MPI

from corefw.distributed.engine import Communicator, Request
from corefw_mpi.types import datatype, operation

_SPINS = 2000  # looks at a request before the processor is given to others between two
_SOURCE_ANY = MPI.ANY_SOURCE


class MPIRequest(Request):
    """A request of MPI; the arrays that it reads and writes are kept alive until it has ended."""

    def __init__(self, request: MPI.Request, *arrays: Any, status: MPI.Status | None = None):
        self._request: Any = request
        self._arrays, self._status = arrays, status

    def done(self) -> bool:
        if self._request is None:
            return True
        if not self._request.Test(self._status):
            return False
        self._end()
        return True

    def _end(self) -> None:
        if self._status is not None:
            self.source = self._status.Get_source()
        self._request = None
        self._arrays = ()

    def wait(self, timeout: float) -> None:
        if self._request is None:
            return
        test, status = self._request.Test, self._status
        for _ in range(_SPINS):
            if test(status):
                self._end()
                return
        end = time.monotonic() + timeout
        while not self.done():
            if time.monotonic() > end:
                raise TimeoutError
            time.sleep(20e-6)


def _spec(array: np.ndarray) -> list:
    """An array as mpi4py takes it."""
    return [array, datatype(array.dtype)]


def _parts(array: np.ndarray, counts: Sequence[int]) -> list:
    starts = [0, *np.cumsum(counts)[:-1].tolist()]
    return [array, (list(counts), starts), datatype(array.dtype)]


class MPICommunicator(Communicator):
    """A communicator of MPI."""

    def __init__(self, comm: MPI.Intracomm):
        comm.Set_errhandler(MPI.ERRORS_RETURN)
        self.comm, self.rank, self.size = comm, comm.Get_rank(), comm.Get_size()

    def all_reduce(self, array: np.ndarray, operation_name: str) -> Request | None:
        request = self.comm.Iallreduce(MPI.IN_PLACE, _spec(array), operation(array.dtype, operation_name))
        return MPIRequest(request, array)

    def reduce(self, array: np.ndarray, operation_name: str, root: int) -> Request | None:
        how = operation(array.dtype, operation_name)
        if self.rank == root:
            return MPIRequest(self.comm.Ireduce(MPI.IN_PLACE, _spec(array), how, root), array)
        return MPIRequest(self.comm.Ireduce(_spec(array), None, how, root), array)

    def broadcast(self, array: np.ndarray, root: int) -> Request | None:
        return MPIRequest(self.comm.Ibcast(_spec(array), root), array)

    def all_gather(self, target: np.ndarray, source: np.ndarray) -> Request | None:
        into = [target, source.size, datatype(target.dtype)]
        return MPIRequest(self.comm.Iallgather(_spec(source), into), target, source)

    def gather(self, target: np.ndarray, source: np.ndarray, root: int) -> Request | None:
        into = [target, source.size, datatype(target.dtype)] if self.rank == root else None
        return MPIRequest(self.comm.Igather(_spec(source), into, root), target, source)

    def scatter(self, target: np.ndarray, source: np.ndarray, root: int) -> Request | None:
        given = [source, target.size, datatype(source.dtype)] if self.rank == root else None
        return MPIRequest(self.comm.Iscatter(given, _spec(target), root), target, source)

    def reduce_scatter(self, target: np.ndarray, source: np.ndarray, operation_name: str) -> Request | None:
        how = operation(source.dtype, operation_name)
        given = [source, target.size, datatype(source.dtype)]
        request = self.comm.Ireduce_scatter_block(given, _spec(target), how)
        return MPIRequest(request, target, source)

    def all_to_all(
        self, target: np.ndarray, source: np.ndarray, received: Sequence[int], sent: Sequence[int]
    ) -> Request | None:
        request = self.comm.Ialltoallv(_parts(source, sent), _parts(target, received))
        return MPIRequest(request, target, source)

    def send(self, array: np.ndarray, to: int, tag: int) -> Request | None:
        return MPIRequest(self.comm.Isend(_spec(array), to, tag), array)

    def receive(self, array: np.ndarray, source: int | None, tag: int) -> Request | None:
        request = self.comm.Irecv(_spec(array), _SOURCE_ANY if source is None else source, tag)
        return MPIRequest(request, array, status=MPI.Status())

    def barrier(self) -> Request | None:
        return MPIRequest(self.comm.Ibarrier())

    def split(self, ranks: Sequence[int], timeout: float) -> Communicator:
        members = self.comm.Get_group().Incl(list(ranks))
        return MPICommunicator(self.comm.Create_group(members))

    def close(self) -> None:
        if self.comm != MPI.COMM_NULL and not MPI.Is_finalized():
            self.comm.Free()

    def abort(self) -> None:
        self.comm.Abort(1)


def world() -> MPICommunicator:
    """All processes that the launcher started."""
    if not MPI.Is_initialized():
        MPI.Init_thread(MPI.THREAD_MULTIPLE)
        atexit.register(_finalize)
    return MPICommunicator(MPI.COMM_WORLD.Dup())


def _finalize() -> None:
    if not MPI.Is_finalized():
        MPI.Finalize()
