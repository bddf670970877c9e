"""Texts generated word by word, with keys and values of former words in memory of one size, or in memory that grows."""

import re
from pathlib import Path

import numpy as np
import pytest

import corefw as torch
from corefw import nn

F = nn.functional
PAGE = Path(__file__).resolve().parent.parent / "docs" / "compile.md"
WIDTH, HEADS, WORDS, LONGEST = 16, 2, 11, 24


def attention_of_the_page():
    """The class that docs/compile.md shows."""
    (block,) = [b for b in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "class Attention" in b]
    names = {"torch": torch, "nn": nn, "F": F}
    exec(block, names)
    return names["Attention"]


class Text(nn.Module):
    """A small transformer; `attention` makes what is called with (x, position) or (x, cache)."""

    def __init__(self, attention):
        super().__init__()
        self.words, self.positions = nn.Embedding(WORDS, WIDTH), nn.Embedding(LONGEST, WIDTH)
        self.attentions = nn.ModuleList(attention() for _ in range(2))
        self.mlp = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH), nn.GELU())
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, text, position):
        x = self.words(text) + self.positions(position)
        for attention in self.attentions:
            x = x + attention(x, position)
        return self.head(x + self.mlp(x))[:, -1] * 1  # no view


@pytest.fixture
def model():
    torch.manual_seed(0)
    attention = attention_of_the_page()
    return Text(lambda: attention(WIDTH, HEADS, LONGEST)).eval().requires_grad_(False)


@torch.no_grad()
def generated(step, prompt, count):
    """The scores of `count` words after a prompt, and the words."""
    word, position = prompt, torch.arange(prompt.shape[1])
    scores, text = [], [prompt]
    for _ in range(count):
        scores.append(step(word, position))
        word, position = scores[-1].argmax(-1, keepdim=True), position[-1:] + 1
        text.append(word)
    return torch.cat(scores), torch.cat(text, 1)


def scored(model, text):
    """The scores after each word of a text, in float64 by NumPy, without a cache."""
    parameters = {name: np.array(t, np.float64) for name, t in model.state_dict().items()}

    def linear(x, name):
        return x @ parameters[f"{name}.weight"].T + parameters[f"{name}.bias"]

    x = parameters["words.weight"][text] + parameters["positions.weight"][: len(text)]
    for i in range(len(model.attentions)):
        q, k, v = np.split(linear(x, f"attentions.{i}.qkv"), 3, -1)
        heads = []
        for q_, k_, v_ in zip(*(np.split(t, HEADS, -1) for t in (q, k, v))):
            weights = np.exp(q_ @ k_.T / np.sqrt(WIDTH // HEADS)) * np.tri(len(text))
            heads.append(weights / weights.sum(-1, keepdims=True) @ v_)
        x = x + linear(np.concatenate(heads, -1), f"attentions.{i}.out")
    normed = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    hidden = linear(normed * parameters["mlp.0.weight"] + parameters["mlp.0.bias"], "mlp.1")
    erf = np.array(torch.erf(torch.tensor(hidden / np.sqrt(2))))
    return linear(x + hidden * (1 + erf) / 2, "head")


def test_memory_of_one_size_is_recorded_once(model):
    compiled = torch.compile(model)
    prompt = torch.tensor([[3, 1, 4]])
    for start in range(3):
        expected, text = generated(model, prompt + start, 16)
        scores, same = generated(compiled, prompt + start, 16)
        assert torch.equal(text, same) and torch.equal(scores, expected)
        np.testing.assert_allclose(np.array(scores), scored(model, np.array(text[0]))[2:-1], rtol=1e-4, atol=1e-5)
    assert len(compiled._compiled.programs) == 2  # the prompt's, and that of a word
    assert compiled._compiled.replays == 3 * 16 - 2 - 2  # but for two each


def growing(x, qkv, cache):
    """Attention over keys and values that are joined to those of the cache; the new cache."""
    q, k, v = (t.unflatten(2, (HEADS, -1)).transpose(1, 2) for t in qkv(x).chunk(3, 2))
    if cache is not None:
        k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2), (k, v)


def test_memory_that_grows_runs_as_ever():
    torch.manual_seed(0)
    model = nn.Linear(WIDTH, 3 * WIDTH).requires_grad_(False)
    compiled = torch.compile(lambda x, cache: growing(x, model, cache))
    for _ in range(3):
        caches = [None, None]
        for _ in range(20):
            x = torch.randn(1, 1, WIDTH)
            (y, caches[0]), (expected, caches[1]) = compiled(x, caches[0]), growing(x, model, caches[1])
            assert torch.equal(y, expected)
    assert len(compiled.programs) == 8  # of the second text
    assert compiled.replays == 8  # in the third
    assert compiled._recordings == 8
    assert "there are 8 recordings" in torch.explain(compiled)
