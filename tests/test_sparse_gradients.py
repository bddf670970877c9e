"""Embeddings with sparse gradients, and the optimizers that take them, against PyTorch and dense gradients."""

import numpy as np
import pytest

import corefw as torch

try:
    import torch as oracle
except ImportError:
    oracle = None

pytestmark = pytest.mark.filterwarnings("ignore:.*[Ss]parse.*:UserWarning")
needs_oracle = pytest.mark.skipif(oracle is None, reason="PyTorch is not installed")
TABLE = np.arange(12.0).reshape(6, 2) / 7
POSITIONS = [[1, 4], [1, 0]]


def table(module, **options):
    return module.nn.Embedding.from_pretrained(module.tensor(TABLE), freeze=False, **options)


def test_gradient_of_an_embedding():
    layers = [table(torch, sparse=sparse, padding_idx=0) for sparse in (True, False)]
    for layer in layers:
        found = layer(torch.tensor(POSITIONS))
        (found * torch.arange(8.0).double().reshape(found.shape)).sum().backward()
    ours, expected = (layer.weight.grad for layer in layers)
    assert ours.is_sparse and not ours.is_coalesced()
    assert ours.to_dense().tolist() == expected.tolist()
    layers[0](torch.tensor(POSITIONS)).sum().backward()  # two of them are added
    layers[1](torch.tensor(POSITIONS)).sum().backward()
    assert layers[0].weight.grad.to_dense().tolist() == layers[1].weight.grad.tolist()


@pytest.mark.parametrize("options", [{"mode": "sum"}, {"mode": "mean"}, {"mode": "mean", "padding_idx": 1}])
def test_gradient_of_a_bag(options):
    gradients = []
    for sparse in (True, False):
        weight = torch.tensor(TABLE, requires_grad=True)
        found = torch.nn.functional.embedding_bag(
            torch.tensor([1, 4, 1, 0]), weight, torch.tensor([0, 3]), sparse=sparse, **options
        )
        (found * torch.tensor([[1.0, 2.0], [3.0, 4.0]]).double()).sum().backward()
        gradients.append((found.tolist(), weight.grad))
    (ours, sparse), (theirs, expected) = gradients
    assert ours == theirs and sparse.is_sparse
    np.testing.assert_allclose(sparse.to_dense().numpy(), expected.numpy(), rtol=1e-14)


def test_frequencies_are_refused():
    layer = table(torch, sparse=True, scale_grad_by_freq=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq not supported with sparse gradients"):
        layer(torch.tensor(POSITIONS)).sum().backward()


def trained(module, make):
    layer = table(module, sparse=True)
    optimizer = make(module.optim, layer.parameters())
    for step in range(4):
        optimizer.zero_grad()
        found = layer(module.tensor(POSITIONS) + step % 2)
        (found * module.tensor([1.0, -2.0]).double() * (found + 1)).sum().backward()
        optimizer.step()
    return layer.weight.detach().numpy()


@needs_oracle
@pytest.mark.parametrize(
    "make",
    [
        lambda optim, params: optim.SparseAdam(params, lr=0.1),
        lambda optim, params: optim.SparseAdam(params, lr=0.1, betas=(0.5, 0.9), maximize=True),
        lambda optim, params: optim.SGD(params, lr=0.1),
        lambda optim, params: optim.SGD(params, lr=0.1, maximize=True),
    ],
)
def test_training_is_that_of_pytorch(make):
    np.testing.assert_allclose(trained(torch, make), trained(oracle, make), rtol=1e-12)


def test_sgd_with_sparse_gradients_is_sgd():
    weights = []
    for sparse in (True, False):
        layer = table(torch, sparse=sparse)
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
        layer(torch.tensor(POSITIONS)).pow(2).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        weights.append(layer.weight.detach().numpy())
    np.testing.assert_allclose(*weights, rtol=1e-14)


def test_optimizers_refuse_what_they_cannot_step():
    layer = table(torch, sparse=True)
    layer(torch.tensor(POSITIONS)).sum().backward()
    with pytest.raises(RuntimeError, match="Adam does not support sparse gradients, please consider SparseAdam"):
        torch.optim.Adam(layer.parameters()).step()
    with pytest.raises(NotImplementedError, match="momentum and weight_decay are not supported with sparse"):
        torch.optim.SGD(layer.parameters(), momentum=0.9).step()
    dense = torch.ones(2, requires_grad=True)
    dense.sum().backward()
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients, please consider Adam"):
        torch.optim.SparseAdam([dense]).step()
    with pytest.raises(ValueError, match=r"Sparse params at indices \[0\]"):
        torch.optim.SparseAdam([torch.eye(2).to_sparse().requires_grad_()])
    with pytest.raises(ValueError, match="Invalid learning rate"):
        torch.optim.SparseAdam([dense], lr=0)
