"""Benchmarks compare columns: every installed backend of corefw on the CPU, and PyTorch where it is importable.

NumPy's OpenBLAS is slowed down by OPENBLAS_CORETYPE and OPENBLAS_L2_SIZE where a machine sets them: they are removed
before NumPy is imported, for every column alike, and what remains is written into the saved results.
"""

import os

for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    if os.environ.pop(variable, None) is not None and "numpy" in __import__("sys").modules:
        raise RuntimeError(f"NumPy was imported before {variable} could be removed; run pytest with it unset")

import importlib.util
import platform
from contextlib import nullcontext

import pytest
import threadpoolctl

import corefw

THREADS = min(2, os.cpu_count() or 1)
BACKENDS = [b.name for b in corefw.backends() if b.usable and "cpu" in b.devices]
COLUMNS = [*BACKENDS, *(["torch"] if importlib.util.find_spec("torch") else [])]


@pytest.fixture(params=COLUMNS)
def framework(request):
    """A module with PyTorch's API: corefw computing with one backend, or PyTorch itself."""
    if request.param == "torch":
        import torch

        torch.set_num_threads(THREADS)
        scope, module = nullcontext(), torch
    else:
        scope, module = corefw.backend(request.param), corefw
    module.manual_seed(0)
    with threadpoolctl.threadpool_limits(THREADS), scope:
        yield module


def pytest_benchmark_update_machine_info(config, machine_info):
    """Write what the figures depend on into the saved results."""
    machine_info["threads"] = THREADS
    machine_info["threadpools"] = threadpoolctl.threadpool_info()
    machine_info["environment"] = {
        k: v for k, v in os.environ.items() if k.startswith(("OPENBLAS_", "OMP_", "MKL_", "COREFW_"))
    }
    machine_info["platform"] = platform.platform()
    machine_info["corefw"] = corefw.__version__
