"""LDL decompositions and `lobpcg`: what they mean, their bodies, gradients, refusals, and PyTorch's answers."""

import numpy as np
import pytest

import corefw
from corefw.autograd import gradcheck, gradgradcheck
from corefw.dispatch.registry import registry
from tests.parity import import_torch


def indefinite(*shape, complex_=False, seed=0):
    """Small diagonals, so that most steps take two rows."""
    rng = np.random.default_rng(seed)
    values = rng.standard_normal(shape) + (1j * rng.standard_normal(shape) if complex_ else 0)
    return corefw.tensor(values * (1 - 0.95 * np.eye(shape[-1])))


def whole(A, hermitian):
    below = A.tril(-1)
    if not hermitian:
        return A.tril() + below.mT
    return below + below.mH + A.diagonal(0, -2, -1).real.to(A.dtype).diag_embed()


KINDS = [(False, False), (True, False), (True, True), (False, True)]


@pytest.mark.parametrize(("complex_", "hermitian"), KINDS)
@pytest.mark.parametrize("shape", [(9, 9), (2, 3, 5, 5), (100, 100), (2, 0, 0), (0, 3, 3)])
def test_ldl_solves_and_the_body_is_lapacks(shape, complex_, hermitian):
    A = indefinite(*shape, complex_=complex_)
    B = indefinite(*shape, complex_=complex_, seed=1)[..., :2]
    LD, pivots, info = corefw.linalg.ldl_factor_ex(A, hermitian=hermitian)
    assert not info.any() and corefw.equal(LD, LD.tril()) and pivots.dtype is corefw.int32
    assert not A.numel() or (pivots < 0).any()
    X = corefw.linalg.ldl_solve(LD, pivots, B, hermitian=hermitian)
    np.testing.assert_allclose((whole(A, hermitian) @ X).numpy(), B.numpy(), atol=1e-11)
    body = registry.declared["ldl_factors"].body(A, hermitian)
    np.testing.assert_array_equal(body[1].numpy(), pivots.numpy())
    np.testing.assert_allclose(body[0].numpy(), LD.numpy(), atol=1e-11)
    solution = registry.declared["ldl_solution"].body(LD, pivots, B, hermitian)
    np.testing.assert_allclose(solution.numpy(), X.numpy(), rtol=1e-8, atol=1e-9)


def test_a_matrix_of_zeros_has_no_d_to_divide_by():
    A = corefw.zeros(3, 3)
    A[2, 2] = 1
    for found in (corefw.linalg.ldl_factor_ex(A), registry.declared["ldl_factors"].body(A, False)):
        assert [part.tolist() for part in found[1:]] == [[1, 2, 3], 1] and corefw.equal(found[0], A)
    for function in (corefw.linalg.ldl_factor, lambda a: corefw.linalg.ldl_factor_ex(a, check_errors=True)):
        with pytest.raises(corefw.linalg.LinAlgError, match=r"D\[1,1\] is zero"):
            function(A)


EYE, ONES = corefw.eye(3), corefw.ones(3, dtype=corefw.int32)
LEAF = corefw.eye(3, requires_grad=True)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: corefw.linalg.ldl_factor(corefw.ones(2, 3)), RuntimeError, "square"),
        (lambda: corefw.linalg.ldl_solve(EYE, ONES.float(), EYE), RuntimeError, "integers"),
        (lambda: corefw.linalg.ldl_solve(EYE, ONES[:2], EYE), RuntimeError, "to be the same"),
        (lambda: corefw.linalg.ldl_solve(EYE, ONES, EYE[:2]), RuntimeError, "Incompatible"),
        (lambda: corefw.linalg.ldl_solve(EYE, ONES, EYE.double()), RuntimeError, "same dtype"),
        (lambda: corefw.linalg.ldl_solve(EYE, ONES * 0, EYE), RuntimeError, r"\|pivot\| >= 1"),
        (lambda: corefw.linalg.ldl_solve(EYE, ONES * 4, EYE), RuntimeError, "at most the number of rows"),
        (lambda: corefw.linalg.ldl_solve(EYE, -ONES, EYE), RuntimeError, "equal pairs"),
        (
            lambda: corefw.linalg.ldl_factor(EYE.clone().requires_grad_()).LD.sum().backward(),
            NotImplementedError,
            "ldl",
        ),
        (lambda: corefw.lobpcg(corefw.eye(8), k=3), ValueError, "3 x the number"),
        (lambda: corefw.lobpcg(corefw.eye(8), k=0), ValueError, "at least one"),
        (lambda: corefw.lobpcg(corefw.eye(8).int()), RuntimeError, "floating point"),
        (lambda: corefw.lobpcg(corefw.eye(8), method="other"), ValueError, "'ortho' or 'basic'"),
        (lambda: corefw.lobpcg(corefw.eye(8), ortho_iparams={"i_max": 2}), NotImplementedError, "no meaning"),
        (lambda: corefw.lobpcg(corefw.eye(8), X=corefw.ones(8, 2)), RuntimeError, "independent"),
        (lambda: corefw.lobpcg(corefw.eye(8), X=corefw.ones(7, 2)), RuntimeError, "rows"),
    ],
)
def test_misuse_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()


