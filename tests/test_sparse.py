"""Sparse tensors against dense float64 tensors, SciPy and PyTorch."""

import importlib
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

INDICES = [[0, 1, 1, 3, 1], [2, 0, 2, 1, 0]]  # one position twice, row 2 without values
VALUES = [3.0, 4.0, 5.0, -1.0, 2.0]
SHAPE = (4, 3)


def coo(module=torch, requires_grad=False, dtype=None):
    indices = module.tensor(INDICES)
    values = module.tensor(VALUES, dtype=dtype or module.float64)
    return module.sparse_coo_tensor(indices, values, SHAPE, requires_grad=requires_grad)


def csr():
    return coo().to_sparse_csr()


def dense():
    found = np.zeros(SHAPE)
    np.add.at(found, tuple(INDICES), VALUES)
    return torch.tensor(found)


FORMS = pytest.mark.parametrize("make", [coo, lambda: coo().coalesce(), csr], ids=["coo", "coalesced", "csr"])


def same(sparse, expected):
    found = sparse.to_dense() if sparse.layout is not torch.strided else sparse
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-14, atol=1e-15)


@FORMS
def test_forms_hold_the_same_elements(make):
    a = make()
    for form in (
        a,
        a.to_sparse(),
        a.to_sparse_coo(),
        a.to_sparse_csr(),
        a.to_sparse(layout=torch.sparse_csr),
        a.clone(),
    ):
        same(form, dense())
    same(dense().to_sparse(), dense())
    same(dense().to_sparse_csr(), dense())
    same(a.to_dense().to_dense(), dense())
    assert a.to_sparse_csr().crow_indices().tolist() == [0, 1, 3, 3, 4]
    assert a.to_sparse_csr().col_indices().tolist() == [2, 0, 2, 1]
    assert a.to_sparse_coo().coalesce().indices().tolist() == [[0, 1, 1, 3], [2, 0, 2, 1]]
    assert a.to_sparse_coo().coalesce().values().tolist() == [3, 6, 5, -1]


def test_what_they_say_of_themselves():
    a = coo()
    assert (a.shape, a.dtype, a.layout, a.is_sparse, a.is_sparse_csr) == (
        SHAPE,
        torch.float64,
        torch.sparse_coo,
        True,
        False,
    )
    assert (a._nnz(), a.sparse_dim(), a.dense_dim(), a.is_coalesced()) == (5, 2, 0, False)
    assert a.coalesce().is_coalesced() and a.coalesce()._nnz() == 4
    assert (csr().layout, csr().is_sparse, csr().is_sparse_csr) == (torch.sparse_csr, False, True)
    assert torch.is_tensor(a) and isinstance(a, torch.Tensor)
    with pytest.raises(RuntimeError, match=r"uncoalesced tensor, please call \.coalesce"):
        a.values()


@needs_oracle
@pytest.mark.parametrize(
    "make",
    [
        lambda t: coo(t),
        lambda t: coo(t, dtype=t.float32, requires_grad=True),
        lambda t: coo(t).to_sparse_csr(),
        lambda t: t.sparse_coo_tensor((2, 3)),
        lambda t: t.sparse_coo_tensor([[1]], [[1.0, 2.0]], (2, 2)),
        lambda t: coo(t) * 2,
        lambda t: coo(t, dtype=t.int64),
    ],
)
def test_text_is_that_of_pytorch(make):
    assert str(make(torch)) == str(make(oracle))


