"""Custom functions: `autograd.Function` and what its context can do."""

import gc
import weakref

import numpy as np
import pytest

import corefw as torch
from corefw.autograd import Function, graph
from corefw.autograd.function import once_differentiable
from tests.functions import Square


def leaf(*values, dtype=torch.float64):
    return torch.tensor(values if len(values) != 1 else values[0], dtype=dtype, requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx, x, factor=1.0):
        ctx.save_for_backward(x)
        ctx.factor = factor
        ctx.shape, ctx.inputs, ctx.saved, ctx.dispatch_key = x.shape, 1, 2, 3  # names that the node has too
        return x * x * x * factor

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        assert (ctx.shape, ctx.inputs, ctx.saved, ctx.dispatch_key) == (x.shape, 1, 2, 3)
        return grad * 3 * x * x * ctx.factor, None


class SinCos(Function):
    """Two outputs, the derivative of each being the other; both are saved."""

    @staticmethod
    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        sin, cos = x.sin(), x.cos()
        ctx.save_for_backward(sin, cos)
        return sin, cos

    @staticmethod
    def backward(ctx, grad_sin, grad_cos):
        sin, cos = ctx.saved_tensors
        total = None
        if grad_sin is not None:
            total = grad_sin * cos
        if grad_cos is not None:
            total = (0 if total is None else total) - grad_cos * sin
        return total


class Scale(Function):
    """The form with a separate setup_context, keyword arguments and needs_input_grad."""

    seen = []

    @staticmethod
    def forward(x, weight, power=2):
        return x * weight**power

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, weight, ctx.power = inputs
        ctx.save_for_backward(x, weight)

    @staticmethod
    def backward(ctx, grad):
        x, weight = ctx.saved_tensors
        Scale.seen.append(ctx.needs_input_grad)
        gx = grad * weight**ctx.power if ctx.needs_input_grad[0] else None
        gw = grad * x * ctx.power * weight ** (ctx.power - 1) if ctx.needs_input_grad[1] else None
        return gx, gw, None


def test_forward_backward_and_name():
    x = leaf(1.0, 2.0)
    y = Cube.apply(x, 2.0)
    assert y.grad_fn.name() == "CubeBackward" == type(y.grad_fn).__name__
    assert y.grad_fn.factor == 2.0
    assert y.grad_fn.saved_tensors[0] is x
    assert y.grad_fn.next_functions[0][0].variable is x
    y.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), [6.0, 24.0])
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.grad_fn.saved_tensors


def test_derivatives_to_second_order():
    x = leaf(0.5, 2.0)
    assert torch.autograd.gradcheck(Cube.apply, (x, 2.0))
    assert torch.autograd.gradgradcheck(Cube.apply, (x, 2.0))
    assert torch.autograd.gradcheck(SinCos.apply, (x,))
    assert torch.autograd.gradgradcheck(SinCos.apply, (x,))
    assert torch.autograd.gradgradcheck(Scale.apply, (x, leaf(1.5)))


def test_not_recorded_where_nothing_is_wanted():
    assert Cube.apply(torch.ones(2)).grad_fn is None
    with torch.no_grad():
        assert not Cube.apply(leaf(1.0)).requires_grad
    inside = []

    class Look(Function):
        @staticmethod
        def forward(ctx, x):
            inside.append((torch.is_grad_enabled(), (x * 2).requires_grad))
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            inside.append(torch.is_grad_enabled())
            return grad * 2

    y = Look.apply(leaf(1.0))
    y.backward(retain_graph=True)
    y.backward(create_graph=True)
    assert inside == [(False, False), False, True]


def test_some_of_several_outputs():
    x = leaf(0.5)
    sin, cos = SinCos.apply(x)
    assert sin.grad_fn is cos.grad_fn
    (g,) = torch.autograd.grad(sin, x, create_graph=True)
    assert g.item() == pytest.approx(np.cos(0.5))
    (g,) = torch.autograd.grad(g, x, create_graph=True)
    assert g.item() == pytest.approx(-np.sin(0.5))
    (g,) = torch.autograd.grad(g + cos, x)
    assert g.item() == pytest.approx(-np.cos(0.5) - np.sin(0.5))


