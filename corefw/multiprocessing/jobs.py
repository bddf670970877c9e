"""Processes that exist already: in a job that `corefw launch` started, a program need not start its ranks.

A program written for one process to start the others calls `spawn`, or starts a `Process` for each rank, in all
processes of a job. Each of them then runs its own rank's share, and leaves the other shares to the others.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any


def place() -> tuple[int, int] | None:
    """The rank of this process and the number of processes of its job; None where there is no job of several, in
    processes that these started, and while the processes are joined."""
    rank, size = import_module("corefw.distributed.rendezvous").told()
    if rank is None or size is None or size < 2 or multiprocessing.parent_process() is not None:
        return None
    return None if import_module("corefw.distributed").is_initialized() else (rank, size)


def run(share: Callable[[], Any]) -> None:
    """Run this process's share to its end; the processes are not joined afterwards, as they would not be if it had been
    run in a process that is gone."""
    try:
        share()
    except SystemExit as end:
        if end.code:
            raise
    distributed = import_module("corefw.distributed")
    if distributed.is_initialized():
        distributed.destroy_process_group()


def meet() -> None:
    """Return when all processes of the job have come here."""
    distributed = import_module("corefw.distributed")
    distributed.init_process_group()
    distributed.barrier()
    distributed.destroy_process_group()


class _Done:
    """Stands for a started process, of which nothing is left to do."""

    returncode = 0

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.sentinel, other = os.pipe()  # its end is there to be seen
        os.close(other)

    def poll(self, flag: int = 0) -> int:
        """Its exit status."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """As `poll`."""
        return self.returncode

    def terminate(self) -> None:
        """Nothing is left to end."""

    kill = terminate

    def close(self) -> None:
        """Give the sentinel back."""
        if self.sentinel >= 0:
            os.close(self.sentinel)
        self.sentinel = -1

    __del__ = close


class Process(multiprocessing.Process):
    """Python's `Process`. In a job of several processes that are not joined yet, one whose arguments begin with a rank
    and the number of the job's processes is that rank's share: `start` runs it in the process that has the rank, and
    does nothing in the others."""

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        job, given = place(), process_obj._args[:2]
        if job is None or len(given) < 2 or given[1] != job[1] or given[0] not in range(job[1]):
            return multiprocessing.Process._Popen(process_obj)
        if given[0] == job[0]:
            run(process_obj.run)
        return _Done()
