"""What one op costs beside its arithmetic: tensors of four elements.

Run: python -m pytest benchmarks/test_overhead.py --benchmark-enable --benchmark-group-by=func,param:case
"""

import subprocess
import sys

import pytest

from corefw.benchmarks.overhead import OVERHEAD


# The first calls compile and fill caches, which is not to decide how many calls are timed at once.
@pytest.mark.benchmark(warmup=True, warmup_iterations=1000)
@pytest.mark.parametrize("case", OVERHEAD)
def test_call(benchmark, framework, case):
    benchmark(OVERHEAD[case](framework))


@pytest.mark.parametrize("module", ["numpy", "corefw"])
def test_import(benchmark, module):
    benchmark.pedantic(
        subprocess.run, ([sys.executable, "-c", f"import {module}"],), {"check": True}, rounds=5, warmup_rounds=1
    )