def test_missing_gradients_are_zeros_unless_refused():
    seen = []

    class Two(Function):
        @staticmethod
        def forward(ctx, x, text):
            ctx.set_materialize_grads(text == "zeros")
            return x * 2, text, x.new_ones(3)

        @staticmethod
        def backward(ctx, first, nothing, second):
            seen.append((first is None, nothing, None if second is None else second.tolist()))
            return second.sum() if first is None else first * 2, None

    for text in ("zeros", "none"):
        a, same, _ = Two.apply(leaf(1.0), text)
        assert same == text
        a.backward()
    Two.apply(leaf(1.0), "none")[2].sum().backward()
    assert seen == [(False, None, [0.0, 0.0, 0.0]), (False, None, None), (True, None, [1.0, 1.0, 1.0])]


def test_setup_context_with_keywords():
    x, weight = leaf(2.0), leaf(3.0)
    Scale.seen.clear()
    Scale.apply(x, weight, power=3).backward()
    assert (x.grad.item(), weight.grad.item()) == (27.0, 54.0)
    Scale.apply(x.detach(), weight).backward()
    assert Scale.seen == [(True, True, False), (False, True, False)]
    (g,) = torch.autograd.grad(Cube.apply(x, factor=2.0), x)
    assert g.item() == 24.0
    with pytest.raises(TypeError, match="factors"):
        Cube.apply(x, factors=2.0)


def test_non_differentiable_outputs():
    class Sorted(Function):
        @staticmethod
        def forward(ctx, x):
            values, order = x.sort()
            rest = x * 0
            ctx.mark_non_differentiable(order, rest)
            ctx.save_for_backward(order, rest)
            return values, order, rest

        @staticmethod
        def backward(ctx, grad, grad_order, grad_rest):
            order, rest = ctx.saved_tensors
            assert not rest.requires_grad and not order.requires_grad
            assert grad_rest.tolist() == [0.0, 0.0]
            return grad.new_zeros(2).index_put((order,), grad)

    x = leaf(5.0, 3.0)
    values, order, rest = Sorted.apply(x)
    assert values.requires_grad and not order.requires_grad and not rest.requires_grad
    (values * torch.tensor([1.0, 10.0], dtype=torch.float64)).sum().backward()
    assert x.grad.tolist() == [10.0, 1.0]


class Double_(Function):
    @staticmethod
    def forward(ctx, x):
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def test_dirty_inputs():
    x = leaf(1.0, 2.0)
    y = x * 3
    before = y._version
    z = Double_.apply(y)
    assert z is y
    assert y._version > before
    assert y.grad_fn.name() == "Double_Backward"
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 6.0]
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        Double_.apply(x)
    y = x * 3
    saved = y * y
    Double_.apply(y)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        saved.sum().backward()
    y = x.detach() * 3 + x
    part = y[0]
    x.grad = None
    Double_.apply(part)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 1.0]

    class Forgets(Double_):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x * 1

    with pytest.raises(RuntimeError, match="must all be outputs"):
        Forgets.apply(x * 1)


def test_returning_an_input_gives_another_tensor():
    class Identity(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 10

    x = leaf(1.0, 2.0)
    y = Identity.apply(x)
    assert y is not x and x.is_leaf and not y.is_leaf
    y.sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]
    plain = torch.ones(2)
    assert Identity.apply(plain) is not plain


def test_view_of_an_input():
    class First(Function):
        @staticmethod
        def forward(ctx, x):
            return x[0]

        @staticmethod
        def backward(ctx, grad):
            return torch.stack([grad * 7, grad * 0])

    x = leaf(1.0, 2.0)
    y = First.apply(x)
    assert y.grad_fn.name() == "FirstBackward"
    y.backward()
    assert x.grad.tolist() == [7.0, 0.0]


def test_broadcast_and_cast_gradients():
    class Wide(Function):
        @staticmethod
        def forward(ctx, x):
            return x.expand(2, 3).clone()

        @staticmethod
        def backward(ctx, grad):
            return grad.double()

    x = leaf(1.0, dtype=torch.float32)
    Wide.apply(x).sum().backward()
    assert (x.grad.item(), x.grad.dtype) == (6.0, torch.float32)


