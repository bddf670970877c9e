"""Training programs: each makes a function that takes one step, in any module with PyTorch's API.

Some take `wrap`, which gives the model that is trained in the place of the one that was built: in several processes.
"""

from itertools import pairwise

from corefw.benchmarks import resnet


def step_of(model, optimizer, loss_of):
    """One training step as a function without arguments, whose attributes are the model, its optimizer, `loss_of`, and
    `update`, which returns the loss as a tensor and has the same attributes."""

    def update():
        loss = loss_of(model)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss

    def step():
        return update().item()

    for function in (step, update):
        vars(function).update(model=model, optimizer=optimizer, loss_of=loss_of, update=update)
    return step


def autocast(program):
    """The same program, with its forward in bfloat16 where `autocast` says so."""

    def made(framework, **sizes):
        step = program(framework, **sizes)

        def loss_of(model):
            with framework.autocast(next(model.parameters()).device.type, dtype=framework.bfloat16):
                return step.loss_of(model)

        return step_of(step.model, step.optimizer, loss_of)

    made.__name__, made.__doc__ = f"{program.__name__}_autocast", f"{program.__doc__} In bfloat16 by `autocast`."
    return made


def alone(model):
    """The model itself: one process trains it."""
    return model


def mlp(framework, sizes):
    """Linear layers with relu between them."""
    nn = framework.nn
    layers = [layer for a, b in pairwise(sizes) for layer in (nn.Linear(a, b), nn.ReLU())][:-1]
    return nn.Sequential(*layers)


def _seed_mlp(framework, optimizer_of, wrap=alone):
    """The two-layer network of the tutorials: 64 samples, 1000 -> 100 -> 10."""
    model = wrap(mlp(framework, (1000, 100, 10)))
    inputs, targets = framework.randn(64, 1000), framework.randn(64, 10)
    loss_fn = framework.nn.MSELoss(reduction="sum")
    return step_of(model, optimizer_of(model.parameters()), lambda m: loss_fn(m(inputs), targets))


def seed_mlp_sgd(framework, wrap=alone):
    return _seed_mlp(framework, lambda parameters: framework.optim.SGD(parameters, lr=1e-4, momentum=0.5), wrap)


def seed_mlp_adam(framework):
    return _seed_mlp(framework, lambda parameters: framework.optim.Adam(parameters, lr=1e-4))


def tiny_mlp_sgd(framework):
    """Four samples, 2 -> 8 -> 1: what a step costs beside its arithmetic."""
    model, loss_fn = mlp(framework, (2, 8, 1)), framework.nn.MSELoss()
    optimizer = framework.optim.SGD(model.parameters(), lr=1e-2)
    inputs, targets = framework.randn(4, 2), framework.randn(4, 1)
    return step_of(model, optimizer, lambda m: loss_fn(m(inputs), targets))


def digits_classifier_adam(framework):
    """64 samples, 64 -> 128 -> 10."""
    model, loss_fn = mlp(framework, (64, 128, 10)), framework.nn.CrossEntropyLoss()
    optimizer = framework.optim.Adam(model.parameters(), lr=1e-3)
    inputs, targets = framework.randn(64, 64), framework.randint(0, 10, (64,))
    return step_of(model, optimizer, lambda m: loss_fn(m(inputs), targets))


def mnist_cnn_adam(framework, samples=64):
    """Two convolutions, pooling and two linear layers on 64 images of 28 x 28."""
    nn, F = framework.nn, framework.nn.functional
    model = nn.Sequential(
        *(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()),
        *(nn.Linear(64 * 12 * 12, 128), nn.ReLU(), nn.Linear(128, 10)),
    )
    images, targets = framework.randn(samples, 1, 28, 28), framework.randint(0, 10, (samples,))
    optimizer = framework.optim.Adam(model.parameters())
    return step_of(model, optimizer, lambda m: F.cross_entropy(m(images), targets))


def resnet18_sgd(framework, samples=16, wrap=alone):
    """ResNet-18 in its form for CIFAR, on 16 images of 32 x 32."""
    model = wrap(resnet.build(framework, width=64))
    images, targets = framework.randn(samples, 3, 32, 32), framework.randint(0, 10, (samples,))
    optimizer = framework.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    return step_of(model, optimizer, lambda m: framework.nn.functional.cross_entropy(m(images), targets))


def lstm_adam(framework):
    """Two layers of 128 units, 16 sequences of 64 steps."""
    nn = framework.nn
    model = nn.LSTM(128, 128, num_layers=2)
    inputs, targets = framework.randn(64, 16, 128), framework.randn(64, 16, 128)
    optimizer = framework.optim.Adam(model.parameters())
    return step_of(model, optimizer, lambda m: nn.functional.mse_loss(m(inputs)[0], targets))


def gpt_adamw(framework, wrap=alone):
    """A transformer of 4 layers, 128 wide, with 4 heads, on 8 texts of 128 letters."""
    nn, F = framework.nn, framework.nn.functional
    words, width, heads, layers, batch, length = 65, 128, 4, 4, 8, 128

    class Block(nn.Module):  # type: ignore[name-defined]
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

    class GPT(nn.Module):  # type: ignore[name-defined]
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
            self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
            self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

        def forward(self, text):
            x = self.words(text) + self.positions(framework.arange(length))
            return self.head(self.norm(self.blocks(x)))

    model = wrap(GPT())
    text = framework.randint(0, words, (batch, length + 1))
    optimizer = framework.optim.AdamW(model.parameters())
    return step_of(model, optimizer, lambda m: F.cross_entropy(m(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()))


ON_IMAGES = {program.__name__: program for program in (mnist_cnn_adam, resnet18_sgd)}
TRAINING = {
    program.__name__: program
    for program in (
        *(seed_mlp_sgd, seed_mlp_adam, tiny_mlp_sgd, digits_classifier_adam),
        *(mnist_cnn_adam, resnet18_sgd, lstm_adam, gpt_adamw),
        *map(autocast, (mnist_cnn_adam, resnet18_sgd, lstm_adam, gpt_adamw)),
    )
}
