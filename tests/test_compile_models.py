"""Well-known models, compiled as whole training steps and as modules: the losses are those without, bit for bit but
where a chain ends in a sum, which is added up in another order."""

import pytest

import corefw as torch
from tests.steps import MODELS, published, step_of

STEPS = 50
#: those that look at elements: one draws actions, one packs sequences by their lengths, and a loss is of masked nodes
LOOKING = {("actor_critic", "step"), ("actor_critic", "module"), ("gru", "step"), ("gru", "module"), ("gcn", "step")}
SUMMED = {"gcn"}  # whose bias has a gradient that is the sum of a chain


def losses(program, how):
    """The losses of some steps, and what was compiled."""
    model, optimizer, batch, loss_of = published(program)
    called = torch.compile(model) if how == "module" else model
    step = step_of(optimizer, lambda *batch: loss_of(called, *batch))
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