def function_returning(result):
    class Returns(Function):
        @staticmethod
        def forward(ctx, x, number):
            return x * number

        @staticmethod
        def backward(ctx, grad):
            return result

    return Returns


@pytest.mark.parametrize(
    ("result", "error", "text"),
    [
        ((None,), RuntimeError, r"ReturnsBackward returned an incorrect number of gradients \(expected 2, got 1\)"),
        ((None, None, torch.ones(1)), RuntimeError, r"expected 2, got 3"),
        ((None, torch.ones(1)), RuntimeError, "different than None at position 2"),
        ((3.0, None), RuntimeError, "expected Variable or None"),
        (
            (torch.ones(5), None),
            RuntimeError,
            r"invalid gradient at index 0 - got \[5\] but expected shape compatible with \[2\]",
        ),
    ],
)
def test_wrong_results(result, error, text):
    with pytest.raises(error, match=text):
        function_returning(result).apply(leaf(1.0, 2.0), 2.0).sum().backward()


def test_allowed_results():
    x = leaf(1.0, 2.0)
    function_returning((None, None)).apply(x, 2.0).sum().backward()
    assert x.grad is None
    function_returning((torch.ones(2), None, None, None)).apply(x, 2.0).sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_version_of_saved_tensors_is_checked():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = Cube.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"saved for CubeBackward, is at version 1; expected version 0"):
        z.sum().backward()
    sin, _ = SinCos.apply(x)
    sin.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        sin.sum().backward()


def test_saved_outputs_make_no_cycle():
    gc.disable()
    try:
        sin, cos = SinCos.apply(leaf(0.5))
        node = weakref.ref(sin.grad_fn)
        array = weakref.ref(sin.array)
        del sin, cos
        assert node() is None
        assert array() is None
        y = Double_.apply(leaf(1.0) * 1)
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_saved_tensor_hooks_reach_functions():
    packed = []
    x = leaf(0.5, 1.5)
    with graph.saved_tensors_hooks(lambda t: packed.append(1) or t.detach().numpy().copy(), torch.from_numpy):
        y = Cube.apply(x)
        sin, _ = SinCos.apply(x)
    assert len(packed) == 3
    (y + sin).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * x.detach().numpy() ** 2 + np.cos(x.detach().numpy()))


def test_once_differentiable():
    class Once(Square):
        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            assert not torch.is_grad_enabled()
            return grad * 2 * ctx.saved_tensors[0]

    x = leaf(3.0)
    y = Once.apply(x)
    assert torch.autograd.grad(y, x, retain_graph=True)[0].item() == 6.0
    (g,) = torch.autograd.grad(y * x, x, create_graph=True)
    assert g.item() == 27.0
    with pytest.raises(
        RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"
    ):
        g.backward()


def test_unfinished_functions():
    class Nothing(Function):
        pass

    with pytest.raises(NotImplementedError, match="forward"):
        Nothing.apply(1)

    class NoBackward(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="either the backward or vjp"):
        NoBackward.apply(leaf(1.0)).backward()
    with pytest.raises(RuntimeError, match="Legacy autograd function"):
        NoBackward()(leaf(1.0))
    with pytest.raises(TypeError, match="save_for_backward can only save variables"):

        class SavesNumber(NoBackward):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(3)

        SavesNumber.apply(leaf(1.0))

    class Vjp(NoBackward):
        @staticmethod
        def vjp(ctx, grad):
            return grad * 2

    x = leaf(1.0)
    Vjp.apply(x).backward()
    assert x.grad.item() == 2.0


def test_backward_inside_backward():
    class Inner(Square):
        @staticmethod
        def backward(ctx, grad):
            x = ctx.saved_tensors[0].detach().requires_grad_()
            with torch.enable_grad():
                y = x * x
            y.backward(grad)
            return x.grad

    x = leaf(1.0, 2.0)
    (Inner.apply(x) * 3).sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]
