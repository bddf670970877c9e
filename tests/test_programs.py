"""Tutorial programs train with the losses that the mathematics, and PyTorch, give."""

from functools import partial

import numpy as np
import pytest

import corefw
from tests import programs

STEPS = 500
BY_HAND = {"tensors": programs.tensors_by_hand, "autograd": programs.autograd, "function": programs.custom_function}
TRAINED = {
    **BY_HAND,
    "sgd": partial(programs.optimized, optimizer="SGD", lr=1e-6, momentum=0.5),
    "adam": partial(programs.optimized, optimizer="Adam", lr=1e-4),
    "sequential": programs.sequential,
}


@pytest.fixture(scope="module")
def arrays():
    return programs.start()


@pytest.fixture(scope="module")
def by_hand(arrays):
    return programs.numpy_by_hand(*(a.copy() for a in arrays), STEPS)


@pytest.mark.parametrize("name", BY_HAND)
def test_five_hundred_steps_follow_the_mathematics(name, arrays, by_hand):
    losses = BY_HAND[name](corefw, *(a.copy() for a in arrays), STEPS)
    np.testing.assert_allclose(losses[:100], by_hand[:100], rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(losses, by_hand, rtol=2e-2, atol=1e-3)  # float32 ends there
    assert losses[-1] < 1e-3 * losses[0]


@pytest.mark.parametrize("name", TRAINED)
def test_five_hundred_steps_follow_pytorch(name, arrays):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    ours = TRAINED[name](corefw, *(a.copy() for a in arrays), STEPS)
    theirs = TRAINED[name](torch, *(a.copy() for a in arrays), STEPS)
    np.testing.assert_allclose(ours[:100], theirs[:100], rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(ours, theirs, rtol=2e-2, atol=1e-3)
    assert ours[-1] < ours[0]
