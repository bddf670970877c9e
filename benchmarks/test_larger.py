"""Larger programs: GPT-2 small, ResNet-50, U-Net, a wide LSTM and an encoder, beside PyTorch.

Run: python -m pytest benchmarks/test_larger.py --benchmark-enable --benchmark-group-by=func,param:program -p no:xdist

A call takes 0.1 to 2 seconds with the C backend, and training GPT-2 two gigabytes.
"""

import gc

import pytest

import corefw
from corefw.benchmarks.columns import PEER, names
from corefw.benchmarks.larger import LARGER

ROUNDS = 5
#: of what is greatest, by what a program's name ends with: bfloat16 has 8 bits, of which losses are means
ERRORS = {"": 1e-4, "_autocast": 2e-3, "_bfloat16": 3e-2}


@pytest.mark.backends(*[name for name in names() if name != "numpy"])
@pytest.mark.parametrize("program", LARGER)
def test_call(benchmark, framework, backend, program):
    call = LARGER[program](framework)
    if backend.name == PEER:
        compare(call, LARGER[program](corefw), max(filter(program.endswith, ERRORS), key=len))
    else:
        call()
    benchmark.pedantic(call, rounds=ROUNDS)
    del call
    gc.collect()


def compare(theirs, ours, kind):
    """Whether two modules compute the same with the same weights, in the first call."""
    state = {name: corefw.from_numpy(value.float().numpy()) for name, value in theirs.model.state_dict().items()}
    ours.model.load_state_dict(state)
    expected, found = (call().detach().float().numpy() for call in (theirs, ours))
    if kind == "_bfloat16":  # scores are often equal then, so that the words after the first may be others
        expected, found = expected[:, :1], found[:, :1]
    assert abs(found - expected).max() < ERRORS[kind] * abs(expected).max()
