"""Embedding layers: parity with PyTorch, gradients that options change, refused positions."""

import numpy as np
import pytest

import corefw as torch
from tests.parity import compare_layers, import_torch

F = torch.nn.functional
POSITIONS = np.array([[1, 0, 1], [3, 1, 2]])

OPTIONS = [
    {},
    {"padding_idx": 1},
    {"padding_idx": -1},
    {"scale_grad_by_freq": True},
    {"scale_grad_by_freq": True, "padding_idx": 0},
    {"max_norm": 1.0},
    {"max_norm": 0.5, "norm_type": 1.0},
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_parity(options, dtype):
    ours, theirs = torch.nn.Embedding(4, 5, **options), import_torch().nn.Embedding(4, 5, **options)
    compare_layers(ours, theirs, POSITIONS.astype(dtype))
    np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy(), 1e-6)  # also renormalised


@pytest.mark.parametrize("options", OPTIONS[:3])
def test_second_derivative(options):
    reference = import_torch()
    weight = np.random.default_rng(0).normal(size=(4, 5))

    def second(library, embedding):
        w = library.tensor(weight, requires_grad=True)
        padding = options.get("padding_idx")
        rows = embedding(library.tensor(POSITIONS), w, padding, scale_grad_by_freq="scale_grad_by_freq" in options)
        (first,) = library.autograd.grad((rows**3).sum(), w, create_graph=True)
        return library.autograd.grad(first.sin().sum(), w)[0].numpy()

    np.testing.assert_allclose(second(torch, F.embedding), second(reference, reference.nn.functional.embedding), 1e-10)


def test_the_padding_starts_as_zeros_and_stays():
    layer = torch.nn.Embedding(4, 5, padding_idx=-2)
    assert layer.padding_idx == 2
    assert not layer.weight[2].any()
    layer(torch.tensor([2, 2, 1])).sum().backward()
    assert layer.weight.grad.sum(1).tolist() == [0, 5, 0, 0]


def test_from_pretrained():
    table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    layer = torch.nn.Embedding.from_pretrained(table)
    assert not layer.weight.requires_grad
    assert layer(torch.tensor([1])).tolist() == [[3, 4]]
    assert torch.nn.Embedding.from_pretrained(table, freeze=False, padding_idx=0).weight.requires_grad
    with pytest.raises(AssertionError, match="2-dimensional"):
        torch.nn.Embedding.from_pretrained(torch.ones(2))


def test_rows_are_renormalised_in_place():
    table = torch.tensor([[3.0, 4.0], [6.0, 8.0], [0.3, 0.4]])
    assert torch.embedding_renorm_(table, torch.tensor([0, 0, 2]), 1.0) is table
    np.testing.assert_allclose(table.numpy(), [[0.6, 0.8], [6, 8], [0.3, 0.4]], 1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types(dtype):
    layer = torch.nn.Embedding(4, 5, dtype=dtype)
    layer(torch.tensor([1, 1])).sum().backward()
    assert layer.weight.grad.dtype is dtype
    assert layer.weight.grad[1].tolist() == [2] * 5


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda w: F.embedding(torch.tensor([3]), w), IndexError, "index out of range in self"),
        (lambda w: F.embedding(torch.tensor([-1]), w), IndexError, "index out of range in self"),
        (lambda w: F.embedding(torch.tensor([1.0]), w), RuntimeError, "Long, Int; but got Float"),
        (lambda w: F.embedding(torch.tensor([1]), w[0]), RuntimeError, "'weight' must be 2-D"),
        (lambda w: torch.embedding_renorm_(w, torch.tensor([1.0]), 1.0), RuntimeError, "Long, Int; but got Float"),
        (lambda w: F.embedding(torch.tensor([1]), w, padding_idx=3), AssertionError, "within num_embeddings"),
        (lambda w: torch.nn.Embedding(3, 2, padding_idx=3), AssertionError, "within num_embeddings"),
        (lambda w: torch.nn.Embedding(3, 3, _weight=w), AssertionError, "Shape of weight does not match"),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.ones(3, 2))


@pytest.mark.parametrize("max_norm", [None, 1.0])
@pytest.mark.parametrize("shape", [(), (3,), (3, 2, 2)])
def test_a_table_has_two_dimensions(shape, max_norm):
    with pytest.raises(RuntimeError, match="'weight' must be 2-D"):
        torch.nn.functional.embedding(torch.tensor(0), torch.zeros(shape), max_norm=max_norm)


def test_gradient_of_rows_without_elements():
    weight = torch.zeros(3, 0, requires_grad=True)
    torch.nn.functional.embedding(torch.tensor([1, 2]), weight).sum().backward()
    assert weight.grad.shape == (3, 0)
