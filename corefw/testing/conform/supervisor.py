"""The supervisor: hands checks to processes, and outlives those that crash or hang."""

from __future__ import annotations

import json
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread

from corefw.testing.conform.items import Item
from corefw.testing.conform.outcomes import Outcome, Result

START = 300.0  # seconds for a process to import everything and to list its checks


class LostError(Exception):
    """The process crashed or gave no answer in time; the text says which."""


class Worker:
    """One process that runs checks; what it prints is kept to explain its end."""

    def __init__(self, command: list[str]):
        self._said = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed by `stop`
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said, text=True, bufsize=1
        )
        self.count: int = self._answer(START)

    def run(self, number: int, patience: float) -> dict:
        """What came of a check; LostError if the process did not live to say it."""
        assert self._process.stdin is not None
        with suppress(OSError):  # of a process that has ended: the answer says how
            self._process.stdin.write(f"{number}\n")
        return self._answer(patience)

    def _answer(self, patience: float):
        stdout = self._process.stdout
        assert stdout is not None
        if not select.select([stdout], [], [], patience)[0]:
            self.stop()
            raise LostError(f"hangs: no answer within {patience:g} seconds")
        line = stdout.readline()
        if not line:
            raise LostError(self._end())
        return json.loads(line)

    def _end(self) -> str:
        status = self._process.wait()
        self._said.seek(0)
        lines = self._said.read().strip().splitlines()
        what = f"crashes: {signal.Signals(-status).name}" if status < 0 else f"ends the process with status {status}"
        place = next((line.strip() for line in lines if line.strip().startswith("File ")), lines[-1] if lines else "")
        return f"{what} {place}".strip()

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._said.close()


def supervise(
    name: str, folders: Iterable[Path], items: list[Item], wanted: Iterable[int], jobs: int, patience: float
) -> Iterator[Result]:
    """The results of the `wanted` numbers among `items`, as they come, from several processes."""
    command = [sys.executable, "-m", "corefw.testing.conform.worker", name, *map(str, folders)]
    numbers: SimpleQueue[int] = SimpleQueue()
    results: SimpleQueue[Result | BaseException | None] = SimpleQueue()
    for number in wanted:
        numbers.put(number)
    jobs = max(1, min(jobs, numbers.qsize()))
    threads = [
        Thread(target=_follow, args=(command, items, numbers, results.put, patience), daemon=True) for _ in range(jobs)
    ]
    for thread in threads:
        thread.start()
    working = jobs
    while working:
        found = results.get()
        if found is None:
            working -= 1
        elif isinstance(found, BaseException):
            raise found
        else:
            yield found


def _follow(
    command: list[str],
    items: list[Item],
    numbers: SimpleQueue[int],
    tell: Callable[[Result | BaseException | None], None],
    patience: float,
) -> None:
    """Run checks in one process after another until none is left; whatever goes wrong is told."""
    worker = None
    try:
        while True:
            number = numbers.get_nowait()
            if worker is None:
                worker = Worker(command)
                if worker.count != len(items):
                    raise RuntimeError(f"a process lists {worker.count} checks, this one {len(items)}")
            try:
                tell(Result.of_dict(worker.run(number, patience)))
            except LostError as lost:
                worker = None
                tell(items[number].result(Outcome.RAISES, str(lost)))
    except Empty:
        tell(None)
    except BaseException as error:
        tell(error)
    finally:
        if worker is not None:
            worker.stop()
