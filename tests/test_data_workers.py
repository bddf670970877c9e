"""How a DataLoader's worker processes end: with their loader, at Ctrl-C, and never by another process's doing."""

import contextlib
import os
import signal
import subprocess
import sys
import time

import pytest

PROGRAM = """
import gc, multiprocessing, os, sys, threading, time
import corefw as torch
from corefw.utils.data import DataLoader, Dataset

gc.disable()

class Data(Dataset):
    def __init__(self, sleep=0.0, size=1):
        self.sleep, self.size = sleep, size
    def __len__(self):
        return 8
    def __getitem__(self, index):
        if index:
            time.sleep(self.sleep)
        gc.collect()
        return torch.full((self.size,), index)

def alive():
    return len(multiprocessing.active_children())

if __name__ == "__main__":
"""
SLOW = """
    options = dict(multiprocessing_context="{context}", persistent_workers={lasting})
    for batch in DataLoader(Data(sleep=60), num_workers=3, **options):
        print("ready", flush=True)
        {work}
"""


@pytest.fixture
def start(tmp_path):
    """Starts a program with an indented body, in a process group of its own."""

    programs = []

    def started(body: str) -> subprocess.Popen:
        (tmp_path / "program.py").write_text(PROGRAM + body)
        command = [sys.executable, str(tmp_path / "program.py")]
        program = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        programs.append(program)
        return program

    yield started
    for program in programs:
        with program, contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)


@pytest.fixture
def run(start):
    """What a program prints, which must be nothing on its error output."""

    def ran(body: str) -> str:
        out, err = start(body).communicate(timeout=60)
        assert not err
        return out

    return ran


def ended(group: int) -> bool:
    """Whether no process of a group is left; helpers of multiprocessing end a moment after the program."""
    end = time.monotonic() + 10
    while time.monotonic() < end:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.05)
    return False


WAITING, TRAINING = "pass", "time.sleep(60)"


@pytest.mark.parametrize(
    "context, work, lasting",
    [
        ("fork", WAITING, False),
        ("fork", WAITING, True),
        ("fork", TRAINING, False),
        ("fork", TRAINING, True),
        ("spawn", WAITING, False),
        ("forkserver", TRAINING, False),
    ],
)
def test_an_interrupt_ends_program_and_workers(start, context, work, lasting):
    program = start(SLOW.format(context=context, lasting=lasting, work=work))
    assert program.stdout.readline() == "ready\n"
    time.sleep(0.3)
    begin = time.monotonic()
    os.killpg(program.pid, signal.SIGINT)
    _, err = program.communicate(timeout=60)
    took = time.monotonic() - begin
    assert err.count("Traceback") == 1 and err.rstrip().endswith("KeyboardInterrupt"), err
    assert took < 3, took  # 0.3 to 0.9 s; the limit leaves room on a busy machine
    assert ended(program.pid)


def test_interrupts_while_workers_start(start):
    program = start(
        """
    print("ready", flush=True)
    kept = []
    while True:
        kept.append(iter(DataLoader(Data(), num_workers=2)))
"""
    )
    assert program.stdout.readline() == "ready\n"
    time.sleep(0.2)
    os.killpg(program.pid, signal.SIGINT)
    _, err = program.communicate(timeout=60)
    assert err.count("Traceback") == 1 and err.rstrip().endswith("KeyboardInterrupt"), err


def test_workers_end_with_their_loader(run):
    out = run(
        """
    loader = DataLoader(Data(), num_workers=2, persistent_workers=True)
    list(loader)
    print(alive())
    del loader
    print(alive())
    batches = iter(DataLoader(Data(), num_workers=2))
    next(batches)
    print(alive())
    del batches
    print(alive())
    iter(DataLoader(Data(), num_workers=2))
    print(alive())
"""
    )
    assert out.split() == ["2", "0", "2", "0", "0"]


def test_forked_workers_leave_those_of_other_loaders_alone(run):
    """A worker collects its copies of other loaders that are garbage, but not yet collected in the main process."""
    out = run(
        """
    lasting = DataLoader(Data(), num_workers=1, persistent_workers=True)
    batches = iter(DataLoader(Data(), num_workers=1))
    ring = [lasting, batches, next(iter(lasting)), next(batches)]
    ring.append(ring)
    del lasting, batches, ring
    print(sorted(int(x) for x in DataLoader(Data(), num_workers=2)))
    time.sleep(0.2)
    print(alive())
    gc.collect()
    print(alive())
"""
    )
    assert out.splitlines() == [str(list(range(8))), "2", "0"]


def test_a_forked_process_has_workers_of_its_own(run):
    out = run(
        """
    loader = DataLoader(Data(), num_workers=1, persistent_workers=True)
    list(loader)
    if os.fork() == 0:
        multiprocessing.process._children.clear()
        print([int(x) for x in loader], flush=True)
        del loader
        os._exit(0)
    os.wait()
    print([int(x) for x in loader], alive())
"""
    )
    assert out.splitlines() == [str(list(range(8))), f"{list(range(8))} 1"]


def test_batches_that_nobody_takes_do_not_delay_the_end(run):
    out = run(
        """
    loader = DataLoader(Data(size=1_000_000), num_workers=2, prefetch_factor=4, persistent_workers=True)
    batches = iter(loader)
    next(batches)
    workers = loader._workers
    begin = time.monotonic()
    workers.close(patience=30)
    print(time.monotonic() - begin < 20, [process.exitcode for process in workers.processes])
    many = DataLoader(Data(sleep=5), batch_sampler=[[1] * 100_000] * 9, num_workers=1, prefetch_factor=9)
    many.timeout = 1
    try:
        next(iter(many))
    except RuntimeError:
        print("late")
"""
    )
    assert out.splitlines() == ["True [0, 0]", "late"]


def test_threads_that_send_tasks_end_before_the_program(run):
    """They free semaphores of their queue: cut off in that by the program's end, those would be told as leaked."""
    run(
        """
    from multiprocessing import queues, resource_tracker
    feed, unregister = queues.Queue._feed, resource_tracker.unregister
    late = lambda: None if threading.current_thread() is threading.main_thread() else time.sleep(0.2)
    queues.Queue._feed = lambda *args: (feed(*args), late())
    resource_tracker.unregister = lambda *args: (late(), unregister(*args))
    list(DataLoader(Data(), num_workers=2, multiprocessing_context="forkserver"))
    time.sleep(0.3)
"""
    )
