"""Well-known models, compiled as whole training steps and as modules: the losses are those without, bit for bit but
where a chain ends in a sum, which is added up in another order."""

import importlib
import pkgutil

import numpy as np
import pytest

import corefw as torch
from tests import models

STEPS = 50
MODELS = [module.name for module in pkgutil.iter_modules(models.__path__)]
#: those that look at elements: one draws actions, one packs sequences by their lengths, and a loss is of masked nodes
LOOKING = {("actor_critic", "step"), ("actor_critic", "module"), ("gru", "step"), ("gru", "module"), ("gcn", "step")}
SUMMED = {"gcn"}  # whose bias has a gradient that is the sum of a chain


def losses(program, how):
    """The losses of some steps, and what was compiled."""
    module = importlib.import_module(f"tests.models.{program}")
    torch.manual_seed(0)
    model = module.build(torch)
    batch = [torch.tensor(array) for array in module.arrays(np.random.default_rng(0))]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    called = torch.compile(model) if how == "module" else model

    def step(*batch):
        optimizer.zero_grad()
        loss, _ = module.evaluate(torch, called, *batch)
        loss.backward()
        optimizer.step()
        return loss

    run = torch.compile(step) if how == "step" else step
    found = [run(*batch).item() for _ in range(STEPS)]
    return found, (called._compiled if how == "module" else run)


@pytest.mark.parametrize("how", ["step", "module"])
@pytest.mark.parametrize("program", MODELS)
def test_losses_are_the_same(program, how):
    expected, _ = losses(program, "eager")
    found, compiled = losses(program, how)
    assert found == (pytest.approx(expected, rel=1e-6) if program in SUMMED else expected)
    if (program, how) in LOOKING:
        assert "elements" in torch.explain(compiled)
    elif (program, how) != ("dcgan", "module"):  # whose two networks are called by themselves
        assert compiled.replays >= STEPS - 4
