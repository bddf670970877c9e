"""What one op costs beside its arithmetic: tensors of four elements.

Run: python -m pytest benchmarks/test_overhead.py --benchmark-enable --benchmark-group-by=func,param:case
"""

import subprocess
import sys

import pytest

from corefw.benchmarks.overhead import OVERHEAD


@pytest.mark.parametrize("case", OVERHEAD)
def test_call(benchmark, framework, case):
    call = OVERHEAD[case](framework)
    call()  # it writes and compiles code, which is not to decide how many calls are timed at once
    benchmark(call)


@pytest.mark.parametrize("module", ["numpy", "corefw"])
def test_import(benchmark, module):
    benchmark.pedantic(
        subprocess.run, ([sys.executable, "-c", f"import {module}"],), {"check": True}, rounds=5, warmup_rounds=1
    )
