"""Training steps that several files make: as ever, compiled, in autocast, on a device."""

import importlib
import pkgutil

import numpy as np

import corefw as torch
from tests import models

#: the programs of `tests/models`
MODELS = [module.name for module in pkgutil.iter_modules(models.__path__)]


def step_of(optimizer, loss_of):
    """A step of an optimizer along the gradients of `loss_of` what it is given; it returns that loss."""

    def step(*batch):
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimizer.step()
        return loss

    return step


def classes(count):
    """Inputs, rows of six numbers, and their classes among four; others each time."""
    for i in range(count):
        yield torch.linspace(-1, 1 + i, 18).reshape(3, 6), torch.tensor([0, 3, i % 4])


def published(program):
    """One of `MODELS`: its model, its optimizer, its batch, and the function that gives a model's loss of that."""
    module = importlib.import_module(f"tests.models.{program}")
    torch.manual_seed(0)
    model = module.build(torch)
    batch = [torch.tensor(array) for array in module.arrays(np.random.default_rng(0))]
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    return model, optimizer, batch, lambda called, *batch: module.evaluate(torch, called, *batch)[0]
