"""Whole models train on the GPU - or on the emulated device where there is none - as they do on the CPU."""

from contextlib import contextmanager
from itertools import islice

import numpy as np
import pytest

import corefw as torch
from corefw.dispatch.registry import registry
from tests import programs
from tests.test_models import MODELS, batch_of, without_dropout

UPDATES = 3
ACCELERATOR = "cuda" if torch.cuda.is_available() else "emulated" if "emulated" in registry.runtimes else None
TOLERANCES = {"float32": 1e-3, "float64": 1e-7}

pytestmark = pytest.mark.skipif(ACCELERATOR is None, reason="neither a GPU nor what emulates it")


@contextmanager
def default_device(name):
    """A with-block in which new tensors lie on a device."""
    torch.set_default_device(name)
    try:
        yield
    finally:
        torch.set_default_device(None)


def losses_on(device, model, dtype):
    """The losses of the first updates, from the same parameters everywhere."""
    torch.manual_seed(0)
    trained = without_dropout(model, torch).to(getattr(torch, dtype)).to(device)
    with default_device(device):
        return list(islice(model.train(torch, trained, batch_of(model, torch, dtype)), UPDATES))


@pytest.mark.parametrize("name", [name for name in MODELS if name != "actor_critic"])
def test_losses_fall_as_on_the_cpu(name):
    model = MODELS[name]
    dtype = getattr(model, "DTYPE", "float32")
    expected = losses_on("cpu", model, dtype)
    np.testing.assert_allclose(losses_on(ACCELERATOR, model, dtype), expected, TOLERANCES[dtype])


@pytest.mark.parametrize(
    "program", [programs.tensors_by_hand, programs.autograd, programs.custom_function, programs.sequential]
)
def test_two_layer_networks(program):
    arrays = programs.start()
    with default_device(ACCELERATOR):
        losses = program(torch, *arrays, steps=3)
    np.testing.assert_allclose(losses, program(torch, *arrays, steps=3), 1e-4)
