"""Memory that shows what is read before it was written (COREFW_POISON)."""

import importlib.util
import os
import subprocess
import sys

import numpy as np
import pytest

import corefw as torch

PROGRAM = """
import corefw as torch
try:
    used = [torch.full((n,), 3) for n in (3, 100, 10**6)]
    del used
    print([set(torch.empty(n, dtype=torch.int64).tolist()) == {-1} for n in (3, 100, 10**6)])
except RuntimeError as error:
    print(error)
"""


def printed(**environment):
    """What the program prints in a process of its own."""
    command = [sys.executable, "-c", PROGRAM]
    environment = {**os.environ, **environment}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64, torch.int32, torch.int64])
@pytest.mark.parametrize("size", [3, 1000, 10**6])
def test_tests_run_with_poison(dtype, size):
    found = torch.empty(size, dtype=dtype)
    assert (found.isnan() if dtype.is_floating_point else found == -1).all()


def test_scratch_memory_of_numpy_is_poisoned_too():
    if importlib.util.find_spec("corefw_c") is None:
        pytest.skip("without the C backend only corefw's own arrays are")
    torch.zeros(1)
    assert np.isnan(np.empty(100)).all() and not np.zeros(100).any()


@pytest.mark.parametrize("without", ["", "c"])
def test_poison_is_on_request_only(without):
    assert printed(COREFW_POISON="1", COREFW_DISABLE=without).strip() == "[True, True, True]"
    assert "True" not in printed(COREFW_POISON="0", COREFW_DISABLE=without)
    assert "COREFW_POISON='yes': expected 1" in printed(COREFW_POISON="yes", COREFW_DISABLE=without)
