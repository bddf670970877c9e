"""Decompositions of matrices: what is determined has gradients, what is not there is told, PyTorch's agree."""

import numpy as np
import pytest

import corefw
from corefw.autograd import gradcheck
from tests.parity import import_torch

SHAPES = [(3, 3), (2, 5, 3), (3, 5), (40, 40), (2, 0, 3), (35, 60), (60, 35)]


def elements(*shape, complex_=False, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape)
    return values + 1j * rng.standard_normal(shape) if complex_ else values


def of_squares(a):
    """The matrix whose eigenvalues are the squares: ``a @ a``."""
    L, V = corefw.linalg.eig(a)
    return corefw.view_as_real((V * L * L) @ corefw.linalg.inv(V))


@pytest.mark.parametrize("complex_", [False, True])
def test_eigenvectors_have_the_gradient_of_what_is_determined(complex_):
    A = corefw.tensor(elements(4, 4, complex_=complex_), requires_grad=True)
    L, V = corefw.linalg.eig(A)
    assert corefw.allclose(A.to(V.dtype) @ V, V * L)
    assert gradcheck(lambda a: corefw.linalg.eig(a)[1].abs().sum(-1), A)
    assert gradcheck(of_squares, A)
    with pytest.raises(RuntimeError, match="ill-defined"):
        corefw.linalg.eig(A)[1].imag.sum().backward()


@pytest.mark.parametrize("shape", SHAPES)
def test_lu_gives_the_matrix_back(shape):
    A = corefw.tensor(elements(*shape))
    P, L, U = corefw.linalg.lu(A)
    np.testing.assert_allclose((P @ L @ U).numpy(), A.numpy(), atol=1e-13)
    Q = corefw.geqrf(A)
    k = min(shape[-2:])
    np.testing.assert_allclose((corefw.ormqr(*Q, Q.a.triu())[..., :k, :]).numpy(), A[..., :k, :].numpy(), atol=1e-13)


def test_what_is_not_there_is_told():
    A = corefw.stack([corefw.eye(3), corefw.diag(corefw.tensor([1.0, 0.0, 1.0])), corefw.zeros(3, 3)])
    inverse, info = corefw.linalg.inv_ex(A)
    assert info.tolist() == [0, 2, 1] and info.dtype is corefw.int32
    assert corefw.equal(inverse[0], A[0]) and inverse[1:].isnan().all()
    assert corefw.linalg.solve_ex(A, corefw.ones(3, 3))[1].tolist() == [0, 2, 1]
    assert corefw.linalg.lu_factor_ex(A).info.tolist() == [0, 2, 1]
    L, info = corefw.linalg.cholesky_ex(corefw.stack([A[0], -A[0], A[1]]))
    assert info.tolist() == [0, 1, 2] and corefw.equal(L[0], A[0])


MATRIX = corefw.ones(2, 3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: corefw.linalg.inv_ex(corefw.ones(2, 2), check_errors=True), corefw.linalg.LinAlgError, "singular"),
        (lambda: corefw.linalg.cholesky_ex(-corefw.eye(2), check_errors=True), corefw.linalg.LinAlgError, "positive"),
        (lambda: corefw.linalg.lu_factor(corefw.ones(2, 2)), corefw.linalg.LinAlgError, r"U\[2,2\] is zero"),
        (lambda: corefw.linalg.eig(corefw.full((2, 2), np.nan)), RuntimeError, "infs or NaNs"),
        (lambda: corefw.linalg.eig(MATRIX), RuntimeError, "square"),
        (lambda: corefw.linalg.matrix_exp(MATRIX), RuntimeError, "square"),
        (lambda: corefw.linalg.lu_solve(corefw.eye(2), corefw.ones(2), corefw.eye(2)), RuntimeError, "int32"),
        (lambda: corefw.linalg.householder_product(MATRIX, corefw.ones(2)), RuntimeError, "greater than or equal"),
        (lambda: corefw.ormqr(MATRIX, corefw.ones(2), corefw.eye(3)), RuntimeError, "must be equal to input"),
        (lambda: corefw.linalg.tensorsolve(MATRIX, corefw.ones(2)), RuntimeError, "requirement prod"),
        (lambda: corefw.pca_lowrank(MATRIX, q=3), ValueError, "not greater than"),
        (lambda: corefw.geqrf(corefw.eye(2).requires_grad_()).a.sum().backward(), NotImplementedError, "geqrf"),
    ],
)
def test_misuse_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


