"""Ranks that compute together, on threads and on the processes of MPI."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.ranks import __main__ as ranks
from tests.ranks import threads

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = ranks.FAMILIES
SCENARIOS = [(family, scenario) for family, module in FAMILIES.items() for scenario in module.SCENARIOS]


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize(("family", "scenario"), SCENARIOS, ids=[f"{f}.{s.__name__}" for f, s in SCENARIOS])
def test_on_threads(family, scenario, size):
    threads.run(size, lambda rank: scenario(rank, size))


@pytest.mark.parametrize("size", [2, 4])
@pytest.mark.parametrize("families", ranks.JOBS, ids=[job[0] for job in ranks.JOBS])
def test_on_mpi(families, size):
    launcher = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    assert launcher, "the tests want an MPI: `pip install mpi4py mpich`, as `make test` does"
    command = [launcher, "-n", str(size), sys.executable, "-m", "tests.ranks", *families]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    expected = [scenario for family in families for scenario in FAMILIES[family].SCENARIOS]
    assert done.stdout.splitlines() == [f"passed {scenario.__name__}" for scenario in expected]


def test_every_family_runs_on_mpi():
    assert sorted(family for job in ranks.JOBS for family in job) == sorted(FAMILIES)


LAUNCHED = """
import os, sys
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data.distributed import DistributedSampler

dist.init_process_group("mpi")
rank = int(os.environ["RANK"])
assert rank == dist.get_rank() and int(os.environ["WORLD_SIZE"]) == dist.get_world_size()
if rank == 1 and os.environ["TORCHELASTIC_RESTART_COUNT"] == sys.argv[1]:
    raise ValueError("broken on purpose")
model = DistributedDataParallel(torch.nn.Linear(2, 1))
model(torch.full((1, 2), float(rank))).sum().backward()
print(rank, model.module.weight.grad.tolist(), list(DistributedSampler(range(4), shuffle=False)))
dist.destroy_process_group()
"""


@pytest.mark.parametrize(("breaks_at", "restarts", "status"), [("never", 0, 0), ("0", 1, 0), ("0", 0, 1)])
def test_launch(tmp_path, breaks_at, restarts, status):
    """A rank that fails ends the others; with restarts the job starts again."""
    (tmp_path / "train.py").write_text(LAUNCHED)
    command = [sys.executable, "-m", "corefw", "launch", "-n", "2", f"--max-restarts={restarts}", "train.py", breaks_at]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stderr
    assert ("broken on purpose" in done.stderr) is (breaks_at != "never")
    assert ("starting again (1 of 1)" in done.stderr) is bool(restarts)
    if not status:
        lines = sorted(done.stdout.splitlines())
        assert lines == ["[0] 0 [[0.5, 0.5]] [0, 2]", "[1] 1 [[0.5, 0.5]] [1, 3]"]


def test_demo(tmp_path):
    """Two processes that train on parts of each batch have the curve of one that has it all."""
    picture = str(tmp_path / "curves.png")
    command = [sys.executable, "-m", "corefw", "demo", "--ranks", "2", "--epochs", "2", "--picture", picture]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1, done.stderr  # two epochs do not reach the goal
    losses = [line.split()[5] for line in done.stdout.splitlines() if "epoch" in line]
    assert len(losses) == 4 and losses[:2] == losses[2:]
    difference = re.search(r"largest difference of the losses: (\S+)", done.stdout)
    assert float(difference[1]) < 1e-5 and "2 processes" in done.stdout
