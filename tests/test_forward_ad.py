"""corefw.autograd.forward_ad: duals and their levels, in-place changes and views, gradients of tangents, Function."""

import numpy as np
import pytest

import corefw
from corefw import func
from corefw.autograd import forward_ad as fwAD
from corefw.autograd.duals.calls import how
from corefw.dispatch.batching.arrays import BatchingError
from corefw.dispatch.registry import registry
from corefw.func.level import vector_jacobian

F = corefw.nn.functional
X, V = np.array([1.0, 2.0, -0.5]), np.array([1.0, 0.5, 2.0])


def tensor(values, **options):
    return corefw.tensor(values, dtype=corefw.float64, **options)


def dual(x=X, v=V):
    return fwAD.make_dual(tensor(x), tensor(v))


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual.detach()), expected, rtol=1e-9, atol=1e-12)


def parts(value, primal, tangent):
    """See that a dual tensor has these two parts."""
    found = fwAD.unpack_dual(value)
    close(found.primal, primal)
    assert found.tangent is not None, "there is no tangent"
    close(found.tangent, tangent)


# -- levels -----------------------------------------------------------------------------------------------------------
def test_a_dual_tensor_goes_through_ops_and_is_printed():
    with fwAD.dual_level() as level:
        assert level == 0
        parts(dual() ** 3, X**3, 3 * X**2 * V)
        parts(2 * dual() - 1, 2 * X - 1, 2 * V)
        shown = repr(fwAD.make_dual(corefw.tensor([1.0]), corefw.tensor([2.0])))
        assert shown == "tensor([1.], tangent=tensor([2.]))"
        found = fwAD.unpack_dual(dual())
        assert type(found) is fwAD.UnpackedDualTensor and found._fields == ("primal", "tangent")


def test_python_sees_primals():
    with fwAD.dual_level():
        x = dual()
        assert x.sum().item() == X.sum() and bool(x[0] > 0) and x.tolist() == [*X] and f"{x[1]:.1f}" == "2.0"
        np.testing.assert_array_equal(x.numpy(), X)


def test_what_has_no_tangent():
    with fwAD.dual_level():
        x = dual()
        ints = [x.argsort(), x > 0, x.long()]
        constants = [corefw.ones(3), corefw.zeros_like(x), x.detach(), x.data, *ints, x.round() * 0]
        for value in constants[:-1]:
            assert fwAD.unpack_dual(value).tangent is None
        close(fwAD.unpack_dual(constants[-1]).tangent, np.zeros(3))
        parts(x.detach() * x, X * X, X * V)


def test_the_end_of_a_level_forgets_tangents():
    with fwAD.dual_level():
        x = dual()
        y = x * x
    assert fwAD.unpack_dual(y) == (y, None)
    assert "tangent" not in repr(y)
    after = y * 2 + x
    assert type(after.device) is corefw.device
    close(after, 2 * X * X + X)
    with fwAD.dual_level():
        assert fwAD.unpack_dual(y).tangent is None  # of another level at the same depth
        parts(y * dual(), X**3, X * X * V)
    y.add_(1)
    assert type(y.device) is corefw.device
    close(y, X * X + 1)


def test_levels_do_not_nest_and_say_so():
    with fwAD.dual_level(), pytest.raises(RuntimeError, match="Nested forward mode AD is not supported at the moment"):
        fwAD.enter_dual_level()
    with pytest.raises(RuntimeError, match="not the last one"):
        fwAD.exit_dual_level()
    assert fwAD.enter_dual_level() == 0
    with pytest.raises(RuntimeError, match="not the last one"):
        fwAD.exit_dual_level(level=1)
    fwAD.exit_dual_level(level=0)

    @fwAD.dual_level()
    def tangent(x, v):
        return fwAD.unpack_dual(fwAD.make_dual(x, v).sin()).tangent

    close(tangent(tensor(X), tensor(V)), np.cos(X) * V)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        (lambda x: (x, corefw.ones(2)), RuntimeError, "different size"),
        (lambda x: (x, x.long()), ValueError, "Expected tangent to be floating point or complex"),
        (lambda x: (x.long(), x), ValueError, "Expected primal to be floating point or complex"),
        (lambda x: (x, 1.0), TypeError, "must be Tensor"),
        (lambda x: (fwAD.make_dual(x, x), x), RuntimeError, "already has a forward gradient at the same level"),
        (lambda x: (x, fwAD.make_dual(x, x)), RuntimeError, "itself has a forward gradient"),
    ],
)
def test_what_make_dual_refuses(arguments, error, text):
    with pytest.raises(RuntimeError, match="no level exists"):
        fwAD.make_dual(tensor(X), tensor(V))
    with fwAD.dual_level(), pytest.raises(error, match=text):
        fwAD.make_dual(*arguments(tensor(X)))


