"""Training: twenty steps of five small models follow the same curve as in PyTorch in double precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import corefw
from corefw import dtypes
from corefw.dispatch.registry import registry
from corefw.dtypes import dtype
from corefw.testing.behaviour import behaviour
from corefw.testing.behaviours.curves import CURVES
from corefw.testing.comparison import compare_values
from corefw.testing.conform.outcomes import NotRunError
from corefw.testing.targets import Target

STEPS = 20
#: how far the loss may go astray within so many steps, relative to its first value. In single precision the NumPy, C
#: and CUDA kernels differ from double precision by at most 3.2e-6, and by 3.7e-6 where all inputs are off by 4 units of
#: the last place; a gradient that is off by 1 % moves the curves by 3e-4 and more
ASTRAY = 1e-4


def numbers(*shape: int, seed: int) -> np.ndarray:
    """Numbers between -1 and 1 that are the same with every version of NumPy."""
    return np.sin(1e4 * np.sin(np.arange(1.0, 1.0 + np.prod(shape, dtype=int)) + 100 * seed)).reshape(shape)


def _perceptron(nn) -> Any:
    return nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 16), nn.GELU(), nn.Linear(16, 3))


def _convolutional(nn) -> Any:
    first = nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2)
    second = nn.Conv2d(6, 8, 3), nn.SiLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
    return nn.Sequential(*first, *second, nn.Linear(8, 3))


def _recurrent(nn) -> Any:
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.network = nn.Embedding(11, 8), nn.LSTM(8, 12, batch_first=True)
            self.head = nn.Linear(12, 3)

        def forward(self, x):
            return self.head(self.network(self.embedding(x))[0][:, -1])

    return Recurrent()


def _attentive(nn) -> Any:
    class Attentive(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(11, 16)
            self.layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
            self.head = nn.Linear(16, 3)

        def forward(self, x):
            return self.head(self.layer(self.embedding(x)).mean(1))

    return Attentive()


def _normalized(nn) -> Any:
    layers = nn.Linear(12, 16), nn.LayerNorm(16), nn.Softplus(), nn.Linear(16, 16), nn.Sigmoid(), nn.Linear(16, 3)
    return nn.Sequential(*layers)


_VECTORS, _IMAGES = numbers(16, 12, seed=1), numbers(8, 2, 8, 8, seed=2)
_WORDS = np.floor(numbers(8, 6, seed=3) * 5.5 + 5.5).astype(np.int64)  # 0 to 10

#: {name: (model, inputs, optimizer, its options)}
MODELS: dict[str, tuple[Callable[..., Any], np.ndarray, str, dict[str, float]]] = {
    "perceptron": (_perceptron, _VECTORS, "SGD", {"lr": 0.1, "momentum": 0.9}),
    "convolutional": (_convolutional, _IMAGES, "Adam", {"lr": 0.01, "eps": 1e-4}),
    "recurrent": (_recurrent, _WORDS, "RMSprop", {"lr": 0.01, "eps": 1e-3}),
    "transformer": (_attentive, _WORDS, "AdamW", {"lr": 0.01, "eps": 1e-4}),
    "normalized": (_normalized, _VECTORS, "Adagrad", {"lr": 0.1}),
}


def curve(framework: Any, name: str, on: str, d: Any) -> list[float]:
    """The losses of a model in a framework of PyTorch's API. Its parameters begin as numbers that depend on their order
    alone."""
    build, inputs, optimizer, options = MODELS[name]
    model = build(framework.nn)
    for seed, p in enumerate(model.parameters()):
        start = numbers(*p.shape, seed=seed) * (0.5 / max(1.0, float(np.sqrt(p.shape[-1]))))
        p.data = framework.tensor(start, dtype=framework.float64).to(d).to(on)
    for buffer in model.buffers():
        buffer.data = (buffer.to(d) if buffer.is_floating_point() else buffer).to(on)
    x = framework.tensor(inputs)
    x = (x.to(d) if x.is_floating_point() else x).to(on)
    labels = framework.tensor(np.arange(len(inputs)) % 3).to(on)
    stepper = getattr(framework.optim, optimizer)(model.parameters(), **options)
    losses = []
    for _ in range(STEPS):
        stepper.zero_grad()
        loss = framework.nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        stepper.step()
        losses.append(loss.item())
    return losses


def _compare(target: Target, d: dtype, name: str) -> None:
    if dtypes.int64 not in registry.runtime(target.device).dtypes:
        raise NotRunError(f"the labels are int64, which device '{target.device}' does not store")
    found, wanted = np.array(curve(corefw, name, target.device, d)), np.array(CURVES[name])
    compare_values(found, wanted, 0.0, ASTRAY * wanted[0], name="Loss")


@behaviour("training")
def perceptron(target: Target, d: dtype) -> None:
    """Linear layers, with SGD and momentum."""
    _compare(target, d, "perceptron")


@behaviour("training")
def convolutional(target: Target, d: dtype) -> None:
    """Convolutions, batch normalization and pooling, with Adam."""
    _compare(target, d, "convolutional")


@behaviour("training")
def recurrent(target: Target, d: dtype) -> None:
    """Embedding and LSTM, with RMSprop."""
    _compare(target, d, "recurrent")


@behaviour("training")
def transformer(target: Target, d: dtype) -> None:
    """Attention and layer normalization, with AdamW."""
    _compare(target, d, "transformer")


@behaviour("training")
def normalized(target: Target, d: dtype) -> None:
    """Layer normalization and smooth activations, with Adagrad."""
    _compare(target, d, "normalized")