@FORMS
def test_arithmetic(make):
    a, d = make(), dense()
    b = torch.sparse_coo_tensor([[1, 2], [0, 0]], torch.tensor([7.0, 8.0]).double(), SHAPE)
    same(a * 2, d * 2)
    same(2 * a, d * 2)
    same(a / 2, d / 2)
    same(-a, -d)
    same(a + a, d + d)
    same(a - b, d - b.to_dense())
    same(a + b, d + b.to_dense())
    same(torch.add(a, b, alpha=3), d + 3 * b.to_dense())
    same(d + a, d + d)
    same(torch.sub(d, a, alpha=2), -d)
    same(a * b, d * b.to_dense())
    same(a * d, d * d)
    same(d * a, d * d)
    same(a**2, d**2)
    same(a.t(), d.t())
    same(a.T, d.T)
    same(a.transpose(0, -1), d.t())
    assert (a * b).layout is a.layout and (a + a).layout is a.layout


@pytest.mark.parametrize("name", ["abs", "sqrt", "sin", "relu", "sign", "expm1", "tanh", "square", "floor"])
def test_functions_that_keep_zeros(name):
    a = coo().abs() if name == "sqrt" else coo()
    same(getattr(a, name)(), getattr(a.to_dense(), name)())


@FORMS
def test_products(make):
    a, d, x = make(), dense(), torch.randn(3, 5, dtype=torch.float64)
    y = torch.randn(2, 4, dtype=torch.float64)
    same(a @ x, d @ x)
    same(a @ x[:, 0], d @ x[:, 0])
    same(torch.sparse.mm(a, x), d @ x)
    same(torch.spmm(a, x), d @ x)
    same(a.t() @ torch.ones(4, 2, dtype=torch.float64), d.t() @ torch.ones(4, 2, dtype=torch.float64))
    same(y @ a, y @ d)
    same(torch.sparse.mm(a, a.t()), d @ d.t())
    assert torch.sparse.mm(a, a.t()).layout is a.layout
    bias = torch.randn(4, 5, dtype=torch.float64)
    same(torch.sparse.addmm(bias, a, x, beta=0.5, alpha=2), 0.5 * bias + 2 * (d @ x))
    mask = (d != 0).double()
    left, right = torch.randn(4, 6, dtype=torch.float64), torch.randn(6, 3, dtype=torch.float64)
    same(torch.sparse.sampled_addmm(a, left, right, beta=2), 2 * d + mask * (left @ right))


def test_products_against_scipy():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    rng = np.random.default_rng(0)
    found = scipy_sparse.random(200, 150, 0.02, "csr", rng=rng)
    x = rng.standard_normal((150, 33))
    a = torch.sparse_csr_tensor(found.indptr, found.indices, found.data, found.shape)
    np.testing.assert_allclose((a @ torch.tensor(x)).numpy(), found @ x, atol=1e-13)
    np.testing.assert_allclose((a @ a.t()).to_dense().numpy(), (found @ found.T).toarray(), atol=1e-13)


@FORMS
def test_sums_and_softmax(make):
    a, d = make(), dense()
    same(a.sum(), d.sum())
    same(torch.sparse.sum(a, 0), d.sum(0))
    same(torch.sparse.sum(a, (0, 1), dtype=torch.float32), d.sum().float())
    masked = d.masked_fill(d == 0, -float("inf"))
    for dim in (0, 1):
        same(torch.sparse.softmax(a, dim), torch.softmax(masked, dim).nan_to_num(0.0))
        logs = torch.log_softmax(masked, dim).masked_fill(d == 0, 0.0)
        same(torch.sparse.log_softmax(a, dim), logs)


def test_dense_dimensions():
    values = torch.arange(6.0).reshape(3, 2)
    a = torch.sparse_coo_tensor([[0, 2, 0]], values, (3, 2))
    d = torch.tensor([[4.0, 6.0], [0.0, 0.0], [2.0, 3.0]])
    same(a, d)
    same(torch.sparse.sum(a, 1), d.sum(1))
    same(torch.sparse.sum(a, 0), d.sum(0))
    same(torch.sparse.softmax(a.coalesce(), 1).sparse_mask(a.coalesce()), torch.softmax(d, 1) * (d != 0))
    assert (a.sparse_dim(), a.dense_dim()) == (1, 1)
    assert d.to_sparse(1)._nnz() == 2


