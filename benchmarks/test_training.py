"""Whole training steps: forward, backward and update; and the memory that a training process comes to need.

Run: python -m pytest benchmarks/test_training.py --benchmark-enable --benchmark-group-by=func,param:program
"""

import subprocess
import sys

import pytest

from benchmarks.conftest import COLUMNS
from benchmarks.programs import PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS)
def test_step(benchmark, framework, program):
    step = PROGRAMS[program](framework)
    step()
    benchmark(step)


@pytest.mark.parametrize("framework", COLUMNS)  # the name of the column: a process of its own has the module
@pytest.mark.parametrize("program", PROGRAMS)
def test_memory(benchmark, framework, program):
    def measure():
        command = [sys.executable, "-m", "benchmarks.peak", framework, program]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    benchmark.extra_info["peak_bytes"] = benchmark.pedantic(measure, rounds=1)
