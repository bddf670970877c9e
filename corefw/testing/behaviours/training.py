"""Training: twenty steps of five small models follow the same curve as in double precision on the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import corefw
from corefw import dtypes, nn
from corefw.dispatch.registry import registry
from corefw.dtypes import dtype
from corefw.nn import functional as F
from corefw.testing.behaviour import behaviour
from corefw.testing.comparison import compare_values
from corefw.testing.conform.outcomes import NotRunError
from corefw.testing.targets import Target

STEPS = 20
#: how far the loss may go astray within so many steps, relative to its first value
_ASTRAY = 2e-3


class _Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.network, self.head = (
            nn.Embedding(11, 8),
            nn.LSTM(8, 12, batch_first=True),
            nn.Linear(12, 3),
        )

    def forward(self, x):
        return self.head(self.network(self.embedding(x))[0][:, -1])


class _Attentive(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(11, 16)
        self.layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, x):
        return self.head(self.layer(self.embedding(x)).mean(1))


def _perceptron() -> nn.Module:
    return nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 16), nn.GELU(), nn.Linear(16, 3))


def _convolutional() -> nn.Module:
    layers = (
        nn.Conv2d(2, 6, 3, padding=1),
        nn.BatchNorm2d(6),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 8, 3),
        nn.SiLU(),
    )
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))


def _residual() -> nn.Module:
    return nn.Sequential(
        nn.Linear(12, 16), nn.LayerNorm(16), nn.Softplus(), nn.Linear(16, 16), nn.Sigmoid(), nn.Linear(16, 3)
    )


def _vectors(rng) -> np.ndarray:
    return rng.standard_normal((16, 12))


def _images(rng) -> np.ndarray:
    return rng.standard_normal((8, 2, 8, 8))


def _words(rng) -> np.ndarray:
    return rng.integers(0, 11, (8, 6))


def _curve(model: nn.Module, inputs: np.ndarray, optimizer: str, on: str, d: dtype, **options) -> list[float]:
    """The losses of `model`, whose parameters begin as numbers that depend on their order alone."""
    rng = np.random.default_rng(1)
    for p in model.parameters():
        scale = 0.5 / max(1.0, float(np.sqrt(p.shape[-1])))
        start = corefw.tensor(rng.uniform(-1, 1, tuple(p.shape)) * scale, dtype=dtypes.float64)
        p.data = start.to(d).to(on)
    for buffer in model.buffers():
        buffer.data = (buffer.to(d) if buffer.is_floating_point() else buffer).to(on)
    x = corefw.tensor(inputs)
    x = (x.to(d) if x.is_floating_point() else x).to(on)
    labels = corefw.tensor(np.arange(len(inputs)) % 3).to(on)
    stepper = getattr(corefw.optim, optimizer)(model.parameters(), **options)
    losses = []
    for _ in range(STEPS):
        stepper.zero_grad()
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        stepper.step()
        losses.append(loss.item())
    return losses


def _compare(target: Target, d: dtype, build: Callable, given: Callable, optimizer: str, **options) -> None:
    inputs = given(np.random.default_rng(0))
    if dtypes.int64 not in registry.runtime(target.device).dtypes:
        raise NotRunError(f"the labels are int64, which device '{target.device}' does not store")
    found = _curve(build(), inputs, optimizer, target.device, d, **options)
    with Target("", "cpu").owner().preferred():
        wanted = _curve(build(), inputs, optimizer, "cpu", dtypes.float64, **options)
    assert wanted[-1] < 0.97 * wanted[0], f"the reference does not learn: {wanted[0]} to {wanted[-1]}"
    compare_values(np.array(found), np.array(wanted), _ASTRAY, _ASTRAY * wanted[0], name="Loss")


@behaviour("training")
def perceptron(target: Target, d: dtype) -> None:
    """Linear layers, with SGD and momentum."""
    _compare(target, d, _perceptron, _vectors, "SGD", lr=0.1, momentum=0.9)


@behaviour("training")
def convolutional(target: Target, d: dtype) -> None:
    """Convolutions, batch normalization and pooling, with Adam."""
    _compare(target, d, _convolutional, _images, "Adam", lr=0.01, eps=1e-4)


@behaviour("training")
def recurrent(target: Target, d: dtype) -> None:
    """Embedding and LSTM, with RMSprop."""
    _compare(target, d, _Recurrent, _words, "RMSprop", lr=0.01, eps=1e-3)


@behaviour("training")
def transformer(target: Target, d: dtype) -> None:
    """Attention and layer normalization, with AdamW."""
    _compare(target, d, _Attentive, _words, "AdamW", lr=0.01, eps=1e-4)


@behaviour("training")
def normalized(target: Target, d: dtype) -> None:
    """Layer normalization and smooth activations, with Adagrad."""
    _compare(target, d, _residual, _vectors, "Adagrad", lr=0.1)
