"""Checkpoints of a job whose processes are killed while they save: none is lost.

    python -m tests.killed [--moments 50] [--seed 0]

Two processes save one checkpoint after another in one folder, until one of them, or both, get SIGKILL at a random
moment. The next job must find a whole checkpoint there, not older than the last one that was told to be saved, and goes
on from it.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import corefw as torch
from corefw.distributed import checkpoint
from corefw.distributed.launching import launcher

ROOT = Path(__file__).resolve().parent.parent
RANKS = 2
LONGEST = 0.15  # seconds from the first checkpoint of a job to its end: several take place in them


def found_in(folder: Path, state: dict) -> int:
    """The number of the checkpoint in a folder, which is loaded into `state`; all its elements are that number."""
    if not (folder / ".metadata").exists():
        return 0
    checkpoint.load(state, checkpoint_id=folder)
    for name, value in state["model"].items():
        assert (value == state["step"]).all(), f"{name} is not of checkpoint {state['step']}"
    return state["step"]


def tell(line: str) -> None:
    """Print a line at once and whole, also where another process prints too."""
    os.write(sys.stdout.fileno(), f"{line}\n".encode())


def save_for_ever(folder: Path) -> None:
    """What each process of a job does."""
    dist = torch.distributed
    dist.init_process_group("mpi")
    model = dist.fsdp.fully_shard(torch.nn.Sequential(torch.nn.Linear(400, 300), torch.nn.Linear(300, 7)))
    step = found_in(folder, {"model": model.state_dict(), "step": 0})
    tell(f"process {os.getpid()}")
    while True:
        step += 1
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.fill_(step)
        checkpoint.save({"model": model.state_dict(), "step": step}, checkpoint_id=folder)
        if dist.get_rank() == 0:
            tell(f"saved {step}")


def kill_once(folder: Path, chance: random.Random) -> int:
    """Run a job until its processes are killed; returns the last checkpoint that it told to be saved."""
    command = [launcher(), "-n", str(RANKS), sys.executable, "-m", "tests.killed", "--folder", str(folder)]
    job = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        processes, last = [], 0
        while len(processes) < RANKS or not last:
            word, _, number = job.stdout.readline().partition(" ")
            assert word, f"the job ended by itself: {job.communicate()[1]}"
            if word == "process":
                processes.append(int(number))
            else:
                last = int(number)
        time.sleep(chance.uniform(0, LONGEST))
        for process in processes if chance.random() < 0.5 else [chance.choice(processes)]:
            os.kill(process, signal.SIGKILL)
        output, _ = job.communicate(timeout=60)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
    return max([last, *(int(line.split()[1]) for line in output.splitlines() if line.startswith("saved "))])


def kill_often(folder: Path, moments: int, seed: int) -> list[int]:
    """Kill jobs at some moments; returns the number of the checkpoint that was found after each.

    Raises:
        AssertionError: one was lost, or is not whole.
    """
    chance, found = random.Random(seed), []
    for _ in range(moments):
        told = kill_once(folder, chance)
        plain = torch.nn.Sequential(torch.nn.Linear(400, 300), torch.nn.Linear(300, 7))
        found.append(found_in(folder, {"model": plain.state_dict(), "step": 0}))
        assert found[-1] in (told, told + 1), f"checkpoint {told} was saved, but {found[-1]} is there"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--moments", type=int, default=50, help="how often jobs are killed (default: 50)")
    parser.add_argument("--seed", type=int, default=0, help="of the moments (default: 0)")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.folder:
        save_for_ever(options.folder)
    with tempfile.TemporaryDirectory() as folder:
        found = kill_often(Path(folder), options.moments, options.seed)
        left = len(os.listdir(folder))
    print(f"{options.moments} moments, {found[-1]} checkpoints, none lost; {left} files are left")


if __name__ == "__main__":
    main()
