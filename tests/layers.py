"""Layers beside PyTorch's: the same parameters, input and gradient there and here."""

import numpy as np
import pytest

import corefw
from corefw import nn


def _here(array: np.ndarray):
    return corefw.tensor(array, requires_grad=True)


def check_layer(name: str, arguments: tuple, options: dict, shape: tuple, rtol: float = 1e-5) -> None:
    """Assert that a layer with PyTorch's parameters gives its outputs and gradients (where PyTorch is installed)."""
    torch = pytest.importorskip("torch")
    theirs, ours = getattr(torch.nn, name)(*arguments, **options), getattr(nn, name)(*arguments, **options)
    state = {key: value.numpy() for key, value in theirs.state_dict().items()}
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict({key: corefw.tensor(value) for key, value in state.items()})
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape).astype(np.float32)
    x_theirs, x_ours = torch.tensor(x, requires_grad=True), _here(x)
    y_theirs, y_ours = theirs(x_theirs), ours(x_ours)
    assert tuple(y_theirs.shape) == tuple(y_ours.shape)
    np.testing.assert_allclose(y_ours.detach().numpy(), y_theirs.detach().numpy(), rtol=rtol, atol=rtol)
    weights = rng.normal(size=tuple(y_theirs.shape)).astype(np.float32)
    y_theirs.backward(torch.tensor(weights))
    y_ours.backward(corefw.tensor(weights))
    pairs = [(x_theirs, x_ours), *zip(theirs.parameters(), ours.parameters(), strict=True)]
    for there, here in pairs:
        np.testing.assert_allclose(here.grad.numpy(), there.grad.numpy(), rtol=rtol, atol=10 * rtol)


def check_repr(name: str, arguments: tuple, options: dict) -> None:
    """Assert that a layer prints as PyTorch's."""
    torch = pytest.importorskip("torch")
    assert repr(getattr(nn, name)(*arguments, **options)) == repr(getattr(torch.nn, name)(*arguments, **options))
