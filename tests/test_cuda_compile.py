"""Compiled functions on the GPU - or on the emulated device where there is none - give what they give without."""

import copy

import numpy as np
import pytest

import corefw as torch
from corefw import nn
from tests.steps import classes, step_of
from tests.test_cuda_training import ACCELERATOR, default_device

pytestmark = pytest.mark.skipif(ACCELERATOR is None, reason="neither a GPU nor what emulates it")


@pytest.fixture(autouse=True)
def on_the_accelerator():
    torch.manual_seed(0)
    with default_device(ACCELERATOR):
        yield


def network():
    return nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.5), nn.Linear(8, 4))


def losses(model, how, steps=6):
    """The losses of some steps from one seed, and what was compiled."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    called = torch.compile(model) if how == "module" else model
    step = step_of(optimizer, lambda x, y: nn.functional.cross_entropy(called(x), y))
    run = torch.compile(step) if how == "step" else step
    torch.manual_seed(1)
    found = [run(x, y).item() for x, y in classes(steps)]
    return found, run if how == "step" else getattr(called, "_compiled", None)


@pytest.mark.parametrize("how", ["step", "module"])
def test_training(how):
    model = network()
    expected, _ = losses(copy.deepcopy(model), "eager")
    found, compiled = losses(model, how)
    assert found == expected
    assert compiled.replays == 4
    assert {call.dispatch_key.device.type for plan in compiled.programs for call in plan.calls} == {ACCELERATOR}


def test_casts_of_weights_are_made_once():
    weight, x = nn.Parameter(torch.randn(4, 6), requires_grad=False), torch.randn(3, 6)

    def function(x):
        return x.half() @ weight.half().t()

    compiled = torch.compile(function)
    for _ in range(2):
        for _ in range(4):
            assert torch.equal(compiled(x), function(x))
        weight.mul_(2)
    (plan,) = compiled.programs
    assert plan.hoisted.calls[0].op.name == "cast"
    assert len(plan.calls) < 4


def test_batch_norm_is_folded():
    model, x = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.ReLU()).eval(), torch.randn(2, 2, 5, 5)
    model[1].running_mean.normal_()
    compiled = torch.compile(model)
    with torch.no_grad():
        for _ in range(2):
            for _ in range(3):
                np.testing.assert_allclose(compiled(x).cpu().numpy(), model(x).cpu().numpy(), rtol=1e-4, atol=1e-5)
            model[0].weight.mul_(2)
    (plan,) = compiled._compiled.programs
    assert [call.op.name for call in plan.calls] == ["convolution", "relu"]
