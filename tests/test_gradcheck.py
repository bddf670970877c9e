"""The checkers of gradients find wrong ones; `autograd.functional` against closed forms."""

import numpy as np
import pytest

import corefw as torch
from corefw.autograd import Function, functional, gradcheck, gradgradcheck
from corefw.autograd.gradcheck import GradcheckError


def leaf(values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype, requires_grad=True)


def planted(backward, forward=lambda x: x * x):
    """A function with a gradient of our choice."""

    class Planted(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return forward(x)

        @staticmethod
        def backward(ctx, grad):
            return backward(grad, *ctx.saved_tensors)

    return Planted.apply


X = [[0.5, -1.5], [2.0, 0.25]]
Z = [0.5 + 1.0j, -1.5 + 0.3j]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x * x,
        lambda x: (x.exp() * x).sum(),
        lambda x: (x @ x, x.sum(0)),
        lambda x: [x.cos(), torch.ones(2), 3.0],
        lambda x: x.sum().reshape(1, 1) * 2.0,
    ],
)
def test_right_gradients_pass(function):
    assert gradcheck(function, leaf(X))
    assert gradcheck(function, (leaf(X),), fast_mode=True)
    assert gradgradcheck(function, (leaf(X),))


@pytest.mark.parametrize(
    "function",
    [
        lambda z: z * z,
        lambda z: z * z.conj(),
        lambda z: (z.exp() * (2 + 1j)).sum(),
        lambda z: z.abs(),
        lambda z: torch.view_as_real(z),
    ],
)
def test_complex_gradients_pass(function):
    assert gradcheck(function, leaf(Z, torch.complex128))
    assert gradgradcheck(function, leaf(Z, torch.complex128))


def test_mixed_real_and_complex():
    x, z = leaf([1.0, 2.0]), leaf(Z, torch.complex128)
    assert gradcheck(lambda x, z: x * z, (x, z))
    assert gradgradcheck(lambda x, z: x * z, (x, z))


@pytest.mark.parametrize(
    ("backward", "text"),
    [
        (
            lambda grad, x: grad * 3 * x,
            r"(?s)Jacobian mismatch for output 0 with respect to input 0,\nnumerical:.*analytical:",
        ),
        (lambda grad, x: grad * 2 * x + 1e-3, "Jacobian mismatch"),
        (lambda grad, x: None, "Jacobian mismatch"),
    ],
)
def test_planted_wrong_gradient_is_found(backward, text):
    function = planted(backward)
    with pytest.raises(GradcheckError, match=text):
        gradcheck(function, (leaf(X),))
    assert gradcheck(function, (leaf(X),), raise_exception=False) is False


def test_planted_wrong_second_gradient_is_found():
    function = planted(lambda grad, x: grad * 2 * x.detach())
    assert gradcheck(function, (leaf(X),))
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(function, (leaf(X),))


def test_planted_missing_conjugate_is_found():
    function = planted(lambda grad, x: grad * 2 * x)
    with pytest.raises(GradcheckError, match=r"While considering the (real|imaginary) part of complex outputs only"):
        gradcheck(function, (leaf(Z, torch.complex128),))
    assert gradcheck(planted(lambda grad, x: grad * 2 * x.conj()), (leaf(Z, torch.complex128),))


def test_backward_that_changes_from_run_to_run_is_found():
    count = iter(range(1000))
    function = planted(lambda grad, x: grad * 2 * x * (1 + 1e-7 * next(count)))
    with pytest.raises(GradcheckError, match="not reentrant"):
        gradcheck(function, (leaf(X),))
    assert gradcheck(planted(lambda grad, x: grad * 2 * x), (leaf(X),))


def test_backward_that_is_not_linear_is_found():
    function = planted(lambda grad, x: 2 * x if (grad == 0).all().item() else grad * 2 * x)
    with pytest.raises(GradcheckError, match="not multiplied by grad_output"):
        gradcheck(function, (leaf(X),))


def test_missing_dependence_is_found():
    with pytest.raises(GradcheckError, match="expected to be zero"):
        gradcheck(lambda x: x.detach() * 2.0, (leaf(X),))
    assert gradcheck(lambda x: (x * 1.0, x.detach() * 2.0), (leaf(X),))  # what is detached on purpose is not looked at
    assert gradcheck(lambda x: torch.ones(2), (leaf(X),))


def test_inputs_of_gradcheck():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (torch.ones(2),))
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda x: x * 2, (leaf([1.0, 2.0], torch.float32),), eps=1e-2, atol=1e-2)
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(lambda x: x * 2, (torch.ones(1, dtype=torch.float64).expand(3).requires_grad_(),))
    x = leaf(X)
    assert gradcheck(lambda pair, scale: pair[0] * pair[1] * scale, ([x, leaf(X)], 2.0))
    assert x.tolist() == X
    assert gradcheck(lambda *_: x * x, (x,))  # the input is changed in place
    assert gradgradcheck(lambda x: x * x, (leaf(X),), grad_outputs=(leaf(X),), gen_non_contig_grad_outputs=True)
    assert gradcheck(lambda x: x * 2, (torch.zeros((0, 3), dtype=torch.float64, requires_grad=True),))


