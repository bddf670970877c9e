"""Ranks that compute together, on threads and on the processes of MPI."""

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
@pytest.mark.parametrize("family", FAMILIES)
def test_on_mpi(family, size):
    launcher = shutil.which("mpiexec", path=str(Path(sys.executable).parent)) or shutil.which("mpiexec")
    assert launcher, "the tests want an MPI: `pip install mpi4py mpich`, as `make test` does"
    command = [launcher, "-n", str(size), sys.executable, "-m", "tests.ranks", family]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [f"passed {scenario.__name__}" for scenario in FAMILIES[family].SCENARIOS]
