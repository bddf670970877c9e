"""Well-known models trained under bfloat16 autocast: their losses follow those in float32."""

import importlib
import pkgutil

import numpy as np
import pytest

import corefw as torch
from tests import models

STEPS = 10
MODELS = [module.name for module in pkgutil.iter_modules(models.__path__)]
#: how far a loss may be from float32's, as a part of the first loss; bfloat16 has 8 bits, so a loss is 0.4 % of itself
#: apart after one rounding, and steps of Adam follow the signs of gradients that are near 0
TOLERANCE = 0.04


def losses(program, autocast):
    """The losses of some steps from the same start, by the same random numbers."""
    module = importlib.import_module(f"tests.models.{program}")
    torch.manual_seed(0)
    model = module.build(torch)
    batch = [torch.tensor(array) for array in module.arrays(np.random.default_rng(0))]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    found = []
    for step in range(STEPS):
        torch.manual_seed(step)  # draws are the same, whatever was drawn before
        optimizer.zero_grad()
        with torch.autocast("cpu", enabled=autocast):
            loss, _ = module.evaluate(torch, model, *batch)
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return np.array(found)


@pytest.mark.parametrize("program", MODELS)
def test_losses_follow_float32(program):
    exact, mixed = losses(program, False), losses(program, True)
    assert not np.array_equal(exact, mixed)
    np.testing.assert_allclose(mixed, exact, rtol=0, atol=TOLERANCE * max(1, abs(exact[0])))
