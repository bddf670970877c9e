"""Whole training steps: forward, backward and update of small networks.

Run: python -m pytest benchmarks/test_training.py --benchmark-enable --benchmark-group-by=func
"""

from itertools import pairwise

import pytest


def step_of(framework, model, optimizer, loss_fn, inputs, targets):
    """One training step as a function without arguments."""

    def step():
        loss = loss_fn(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def mlp(framework, sizes):
    nn = framework.nn
    layers = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())][:-1]
    return nn.Sequential(*layers)


@pytest.fixture
def seed_mlp(framework):
    """The two-layer network of the tutorials: 64 samples, 1000 -> 100 -> 10."""
    return mlp(framework, (1000, 100, 10)), framework.randn(64, 1000), framework.randn(64, 10)


def test_seed_mlp_sgd(benchmark, framework, seed_mlp):
    model, inputs, targets = seed_mlp
    optimizer = framework.optim.SGD(model.parameters(), lr=1e-4, momentum=0.5)
    benchmark(step_of(framework, model, optimizer, framework.nn.MSELoss(reduction="sum"), inputs, targets))


def test_seed_mlp_adam(benchmark, framework, seed_mlp):
    model, inputs, targets = seed_mlp
    optimizer = framework.optim.Adam(model.parameters(), lr=1e-4)
    benchmark(step_of(framework, model, optimizer, framework.nn.MSELoss(reduction="sum"), inputs, targets))


def test_tiny_mlp_sgd(benchmark, framework):
    model = mlp(framework, (2, 8, 1))
    optimizer = framework.optim.SGD(model.parameters(), lr=1e-2)
    inputs, targets = framework.randn(4, 2), framework.randn(4, 1)
    benchmark(step_of(framework, model, optimizer, framework.nn.MSELoss(), inputs, targets))


def test_digits_classifier_adam(benchmark, framework):
    model = mlp(framework, (64, 128, 10))
    optimizer = framework.optim.Adam(model.parameters(), lr=1e-3)
    inputs, targets = framework.randn(64, 64), framework.randint(0, 10, (64,))
    benchmark(step_of(framework, model, optimizer, framework.nn.CrossEntropyLoss(), inputs, targets))
