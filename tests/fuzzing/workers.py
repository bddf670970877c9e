"""Workers: processes that run batches, so that a kernel that crashes or hangs costs one program and is named."""

from __future__ import annotations

import contextlib
import mmap
import os
import resource
import select
import signal
import struct
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing import Pipe
from multiprocessing.connection import Connection

import corefw
from tests.fuzzing.batches import Batch, Found, grown, run_batch, shrunk
from tests.fuzzing.compare import Difference
from tests.fuzzing.programs import Program, Step
from tests.fuzzing.runs import run_in_scope
from tests.fuzzing.shrink import shrink

#: seconds that one program may take
PATIENCE = 20.0
ALONE = 3.0  # the same for a program that hung and runs alone
#: of a program that ended its process, but not when it was run again: the machine stood still, or a race
UNSEEN = "the process ended, and does not when the program is run again"
_MARK = struct.Struct("qqd")  # the program's number, the framework's position, the time
_ROOM = 3 << 30  # bytes that programs may allocate


def limit_memory() -> None:
    """Make allocations of absurd sizes fail at once."""
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * mmap.PAGESIZE + _ROOM,) * 2)


class Worker:
    """A process that is given batches and differences, and answers with batches and smaller differences."""

    def __init__(self, frameworks: Sequence, seed: int, limited: bool = True):
        self.frameworks, self.seed, self.limited = frameworks, seed, limited
        self.task: tuple = ()
        self._marks = mmap.mmap(-1, _MARK.size)
        self._start()

    def _start(self) -> None:
        self.connection, theirs = Pipe()
        self.pid = os.fork()
        if self.pid == 0:
            self.connection.close()
            try:
                self._serve(theirs)
            except KeyboardInterrupt:
                pass
            except BaseException as error:
                theirs.send(error)  # a fault of the fuzzer itself
            finally:
                os._exit(0)
        theirs.close()

    def _mark(self, number: int, position: int) -> None:
        self._marks[:] = _MARK.pack(number, position, time.monotonic())

    def _serve(self, connection: Connection) -> None:
        """The process's life: answer until the other end is closed."""
        if self.limited:
            limit_memory()
        corefw.set_num_threads(2)
        with contextlib.suppress(EOFError):
            while True:
                kind, *what = connection.recv()
                if kind == "batch":
                    family, numbers = what
                    connection.send(run_batch(family, self.seed, numbers, self.frameworks, self._mark))
                else:
                    connection.send(shrunk(what[0], self.frameworks, mark=self._mark))

    def give(self, *task) -> None:
        """Start a task: ("batch", family, numbers) or ("shrink", found)."""
        self.task = task
        self._mark(task[2][0] if task[0] == "batch" else task[1].number, 0)
        self.connection.send(task)

    def answer(self) -> Batch | Found:
        """What came of the task; EOFError if the process died of it."""
        result = self.connection.recv()
        if isinstance(result, BaseException):
            raise result
        self.task = ()
        return result

    def late(self) -> bool:
        """Whether the program it runs takes too long."""
        return bool(self.task) and time.monotonic() - _MARK.unpack(self._marks[:])[2] > PATIENCE

    def replace(self) -> tuple[int, int, str]:
        """End a process that died or hangs, and start another: the program, the framework and the kind of the fault."""
        number, position, _ = _MARK.unpack(self._marks[:])
        hangs = self.late()
        self.close()
        self._start()
        return number, position, "hang" if hangs else "crash"

    def close(self) -> None:
        """End the process, whatever it does: it has nothing to lose, and others hold copies of the connection."""
        self.connection.close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)


def ready(workers: Sequence[Worker], seconds: float) -> Iterator[Worker]:
    """The busy workers that have answered, or died."""
    busy = {w.connection.fileno(): w for w in workers if w.task}
    for descriptor in select.select(list(busy), (), (), seconds)[0]:
        yield busy[descriptor]


# -- programs that end the process ------------------------------------------------------------------------------------
def fate(program: Program, framework, limited: bool = True, patience: float = PATIENCE) -> str:
    """What becomes of a process that runs the program: "" if it lives, "crash" or "hang"."""
    pid = os.fork()
    if pid == 0:
        with open(os.devnull, "w") as nowhere:
            os.dup2(nowhere.fileno(), sys.stderr.fileno())
        if limited:
            limit_memory()
        try:
            run_in_scope(program, framework)
        finally:
            os._exit(0)
    end = time.monotonic() + patience
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return "crash" if status else ""
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hang"


def fatal(family: str, seed: int, number: int, position: int, kind: str, frameworks: Sequence, limited: bool) -> Found:
    """The program that ended a process, shrunk; the guide, which it is grown on, must survive it."""
    culprit = frameworks[position]
    patience = ALONE if kind == "hang" else PATIENCE
    program = _grown_apart(family, seed, number, frameworks[0])
    if program is None:
        difference = Difference(
            kind, (frameworks[0].name,) * 2, 0, "?", "the program ends the process while it is grown"
        )
        return Found(difference, Program(()), family, number)

    def shows(candidate: Program) -> bool:
        return fate(candidate, culprit, limited, patience) == kind

    steps = [i for i, entry in enumerate(program.entries) if isinstance(entry, Step)]
    first = next((i for i in steps if shows(program.upto(i))), None)
    if first is None:
        return Found(Difference(kind, (culprit.name,) * 2, 0, "?", UNSEEN), program, family, number)
    program = shrink(program.upto(first), shows, 20.0)
    last = program.entries[-1]
    function = last.function if isinstance(last, Step) else "leaf"
    difference = Difference(kind, (culprit.name,) * 2, len(program.entries) - 1, function, f"{culprit.name}: {kind}")
    return replace(Found(difference, program, family, number))


def _grown_apart(family: str, seed: int, number: int, guide) -> Program | None:
    """The program, grown in a process of its own; None if that ends it."""
    ours, theirs = Pipe(duplex=False)
    pid = os.fork()
    if pid == 0:
        try:
            with guide.scope:
                theirs.send(grown(family, seed, number, guide).program())
        finally:
            os._exit(0)
    theirs.close()
    try:
        return ours.recv() if ours.poll(PATIENCE) else None
    except EOFError:
        return None
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
