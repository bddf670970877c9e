"""Matrix products: errors, broadcasting rules and precision beyond what the rows of corefw/testing/cases say."""

import math
from contextlib import nullcontext

import numpy as np
import pytest

import corefw as torch
from corefw.dispatch.declare import ops
from corefw.testing import targets

BACKENDS = [backend.name for backend in torch.backends() if backend.usable and "cpu" in backend.devices]


def ones(*shape, dtype=torch.float32):
    return torch.ones(shape, dtype=dtype)


@pytest.mark.parametrize(
    ("name", "shapes", "text"),
    [
        ("matmul", ((2, 3), (4, 5)), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 4x5\)"),
        ("matmul", ((2, 2, 3), (4, 5)), r"mat1 and mat2 shapes cannot be multiplied \(4x3 and 4x5\)"),
        ("matmul", ((3,), (4,)), r"inconsistent tensor size, expected tensor \[3\] and src \[4\]"),
        ("matmul", ((2, 3), (4,)), r"size mismatch, got input \(2\), mat \(2x3\), vec \(4\)"),
        ("matmul", ((2, 2, 3), (2, 4, 5)), r"Expected size for first two dimensions of batch2 tensor to be: \[2, 3\]"),
        ("matmul", ((2, 2, 3), (3, 3, 2)), r"The size of tensor a \(2\) must match the size of tensor b \(3\)"),
        ("matmul", ((), (2,)), "both arguments to matmul need to be at least 1D, but they are 0D and 1D"),
        ("mm", ((2, 3), (2, 3)), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)"),
        ("mm", ((3,), (3, 2)), "self must be a matrix"),
        ("mm", ((2, 3), (3,)), "mat2 must be a matrix"),
        ("bmm", ((2, 3), (2, 3, 2)), "batch1 must be a 3D tensor"),
        ("bmm", ((2, 1, 3), (3, 3, 2)), r"to be: \[2, 3\] but got: \[3, 3\]"),
        ("dot", ((2, 3), (3,)), "1D tensors expected, but got 2D and 1D tensors"),
        ("mv", ((2, 3), (3, 1)), "vector"),
        ("outer", ((2, 1), (3,)), "Expected 1-D argument self, but got 2-D"),
        ("addmm", ((3, 3), (2, 3), (3, 4)), "cannot be expanded"),
        ("linear", ((2, 3), (4, 5)), r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 5x4\)"),
        ("linear", ((2, 3), (4, 3), (3,)), "bias"),
        ("bilinear", ((2, 3), (1, 3), (2, 3, 3)), "input batch dimensions do not match"),
        ("inner", ((2, 3), (2, 4)), "the last dimension must match"),
        ("cross", ((2, 4), (2, 4)), "no dimension of size 3"),
    ],
)
def test_shape_errors(name, shapes, text):
    with pytest.raises(RuntimeError, match=text) as caught:
        getattr(ops, name)(*(ones(*shape) for shape in shapes))
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("name", ["matmul", "mm"])
def test_dtypes_must_agree(name):
    with pytest.raises(RuntimeError, match="Float != Double"):
        getattr(ops, name)(ones(2, 2), ones(2, 2, dtype=torch.float64))


def test_operators():
    a, b = ones(2, 3), ones(3, 2)
    assert (a @ b).tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert torch.matmul(a, b).shape == (2, 2)
    with pytest.raises(TypeError):
        a @ "text"


def test_beta_of_zero_ignores_nan():
    nan = torch.full((2, 2), float("nan"))
    for name in ("addmm", "addmv", "addr", "addbmm", "baddbmm"):
        arguments = {
            "addmm": (nan, ones(2, 3), ones(3, 2)),
            "addmv": (nan[0], ones(2, 3), ones(3)),
            "addr": (nan, ones(2), ones(2)),
            "addbmm": (nan, ones(2, 2, 3), ones(2, 3, 2)),
            "baddbmm": (nan, ones(2, 2, 3), ones(2, 3, 2)),
        }[name]
        assert not getattr(ops, name)(*arguments, beta=0).isnan().any(), name