def test_grad_modes_leave_tangents_and_their_own_switch_does_not():
    with fwAD.dual_level():
        x = dual()
        with corefw.no_grad():
            parts(x * x, X * X, 2 * X * V)
        with fwAD._set_fwd_grad_enabled(False):
            assert not fwAD._is_fwd_grad_enabled()
            silent = x * x
            assert fwAD.unpack_dual(x).tangent is None
        assert fwAD.unpack_dual(silent).tangent is None
        parts(x + silent, X + X * X, V)


# -- memory -----------------------------------------------------------------------------------------------------------
def test_in_place_changes_change_tangents():
    with fwAD.dual_level():
        x = dual() * 1
        assert x.mul_(x) is x
        parts(x, X * X, 2 * X * V)
        x[1:].mul_(10)
        parts(x, X * X * [1, 10, 10], 2 * X * V * [1, 10, 10])
        x[0] = 7.0
        parts(x, [7, *(X * X * 10)[1:]], [0, *(20 * X * V)[1:]])
        x.zero_()
        parts(x, np.zeros(3), np.zeros(3))
        y = dual() + 0
        parts(y.t_() if y.ndim == 2 else y.unsqueeze_(0), X[None], V[None])


def test_views_share_tangents():
    with fwAD.dual_level():
        matrix = fwAD.make_dual(tensor(np.arange(6.0).reshape(2, 3)), tensor(np.ones((2, 3)))) * 1
        column, turned = matrix[:, 1], matrix.t()
        column.mul_(3)
        parts(turned, np.array([[0, 3], [3, 12], [2, 5]]), np.array([[1, 1], [3, 3], [1, 1]]))
        strided = fwAD.make_dual(tensor(np.arange(6.0))[1::2], tensor(V))
        parts(strided[1:], [3, 5], V[1:])
        parts(corefw.view_as_real(fwAD.make_dual(tensor([1.0]) + 2j, tensor([3.0]) + 4j)), [[1, 2]], [[3, 4]])


def test_a_tensor_without_a_tangent_gets_one_in_place():
    with fwAD.dual_level():
        filled = corefw.zeros(3, dtype=corefw.float64)
        other = filled[1:]
        filled[0] = dual().sum()
        parts(filled, [X.sum(), 0, 0], [V.sum(), 0, 0])
        other.copy_(dual()[1:])
        parts(filled, [X.sum(), *X[1:]], [V.sum(), *V[1:]])
        total = tensor(0.0)
        total += dual().sum()
        parts(total, X.sum(), V.sum())
    filled.mul_(2)  # the level is over
    assert type(filled.device) is corefw.device


def test_the_dual_shares_the_primal_and_nothing_is_written_to_tangents_of_others():
    with fwAD.dual_level():
        x, v = tensor(X), tensor(V)
        y = fwAD.make_dual(x, v) + 0
        z = y + 1  # its tangent is that of y
        z.mul_(5)
        parts(y, X, V)
        fwAD.make_dual(x, v).add_(1)
        close(x, X + 1)


def test_statistics_of_a_normalization_end_with_the_level():
    layer = corefw.nn.BatchNorm1d(3)
    batch = corefw.randn(4, 3)
    with fwAD.dual_level():
        layer(fwAD.make_dual(batch, corefw.ones(4, 3)))
    layer(batch)
    assert type(layer.running_mean.device) is corefw.device
    np.testing.assert_allclose(layer.running_mean, np.asarray(batch.mean(0)) * 0.19, rtol=1e-5)


# -- with gradients ---------------------------------------------------------------------------------------------------
def loss(x, w):
    return (w * x.sin() * x).square().sum()


def product(x, w, v):
    """The derivative of `loss` by x along v: written out."""
    s, c = np.sin(x), np.cos(x)
    return (2 * w**2 * s * x * (c * x + s) * v).sum()


def test_a_gradient_of_a_tangent_during_and_after_the_level():
    x, w, v = (tensor(t, requires_grad=True) for t in (X, np.array([2.0, -1.0, 3.0]), V))
    expected = corefw.autograd.grad(corefw.autograd.grad(loss(x, w), x, create_graph=True)[0] @ v, (x, w, v))
    with fwAD.dual_level():
        pushed = fwAD.unpack_dual(loss(fwAD.make_dual(x, v), w)).tangent
        close(pushed, product(X, np.asarray(w.detach()), V))
        during = corefw.autograd.grad(pushed, (x, w, v), retain_graph=True)
    for found in (during, corefw.autograd.grad(pushed, (x, w, v))):
        for actual, wanted in zip(found, expected):
            close(actual, np.asarray(wanted.detach()))