@pytest.mark.parametrize("shape", [(7, 5), (5, 7), (2, 6, 4)])
@pytest.mark.parametrize("complex_", [False, True])
def test_low_rank(shape, complex_):
    *batch, m, n = shape
    A = corefw.tensor(elements(*batch, m, 3, complex_=complex_) @ elements(*batch, 3, n, complex_=complex_, seed=1))
    U, S, V = corefw.svd_lowrank(A, q=3)
    np.testing.assert_allclose((U * S.unsqueeze(-2).to(U.dtype) @ V.mH).numpy(), A.numpy(), atol=1e-12)
    M = A.mean(-2, keepdim=True)
    U, S, V = corefw.pca_lowrank(A, q=3)
    np.testing.assert_allclose((U * S.unsqueeze(-2).to(U.dtype) @ V.mH).numpy(), (A - M).numpy(), atol=1e-12)


def test_the_exponential_of_large_and_small_matrices():
    A = corefw.tensor([[0.0, 100.0], [-100.0, 0.0]], dtype=corefw.float64)
    c, s = np.cos(100.0), np.sin(100.0)
    np.testing.assert_allclose(corefw.linalg.matrix_exp(A).numpy(), [[c, s], [-s, c]], atol=1e-12)
    assert corefw.linalg.matrix_exp(corefw.full((2, 2), np.nan)).isnan().all()
    assert corefw.linalg.matrix_exp(corefw.ones(0, 2, 2)).shape == (0, 2, 2)


#: by name a function of a module and a matrix, whose results and gradient are compared
FUNCTIONS = {
    "lu_factor_ex": lambda m, a: m.linalg.lu_factor_ex(a),
    "lu": lambda m, a: m.linalg.lu(a),
    "lu_unpack": lambda m, a: m.lu_unpack(*m.linalg.lu_factor(a)),
    "householder_product": lambda m, a: m.linalg.householder_product(*m.geqrf(a.detach())) * a[..., :1, :1],
    "lu_solve": lambda m, a: m.linalg.lu_solve(*m.linalg.lu_factor(a), a, adjoint=True),
    "matrix_exp": lambda m, a: m.linalg.matrix_exp(a),
    "eigvals": lambda m, a: m.linalg.eigvals(a).abs().sort(-1)[0],
    "inv_ex": lambda m, a: m.linalg.inv_ex(a),
    "cholesky_inverse": lambda m, a: m.cholesky_inverse(m.linalg.cholesky(a @ a.mH)),
}
SQUARE = ("lu_solve", "matrix_exp", "eigvals", "inv_ex", "cholesky_inverse")


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(4, 4), (2, 3, 3), (5, 3), (3, 5), (40, 40)])
@pytest.mark.parametrize("complex_", [False, True])
def test_equals_pytorch(name, shape, complex_):
    torch = import_torch()
    if shape[-2] < shape[-1] and name == "householder_product":
        shape = shape[::-1]
    if name in SQUARE:
        shape = (*shape[:-1], shape[-2])
    values = elements(*shape, complex_=complex_) + 3 * np.eye(*shape[-2:])
    found = []
    for module in (corefw, torch):
        a = module.tensor(values, requires_grad=True)
        results = FUNCTIONS[name](module, a)
        results = results if isinstance(results, tuple) else (results,)
        loss = sum((r * (1 + r.detach())).sum() for r in results if r.requires_grad)
        (loss.real + loss.imag if loss.is_complex() else loss).backward()
        found.append([*(r.detach() for r in results), a.grad])
    for ours, theirs in zip(*found, strict=True):
        expected = theirs.resolve_conj().numpy()
        assert ours.numpy().dtype == expected.dtype
        np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-7, atol=1e-8 * max(1, np.abs(expected).max()))