def test_half_products_accumulate_in_single_precision():
    x = torch.full((1, 4096), 1.0, dtype=torch.float16)
    y = torch.full((4096, 1), 1.0, dtype=torch.float16)
    assert (x @ y).item() == 4096  # 2048 + 1 is 2048 in float16


def test_a_broadcast_weight_gets_the_summed_gradient():
    x = torch.from_numpy(np.arange(12.0).reshape(2, 2, 3))
    w = torch.ones(3, 2, dtype=torch.float64).requires_grad_()
    (x @ w).sum().backward()
    assert w.grad.tolist() == [[18.0, 18.0], [22.0, 22.0], [26.0, 26.0]]


def test_cosine_similarity_of_short_vectors_divides_by_eps():
    assert torch.cosine_similarity(ones(1, 1), ones(1, 1), eps=4.0).item() == 1 / 16


def test_cosine_similarity_is_of_the_common_dtype():
    x = torch.tensor([1, 2])
    assert torch.cosine_similarity(x, x.double(), 0).item() == pytest.approx(1)
    for other in (x, x * 1j):
        with pytest.raises(RuntimeError, match="expected common dtype to be floating point"):
            torch.cosine_similarity(x, other, 0)


LAYOUTS = {
    "rows": lambda a: a,
    "columns": lambda a: a.mT.contiguous().mT,
    "every second": lambda a: a.repeat_interleave(2, 0).repeat_interleave(2, 1)[::2, ::2],
    "one row": lambda a: a[:1].expand(a.shape),
    "one column": lambda a: a[:, :1].expand(a.shape),
}


@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "float64", "int64"])
def test_products_of_any_layout_and_size(dtype, left, right):
    """Sizes on both sides of what kernels treat alike: vectors, few rows or columns, tiles, blocks."""
    eps = {"bfloat16": 2**-7, "float32": 1e-5, "float64": 1e-13, "int64": 0}[dtype]
    for n, k, m in ((1, 300, 1), (1, 33, 65), (70, 129, 1), (3, 600, 40), (15, 17, 33), (57, 131, 35), (65, 1100, 150)):
        a = LAYOUTS[left](torch.from_numpy(np.random.randint(-9, 9, (n, k)) * 0.5).to(getattr(torch, dtype)))
        b = LAYOUTS[right](torch.from_numpy(np.random.randint(-9, 9, (k, m)) * 0.5).to(getattr(torch, dtype)))
        expected = a.double().numpy() @ b.double().numpy()
        bound = eps * (np.abs(a.double().numpy()) @ np.abs(b.double().numpy()))
        for product in (a @ b, torch.nn.functional.linear(a, b.mT)):
            assert product.shape == (n, m)
            assert (np.abs(product.double().numpy() - expected) <= bound).all(), (n, k, m)


@pytest.mark.parametrize("target", targets(None), ids=str)
@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("addmm", ((2, 4), (2, 3), (3, 4))),
        ("addmv", ((2,), (2, 3), (3,))),
        ("addbmm", ((2, 4), (5, 2, 3), (5, 3, 4))),
        ("baddbmm", ((5, 2, 4), (5, 2, 3), (5, 3, 4))),
    ],
)
def test_factors_of_integers_become_integers(name, shapes, target):
    input, left, right = (ones(*shape, dtype=torch.int64).to(target.device) for shape in shapes)
    product = 15 if name == "addbmm" else 3
    with target.preferred():
        made = getattr(torch, name)
        assert set(made(input, left, right, alpha=1.7, beta=2.9).flatten().tolist()) == {2 + product}
        assert set(made(input, left, right, alpha=0.5).flatten().tolist()) == {1}
        with pytest.raises(RuntimeError, match="cannot be converted to type int64_t without overflow"):
            made(input, left, right, beta=math.nan)


