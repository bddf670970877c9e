"""Well-known models train, and compute what the same sources compute on PyTorch: outputs, gradients and updates."""

import inspect
from importlib import import_module
from itertools import islice
from pkgutil import iter_modules

import numpy as np
import pytest

import corefw
from tests import models

NAMES = sorted(module.name for module in iter_modules(models.__path__))
MODELS = {name: import_module(f"tests.models.{name}") for name in NAMES}
UPDATES = 3
#: the allowed difference from PyTorch relative to the greatest element, by what the models compute in; in float64 it is
#: Adam's, whose steps divide gradients that are rounding errors, as those of the keys' biases, by 1e-8
TOLERANCES = {"float32": 1e-4, "float64": 1e-7}


def batch_of(model, torch, dtype="float32"):
    """The model's fixed batch as tensors, floating values in `dtype`."""
    arrays = model.arrays(np.random.default_rng(0))
    return [torch.tensor(a.astype(dtype) if a.dtype.kind == "f" else a) for a in arrays]


def without_dropout(model, torch):
    """The model as it trains, less the random numbers it would draw."""
    off = {"dropout": 0.0} if "dropout" in inspect.signature(model.build).parameters else {}
    return model.build(torch, **off)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "actor_critic"])
def test_the_loss_falls(name):
    model = MODELS[name]
    corefw.manual_seed(0)
    batch = batch_of(model, corefw)[: getattr(model, "GIVEN", None)]
    losses = list(islice(model.train(corefw, model.build(corefw), batch), model.STEPS + 1))
    assert losses[-1] < model.FACTOR * losses[0], losses


def test_the_actor_critic_learns_the_shortest_way():
    model = MODELS["actor_critic"]
    corefw.manual_seed(0)
    lengths = list(islice(model.play(corefw, model.build(corefw)), 60))
    assert np.mean(lengths[:10]) > 1.5 * model.SHORTEST
    assert np.mean(lengths[-10:]) < 1.25 * model.SHORTEST


def compare(actual, expected, dtype, what):
    """Equal within the tolerance times the greatest element."""
    actual, expected = actual.detach().numpy(), expected.detach().numpy()
    assert actual.shape == expected.shape, what
    assert actual.dtype == expected.dtype, what
    scale = np.abs(expected).max(initial=0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=TOLERANCES[dtype] * scale + 1e-12, err_msg=what)


@pytest.fixture
def oracle():
    """PyTorch on one thread: several wait for each other where other work keeps the cores busy."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield torch
    torch.set_num_threads(threads)


@pytest.mark.oracle
@pytest.mark.parametrize("name", NAMES)
def test_computes_what_pytorch_computes(name, oracle):
    model = MODELS[name]
    dtype = getattr(model, "DTYPE", "float32")
    oracle.manual_seed(0)
    theirs = without_dropout(model, oracle).to(getattr(oracle, dtype))
    ours = without_dropout(model, corefw).to(getattr(corefw, dtype))
    state = {key: corefw.tensor(value.numpy()) for key, value in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict(state)
    batch, their_batch = batch_of(model, corefw, dtype), batch_of(model, oracle, dtype)

    loss, outputs = model.evaluate(corefw, ours, *batch)
    their_loss, their_outputs = model.evaluate(oracle, theirs, *their_batch)
    compare(loss, their_loss, dtype, "loss")
    if not isinstance(outputs, tuple):
        outputs, their_outputs = (outputs,), (their_outputs,)
    for i, (output, expected) in enumerate(zip(outputs, their_outputs, strict=True)):
        compare(output, expected, dtype, f"output {i}")

    loss.backward()
    their_loss.backward()
    named = zip(ours.named_parameters(), theirs.named_parameters(), strict=True)
    for (key, parameter), (their_key, expected) in named:
        assert key == their_key
        compare(parameter.grad, expected.grad, dtype, f"gradient of {key}")

    losses = islice(model.train(corefw, ours, batch), UPDATES)
    their_losses = islice(model.train(oracle, theirs, their_batch), UPDATES)
    np.testing.assert_allclose(list(losses), list(their_losses), TOLERANCES[dtype])
    expected = theirs.state_dict()
    for key, value in ours.state_dict().items():
        compare(value, expected[key], dtype, f"{key} after {UPDATES} updates")
