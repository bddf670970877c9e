"""How many launches of the CuPy backend a training step takes: no more than it needs; and how a launch is given its
arguments."""

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("cupy")

from cupy.cuda.function import CNumpyArray

import corefw as torch
from benchmarks.launches import of_step
from corefw_cupy import planned
from corefw_cupy.launch import argument, pointers
from corefw_cupy.positions import positions
from tests.emulation import launches
from tests.emulation.device import cuda

ROOT = Path(__file__).parent.parent

LAUNCHES = {
    "seed_mlp_sgd": 11,
    "seed_mlp_adam": 11,
    "digits_classifier_adam": 11,
    "lstm_adam": 26,
    "gpt_adamw": 137,
}


@pytest.mark.parametrize("program", LAUNCHES)
def test_launches_of_a_step(program):
    found = of_step(program)
    assert found.total() == LAUNCHES[program], found


def test_heads_are_split_and_joined_without_copies():
    attention = torch.nn.MultiheadAttention(16, 2, device="emulated")
    x = torch.randn(5, 3, 16, device="emulated").requires_grad_()
    with launches.counted() as found:
        result, _ = attention(x, x, x, need_weights=False)
        (result * result).sum().backward()
    copies = [name for name in found.elements() if name.startswith("move_")]
    assert copies == ["move_flat"], found  # of the 1 that the backward starts from


def test_structs_are_passed_by_address():
    """Of an array CuPy would ask the address in each launch, which takes 2.5 us."""
    struct = np.zeros(1, np.int64)
    assert argument(struct).ptr == struct.ctypes.data == CNumpyArray(struct).ptr, "as CuPy passes arrays"
    assert ctypes.string_at(pointers((3, 5), 3).ptr, 24) == np.array([3, 5, 0]).tobytes()
    assert pointers((3, 5), 3) is pointers((3, 5), 3), "made once for the same addresses"
    launch = positions(cuda()).read_at[8, np.dtype(np.int64), True]
    with pytest.raises(TypeError, match=r"array\(\[0\]\) was passed for a parameter of kind 's'"):
        launch((1,), (32,), (0, 0, 0, struct, 0, 0))


def test_plans_are_made_once_and_not_of_what_is_refused(monkeypatch):
    monkeypatch.setattr(planned, "MOST", 3)
    made = []
    plans = planned.Planned(lambda a, b: made.append((a, b)) or a / b)
    assert [plans[1, 2], plans[1, 2], plans[2, 1]] == [0.5, 0.5, 2] and made == [(1, 2), (2, 1)]
    with pytest.raises(ZeroDivisionError):
        plans[1, 0]
    assert plans[3, 1] == 3 and len(plans) == 3
    assert plans[4, 1] == 4 and len(plans) == 1


def test_host_time_is_measured_without_a_gpu():
    command = [sys.executable, "-m", "benchmarks.host_time", "--select", "cat,linear,Adam step"]
    told = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=ROOT)
    assert re.findall(r"^(\D+?) +[\d.]+ us$", told.stdout, re.MULTILINE) == ["linear", "cat", "Adam step"], told