def test_outer_product_added_to_bool():
    mask, row = torch.tensor([[True, False], [False, False]]), torch.tensor([False, True])
    assert torch.addr(mask, row, row).tolist() == [[True, False], [False, True]]
    assert torch.addr(mask, row, row, beta=False).tolist() == [[False, False], [False, True]]
    assert torch.addr(mask, row, row, alpha=0).tolist() == mask.tolist()


@pytest.mark.parametrize(
    ("dtype", "factors", "text"),
    [
        ("int64", {"alpha": 0.5}, "For integral input tensors, argument alpha must not be a floating point number"),
        ("int64", {"beta": 2.0}, "For integral input tensors, argument beta must not be a floating point number"),
        ("float32", {"beta": True}, "Boolean beta only supported for Boolean results"),
        ("float32", {"alpha": 1j}, "For non-complex input tensors, argument alpha must not be a complex number"),
    ],
)
def test_factors_that_an_outer_product_refuses(dtype, factors, text):
    row = ones(2, dtype=getattr(torch, dtype))
    with pytest.raises(RuntimeError, match=text):
        torch.addr(ones(2, 2, dtype=row.dtype), row, row, **factors)


def test_rows_that_differ_somewhere_are_counted():
    x = torch.tensor([[0.0, math.nan], [0.0, 0.5]])
    found = torch.cdist(x, torch.tensor([[0.0, 0.0], [1.0, math.inf]]), 0.0)
    assert found[1].tolist() == [1, 2] and found[0].isnan().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("mode", ["use_mm_for_euclid_dist_if_necessary", "donot_use_mm_for_euclid_dist"])
def test_distances_of_many_rows(mode, dtype):
    torch.manual_seed(0)
    x, y, weight = torch.randn(2, 40, 7).to(dtype), torch.randn(30, 7).to(dtype), torch.randn(2, 40, 30).to(dtype)
    y[3] = 4.0
    x[0, 5] = y[3]  # whose distance is 0
    x, y = x.requires_grad_(), y.requires_grad_()
    with torch.ledger() as book:
        found = torch.cdist(x, y, compute_mode=mode)
    assert bool(book.count("matmul_adjoint")) is (mode != "donot_use_mm_for_euclid_dist")
    (found * weight).sum().backward()
    a, b = x.detach().double().requires_grad_(), y.detach().double().requires_grad_()
    expected = torch.linalg.vector_norm(a.unsqueeze(-2) - b, dim=-1)
    (expected * weight.double()).sum().backward()
    error = {torch.float32: 1e-5, torch.float64: 1e-13, torch.bfloat16: 2e-2}[dtype]
    assert found.dtype is dtype and found[0, 5, 3] == 0
    for one, right in ((found, expected), (x.grad, a.grad), (y.grad, b.grad)):
        assert (one.double() - right).abs().max() <= error * right.abs().max()


