"""Whole training steps: forward, backward and update; and the memory that a training process comes to need.

Run: python -m pytest benchmarks/test_training.py --benchmark-enable --benchmark-group-by=func,param:program
"""

import subprocess
import sys

import pytest

from corefw.benchmarks.columns import names
from corefw.benchmarks.training import TRAINING


@pytest.mark.parametrize("program", TRAINING)
def test_step(benchmark, framework, program):
    step = TRAINING[program](framework)
    step()
    benchmark(step)


@pytest.mark.parametrize("backend", names())  # the column alone: a process of its own has the module
@pytest.mark.parametrize("program", TRAINING)
def test_memory(benchmark, backend, program):
    def measure():
        command = [sys.executable, "-m", "benchmarks.peak", backend, program]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    benchmark.extra_info["peak_bytes"] = benchmark.pedantic(measure, rounds=1)