# -- functional -------------------------------------------------------------------------------------------------------
def quadratic(x):
    return x[0] ** 2 * x[1] + x[1] ** 3


POINT = [2.0, 3.0]
GRADIENT = np.array([12.0, 31.0])
HESSIAN = np.array([[6.0, 4.0], [4.0, 18.0]])
V = np.array([1.0, -2.0])


def close(tensor, expected):
    np.testing.assert_allclose(tensor.detach().numpy(), expected)


@pytest.mark.parametrize("create_graph", [False, True])
def test_jacobian(create_graph):
    x = leaf(POINT)
    found = functional.jacobian(lambda x: torch.stack([x[0] * x[1], x[1] ** 2, x.sum()]), x, create_graph=create_graph)
    close(found, [[3.0, 2.0], [0.0, 6.0], [1.0, 1.0]])
    assert found.requires_grad is create_graph
    both = functional.jacobian(lambda x, y: (x * y, x.sum()), (x, leaf([5.0, 7.0])), create_graph=create_graph)
    close(both[0][0], np.diag([5.0, 7.0]))
    close(both[0][1], np.diag(POINT))
    close(both[1][0], [1.0, 1.0])
    close(both[1][1], [0.0, 0.0])
    assert functional.jacobian(lambda x: x.reshape(2, 1) * x, x).shape == (2, 2, 2)


@pytest.mark.parametrize("create_graph", [False, True])
def test_products(create_graph):
    x, v = leaf(POINT), torch.tensor(V)
    close(functional.hessian(quadratic, x, create_graph=create_graph), HESSIAN)
    value, product = functional.vhp(quadratic, x, v, create_graph=create_graph)
    close(value, 39.0)
    close(product, V @ HESSIAN)
    assert product.requires_grad is create_graph
    close(functional.hvp(quadratic, x, v, create_graph=create_graph)[1], HESSIAN @ V)
    close(functional.vjp(quadratic, x, create_graph=create_graph)[1], GRADIENT)
    close(functional.jvp(quadratic, x, v, create_graph=create_graph)[1], GRADIENT @ V)
    outputs, products = functional.vjp(lambda a, b: (a * b, a), (x, leaf(POINT)), (v, v), create_graph=create_graph)
    close(outputs[0], [4.0, 9.0])
    close(products[0], V * POINT + V)
    close(products[1], V * POINT)


def test_hessian_of_several_inputs():
    blocks = functional.hessian(lambda a, b: (a * a * b).sum(), (leaf(POINT), leaf([5.0, 7.0])))
    close(blocks[0][0], np.diag([10.0, 14.0]))
    close(blocks[0][1], np.diag([4.0, 6.0]))
    close(blocks[1][0], np.diag([4.0, 6.0]))
    close(blocks[1][1], np.zeros((2, 2)))


def test_result_of_create_graph_can_be_differentiated():
    x = leaf(POINT)
    functional.jacobian(quadratic, x, create_graph=True).sum().backward()
    close(x.grad, HESSIAN.sum(0))


def test_strictness():
    x = torch.tensor(POINT)
    constant = torch.ones(2)
    close(functional.jacobian(lambda x: constant, x), np.zeros((2, 2)))
    close(functional.hessian(lambda x: x.sum(), x), np.zeros((2, 2)))
    with pytest.raises(RuntimeError, match="does not require gradients"):
        functional.jacobian(lambda x: constant, x, strict=True)
    with pytest.raises(RuntimeError, match="independent of input 1"):
        functional.vjp(lambda x, y: x, (x, x), constant, strict=True)
    with pytest.raises(RuntimeError, match="independent of input 0"):
        functional.jacobian(lambda x: x * 2, x, strict=True, create_graph=True)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: functional.vjp(lambda x: x, x), RuntimeError, "v can only be None"),
        (lambda x: functional.vjp(lambda x: x, x, torch.ones(3)), RuntimeError, "v has invalid size"),
        (lambda x: functional.vjp(lambda x: x, x, (x, x)), RuntimeError, "has 1 tensors, but v has 2"),
        (lambda x: functional.hessian(lambda x: x, x), RuntimeError, "single element"),
        (lambda x: functional.hvp(lambda x: (x, x), x, x), RuntimeError, "single Tensor"),
        (lambda x: functional.jacobian(lambda x: 3, x), TypeError, "must be a Tensor"),
        (lambda x: functional.jacobian(lambda x: x, (x, 3)), TypeError, "index 1"),
        (lambda x: functional.jacobian(lambda x: x, x, strategy="forward-mode"), NotImplementedError, "forward-mode"),
        (lambda x: functional.jacobian(lambda x: x, x, strategy="?"), ValueError, "strategy"),
    ],
)
def test_functional_errors(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.tensor(POINT))
