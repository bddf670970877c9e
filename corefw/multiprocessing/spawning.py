"""Processes that are started together: `spawn`, which tells of their errors."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import traceback
from collections.abc import Callable
from typing import Any

from corefw.multiprocessing import jobs

__all__ = ["ProcessContext", "ProcessExitedException", "ProcessRaisedException", "spawn", "start_processes"]


class ProcessException(Exception):
    """A started process ended badly: `error_index` is its number, `error_pid` the system's."""

    def __init__(self, msg: str, error_index: int, pid: int | None):
        super().__init__(msg)
        self.msg, self.error_index, self.error_pid = msg, error_index, pid


class ProcessRaisedException(ProcessException):
    """It raised; the message has its traceback."""


class ProcessExitedException(ProcessException):
    """It exited with another status than 0, `exit_code`, or was ended by a signal."""

    def __init__(self, msg: str, error_index: int, error_pid: int | None, exit_code: int | None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code


def _work(function: Callable, number: int, arguments: tuple, errors: Any) -> None:
    try:
        function(number, *arguments)
    except Exception:
        errors.send(traceback.format_exc())
        raise SystemExit(1) from None


class ProcessContext:
    """Started processes: `processes`, which `join` waits for."""

    def __init__(self, processes: list, errors: list):
        self.processes, self._errors = processes, errors

    def pids(self) -> list[int]:
        """The system's numbers of the processes."""
        return [process.pid for process in self.processes]

    def join(self, timeout: float | None = None) -> bool:
        """Wait until one fails or all are done; when one fails, the others are terminated.

        Args:
            timeout: seconds to wait for the next process to end; None waits as long as it takes.

        Returns:
            Whether all are done.

        Raises:
            ProcessRaisedException: a process raised.
            ProcessExitedException: a process exited with another status than 0.
        """
        while alive := [process for process in self.processes if process.exitcode is None]:
            ended = multiprocessing.connection.wait([process.sentinel for process in alive], timeout)
            for process in alive:
                if process.sentinel in ended:
                    process.join()
            if not ended or any(process.exitcode for process in self.processes):
                break
        failed = [number for number, process in enumerate(self.processes) if process.exitcode]
        if not failed:
            return all(process.exitcode == 0 for process in self.processes)
        for process in self.processes:
            if process.exitcode is None:
                process.terminate()
            process.join()
        self._tell(failed[0])
        return True

    def _tell(self, number: int) -> None:
        process = self.processes[number]
        if self._errors[number].poll():
            try:
                text = self._errors[number].recv()
            except EOFError:
                pass
            else:
                message = f"\n\n-- Process {number} terminated with the following error:\n{text}"
                raise ProcessRaisedException(message, number, process.pid)
        raise ProcessExitedException(
            f"process {number} terminated with exit code {process.exitcode}", number, process.pid, process.exitcode
        )


def start_processes(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Call ``fn(number, *args)`` in `nprocs` processes.

    In a job that `corefw launch -n N` started, whose processes are not joined yet, they exist already: each that comes
    here calls `fn` with its own rank, and returns when all have. What `fn` changes in the process stays changed, and
    what it raises is raised here. After `init_process_group`, processes are started as elsewhere.

    Args:
        fn: a function of a module, which the processes import.
        args: the arguments after the process's number; they are pickled.
        nprocs: how many processes.
        join: whether to wait for them.
        daemon: whether they end with this process.
        start_method: "spawn", "fork" or "forkserver".

    Returns:
        None after joining; else a `ProcessContext`.

    Raises:
        ProcessRaisedException, ProcessExitedException: see `ProcessContext.join`.
        ValueError: `nprocs` is not the number of the job's processes.
    """
    if (job := jobs.place()) is not None:
        return _in_this_job(fn, args, nprocs, join, *job)
    context = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for number in range(nprocs):
        receiver, sender = context.Pipe(duplex=False)
        process = context.Process(target=_work, args=(fn, number, args, sender), daemon=daemon)  # type: ignore[attr-defined]
        process.start()
        sender.close()
        processes.append(process)
        errors.append(receiver)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def _in_this_job(fn: Callable, args: tuple, nprocs: int, join: bool, rank: int, size: int) -> ProcessContext | None:
    """This process's share of what a job of processes that exist already does."""
    if nprocs != size:
        raise ValueError(
            f"spawn: nprocs is {nprocs}, but the job that `corefw launch` started has {size} processes, which run what "
            f"spawn would: start it with `corefw launch -n {nprocs}`. To start others, join the job's by "
            "init_process_group before"
        )
    jobs.run(lambda: fn(rank, *args))
    if not join:
        return ProcessContext([], [])
    jobs.meet()
    return None


def spawn(
    fn: Callable,
    args: tuple = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`start_processes` by new interpreters, the only way that is sure beside threads."""
    return start_processes(fn, args, nprocs, join, daemon, start_method)
