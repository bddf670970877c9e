"""Compressed layouts by rows, columns and blocks, against dense tensors and PyTorch."""

import io
import pickle
from copy import copy, deepcopy

import numpy as np
import pytest

import corefw as torch
from corefw.errors import LayoutError

try:
    import torch as oracle
except ImportError:
    oracle = None

pytestmark = pytest.mark.filterwarnings("ignore:.*[Ss]parse.*:UserWarning")
needs_oracle = pytest.mark.skipif(oracle is None, reason="PyTorch is not installed")

ELEMENTS = [[1.0, 0, 2, 0, 0, 0], [0, 0, 0, 3, 0, 0], [0, 4, 0, 0, 0, 0], [0, 0, 0, 0, 0, -5]]
LAYOUTS = ["csr", "csc", "bsr", "bsc"]
EACH = pytest.mark.parametrize("name", LAYOUTS)
PAIRS = pytest.mark.parametrize(("name", "other"), [(a, b) for a in LAYOUTS for b in [*LAYOUTS, "coo"]])


def dense(module=torch, dtype="float64"):
    return module.tensor(ELEMENTS, dtype=getattr(module, dtype))


def form(tensor, name):
    """A tensor in a layout by the name that methods have for it; blocks are 2 x 3."""
    return getattr(tensor, f"to_sparse_{name}")(*[(2, 3)] * name.startswith("b"))


def parts(tensor):
    by_columns = str(tensor.layout)[-1] == "c"
    first, second = ("ccol_indices", "row_indices") if by_columns else ("crow_indices", "col_indices")
    return getattr(tensor, first)(), getattr(tensor, second)(), tensor.values()


def same(tensor, expected):
    assert tensor.to_dense().tolist() == expected.tolist()


@EACH
def test_what_a_layout_says_of_itself(name):
    a = form(dense(), name)
    assert str(a.layout) == f"torch.sparse_{name}" and a.layout is getattr(torch, f"sparse_{name}")
    blocks = name.startswith("b")
    assert (a.shape, a._nnz(), a.sparse_dim(), a.dense_dim()) == ((4, 6), 4 if blocks else 5, 2, 0)
    assert (a.is_sparse, a.is_sparse_csr, a.ndim, a.numel()) == (False, name == "csr", 2, 24)
    same(a, dense())


@PAIRS
def test_forms_become_each_other(name, other):
    made = form(form(dense(), name), other)
    assert str(made.layout) == f"torch.sparse_{other}"
    same(made, dense())
    if other != "coo" and (name[0] != "b" or other[0] == "b"):  # blocks keep the zeros inside of them
        again = form(dense(), other)
        for ours, theirs in zip(parts(made), parts(again)):
            assert ours.tolist() == theirs.tolist()


@needs_oracle
@EACH
def test_parts_are_pytorchs(name):
    for ours, theirs in zip(parts(form(dense(), name)), parts(form(dense(oracle), name))):
        assert ours.tolist() == theirs.tolist()


@needs_oracle
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex64"])
@EACH
def test_text_is_that_of_pytorch(name, dtype):
    assert str(form(dense(torch, dtype), name)) == str(form(dense(oracle, dtype), name))
    assert str(form(dense(torch, dtype) * 0, name)) == str(form(dense(oracle, dtype) * 0, name))


@EACH
def test_transposes_swap_rows_and_columns(name):
    a = form(dense(), name)
    turned = {"csr": "csc", "csc": "csr", "bsr": "bsc", "bsc": "bsr"}[name]
    for transposed in (a.t(), a.transpose(0, 1), a.permute(1, 0), a.T):
        assert str(transposed.layout) == f"torch.sparse_{turned}"
        same(transposed, dense().t())
    same(a.t().t(), dense())


@PAIRS
def test_arithmetic_and_products(name, other):
    a, b, d = form(dense(), name), form(dense() * 2 + 1, other), dense()
    e = d * 2 + 1
    same(a + b, d + e)
    same(a - b, d - e)
    same(a * b, d * e)
    same(a * 3, d * 3)
    same(-a / 2, -d / 2)
    same(a.abs(), d.abs())
    same(a * e, d * e)
    same(e + a, e + d)
    same(a @ b.t(), d @ e.t())
    same(a @ e.t(), d @ e.t())
    same(e.t() @ a, e.t() @ d)
    assert (a @ e[0]).tolist() == (d @ e[0]).tolist()
    assert (a + a).layout is a.layout and a.abs().layout is a.layout and (a * 3).layout is a.layout


@EACH
def test_reductions(name):
    a, d = form(dense(), name), dense()
    assert a.sum().item() == d.sum().item()
    for dim in (0, 1):
        same(torch.sparse.sum(a, dim), d.sum(dim))
    plain = torch.sparse.softmax(form(dense() + 10, "csr"), 1).to_dense()
    np.testing.assert_allclose(torch.sparse.softmax(form(dense() + 10, name), 1).to_dense().numpy(), plain.numpy())
    same(d.sparse_mask(a), d)
    sampled = torch.sparse.sampled_addmm(a, d, d.t() @ d, beta=0.5)
    expected = torch.where(a.to_dense() != 0, d @ (d.t() @ d) + 0.5 * d, 0)
    np.testing.assert_allclose((sampled.to_dense() * (d != 0)).numpy(), expected.numpy())