def test_how_distances_are_computed_is_asked_by_name():
    x = ones(2, 3)
    assert torch.cdist(x, x, compute_mode="use_mm_for_euclid_dist").tolist() == [[0.0, 0.0]] * 2
    with pytest.raises(ValueError, match="fast is not a valid value for compute_mode"):
        torch.cdist(x, x, compute_mode="fast")


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, math.inf])
def test_rows_without_elements_have_no_distance(p):
    assert torch.cdist(ones(2, 0), ones(3, 0), p).tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize(
    ("loss", "depends"),
    [
        (lambda A: torch.linalg.eigh(A)[1].imag, True),
        (lambda A: torch.linalg.eigh(A)[1].abs(), False),
        (lambda A: torch.linalg.svd(A)[0].imag, True),
        (lambda A: torch.linalg.svd(A)[2].real, True),
        (lambda A: torch.linalg.svd(A)[0].abs(), False),
        (lambda A: torch.linalg.svd(A)[0].matmul(torch.linalg.svd(A)[2]).imag, True),  # of other vectors each
        (lambda A: torch.matmul(*torch.linalg.svd(A)[::2]).imag * 1000, False),
        (lambda A: torch.linalg.svd(A[:, :0])[0].real, False),
    ],
)
def test_losses_that_depend_on_the_phase_of_vectors_have_no_gradient(loss, depends):
    A = torch.tensor([[2, 1j, 0.5], [-1j, 3, 0.25j], [0.5, -0.25j, 5]], dtype=torch.complex64, requires_grad=True)
    with pytest.raises(RuntimeError, match="gradient is ill-defined") if depends else nullcontext():
        loss(A).sum().backward()


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
def test_zeros_on_the_diagonal_of_a_triangle_are_divided_by(upper, left):
    A = torch.tensor([[2.0, 5.0, 5.0], [3.0, 0.0, 5.0], [4.0, 6.0, 4.0]])
    found = torch.linalg.solve_triangular(A, ones(3, 1) if left else ones(1, 3), upper=upper, left=left)
    rows = A.numpy() if left else A.numpy().T
    expected, known = np.zeros(3), []
    for i in (2, 1, 0) if upper == left else (0, 1, 2):
        with np.errstate(divide="ignore"):
            expected[i] = (1 - rows[i, known] @ expected[known]) / rows[i, i]
        known.append(i)
    np.testing.assert_allclose(found.flatten().numpy(), expected)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("size", [1, 2])
def test_a_bias_has_no_more_dimensions_than_the_result(backend, size):
    with torch.backend(backend), pytest.raises(RuntimeError, match="bias"):
        torch.nn.functional.linear(ones(2), ones(2), ones(size))


@pytest.mark.parametrize("some", [True, False])
def test_the_factors_that_were_not_asked_for_are_zeros(some):
    U, S, V = torch.svd(torch.ones(4, 2, 3), some, compute_uv=False)
    assert U.shape == (4, 2, 2) and S.shape == (4, 2) and V.shape == (4, 3, 3)
    assert not U.any() and not V.any()


def test_matrices_without_elements_and_numbers():
    assert torch.cholesky_inverse(torch.zeros(2, 0, 0)).shape == (2, 0, 0)
    assert torch.linalg.vander(torch.tensor(2.0), N=3).tolist() == [[1, 2, 4]]
    ranks = {d: torch.linalg.lstsq(torch.eye(3), torch.ones(3, 1), driver=d).rank.tolist() for d in ("gels", "gelsd")}
    assert ranks == {"gels": [], "gelsd": 3}


def test_a_negative_cutoff_is_none():
    A = torch.tensor([[2.0, 0.0], [0.0, 0.0]])
    for inverse in (torch.pinverse(A, -1.0), torch.linalg.pinv(A, rtol=-1.0)):
        assert inverse.tolist() == [[0.5, 0], [0, 0]]
    assert torch.linalg.matrix_rank(A, atol=0, rtol=-1.0) == 1


@pytest.mark.parametrize("compute_uv", [True, False])
def test_singular_values_are_those_of_matrices(compute_uv):
    for x in (torch.tensor(1.0), torch.ones(3)):
        with pytest.raises(RuntimeError, match="must have at least 2 dimensions"):
            torch.svd(x, compute_uv=compute_uv)


def test_nuclear_norm():
    x = torch.tensor([[3.0, 0.0], [0.0, -4.0]]).requires_grad_()
    x.norm("nuc").backward()
    np.testing.assert_allclose(x.grad.tolist(), [[1, 0], [0, -1]], atol=1e-6)
    several = torch.stack([x.detach(), 2 * x.detach()], 1)
    np.testing.assert_allclose(torch.norm(several, "nuc", (0, 2)).tolist(), [7, 14], rtol=1e-6)
    assert several.norm("nuc", (0, 2), keepdim=True).shape == (1, 2, 1)
    with pytest.raises(RuntimeError):
        several.norm("nuc")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 3, 0)])
