"""Whole training steps of well-known models, in sizes people train on a laptop.

Run: python -m pytest benchmarks/test_models.py --benchmark-enable --benchmark-group-by=func
"""

import pytest

from tests.models import resnet


@pytest.fixture
def measure(benchmark, framework):
    """Time the training steps of a model: ``measure(model, optimizer, loss of a batch)``."""

    def measure(model, optimizer, loss_of):
        def step():
            loss = loss_of(model)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.item()

        benchmark.pedantic(step, rounds=5, warmup_rounds=1)

    return measure


def test_mnist_cnn_adam(framework, measure):
    nn, F = framework.nn, framework.nn.functional
    model = nn.Sequential(
        *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(64 * 12 * 12, 128), nn.ReLU(), nn.Linear(128, 10)),
    )
    images, targets = framework.randn(64, 1, 28, 28), framework.randint(0, 10, (64,))
    optimizer = framework.optim.Adam(model.parameters())
    measure(model, optimizer, lambda m: F.cross_entropy(m(images), targets))


def test_resnet18_sgd(framework, measure):
    model = resnet.build(framework, width=64)
    images, targets = framework.randn(16, 3, 32, 32), framework.randint(0, 10, (16,))
    optimizer = framework.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    measure(model, optimizer, lambda m: framework.nn.functional.cross_entropy(m(images), targets))


def test_lstm_adam(framework, measure):
    nn = framework.nn
    model = nn.LSTM(128, 128, num_layers=2)
    inputs, targets = framework.randn(64, 16, 128), framework.randn(64, 16, 128)
    optimizer = framework.optim.Adam(model.parameters())
    measure(model, optimizer, lambda m: nn.functional.mse_loss(m(inputs)[0], targets))


def test_gpt_adamw(framework, measure):
    nn, F = framework.nn, framework.nn.functional
    words, width, heads, layers, batch, length = 65, 128, 4, 4, 8, 128

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x):
            q, k, v = (
                t.view(batch, length, heads, -1).transpose(1, 2) for t in self.qkv(self.first(x)).split(width, 2)
            )
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
            return x + self.mlp(self.second(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, text):
            x = self.words(text) + self.positions(framework.arange(length))
            return self.head(self.norm(self.blocks(x)))

    model = GPT()
    text = framework.randint(0, words, (batch, length + 1))
    optimizer = framework.optim.AdamW(model.parameters())
    measure(model, optimizer, lambda m: F.cross_entropy(m(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()))