CALLS = {
    "to_dense": lambda t, a, x: a.to_dense(),
    "product": lambda t, a, x: t.sparse.mm(a, x),
    "transposed": lambda t, a, x: a.t() @ (a @ x),
    "scaled": lambda t, a, x: (a * 3).to_dense() * x.sum(),
    "sum": lambda t, a, x: t.sparse.sum(a * 2) * x,
    "added": lambda t, a, x: x.sum() + (a + a).to_dense(),
    "coalesced": lambda t, a, x: a.coalesce().values() * x.sum(),
    "softmax": lambda t, a, x: t.sparse.mm(t.sparse.softmax(a.coalesce(), 1), x),
}


def gradients(module, call, a, x):
    result = call(module, a, x)
    weights = module.arange(result.numel(), dtype=module.float64).reshape(result.shape) + 1
    (result * weights).sum().backward()
    return a.grad, x.grad


@needs_oracle
@pytest.mark.parametrize("name", CALLS)
def test_gradients_are_those_of_pytorch(name):
    found = [
        gradients(t, CALLS[name], coo(t, requires_grad=True), t.ones(3, 2, dtype=t.float64).requires_grad_())
        for t in (torch, oracle)
    ]
    (ours, our_x), (theirs, their_x) = found
    theirs = theirs if theirs.layout is oracle.strided else theirs.to_dense()
    mask = (dense() != 0).numpy()
    ours = ours.to_dense() if ours.layout is not torch.strided else ours
    np.testing.assert_allclose(ours.numpy() * mask, theirs.numpy() * mask, rtol=1e-12, atol=1e-14)
    if their_x is not None:
        np.testing.assert_allclose(our_x.numpy(), their_x.numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", CALLS)
def test_gradients_of_values_are_those_of_dense_tensors(name):
    """Gradients reach the values that a sparse tensor was made of."""
    values = torch.tensor(VALUES, dtype=torch.float64, requires_grad=True)
    x = torch.ones(3, 2, dtype=torch.float64)
    check = torch.autograd.gradcheck
    assert check(
        lambda v, x: CALLS[name](torch, torch.sparse_coo_tensor(INDICES, v, SHAPE), x), (values, x.requires_grad_())
    )


def test_gradients_of_leaves_are_sparse():
    a = csr().requires_grad_()
    (a @ torch.ones(3, 2, dtype=torch.float64)).sum().backward()
    assert a.grad.layout is torch.sparse_csr and a.grad.values().tolist() == [2, 2, 2, 2]
    (a @ torch.ones(3, 2, dtype=torch.float64)).sum().backward()
    assert a.grad.values().tolist() == [4, 4, 4, 4]


def test_gradcheck_for_sparse_tensors():
    check = torch.sparse.as_sparse_gradcheck(torch.autograd.gradcheck)
    assert check(lambda a: a.t() @ torch.ones(4, 2, dtype=torch.float64), coo(requires_grad=True))
    assert check(lambda a: a * a, [coo(requires_grad=True)], masked=True)


def test_conversions_and_copies():
    a = coo()
    assert a.to(torch.float32).dtype is torch.float32 and a.float().to(torch.float64).dtype is torch.float64
    assert a.to("cpu") is a
    for made in (copy(a), deepcopy(a), pickle.loads(pickle.dumps(a)), a.detach(), a.data):
        same(made, dense())
    leaf = coo(requires_grad=True)
    assert deepcopy(leaf).requires_grad and not leaf.detach().requires_grad
    a.zero_()
    assert a._nnz() == 0 and a.shape == SHAPE
    module = torch.nn.Module()
    module.register_buffer("adjacency", coo())
    same(module.double().adjacency, dense())


@pytest.mark.parametrize(
    ("name", "call"),
    {
        "exp": lambda a: a.exp(),
        "cat": lambda a: torch.cat([a, a]),
        "linear": lambda a: torch.nn.functional.linear(a, torch.ones(4, 3, dtype=torch.float64)),
        "index_select": lambda a: a.index_select(0, torch.tensor([0])),
        "add": lambda a: a + 1,
        "mean": lambda a: a.mean(),
        "eq": lambda a: a == a,
        "div": lambda a: a / a,
        "copy_": lambda a: a.copy_(a),
        "numpy": lambda a: a.numpy(),
        "tolist": lambda a: a.tolist(),
        "reshape": lambda a: a.reshape(12),
        "contiguous": lambda a: a.contiguous(),
        "pick_rows": lambda a: torch.nn.functional.embedding(a.long(), torch.ones(6, 2)),
        "masked_select": lambda a: torch.ones(4, 3).masked_select(a),
        "view_size": lambda a: a.view(12),
    }.items(),
)
def test_other_ops_are_refused(name, call):
    with pytest.raises(NotImplementedError, match=r"to_dense\(\)") as caught:
        call(coo())
    assert str(caught.value).startswith(f"{name}:")
    assert isinstance(caught.value, LayoutError) and isinstance(caught.value, RuntimeError)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: torch.sparse_coo_tensor([[0, 5]], [1.0, 2.0], (3,)), "size is 3 but found index 5"),
        (lambda: torch.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)), "found negative index -1 for dim 0"),
        (lambda: torch.sparse_coo_tensor([[0, 1]], [1.0], (3,)), "must have same nnz"),
        (lambda: torch.sparse_coo_tensor([[0]], [1.0], (3, 3)), r"sparse_dim \(1\) \+ dense_dim \(0\)"),
        (lambda: torch.sparse_csr_tensor([0, 2, 1], [0], [1.0], (2, 2)), "crow_indices must rise"),
        (lambda: torch.sparse_csr_tensor([0, 1], [4], [1.0], (1, 2)), "size is 2 but found index 4"),
        (lambda: coo() @ torch.ones(4, 2).double(), r"cannot be multiplied \(4x3 and 4x2\)"),
        (lambda: torch.ones(3).indices(), "expected a tensor of layout torch.sparse_coo but got torch.strided"),
        (lambda: coo() + torch.sparse_coo_tensor((2, 2)).double(), "do not fit"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(RuntimeError, match=message):
        call()


def test_positions_of_a_float_type_are_refused():
    with pytest.raises(TypeError, match=r"dtype int64 or int32, got torch\.float32"):
        torch.sparse_coo_tensor([[0.5]], [1.0])


def test_save_and_load():
    buffer = io.BytesIO()
    torch.save({"a": coo(), "b": csr()}, buffer)
    buffer.seek(0)
    loaded = torch.load(buffer)
    same(loaded["a"], dense())
    same(loaded["b"], dense())
    assert loaded["b"].layout is torch.sparse_csr


def test_invariants_are_a_switch():
    switch = torch.sparse.check_sparse_tensor_invariants
    with switch():
        assert switch.is_enabled()
    assert not switch.is_enabled()
    switch.enable()
    assert switch(False)(switch.is_enabled)() is False and switch.is_enabled()
    switch.disable()


def test_inference_mode():
    a, x = coo(), torch.ones(3, 2, dtype=torch.float64)
    with torch.inference_mode():
        same(a @ x, dense() @ x)
        same(dense().to_sparse() @ x, dense() @ x)
        same((a.t() @ (a @ x)), dense().t() @ (dense() @ x))
    same(a @ x, dense() @ x)


def test_positions_that_change_are_read_again():
    indices = torch.tensor([[0, 1], [0, 1]])
    a = torch.sparse_coo_tensor(indices, [1.0, 2.0], (2, 2))
    assert (a @ torch.eye(2)).tolist() == [[1, 0], [0, 2]]
    indices[1] = 0
    assert (a @ torch.eye(2)).tolist() == [[1, 0], [2, 0]]


@needs_oracle
def test_checkpoints_are_those_of_pytorch(tmp_path):
    path = tmp_path / "sparse.pt"
    for writer, reader in ((torch, oracle), (oracle, torch)):
        writer.save({"coo": writer.eye(3).to_sparse(), "csr": writer.eye(3).to_sparse_csr()}, path)
        loaded = reader.load(path)
        assert loaded["coo"].to_dense().tolist() == loaded["csr"].to_dense().tolist() == reader.eye(3).tolist()


def test_on_a_device(request):
    """On the emulated device of the CuPy backend."""
    pytest.importorskip("corefw_cupy", reason="the CuPy backend is not installed")
    pytest.importorskip("cupy", reason="CuPy is not installed")
    if importlib.import_module("tests.emulation.compiler").COMPILER is None:
        pytest.skip("no C++ compiler")
    request.getfixturevalue("cuda")
    a, x = coo().to("cuda"), torch.ones(3, 2, dtype=torch.float64, device="cuda", requires_grad=True)
    assert (a.device.type, a._indices().device.type, a.cpu().device.type) == ("cuda", "cuda", "cpu")
    leaf = a.to_sparse_csr().requires_grad_()
    (torch.sparse.softmax(leaf, 1) @ x).sum().backward()
    same((leaf @ x).cpu(), dense() @ torch.ones(3, 2, dtype=torch.float64))
    same(x.grad.cpu(), torch.sparse.softmax(csr(), 1).to_dense().t() @ torch.ones(4, 2, dtype=torch.float64))
    assert leaf.grad.device.type == "cuda" and "device='cuda:0'" in str(a)


@pytest.mark.parametrize("reduce", ["sum", "mean", "amax", "amin"])
def test_products_that_are_reduced_by_rows(reduce):
    dense = torch.tensor([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [3.0, 0.0, -4.0]])
    other = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, -6.0]], requires_grad=True)
    sparse = dense.to_sparse_csr().requires_grad_()
    result = torch.sparse.mm(sparse, other, reduce)
    parts = dense.unsqueeze(2) * other
    wanted = torch.stack(
        [getattr(parts[row][dense[row] != 0], reduce)(0) if dense[row].any() else torch.zeros(2) for row in range(3)]
    )
    assert result.tolist() == wanted.tolist()
    factors = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    (ours,) = torch.autograd.grad((result * factors).sum(), other, retain_graph=True)
    (theirs,) = torch.autograd.grad((wanted * factors).sum(), other)
    assert ours.tolist() == theirs.tolist()
    (gradient,) = torch.autograd.grad(result.sum(), sparse)
    assert gradient.layout is torch.sparse_csr
    assert (
        gradient.values().tolist()
        == {
            "sum": [7.0, -1.0, 3.0, -1.0],
            "mean": [3.5, -0.5, 1.5, -0.5],
            "amax": [4.0, 5.0, 1.0, -6.0],
            "amin": [3.0, -6.0, 2.0, 5.0],
        }[reduce]
    )


def test_products_that_are_reduced_say_what_they_take():
    by_rows, other = torch.eye(2).to_sparse_csr(), torch.ones(2, 2)
    with pytest.raises(ValueError, match="median"):
        torch.sparse.mm(by_rows, other, "median")
    for wrong in (by_rows.to_dense(), torch.eye(2).to_sparse()):
        with pytest.raises(LayoutError, match="to_sparse_csr"):
            torch.sparse.mm(wrong, other, "mean")
    with pytest.raises(RuntimeError, match="inner sizes"):
        torch.sparse.mm(by_rows, torch.ones(3, 2), "amax")


def test_a_tensor_is_said_to_be_coalesced():
    x = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    y = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    assert not x.is_coalesced() and x._coalesced_(True) is x and x.is_coalesced() and not y.is_coalesced()
    assert x.indices().tolist() == [[0, 1], [1, 0]] and not x._coalesced_(False).is_coalesced()