def test_gradients_inside_of_a_level_have_tangents():
    x, w = tensor(X, requires_grad=True), tensor(np.array([2.0, -1.0, 3.0]), requires_grad=True)
    with fwAD.dual_level():
        y = loss(fwAD.make_dual(x, tensor(V)), w)
        found = corefw.autograd.grad(y, (x, w), retain_graph=True)
        first = corefw.autograd.grad(loss(x, w), x, create_graph=True)
        second = corefw.autograd.grad(first, x, tensor(V))
        close(fwAD.unpack_dual(found[0]).tangent, np.asarray(second[0]))
        assert fwAD.unpack_dual(found[1]).tangent is not None
        y.backward()
    assert type(w.grad.device) is corefw.device  # .grad of a leaf has none
    close(w.grad, np.asarray(corefw.autograd.grad(loss(x, w), w)[0]))
    y = loss(x, w)
    with fwAD.dual_level():
        y = loss(fwAD.make_dual(x, tensor(V)), w)
    after = corefw.autograd.grad(y, w)[0]  # of the value alone, as of any other
    close(after, np.asarray(w.grad))


def test_a_primal_is_differentiated_beside_its_tangent():
    x = tensor(X, requires_grad=True)
    with fwAD.dual_level():
        value, tangent = fwAD.unpack_dual(fwAD.make_dual(x, tensor(V)) ** 3)
        total = (value + 2 * tangent).sum()
    close(corefw.autograd.grad(total, x)[0], 3 * X**2 + 12 * X * V)


def test_in_place_changes_in_forward_over_reverse_and_back():
    def changed(x):
        y = x * 2
        y[1:].mul_(x[:2])
        y.exp_()
        return (y * x).sum()

    x, v = tensor(X), tensor(V)
    dense = func.jacrev(func.grad(changed))(x)
    close(func.jvp(func.grad(changed), (x,), (v,))[1], np.asarray(dense) @ V)
    close(func.grad(lambda x: func.jvp(changed, (x,), (v,))[1])(x), np.asarray(dense) @ V)


def test_a_level_inside_of_another_is_told_apart():
    # the perturbation of the inner one is not that of the outer one: d/dx (x * d/dy (x + y)) = 1
    x, one = tensor(3.0), tensor(1.0)
    inner = lambda x: x * func.jvp(lambda y: x + y, (one,), (one,))[1]
    close(func.jvp(inner, (x,), (one,))[1], 1)
    cubed = lambda x: func.jvp(lambda y: x * y**3, (x,), (one,))[1]  # 3 x^3
    close(func.jvp(cubed, (x,), (one,))[1], 9 * 9)
    with fwAD.dual_level():
        parts(cubed(fwAD.make_dual(x, one)), 81, 81)


def test_a_tangent_is_differentiated_when_its_level_has_ended_and_others_run():
    x, v = tensor(X), tensor(V)
    pushed = lambda x: func.jvp(lambda x: (x.sin() * x).cumsum(0), (x,), (v,))[1]
    dense = func.jacrev(pushed)(x)
    pull = func.vjp(pushed, x)[1]
    close(func.vmap(pull)(tensor(np.eye(3)))[0], np.asarray(dense))
    close(func.jvp(lambda u: pull(u)[0], (v,), (x,))[1], X @ np.asarray(dense))
    close(func.jacfwd(lambda u: pull(u)[0])(v), np.asarray(dense).T)


def test_vmap_inside_of_a_level_and_duals_inside_of_vmap():
    x, basis = tensor(X, requires_grad=True), tensor(np.eye(3))
    with fwAD.dual_level():
        columns = func.vmap(lambda t: fwAD.unpack_dual(fwAD.make_dual(x, t) ** 3).tangent)(basis)
        parts(func.vmap(lambda s: (s * s).sin())(dual()), np.sin(X * X), np.cos(X * X) * 2 * X * V)
    close(columns, np.diag(3 * X**2))
    close(corefw.autograd.grad(columns.sum(), x)[0], 6 * X)


