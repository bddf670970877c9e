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


# -- bags -------------------------------------------------------------------------------------------------------------
FLAT, OFFSETS = np.array([1, 0, 1, 3, 2]), np.array([0, 2, 2, 4])
BAG_OPTIONS = [
    {},
    {"mode": "sum"},
    {"mode": "max"},
    {"mode": "sum", "padding_idx": 1},
    {"mode": "max", "padding_idx": -1},
    {"max_norm": 1.0, "norm_type": 1.0},
]


@pytest.mark.parametrize("options", BAG_OPTIONS)
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_bags_are_pytorchs(options, dtype):
    for inputs in ((POSITIONS,), (FLAT, OFFSETS)):
        ours, theirs = torch.nn.EmbeddingBag(4, 5, **options), import_torch().nn.EmbeddingBag(4, 5, **options)
        compare_layers(ours, theirs, *(positions.astype(dtype) for positions in inputs))
        np.testing.assert_allclose(ours.weight.detach().numpy(), theirs.weight.detach().numpy(), 1e-6)


@pytest.mark.parametrize("positions", [POSITIONS, FLAT])
def test_bags_of_weighed_rows_are_pytorchs(positions):
    ours = torch.nn.EmbeddingBag(4, 5, mode="sum", padding_idx=2, include_last_offset=True)
    theirs = import_torch().nn.EmbeddingBag(4, 5, mode="sum", padding_idx=2, include_last_offset=True)
    factors = np.random.default_rng(1).normal(size=positions.shape).astype(np.float32)
    offsets = np.array([0, 3, 3, 5]) if positions.ndim == 1 else None
    compare_layers(ours, theirs, positions, offsets, factors)


def test_gradients_of_bags_by_frequency():
    """PyTorch divides those of a row by how often another one was picked."""
    gradients = []
    for reduced in (
        lambda table: F.embedding_bag(torch.tensor(POSITIONS), table, scale_grad_by_freq=True),
        lambda table: F.embedding(torch.tensor(POSITIONS), table, scale_grad_by_freq=True).mean(1),
    ):
        table = torch.tensor(np.eye(4, 5), requires_grad=True)
        (reduced(table) ** 2).sum().backward()
        gradients.append(table.grad.numpy())
    np.testing.assert_allclose(*gradients, 1e-12)


def test_of_equal_elements_of_a_bag_the_first_gets_the_gradient():
    weight = torch.zeros(3, 2, requires_grad=True)
    F.embedding_bag(torch.tensor([[2, 1, 2], [0, 1, 1]]), weight, mode="max").sum().backward()
    assert weight.grad.tolist() == [[1, 1], [0, 0], [1, 1]]


def test_the_end_of_the_last_bag_is_heeded():
    table = torch.tensor([[1.0], [2.0], [4.0]])
    found = torch.embedding_bag(table, torch.tensor([0, 1, 2]), torch.tensor([0, 2]), False, 1, False, None, True)
    assert found[0].tolist() == [[1.5]] and found[2].tolist() == [2]


def test_a_pretrained_bag():
    layer = torch.nn.EmbeddingBag.from_pretrained(torch.ones(2, 3), mode="sum", padding_idx=-1)
    assert layer(torch.tensor([[0, 0, 1]])).tolist() == [[2, 2, 2]] and not layer.weight.requires_grad
    assert torch.nn.EmbeddingBag(4, 5, padding_idx=-2).weight[2].tolist() == [0] * 5


TABLE, ROW = torch.ones(4, 3), torch.tensor([0, 1, 3])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.embedding_bag(ROW, TABLE), ValueError, "1D Tensor but got None"),
        (lambda: F.embedding_bag(ROW, TABLE, ROW[None]), ValueError, "1D Tensor"),
        (lambda: F.embedding_bag(ROW[None], TABLE, ROW), ValueError, "offsets has to be None"),
        (lambda: F.embedding_bag(ROW[None, None], TABLE), ValueError, "1D or 2D"),
        (lambda: F.embedding_bag(ROW, TABLE[0], ROW), ValueError, "2D Tensor"),
        (lambda: F.embedding_bag(ROW, TABLE, torch.tensor([1])), RuntimeError, r"offsets\[0\] has to be 0"),
        (lambda: F.embedding_bag(ROW, TABLE, torch.tensor([0, 4])), RuntimeError, "input's length 3"),
        (lambda: F.embedding_bag(ROW, TABLE, torch.tensor([0, 2, 1])), RuntimeError, "less than the one before"),
        (lambda: F.embedding_bag(ROW, TABLE, ROW[:0], include_last_offset=True), RuntimeError, "at least 1"),
        (lambda: F.embedding_bag(ROW + 1, TABLE, ROW[:1]), IndexError, "out of range"),
        (lambda: F.embedding_bag(ROW.float(), TABLE, ROW[:1]), RuntimeError, "Long, Int; but got Float"),
        (lambda: F.embedding_bag(ROW, TABLE, TABLE[0]), RuntimeError, "expected offsets of int64"),
        (lambda: F.embedding_bag(ROW, TABLE.long(), ROW[:1]), RuntimeError, "expected weight to be floating"),
        (lambda: F.embedding_bag(ROW, TABLE, ROW[:1], padding_idx=4), RuntimeError, "-4 through 3, but got 4"),
        (lambda: F.embedding_bag(ROW, TABLE, ROW[:1], mode="min"), ValueError, "sum, mean or max"),
        (lambda: F.embedding_bag(ROW, TABLE, ROW[:1], scale_grad_by_freq=True, mode="max"), ValueError, "max mode"),
        (lambda: F.embedding_bag(ROW, TABLE, ROW[:1], per_sample_weights=TABLE[0]), NotImplementedError, "mode='sum'"),
        (
            lambda: F.embedding_bag(ROW, TABLE, ROW[:1], mode="sum", per_sample_weights=TABLE[0, :2]),
            ValueError,
            "same shape as the input",
        ),
        (
            lambda: F.embedding_bag(ROW, TABLE, ROW[:1], mode="sum", per_sample_weights=TABLE[0].double()),
            RuntimeError,
            "weight's dtype Float",
        ),
        (lambda: torch.embedding_bag(TABLE, ROW, ROW[:1], mode=3), ValueError, "0 .sum., 1 .mean. or 2 .max."),
        (lambda: torch.nn.EmbeddingBag(3, 2, padding_idx=3), AssertionError, "within num_embeddings"),
    ],
)
def test_misuse_of_bags_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
