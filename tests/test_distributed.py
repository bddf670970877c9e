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
