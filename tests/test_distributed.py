"""Ranks that compute together, on threads and on the processes of MPI."""

import importlib
import inspect
import itertools
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


@pytest.mark.oracle
def test_meshes_take_pytorchs_arguments():
    """Whatever PyTorch's functions take by name is taken here, and parts are cut as PyTorch's."""
    torch = pytest.importorskip("torch")
    namespaces = ("device_mesh", "tensor", "tensor.parallel")
    for place in namespaces:
        theirs = importlib.import_module(f"torch.distributed.{place}")
        ours = importlib.import_module(f"corefw.distributed.{place}")
        assert set(theirs.__all__) <= set(ours.__all__), place
        for name in theirs.__all__:
            found, wanted = getattr(ours, name), getattr(theirs, name)
            pairs = [(found, wanted)]
            if name in ("DTensor", "DeviceMesh"):
                methods = ("from_local", "to_local", "full_tensor", "redistribute", "get_group", "size", "from_group")
                pairs = [(getattr(found, m), getattr(wanted, m)) for m in methods if hasattr(wanted, m)]
            for mine, other in pairs:
                try:
                    parameters = inspect.signature(other).parameters
                except ValueError:  # of a class in C++
                    continue
                lacking = [p for p in parameters if p not in inspect.signature(mine).parameters and p[0] != "_"]
                assert not lacking, (place, name, lacking)
    shards = importlib.import_module("torch.distributed.tensor").Shard
    own = importlib.import_module("corefw.distributed.tensor").Shard
    for size, count in itertools.product(range(8), range(1, 5)):
        parts = [own.local_shard_size_and_offset(size, count, rank) for rank in range(count)]
        assert parts == [shards.local_shard_size_and_offset(size, count, rank) for rank in range(count)]
        chunks = [len(chunk) for chunk in torch.arange(size).chunk(count)]
        assert [n for n, _ in parts if n] == [n for n in chunks if n]