@pytest.mark.parametrize("outer", ["vmap", "jvp"])
def test_numbers_differ_between_examples_beside_tangents(outer):
    noisy = lambda x: x * corefw.rand(3, dtype=corefw.float64)
    x = tensor(np.stack([X, X, X, X]))
    if outer == "vmap":
        value, tangent = func.vmap(lambda x: func.jvp(noisy, (x,), (x + 1,)), randomness="different")(x)
    else:
        value, tangent = func.jvp(func.vmap(noisy, randomness="different"), (x,), (x + 1,))
    factors = np.asarray(value) / X
    assert len({*factors.reshape(-1)}) == 12
    close(tangent, factors * (X + 1))


def test_vmap_and_jvp_go_back_through_the_graph_of_a_vmap_that_ended():
    w = tensor(X, requires_grad=True)
    cubes = func.vmap(lambda one: one**3)(w)
    again = lambda x: func.vmap(lambda one: one**3)(x) * cubes
    for hessian in (func.jacfwd(func.jacrev(again)), func.jacrev(func.jacfwd(again))):
        close(hessian(tensor(X)).sum((1, 2)), 6 * X**4)
    pulled = lambda v: vector_jacobian([cubes], [w], [v * v], True)[0]
    value, tangent = func.vmap(lambda v: func.jvp(pulled, (v,), (v,)))(tensor([X, V]))
    close(value, np.array([X, V]) ** 2 * 3 * X**2)
    close(tangent, 2 * np.asarray(value.detach()))


def test_what_is_shown_several_times_may_have_several_tangents():
    with fwAD.dual_level():
        one = fwAD.make_dual(tensor([2.0]).expand(3), tensor(V))
        parts(one[1:] * 3, [6, 6], 3 * V[1:])
        dense = fwAD.make_dual(tensor(X), tensor([2.0]).expand(3)) * 1
        dense[0] = 0.0
        parts(dense, [0, *X[1:]], [0, 2, 2])


def test_a_jacobian_by_columns_of_a_function_that_looks_at_its_elements():
    def chosen(x):
        y = x * x
        return corefw.stack([part if part.item() > 0.5 else -part for part in y])

    close(func.jacfwd(chosen)(tensor(X)), np.diag(np.where(X * X > 0.5, 2 * X, -2 * X)))
    looked = lambda x: func.jvp(lambda x: x * x, (x,), (x,))[1] if (x * x).sum() > 0 else x
    close(func.jacfwd(looked)(tensor(X)), np.diag(4 * X))
    with pytest.raises(RuntimeError, match="randomness"):
        func.jacfwd(lambda x: x * corefw.rand(3))(tensor(X))


def test_forward_transforms_refuse_what_has_no_tangent():
    for transform in (lambda x: func.jvp(corefw.sin, (x,), (x,)), func.jacfwd(corefw.sin)):
        with pytest.raises(ValueError, match="Expected primal to be floating point or complex"):
            transform(corefw.tensor([1, 2]))
        with pytest.raises(ValueError, match="must be Tensor"):
            transform(1.0)
    jacobian, aside = func.jacfwd(lambda x: (x.sum() + corefw.ones(2), x.sum()), has_aux=True)(corefw.zeros(0, 3))
    assert jacobian.shape == (2, 0, 3) and aside == 0


# -- functions of the user, modules, optimizers -----------------------------------------------------------------------
class Cube(corefw.autograd.Function):
    """A cube whose tangent is wrong on purpose if `factor` is not 3."""

    @staticmethod
    def forward(x, factor):
        return x * x * x, x * 1

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0], output[1])
        ctx.save_for_forward(inputs[0])
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, grad, other):
        x, same = ctx.saved_tensors
        return grad * 3 * x * same + other, None

    @staticmethod
    def jvp(ctx, tangent, factor):
        assert factor is None
        (x,) = ctx.saved_tensors
        return ctx.factor * x * x * tangent, tangent


class CubeByBackward(Cube):
    jvp = corefw.autograd.Function.jvp


@pytest.mark.parametrize("cube", [Cube, CubeByBackward])
def test_functions_with_gradients_of_their_own(cube):
    x, v = tensor(X), tensor(V)
    close(func.jvp(lambda x: cube.apply(x, 3)[0], (x,), (v,))[1], 3 * X**2 * V)
    close(func.jacfwd(lambda x: cube.apply(x, 3)[0])(x), np.diag(3 * X**2))
    total = lambda x: (cube.apply(x, 3)[0] * x).sum()  # x^4
    close(func.jvp(func.grad(total), (x,), (v,))[1], 12 * X**2 * V)
    close(func.grad(lambda x: func.jvp(total, (x,), (v,))[1])(x), 12 * X**2 * V)
    close(func.jvp(lambda x: func.jvp(total, (x,), (v,))[1], (x,), (v,))[1], (12 * X**2 * V**2).sum())