@EACH
def test_gradients(name):
    values = form(dense(), name).values().requires_grad_()
    weight = torch.arange(24.0, dtype=torch.float64).reshape(6, 4).requires_grad_()
    first, second, _ = parts(form(dense(), name))
    a = torch.sparse_compressed_tensor(first, second, values, (4, 6), layout=getattr(torch, f"sparse_{name}"))
    ((a * 2) @ weight).square().sum().backward()
    full = dense().requires_grad_()
    again = weight.detach().clone().requires_grad_()
    ((full * 2) @ again).square().sum().backward()
    np.testing.assert_allclose(weight.grad.numpy(), again.grad.numpy())
    np.testing.assert_allclose(values.grad.numpy(), full.grad.sparse_mask(a.detach()).values().numpy())
    leaf = form(dense(), name).requires_grad_()
    (leaf.t().to_dense() * weight.detach()).sum().backward()
    expected = weight.detach().t().contiguous().sparse_mask(leaf.detach())
    same(leaf.grad, expected.to_dense())
    assert leaf.grad.layout is leaf.layout


@EACH
def test_made_by_their_own_functions(name):
    first, second, values = parts(form(dense(), name))
    make = getattr(torch, f"sparse_{name}_tensor")
    for made in (
        make(first, second, values),
        make(first.to(torch.int32), second.to(torch.int32), values, (4, 6)),
        make(first.tolist(), second.tolist(), values.tolist(), (4, 6), dtype=torch.float64),
        torch.sparse_compressed_tensor(first, second, values, (4, 6), layout=getattr(torch, f"sparse_{name}")),
    ):
        assert made.layout is getattr(torch, f"sparse_{name}")
        same(made, dense())
    assert make(first, second, values, requires_grad=True).requires_grad


@EACH
def test_positions_are_checked(name):
    first, second, values = parts(form(dense(), name))
    make = getattr(torch, f"sparse_{name}_tensor")
    with pytest.raises(RuntimeError, match="must rise from 0 to nnz"):
        make(first.flip(0), second, values, (4, 6))
    with pytest.raises(RuntimeError, match="size is inconsistent with indices"):
        make(first, second + 6, values, (4, 6))
    with pytest.raises(RuntimeError, match="found negative index"):
        make(first, second - 6, values, (4, 6))
    with pytest.raises(RuntimeError, match="does not fit"):
        make(first, second, values, (5, 7))
    with pytest.raises(RuntimeError, match="batches are not supported"):
        make(first, second[1:], values, (4, 6))
    with pytest.raises(NotImplementedError, match="pin_memory"):
        make(first, second, values, (4, 6), pin_memory=True)


@EACH
def test_kept_and_copied(name):
    a = form(dense(), name)
    file = io.BytesIO()
    torch.save(a, file)
    file.seek(0)
    moved = (torch.load(file), pickle.loads(pickle.dumps(a)), copy(a), deepcopy(a), a.clone(), a.to(torch.float64))
    for made in moved:
        assert made.layout is a.layout and made.dtype is a.dtype
        for ours, theirs in zip(parts(made), parts(a)):
            assert ours.tolist() == theirs.tolist()
    assert a.float().dtype is torch.float32 and a.float().layout is a.layout
    emptied = a.clone().zero_()
    assert emptied._nnz() == 0 and emptied.layout is a.layout
    same(emptied, dense() * 0)


@needs_oracle
@EACH
def test_files_are_pytorchs(name):
    file = io.BytesIO()
    oracle.save(form(dense(oracle), name), file)
    file.seek(0)
    same(torch.load(file), dense())
    file = io.BytesIO()
    torch.save(form(dense(), name), file)
    file.seek(0)
    assert oracle.load(file).to_dense().tolist() == ELEMENTS


@pytest.mark.parametrize("name", LAYOUTS)
def test_dense_dimensions(name):
    d = torch.stack([dense(), dense() * 2], -1)
    a = getattr(d, f"to_sparse_{name}")(*[(2, 3)] * name.startswith("b"), dense_dim=1)
    assert a.dense_dim() == 1 and a.shape == (4, 6, 2)
    same(a, d)
    same(a.t() if a.ndim == 2 else a.transpose(0, 1), d.transpose(0, 1))


def test_refusals():
    a = form(dense(), "csr")
    with pytest.raises(RuntimeError, match=r"tensor sparse size \(4,6\) must be divisible by given blocksize \(3,2\)"):
        a.to_sparse_bsr((3, 2))
    with pytest.raises(RuntimeError, match="without blocksize"):
        dense().to_sparse(layout=torch.sparse_bsr)
    with pytest.raises(RuntimeError, match="has no blocks"):
        dense().to_sparse(layout=torch.sparse_csc, blocksize=(2, 2))
    with pytest.raises(RuntimeError, match="ccol_indices expected a tensor of layout"):
        a.ccol_indices()
    with pytest.raises(RuntimeError, match="row_indices expected a tensor of layout"):
        form(dense(), "bsr").row_indices()
    with pytest.raises(RuntimeError, match="expected sparse compressed tensor layout"):
        torch.sparse_compressed_tensor([0, 1], [0], [1.0])
    with pytest.raises(LayoutError, match="exp: not implemented for sparse tensors"):
        form(dense(), "bsc").exp()
    with pytest.raises(RuntimeError, match="expected a matrix"):
        torch.ones(3).to_sparse_csc()
