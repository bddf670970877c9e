"""Larger programs, of 10^9 to 10^12 operations a call: each makes the call to time in a module with PyTorch's API.

The sizes are arguments, so that tests can run the same programs small. What a call returns are tensors that another
module computes too, given the same weights: every call of a training program takes one more step and returns its loss.
"""

import math
from functools import wraps

from corefw.benchmarks import resnet
from corefw.benchmarks.training import autocast, step_of


def _integers(framework, below, *shape):
    """The same integers in every module."""
    count = math.prod(shape)
    return (framework.arange(count) * 7919 % 10007 % below).reshape(shape)


def _waves(framework, *shape):
    """The same numbers in every module, of mean 0 and variance 1/2."""
    return (framework.arange(math.prod(shape)) * 0.7).sin().reshape(shape)


def _training(model, optimizer, loss_of):
    return step_of(model, optimizer, loss_of).update


def _autocast(program):
    """A training program with its forward in bfloat16 where `autocast` says so."""
    cast = autocast(program)
    return wraps(cast)(lambda framework, **sizes: cast(framework, **sizes).update)


def _inference(framework, model, result_of):
    def call():
        with framework.no_grad():
            return result_of(model)

    vars(call).update(model=model.eval())
    return call


# -- GPT-2 ------------------------------------------------------------------------------------------------------------
def gpt2(framework, words=50257, positions=1024, width=768, heads=12, layers=12):
    """GPT-2 small by default: the output's weights are the embedding's (Radford et al., 2019)."""
    nn, F = framework.nn, framework.nn.functional

    class Block(nn.Module):  # type: ignore[name-defined]
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.rise, self.fall = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x, past=None):
            batch, length, _ = x.shape
            q, k, v = (
                t.view(batch, length, heads, -1).transpose(1, 2) for t in self.qkv(self.first(x)).split(width, 2)
            )
            if past is not None:
                begin, keys, values = past
                keys[:, :, begin : begin + length], values[:, :, begin : begin + length] = k, v
                k, v = keys[:, :, : begin + length], values[:, :, : begin + length]
            attended = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
            x = x + self.out(attended.transpose(1, 2).reshape(batch, length, width))
            return x + self.fall(F.gelu(self.rise(self.second(x)), approximate="tanh"))

    class GPT2(nn.Module):  # type: ignore[name-defined]
        def __init__(self):
            super().__init__()
            self.words, self.positions = nn.Embedding(words, width), nn.Embedding(positions, width)
            self.blocks = nn.ModuleList([Block() for _ in range(layers)])
            self.norm = nn.LayerNorm(width)
            nn.init.normal_(self.words.weight, std=0.02)
            nn.init.normal_(self.positions.weight, std=0.02)

        def forward(self, text, begin=0, pasts=None):
            """Scores of the next words; `pasts` are each block's keys and values, of which `begin` are known."""
            x = self.words(text) + self.positions(framework.arange(begin, begin + text.shape[1]))
            for i, block in enumerate(self.blocks):
                x = block(x, None if pasts is None else (begin, *pasts[i]))
            return F.linear(self.norm(x if pasts is None else x[:, -1:]), self.words.weight)

        def pasts(self, batch, length):
            """Memory for the keys and values of `length` words."""
            shape, dtype = (batch, heads, length, width // heads), self.words.weight.dtype
            return [[framework.empty(shape, dtype=dtype) for _ in "kv"] for _ in self.blocks]

    return GPT2()


def gpt2_training(framework, batch=2, length=256, **sizes):
    """GPT-2 small, AdamW, two texts of 256 words."""
    model, cross_entropy = gpt2(framework, **sizes), framework.nn.functional.cross_entropy
    text = _integers(framework, model.words.num_embeddings, batch, length + 1)
    optimizer = framework.optim.AdamW(model.parameters(), lr=1e-4)
    return _training(
        model, optimizer, lambda m: cross_entropy(m(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
    )  # fmt: skip


def gpt2_generation(framework, prompt=16, count=16, dtype="float32", **sizes):
    """GPT-2 small, 16 words after 16, each the likeliest, with the keys and values of earlier ones kept."""
    model = gpt2(framework, **sizes).to(getattr(framework, dtype))
    text = _integers(framework, model.words.num_embeddings, 1, prompt)

    def generate(m):
        pasts, scores, begin, given = m.pasts(1, prompt + count), [], 0, text
        for _ in range(count):
            scores.append(m(given, begin, pasts))
            begin += given.shape[1]
            given = scores[-1].argmax(-1)
        return framework.cat(scores, 1)

    return _inference(framework, model, generate)


def gpt2_generation_bfloat16(framework, **sizes):
    """The same with weights, keys and values of bfloat16."""
    return gpt2_generation(framework, dtype="bfloat16", **sizes)


# -- images -----------------------------------------------------------------------------------------------------------
def resnet50_training(framework, samples=8, size=224, **sizes):
    """ResNet-50, SGD with momentum, eight images of 224 x 224."""
    model, cross_entropy = resnet.bottlenecks(framework, **sizes), framework.nn.functional.cross_entropy
    images, targets = _waves(framework, samples, 3, size, size), _integers(framework, 1000, samples)
    optimizer = framework.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    return _training(model, optimizer, lambda m: cross_entropy(m(images), targets))


def resnet50_inference(framework, samples=8, size=224, **sizes):
    """ResNet-50 on eight images of 224 x 224."""
    images = _waves(framework, samples, 3, size, size)
    return _inference(framework, resnet.bottlenecks(framework, **sizes), lambda m: m(images))


def unet(framework, width=32, depth=4):
    """U-Net (Ronneberger et al., 2015), padded and with batch norms, for 3 channels and 2 classes."""
    nn = framework.nn

    def pair(before, after):
        layers = [
            layer
            for channels in (before, after)
            for layer in (nn.Conv2d(channels, after, 3, padding=1, bias=False), nn.BatchNorm2d(after), nn.ReLU())
        ]
        return nn.Sequential(*layers)

    class UNet(nn.Module):  # type: ignore[name-defined]
        def __init__(self):
            super().__init__()
            widths = [width << i for i in range(depth + 1)]
            self.down = nn.ModuleList([pair(a, b) for a, b in zip([3, *widths], widths, strict=False)])
            self.rise = nn.ModuleList([nn.ConvTranspose2d(2 * a, a, 2, stride=2) for a in widths[-2::-1]])
            self.up = nn.ModuleList([pair(2 * a, a) for a in widths[-2::-1]])
            self.pool, self.head = nn.MaxPool2d(2), nn.Conv2d(width, 2, 1)

        def forward(self, x):
            kept = []
            for block in self.down[:-1]:
                kept.append(block(x))
                x = self.pool(kept[-1])
            x = self.down[-1](x)
            for rise, block in zip(self.rise, self.up, strict=True):
                x = block(framework.cat([kept.pop(), rise(x)], 1))
            return self.head(x)

    return UNet()


def unet_training(framework, samples=4, size=128, **sizes):
    """U-Net, 32 channels wide and 4 deep, Adam, four images of 128 x 128."""
    model, cross_entropy = unet(framework, **sizes), framework.nn.functional.cross_entropy
    images, targets = _waves(framework, samples, 3, size, size), _integers(framework, 2, samples, size, size)
    optimizer = framework.optim.Adam(model.parameters(), lr=1e-4)
    return _training(model, optimizer, lambda m: cross_entropy(m(images), targets))


# -- sequences --------------------------------------------------------------------------------------------------------
def wide_lstm_training(framework, features=512, units=1024, steps=32, samples=16):
    """Two layers of 1024 units on 16 sequences of 32 steps of 512 numbers, Adam."""
    nn = framework.nn
    model = nn.LSTM(features, units, num_layers=2)
    inputs, targets = _waves(framework, steps, samples, features), _waves(framework, steps, samples, units)
    optimizer = framework.optim.Adam(model.parameters(), lr=1e-4)
    return _training(model, optimizer, lambda m: nn.functional.mse_loss(m(inputs)[0], targets))


def _encoder(framework, width, heads, inner, layers):
    nn = framework.nn
    layer = nn.TransformerEncoderLayer(width, heads, inner, dropout=0.0, activation="gelu", batch_first=True)
    return nn.TransformerEncoder(layer, layers)


def encoder_training(framework, batch=4, length=128, width=768, heads=12, inner=3072, layers=12):
    """An encoder of 12 layers, 768 wide, on four texts of 128 words, SGD."""
    model = _encoder(framework, width, heads, inner, layers)
    inputs, targets = _waves(framework, batch, length, width), _waves(framework, batch, length, width)
    optimizer = framework.optim.SGD(model.parameters(), lr=1e-3)
    return _training(model, optimizer, lambda m: framework.nn.functional.mse_loss(m(inputs), targets))


def encoder_inference(framework, batch=4, length=128, width=768, heads=12, inner=3072, layers=12, dtype="float32"):
    """The same encoder forward."""
    dtype = getattr(framework, dtype)
    inputs = _waves(framework, batch, length, width).to(dtype)
    return _inference(framework, _encoder(framework, width, heads, inner, layers).to(dtype), lambda m: m(inputs))


def encoder_inference_bfloat16(framework, **sizes):
    """The same with weights and inputs of bfloat16."""
    return encoder_inference(framework, dtype="bfloat16", **sizes)


LARGER = {
    program.__name__: program
    for program in (
        *(gpt2_training, gpt2_generation, resnet50_training, resnet50_inference, unet_training),
        *(wide_lstm_training, encoder_training, encoder_inference),
        *map(_autocast, (gpt2_training, resnet50_training, unet_training, wide_lstm_training, encoder_training)),
        *(gpt2_generation_bfloat16, encoder_inference_bfloat16),
    )
}