@pytest.mark.parametrize("ord", [1, 2, torch.inf, "fro", "nuc"])
def test_norm_of_matrices_without_elements_is_zero(shape, ord):
    x = torch.zeros(shape).requires_grad_()
    norm = torch.linalg.matrix_norm(x, ord)
    assert norm.shape == shape[:-2] and not norm.any()
    norm.sum().backward()
    assert x.grad.shape == shape


@pytest.mark.parametrize(
    ("weight", "bias"),
    [((4, 3), (4,)), ((4, 3), (1,)), ((4, 3), ()), ((4, 3), (2, 1, 4)), ((3,), (5,)), ((3,), ()), ((3,), (2, 1))],
)
def test_gradients_of_a_linear_map_whose_bias_broadcasts(weight, bias):
    inputs = [torch.randn(shape, dtype=torch.float64).requires_grad_() for shape in ((2, 5, 3), weight, bias)]
    torch.autograd.gradgradcheck(torch.nn.functional.linear, inputs)


def test_the_gradient_of_a_bias_alone_needs_no_input():
    x, weight, bias = ones(2, 3), ones(4, 3), ones(4).requires_grad_()
    out = torch.nn.functional.linear(x, weight, bias)
    x += 1  # of no account
    out.sum().backward()
    assert bias.grad.tolist() == [2] * 4


def test_gradients_of_a_linear_map_refuse_rows_that_do_not_fit():
    with pytest.raises(RuntimeError, match=r"expected input of shape \[2, 'features'\], got \[3, 5\]"):
        ops.linear_gradients(ones(2, 4), ones(3, 5))


@pytest.mark.parametrize("p", [1, -1, 2, torch.inf, "fro", "nuc"])
def test_condition_of_singular_matrices_is_infinite(p):
    A = torch.tensor([[[0.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
    of_singular, of_regular = torch.linalg.cond(A, p).tolist()
    assert of_singular == math.inf
    np.testing.assert_allclose(of_regular, {"fro": 2, "nuc": 4}.get(p, 1), rtol=1e-6)
    assert torch.linalg.cond(torch.ones(3, 0, 0), p).tolist() == [0, 0, 0]


def test_gradient_of_logarithms_of_determinants_of_singular_matrices():
    """Infinite where a cofactor is not 0; that of other matrices of the batch is their inverse."""
    A = torch.tensor([[[1.0, 2.0], [2.0, 4.0]], [[1.0, 2.0], [0.0, 2.0]]], dtype=torch.float64).requires_grad_()
    torch.linalg.slogdet(A).logabsdet.sum().backward()
    assert A.grad[0].isinf().all()
    np.testing.assert_allclose(A.grad[1].tolist(), [[1, 0], [-1, 0.5]])


@pytest.mark.parametrize("shapes", [((), (1,), (1, 1, 1)), ((2,), (3,), ()), ((2,), (3,), (1, 2, 3), (2,))])
def test_bilinear_refuses_other_shapes(shapes):
    input1, input2, weight, *bias = (torch.zeros(shape) for shape in shapes)
    with pytest.raises(RuntimeError, match="bilinear"):
        torch.bilinear(input1, input2, weight, *bias)


@pytest.mark.parametrize("value", [complex(-math.inf, math.nan), complex(math.nan, math.inf)])
def test_norm_of_complex_infinities(value):
    """A number with an infinite part is infinite, whatever the other part is."""
    for ord in (1, 2, 3, math.inf):
        assert torch.linalg.vector_norm(torch.tensor([value, 1]), ord).item() == math.inf


def test_cosine_similarity_of_vectors_and_a_number():
    """The number is one of several elements when their dtypes meet."""
    found = torch.cosine_similarity(torch.ones(2, 3), torch.tensor(2.0, dtype=torch.float64))
    assert found.dtype is torch.float64
    assert found.tolist() == pytest.approx([1, 1])


def test_gradient_of_qr_of_a_singular_matrix_is_no_number():
    matrix = torch.zeros(1, 1, requires_grad=True)
    torch.linalg.qr(matrix)[0].sum().backward()
    assert not matrix.grad.isfinite().any()