def test_what_a_jvp_of_the_user_may_do_wrong():
    class Wrong(Cube):
        jvp = staticmethod(lambda ctx, tangent, factor: tangent)

    class Longer(Cube):
        jvp = staticmethod(lambda ctx, tangent, factor: (tangent[:1], tangent))

    class Nothing(corefw.autograd.Function):
        forward = staticmethod(lambda ctx, x: x * 2)

    with fwAD.dual_level():
        with pytest.raises(RuntimeError, match="returned 1 tangents, expected one for each of 2 outputs"):
            Wrong.apply(dual(), 3)
        with pytest.raises(RuntimeError, match="of shape"):
            Longer.apply(dual(), 3)
        with pytest.raises(NotImplementedError, match="implement the jvp function"):
            Nothing.apply(dual())


def test_gradcheck_checks_forward_mode():
    x = tensor(X, requires_grad=True)
    right, wrong = (lambda x, factor=factor: Cube.apply(x, factor)[0] for factor in (3, 4))
    check = corefw.autograd.gradcheck
    assert check(right, (x,), check_forward_ad=True) and check(wrong, (x,))
    assert check(right, (x,), check_forward_ad=True, check_backward_ad=False)
    with pytest.raises(RuntimeError, match="forward mode mismatch for output 0 with respect to input 0"):
        check(wrong, (x,), check_forward_ad=True)
    assert not check(wrong, (x,), check_forward_ad=True, raise_exception=False)
    z = (tensor(X) + 1j).requires_grad_()
    assert check(lambda z: (z.exp() * z, z.abs(), z.conj()), (z,), check_forward_ad=True)
    assert corefw.autograd.gradgradcheck(lambda x: x.exp() * x.softmax(0), (x,), check_fwd_over_rev=True)
    with pytest.raises(AssertionError, match="at least one"):
        check(right, (x,), check_backward_ad=False)


def test_a_model_with_tangents_of_its_parameters():
    model = corefw.nn.Sequential(corefw.nn.Linear(3, 4), corefw.nn.Tanh(), corefw.nn.Linear(4, 1)).double()
    inputs = corefw.randn(5, 3, dtype=corefw.float64)
    tangents = {name: corefw.randn_like(p) for name, p in model.named_parameters()}
    with fwAD.dual_level():
        duals = {name: fwAD.make_dual(p, tangents[name]) for name, p in model.named_parameters()}
        pushed = fwAD.unpack_dual(func.functional_call(model, duals, inputs)).tangent.sum()
    model(inputs).sum().backward()
    expected = sum((p.grad * tangents[name]).sum() for name, p in model.named_parameters())
    close(pushed, np.asarray(expected))


def test_steps_of_optimizers_are_refused():
    with fwAD.dual_level():
        weight = dual().requires_grad_()
        weight.grad = dual()
        with pytest.raises(BatchingError, match="a step of an optimizer"):
            corefw.optim.SGD([weight], lr=0.1).step()


# -- ways -------------------------------------------------------------------------------------------------------------
def test_a_wrong_formula_is_caught():
    from corefw.testing.families import kit_families
    from tests.test_forward_rows import check_row

    case = next(case for case in kit_families().cases() if case.op == "softmax")
    op = registry.declared["softmax"]
    assert check_row(case, op, corefw.float64)
    right = op.tangent_formula
    op.tangent_formula = lambda tangent_input, out: tangent_input * out
    try:
        with pytest.raises(AssertionError):
            check_row(case, op, corefw.float64)
    finally:
        op.tangent_formula = right


def test_explain_tells_how_a_tangent_is_computed():
    with fwAD.dual_level():
        x = dual()
        assert "tangent: by the op itself, which is linear" in corefw.explain("matmul", x, x)
        assert "tangent: by the formula of the declaration" in corefw.explain("softmax", x, 0)
        said: list[str] = []
        func.vmap(lambda one: (said.append(corefw.explain("softmax", one, 0)), one)[1])(corefw.stack([x, x]))
        assert "a batch of 2 examples\n  tangent: by the formula" in said[0], said
        assert "inside of vmap: all examples at once, by its rule" in corefw.explain("softmax", x, 0)
    assert "tangent" not in corefw.explain("matmul", tensor(X), tensor(X))
    assert how(registry.declared["exp"]) == "elementwise" and how(registry.declared["sum"]) == "linear"