def definite(m, seed=0, complex_=False):
    a = indefinite(m, m, seed=seed, complex_=complex_)
    return a @ a.mH + corefw.eye(m)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("complex_", [False, True])
@pytest.mark.parametrize("general", [False, True])
def test_lobpcg_finds_the_pairs(largest, complex_, general):
    A, B = definite(40, complex_=complex_), definite(40, seed=1, complex_=complex_) if general else None
    steps = []
    E, X = corefw.lobpcg(A, k=3, B=B, largest=largest, tol=1e-12, tracker=lambda s: steps.append(s.ivars["istep"]))
    assert steps == list(range(len(steps)))
    BX = B @ X if general else X
    np.testing.assert_allclose((A @ X).numpy(), (BX * E).numpy(), atol=1e-7)
    np.testing.assert_allclose((X.mH @ BX).numpy(), np.eye(3), atol=1e-12)
    L = corefw.linalg.cholesky(B) if general else corefw.eye(40).to(A.dtype)
    values = corefw.linalg.eigvalsh(corefw.linalg.inv(L) @ A @ corefw.linalg.inv(L).mH)
    np.testing.assert_allclose(E.numpy(), (values.flip(0) if largest else values)[:3].numpy(), rtol=1e-9)


def test_lobpcg_begins_where_it_is_told_and_heeds_a_preconditioner():
    A = definite(40)
    plain, quick = [], []
    corefw.lobpcg(A, k=2, largest=False, tracker=lambda s: plain.append(s))
    corefw.lobpcg(A, k=2, largest=False, iK=corefw.linalg.inv(A), tracker=lambda s: quick.append(s))
    assert len(quick) < len(plain) / 2
    E, X = corefw.lobpcg(A.expand(2, 40, 40), k=2, n=4, niter=-1)
    assert E.shape == (2, 2) and X.shape == (2, 40, 2)
    again: list = []
    corefw.lobpcg(A, X=X[0], tracker=again.append)
    assert len(again) == 1
    few: list = []
    corefw.lobpcg(A, k=2, niter=3, tracker=few.append)
    assert len(few) == 4


def test_gradients_of_lobpcg():
    A = (corefw.arange(9.0).double().diag() + indefinite(9, 9) / 10).requires_grad_()
    B = (corefw.eye(9) + definite(9, seed=3) / 40).requires_grad_()
    X = indefinite(9, 9, seed=4)[:, :2]

    def pairs(a, b=None):
        a, b = (a + a.mT) / 2, None if b is None else (b + b.mT) / 2
        E, V = corefw.lobpcg(a, B=b, X=X, tol=1e-14, niter=60)
        return E, V.abs()

    assert gradcheck(pairs, (A, B)) and gradgradcheck(pairs, A)


@pytest.mark.parametrize(("complex_", "hermitian"), KINDS)
def test_equals_pytorch(complex_, hermitian):
    torch = import_torch()
    A = indefinite(2, 7, 7, complex_=complex_)
    ours, theirs = (
        m.linalg.ldl_factor_ex(a, hermitian=hermitian) for m, a in ((corefw, A), (torch, torch.tensor(A.numpy())))
    )
    np.testing.assert_allclose(ours.LD.numpy(), theirs.LD.numpy(), atol=1e-12)
    np.testing.assert_array_equal(ours.pivots.numpy(), theirs.pivots.numpy())
    if not complex_:
        S = (A[0] + A[0].mT).detach()
        theirs = torch.tensor(S.numpy()).requires_grad_()
        ours = S.clone().requires_grad_()
        for m, a in ((corefw, ours), (torch, theirs)):
            m.manual_seed(0)
            E, X = m.lobpcg(a, k=2, tol=1e-13)
            (E.sum() + (X[0] * X[1]).sum()).backward()
        np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), atol=1e-6)
