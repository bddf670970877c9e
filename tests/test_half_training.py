"""Well-known models trained under bfloat16 autocast: their losses follow those in float32."""

import numpy as np
import pytest

import corefw as torch
from tests.steps import MODELS, published, step_of

STEPS = 10
#: how far a loss may be from float32's, as a part of the first loss; bfloat16 has 8 bits, so a loss is 0.4 % of itself
#: apart after one rounding, and steps of Adam follow the signs of gradients that are near 0
TOLERANCE = 0.04


def losses(program, autocast):
    """The losses of some steps from the same start, by the same random numbers."""
    model, optimizer, batch, loss_of = published(program)

    def mixed(*batch):
        with torch.autocast("cpu", enabled=autocast):
            return loss_of(model, *batch)

    step, found = step_of(optimizer, mixed), []
    for seed in range(STEPS):
        torch.manual_seed(seed)  # draws are the same, whatever was drawn before
        found.append(step(*batch).item())
    return np.array(found)


@pytest.mark.parametrize("program", MODELS)
def test_losses_follow_float32(program):
    exact, mixed = losses(program, False), losses(program, True)
    assert not np.array_equal(exact, mixed)
    np.testing.assert_allclose(mixed, exact, rtol=0, atol=TOLERANCE * max(1, abs(exact[0])))
