"""Runs tests in several processes, follows what they write, and outlives those that hang, die or lose their device."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

START = 60.0  # seconds for a process to import everything and to collect its tests
GRACE = 5.0  # seconds between asking a process to stop and ending it


def stop(process: subprocess.Popen) -> None:
    """End a process: SIGINT, with which CUDA programs give their device back, and SIGKILL if that is not heard."""
    if process.poll() is None:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def pytest_command(tests: list[str], *options: str) -> list[str]:
    """A pytest command that needs pytest alone and none of the project's settings."""
    settings = ["-c", "/dev/null", "--rootdir", ".", "-p", "no:cacheprovider", "-p", "no:xdist"]
    settings += ["-p", "corefw.testing.plugin", "-p", "tests.on_device.worker"]
    return [sys.executable, "-m", "pytest", "-q", *settings, *options, *tests]


@dataclass
class Report:
    """What came of the tests of one part: {test: what it said}, for those that did not pass."""

    collected: int = 0
    passed: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    not_run: dict[str, str] = field(default_factory=dict)
    unfinished: int = 0  # tests for which there was no time

    @property
    def run(self) -> int:
        """How many tests ran."""
        return self.passed + len(self.failed)


class Shard:
    """One share of the tests, in one process at a time."""

    def __init__(self, command: list[str], number: int, shards: int, folder: Path, variables: dict[str, str]):
        self.command, self.share, self.variables = command, f"{number}/{shards}", variables
        self.journal = folder / f"{number}.jsonl"
        self.log = folder / f"{number}.log"
        for file in (self.journal, self.log):
            file.write_bytes(b"")  # nothing of an earlier run
        self.read = 0  # bytes of the journal
        self.current: str | None = None  # the test at hand
        self.after: str | None = None  # the last one that ended
        self.finished = False
        self.collected = 0
        self.ended = self.ended_before = 0
        self.process: subprocess.Popen | None = None

    def start(self) -> None:
        """Run what is left of the share."""
        self.ended_before = self.ended
        command = [*self.command, "--share", self.share, "--journal", str(self.journal)]
        if self.after is not None:
            command += ["--after", self.after]
        self.heard, self.collecting = time.monotonic(), True
        with open(self.log, "a") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=self.variables)

    def events(self) -> Iterable[dict]:
        """The events written since the last call."""
        with open(self.journal, "rb") as file:
            file.seek(self.read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self.read += len(line)
                self.heard = time.monotonic()
                yield json.loads(line)


class Shards:
    """All shares of one part.

    Args:
        command: the pytest command that every process runs.
        patience: seconds for which one test may take, before it counts as hanging.
        say: is given a line as soon as there is news.
    """

    def __init__(self, command: list[str], shards: int, folder: Path, variables, patience: float, say: Callable):
        folder.mkdir(parents=True, exist_ok=True)
        self.shards = [Shard(command, number + 1, shards, folder, variables) for number in range(shards)]
        self.patience, self.say = patience, say
        self.report = Report()

    def run(self, end: float) -> Report:
        """Run everything, at most until `end` on the monotonic clock."""
        for shard in self.shards:
            shard.start()
        while not all(shard.finished for shard in self.shards):
            if time.monotonic() > end:
                self._stop_all()
                break
            time.sleep(0.05)
            for shard in self.shards:
                self._follow(shard)
        self.report.collected = sum(shard.collected for shard in self.shards)
        self.report.unfinished = self.report.collected - sum(shard.ended for shard in self.shards)
        return self.report

    def _follow(self, shard: Shard) -> None:
        if shard.finished:
            return
        status = shard.process.poll()  # before reading: what was written before the end is read
        for event in shard.events():
            self._note(shard, event)
        if shard.finished:
            stop(shard.process)
        elif status is not None:
            self._lost(shard, f"the process ended with status {status}")
        elif time.monotonic() - shard.heard > (START if shard.collecting else self.patience):
            stop(shard.process)
            for event in shard.events():
                self._note(shard, event)
            self._lost(shard, f"nothing was heard for {time.monotonic() - shard.heard:.0f} s")

    def _note(self, shard: Shard, event: dict) -> None:
        kind = event["event"]
        if kind == "collected":
            shard.collected, shard.collecting = event["tests"], False
        elif kind == "began":
            shard.current = event["test"]
        elif kind == "ended":
            self._end(shard, event["test"], event["outcome"], event["said"])
        elif kind == "done":
            shard.finished = True

    def _end(self, shard: Shard, test: str, outcome: str, said: str) -> None:
        if test in self.report.failed:  # its teardown failed too
            return
        shard.after, shard.current = test, None
        shard.ended += 1
        if outcome == "passed":
            self.report.passed += 1
        elif outcome == "skipped":
            self.report.not_run[test] = said
        else:
            self.report.failed[test] = said
            self.say(f"FAILED {test}: {said.strip().splitlines()[-1] if said.strip() else ''}")

    def _lost(self, shard: Shard, reason: str) -> None:
        """A process is gone before its end: the test at hand failed, the others go on in a new one."""
        if shard.current is not None:
            self._end(shard, shard.current, "failed", reason)
        if shard.ended == shard.ended_before:  # it would end the same way again
            shard.finished = True
            self.report.failed[f"share {shard.share}"] = f"{reason}: see {shard.log}"
            self.say(f"FAILED share {shard.share}: {reason}: see {shard.log}")
        else:
            shard.start()

    def _stop_all(self) -> None:
        for shard in self.shards:
            if shard.process.poll() is None:
                shard.process.send_signal(signal.SIGINT)
        for shard in self.shards:
            stop(shard.process)
            for event in shard.events():
                self._note(shard, event)
