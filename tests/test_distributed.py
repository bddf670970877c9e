"""Ranks that compute together, on threads and on the processes of MPI."""

import importlib
import inspect
import itertools
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import corefw
from tests.killed import kill_often
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


RESUMED = """
import os, signal
import torch, torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard

dist.init_process_group()
rank = dist.get_rank()
torch.manual_seed(0)
model = fully_shard(torch.nn.Linear(3, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
first = 0
if os.path.exists("last"):
    parts, states = get_state_dict(model, optimizer)
    found = {"model": parts, "optim": states, "step": 0}
    dcp.load(found, checkpoint_id="last")
    set_state_dict(model, optimizer, model_state_dict=found["model"], optim_state_dict=found["optim"])
    first = found["step"]
for step in range(first, 6):
    optimizer.zero_grad()
    loss = model(torch.full((1, 3), rank + 1.0)).square().sum()
    loss.backward()
    optimizer.step()
    parts, states = get_state_dict(model, optimizer)
    dcp.save({"model": parts, "optim": states, "step": step + 1}, checkpoint_id="last")
    if rank == 1 and step == 3 and os.environ["TORCHELASTIC_RESTART_COUNT"] == "0":
        os.kill(os.getpid(), signal.SIGKILL)
if rank == 0:
    print(first, loss.item())
"""


def test_a_job_whose_process_is_killed_goes_on_from_its_checkpoint(tmp_path):
    (tmp_path / "train.py").write_text(RESUMED)
    command = [sys.executable, "-m", "corefw", "launch", "-n", "2", "--max-restarts", "3", "--plain", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stderr.count("starting again") == 1, done.stderr
    corefw.manual_seed(0)
    model = corefw.nn.Linear(3, 2)
    optimizer = corefw.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(6):
        optimizer.zero_grad()
        losses = [model(corefw.full((1, 3), rank + 1.0)).square().sum() for rank in (0, 1)]
        (sum(losses) / 2).backward()
        optimizer.step()
    begun, loss = done.stdout.splitlines()[-1].split()
    assert begun == "4" and float(loss) == pytest.approx(losses[0].item(), rel=1e-4)


def test_a_killed_job_loses_no_checkpoint(tmp_path):
    assert kill_often(tmp_path, moments=3, seed=0)[-1] >= 3


SPAWNED = """
import os, sys
import torch, torch.distributed as dist, torch.multiprocessing as mp

def work(rank, size, word):
    dist.init_process_group("gloo", rank=rank, world_size=size)
    total = torch.tensor(rank + 1.0)
    dist.all_reduce(total)
    print(word, rank, total.item(), flush=True)
    if word == "and leave":
        dist.destroy_process_group()
    if word == "and end":
        sys.exit()

def own(number):
    print("child", number, os.getppid() == int(os.environ["PARENT"]), flush=True)

if __name__ == "__main__":
    size = int(sys.argv[1])
    for word in ("and leave", "and stay", "and end"):
        mp.spawn(work, args=(size, word), nprocs=size)
    assert mp.spawn(work, args=(size, "without waiting"), nprocs=size, join=False).join()
    processes = [mp.Process(target=work, args=(rank, size, "as a process")) for rank in range(size)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0 and not process.is_alive()
    dist.init_process_group()
    os.environ["PARENT"] = str(os.getpid())
    if dist.get_rank() == 0:
        mp.spawn(own)
"""


def test_spawn_runs_in_the_processes_of_a_job(tmp_path):
    (tmp_path / "train.py").write_text(SPAWNED)
    command = [sys.executable, "-m", "corefw", "launch", "-n", "2", "--plain", "train.py", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    words = ("and leave", "and stay", "and end", "without waiting", "as a process")
    expected = [f"{word} {rank} 3.0" for word in words for rank in (0, 1)]
    assert sorted(done.stdout.splitlines()) == sorted([*expected, "child 0 True"])


def test_spawn_without_a_job_tells_how_to_start_one(tmp_path):
    (tmp_path / "train.py").write_text(SPAWNED)
    command = [sys.executable, "-m", "corefw", "run", "train.py", "2"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "ProcessRaisedException" in done.stderr
    assert "world size 2, but this process is alone. Start it with `corefw launch -n 2`" in done.stderr


def test_a_process_that_fails_before_it_is_joined_ends_its_job(tmp_path):
    (tmp_path / "train.py").write_text(
        "import os, torch.distributed as dist\n"
        "if os.environ['RANK'] == '1':\n    raise ValueError('broken early')\n"
        "dist.init_process_group()\n"
    )
    command = [sys.executable, "-m", "corefw", "launch", "-n", "2", "train.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "broken early" in done.stderr


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
