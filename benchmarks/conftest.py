"""Benchmarks compare columns: every installed backend of corefw on the CPU, and PyTorch where it is importable.

NumPy's OpenBLAS is slowed down by OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE where a machine sets them: they are removed
before NumPy is imported, for every column alike, and what remains is written into the saved results.
"""

import os
from importlib.util import find_spec

for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    if os.environ.pop(variable, None) is not None and "numpy" in __import__("sys").modules:
        raise RuntimeError(f"NumPy was imported before {variable} could be removed; run pytest with it unset")

import pytest
import threadpoolctl

from corefw.benchmarks.machine import about

collect_ignore = [] if find_spec("jax") else ["jax_programs.py"]  # what imports it skips
THREADS = min(2, os.cpu_count() or 1)


@pytest.fixture
def framework(backend):
    """A module with PyTorch's API: corefw computing with one backend, or PyTorch itself."""
    backend.set_num_threads(THREADS)
    backend.module.manual_seed(0)
    with threadpoolctl.threadpool_limits(THREADS):
        yield backend.module


def pytest_benchmark_update_machine_info(config, machine_info):
    """Write what the figures depend on into the saved results."""
    facts = about()
    machine_info |= {"threads": THREADS, "threadpools": threadpoolctl.threadpool_info()}
    machine_info |= {name: facts[name] for name in ("environment", "platform", "corefw")}
