"""The engine: accumulation, hooks, targets, versions, views, grad modes and threads."""

import gc
import threading
import weakref

import numpy as np
import pytest

import corefw as torch
from corefw.autograd import graph
from corefw.dispatch.registry import registry
from corefw.graph.grad_mode import mode


def leaf(*values, dtype=torch.float64):
    return torch.tensor(values if len(values) != 1 else values[0], dtype=dtype, requires_grad=True)


def same(tensor, expected):
    np.testing.assert_allclose(tensor.detach().numpy(), expected)


# -- backward ---------------------------------------------------------------------------------------------------------
def test_chain_of_many_ops_runs_each_node_once_and_frees_all():
    length = 100_000
    x = leaf(1.0)
    y = x
    for _ in range(length):
        y = y * 1.0
    first = weakref.ref(y.grad_fn)
    y.backward()
    assert x.grad.item() == 1.0
    assert y.grad_fn.saved is None
    del y
    assert first() is None


def test_diamond_counts_work_not_paths():
    x = leaf(1.0)
    y = x
    calls = []
    for _ in range(50):  # 2**50 paths
        y = y + y
    node = y.grad_fn
    while node is not None:
        if node.name() == "AddBackward0":
            node.register_hook(lambda *_: calls.append(1))
        node = node.next_functions[0][0] if node.next_functions else None
    y.backward()
    assert len(calls) == 50
    assert x.grad.item() == 2.0**50


def test_gradients_accumulate():
    x = leaf(1.0, 2.0)
    for _ in range(3):
        (x * x).sum().backward()
    same(x.grad, [6.0, 12.0])


def test_accumulation_goes_into_the_same_tensor():
    x = leaf(1.0, 2.0)
    x.sum().backward()
    before = x.grad
    x.sum().backward()
    assert x.grad is before


def test_create_graph_replaces_the_gradient():
    x = leaf(1.0, 2.0)
    (x**3).sum().backward(create_graph=True)
    before = x.grad
    assert before.requires_grad
    (x**3).sum().backward(create_graph=True)
    assert x.grad is not before
    same(before, [3.0, 12.0])


@pytest.mark.parametrize("make", [lambda x, y: x + y, lambda x, y: x - y + y * 2, lambda x, y: (x + y).expand(2, 2)])
def test_leaves_never_share_memory_of_gradients(make):
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    out = make(x, y)
    start = torch.ones_like(out)
    out.backward(start)
    assert not np.shares_memory(x.grad.numpy(), y.grad.numpy())
    assert not np.shares_memory(x.grad.numpy(), start.numpy())
    before = y.grad.tolist()
    x.grad.zero_()
    assert y.grad.tolist() == before
    assert start.tolist() == torch.ones_like(out).tolist()


def test_given_gradient_is_not_taken():
    x = leaf(1.0, 2.0)
    start = torch.ones(2, dtype=torch.float64)
    x.backward(start)
    x.grad.add_(1)
    assert start.tolist() == [1.0, 1.0]


def test_gradient_of_a_sum_owns_its_memory():
    x = leaf(1.0, 2.0, 3.0)
    x.sum().backward()
    assert x.grad.stride() == (1,)
    x.grad[0] = 5.0
    assert x.grad.tolist() == [5.0, 1.0, 1.0]


def test_gradient_seen_by_a_hook_is_not_taken():
    x = leaf(1.0, 2.0)
    seen = []
    x.register_hook(lambda g: seen.append(g))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    assert [g.tolist() for g in seen] == [[2.0, 2.0]] * 2
    assert seen[0] is not x.grad


def test_fresh_gradient_is_kept_without_a_copy(monkeypatch):
    x, weight = leaf(1.0, 2.0), torch.tensor([3.0, 4.0], dtype=torch.float64)
    clones = []
    clone = torch.Tensor.clone
    monkeypatch.setattr(torch.Tensor, "clone", lambda self: clones.append(1) or clone(self))
    (x * weight).backward(torch.ones(2, dtype=torch.float64))
    assert not clones
    x.grad = None
    (x + weight).backward(torch.ones(2, dtype=torch.float64))
    assert clones


@pytest.mark.parametrize(
    ("shape", "other"), [((2, 1), (2, 3)), ((), (2, 3)), ((1,), (3,)), ((3,), (2, 3)), ((1, 1), (4, 5))]
)
def test_broadcasting_is_undone(shape, other):
    x = torch.ones(shape, dtype=torch.float64, requires_grad=True)
    y = torch.ones(other, dtype=torch.float64, requires_grad=True)
    (x * y * 2).sum().backward()
    assert x.grad.shape == shape
    same(x.grad, np.full(shape, 2.0 * np.prod(other) / np.prod(shape)))
    same(y.grad, np.full(other, 2.0))


def test_dtype_is_restored():
    x, y = leaf(1.0, 2.0, dtype=torch.float32), leaf(1.0, 2.0)
    (x * y).sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (torch.float32, torch.float64)
    z = leaf(1 + 1j, dtype=torch.complex128)
    x.grad = None
    (x * z).sum().abs().backward()
    assert (x.grad.dtype, z.grad.dtype) == (torch.float32, torch.complex128)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: (x * 2).backward(), "grad can be implicitly created only for scalar outputs"),
        (
            lambda x: x.detach().sum().backward(),
            "element 0 of tensors does not require grad and does not have a grad_fn",
        ),
        (lambda x: (x * 2).backward(torch.ones(3, dtype=torch.float64)), "Mismatch in shape"),
        (lambda x: (x * (1 + 1j)).sum().backward(), "only for real scalar outputs"),
        (lambda x: (x * 2).backward(torch.ones(2, dtype=torch.complex128)), "Mismatch in dtype"),
        (lambda x: x.sum().backward(inputs=[]), "cannot be empty"),
        (lambda x: x.sum().backward(inputs=[torch.ones(1)]), "does not require grad"),
        (lambda x: torch.autograd.backward([x.sum()], [None, None]), "1 tensors and 2 gradients"),
    ],
)
def test_backward_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call(leaf(1.0, 2.0))


def test_second_backward_needs_retain_graph():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    same(x.grad, [4.0, 8.0])
    with pytest.raises(RuntimeError, match=r"backward through the graph a second time.*retain_graph=True"):
        y.backward()
    z = (x + x).sum()  # saves nothing
    z.backward()
    z.backward()


def test_backward_of_several_tensors():
    x = leaf(2.0)
    torch.autograd.backward([x * 3, x * x], [None, torch.tensor(10.0, dtype=torch.float64)])
    assert x.grad.item() == 43.0
    y = leaf(2.0)
    z = y * 3
    torch.autograd.backward([z, z])
    assert y.grad.item() == 6.0


def test_exception_in_backward_restores_the_mode():
    x = leaf(1.0, 2.0)
    y = x * x

    def fail(gradient):
        raise ValueError("from the hook")

    y.register_hook(fail)
    with pytest.raises(ValueError, match="from the hook"):
        y.sum().backward()
    assert torch.is_grad_enabled()
    with pytest.raises(ValueError), torch.no_grad():
        torch.autograd.backward(y, torch.ones_like(y))
    assert torch.is_grad_enabled()


def test_backward_inside_no_grad_and_create_graph():
    x = leaf(2.0)
    y = x**3
    with torch.no_grad():
        y.backward(create_graph=True)
    assert x.grad.requires_grad
    assert torch.is_grad_enabled()


def test_leaf_that_is_gone_gets_nothing():
    x, y = leaf(1.0), leaf(2.0)
    z = x + y
    gone = weakref.ref(x)
    del x
    assert gone() is None
    z.backward()
    assert y.grad.item() == 1.0


def test_graph_is_freed_without_the_garbage_collector():
    gc.disable()
    try:
        x = leaf(1.0, 2.0)
        y = (x * x).exp().softmax(0).max(0)
        reference = weakref.ref(y[0].grad_fn)
        y[0].backward()
        del y
        assert reference() is None
    finally:
        gc.enable()


# -- grad -------------------------------------------------------------------------------------------------------------
def test_grad_returns_and_leaves_grad_alone():
    x, y = leaf(2.0), leaf(3.0)
    gx, gy = torch.autograd.grad(x * x * y, [x, y])
    assert (gx.item(), gy.item(), x.grad, y.grad) == (12.0, 4.0, None, None)


def test_grad_of_intermediate_and_repeated_inputs():
    x = leaf(2.0)
    y = x * 3
    z = y * y
    gy, gx, again = torch.autograd.grad(z, [y, x, y])
    assert (gy.item(), gx.item(), again.item()) == (12.0, 36.0, 12.0)
    (itself,) = torch.autograd.grad(z, z)
    assert itself.item() == 1.0


def test_grad_runs_only_what_is_needed():
    x, y = leaf(2.0), leaf(3.0)
    a, b = x * 2, y.exp()
    ran = []
    a.grad_fn.register_hook(lambda *_: ran.append("a"))
    b.grad_fn.register_hook(lambda *_: ran.append("b"))
    torch.autograd.grad(a * b, x, retain_graph=True)
    assert ran == ["a"]
    ran.clear()
    torch.autograd.grad(a * b, [a, b])
    assert ran == []


def test_unused_inputs():
    x, y = leaf(1.0, 2.0), leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(x.sum(), [x, y])
    assert torch.autograd.grad(x.sum(), [x, y], allow_unused=True)[1] is None
    zeros = torch.autograd.grad(x.sum(), [x, y], materialize_grads=True)[1]
    assert zeros.tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="allow_unused"):
        torch.autograd.grad(x.sum(), [x, y], allow_unused=False, materialize_grads=True)
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.autograd.grad(x.sum(), torch.ones(2), allow_unused=True)


def test_batched_grads_are_rows_of_the_jacobian():
    x = leaf(1.0, 2.0, 3.0)
    (rows,) = torch.autograd.grad(x * x, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)
    same(rows, np.diag([2.0, 4.0, 6.0]))
    starts = torch.eye(3, dtype=torch.float64)
    _, zeros = torch.autograd.grad(x * x, [x, leaf(1.0)], starts, is_grads_batched=True, materialize_grads=True)
    assert zeros.item() == 0.0


def test_third_derivative():
    x = leaf(2.0)
    g = x**4
    for expected in (32.0, 48.0, 48.0):
        (g,) = torch.autograd.grad(g, x, create_graph=True)
        assert g.item() == pytest.approx(expected)


def test_inputs_of_backward():
    x, y = leaf(2.0), leaf(3.0)
    z = x * y
    w = z * z
    w.backward(inputs=[x, z])
    assert (x.grad.item(), y.grad, z.grad.item()) == (36.0, None, 12.0)


def test_gradient_edges():
    x = leaf(1.0, 2.0)
    y = x * 3
    edge = graph.get_gradient_edge(y)
    assert edge.node is y.grad_fn and edge.output_nr == 0
    z = (y * y).sum()
    del y
    same(torch.autograd.grad(z, edge)[0], [6.0, 12.0])
    same(torch.autograd.grad(edge, x, torch.ones(2, dtype=torch.float64))[0], [3.0, 3.0])


# -- several outputs --------------------------------------------------------------------------------------------------
def test_some_outputs_of_several():
    x = torch.arange(6, dtype=torch.float64).reshape(2, 3).requires_grad_()
    values, indices = x.max(dim=1)
    assert not indices.requires_grad
    assert values.grad_fn.name() == "MaxBackward0"
    (values * torch.tensor([1.0, 10.0], dtype=torch.float64)).sum().backward()
    same(x.grad, [[0, 0, 1], [0, 0, 10]])
    for take in (lambda x: x.unbind(0)[1], lambda x: x.split(1)[1][0], lambda x: x.chunk(2)[1][0]):
        x.grad = None
        (take(x) * 2).sum().backward()
        same(x.grad, [[0, 0, 0], [2, 2, 2]])


def test_outputs_share_a_node_and_have_their_own_hooks():
    x = leaf(1.0, 2.0)
    a, b = x.unbind()
    assert a.grad_fn is b.grad_fn
    assert (a.output_nr, b.output_nr) == (0, 1)
    seen = []
    b.register_hook(lambda g: seen.append(g.item()))
    b.retain_grad()
    (a * 3 + b * 5).backward()
    assert seen == [5.0]
    assert b.grad.item() == 5.0
    assert torch.autograd.grad(x.unbind()[1] * 2, x)[0].tolist() == [0.0, 2.0]
    c, d = x.unbind()
    gc_, gd = torch.autograd.grad(c * d, [c, d])
    assert (gc_.item(), gd.item()) == (2.0, 1.0)


def test_next_functions():
    x, y = leaf(1.0), leaf(2.0)
    z = x * y + x.unsqueeze(0).unbind()[0]
    (mul, _), (unbind, index) = z.grad_fn.next_functions
    assert (z.grad_fn.name(), mul.name(), unbind.name(), index) == (
        "AddBackward0",
        "MulBackward0",
        "UnbindBackward0",
        0,
    )
    accumulate = mul.next_functions[0][0]
    assert accumulate.name() == "torch::autograd::AccumulateGrad"
    assert accumulate.variable is x
    assert (x * 2).grad_fn.next_functions == ((accumulate, 0), (None, 0))
    assert repr(mul).startswith("<MulBackward0 object at 0x")
    mul.metadata["note"] = 1
    assert mul.metadata == {"note": 1}
    with pytest.raises(AttributeError, match="MulBackward0"):
        mul.nothing


def test_saved_values_can_be_read():
    x = leaf(1.0, 2.0)
    y = x.exp()
    assert y.grad_fn._saved_result.tolist() == y.tolist()
    assert y.grad_fn._saved_result.grad_fn is y.grad_fn
    z = x * y
    assert z.grad_fn._saved_self is x
    z.sum().backward()
    with pytest.raises(RuntimeError, match="second time"):
        z.grad_fn._saved_self


# -- hooks ------------------------------------------------------------------------------------------------------------
def test_hooks_run_in_order_and_replace():
    x = leaf(1.0)
    y = x * 2
    order = []

    def tensor_hook(name, factor):
        def hook(gradient):
            order.append((name, gradient.item()))
            return gradient * factor

        return hook

    y.register_hook(tensor_hook("first", 2))
    y.retain_grad()
    y.register_hook(tensor_hook("second", 5))
    y.grad_fn.register_prehook(lambda gradients: order.append(("before", gradients[0].item())))
    y.grad_fn.register_hook(lambda inputs, outputs: order.append(("after", inputs[0].item(), outputs[0].item())))
    x.register_hook(tensor_hook("leaf", 1))
    x.register_post_accumulate_grad_hook(lambda t: order.append(("accumulated", t.grad.item())))
    y.backward()
    assert order == [
        *(("first", 1.0), ("second", 2.0), ("before", 10.0), ("after", 20.0, 10.0), ("leaf", 20.0)),
        ("accumulated", 20.0),
    ]
    assert (y.grad.item(), x.grad.item()) == (10.0, 20.0)


def test_node_hooks_replace():
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 3,))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1, *inputs[1:]))
    y.backward()
    assert x.grad.item() == 7.0
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: (None,) * 7)
    with pytest.raises(RuntimeError, match="returned 7 gradients"):
        y.backward()


def test_hooks_can_be_removed():
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 100)
    with x.register_hook(lambda g: g * 10):
        x.sum().backward()
    handle.remove()
    handle.remove()
    x.sum().backward()
    assert x.grad.item() == 1001.0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: torch.ones(1).register_hook(print),
            "cannot register a hook on a tensor that doesn't require gradient",
        ),
        (lambda: torch.ones(1).retain_grad(), "can't retain_grad on Tensor that has requires_grad=False"),
        (lambda: torch.ones(1).register_post_accumulate_grad_hook(print), "doesn't require gradient"),
        (lambda: (leaf(1.0) * 2).register_post_accumulate_grad_hook(print), "non-leaf"),
    ],
)
def test_hook_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def test_wrong_hook_results():
    x = leaf(1.0, 2.0)
    with x.register_hook(lambda g: 3.0), pytest.raises(TypeError, match="return None or a Tensor"):
        x.sum().backward()
    with x.register_hook(lambda g: g.sum()), pytest.raises(RuntimeError, match="changed the size"):
        x.sum().backward()


def test_hook_may_differentiate():
    x = leaf(3.0)
    y = x * x
    inner = []

    @torch.enable_grad()
    def hook(gradient):
        inner.append(torch.autograd.grad(x * x * x, x)[0].item())

    y.register_hook(hook)
    y.backward()
    assert (inner, x.grad.item()) == ([27.0], 6.0)


def test_retain_grad_keeps_its_own_copy_and_follows_changes():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad
    z = y + x
    start = torch.ones(2, dtype=torch.float64)
    z.backward(start)
    y.grad.mul_(7)
    assert (start.tolist(), x.grad.tolist()) == ([1.0, 1.0], [2.0, 2.0])
    y = x * 1.0
    y.retain_grad()
    y.mul_(3.0)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]


def test_multi_grad_hook():
    x, y = leaf(1.0), leaf(2.0)
    found = []
    with graph.register_multi_grad_hook([x, y], lambda grads: found.append([g.item() for g in grads])):
        (x * y).backward()
    assert found == [[2.0, 1.0]]
    with graph.register_multi_grad_hook([x, y], lambda g: found.append(g.item()), mode="any"):
        (x * 1 + y * 1).backward()
    assert found[1:] == [1.0]


# -- in-place changes -------------------------------------------------------------------------------------------------
def test_changed_saved_tensor_is_noticed():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*version 1; expected version 0"):
        z.sum().backward()
    out = (x * 1).exp()
    out.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    weight = torch.ones(2, dtype=torch.float64)
    z = x * weight
    weight[0] = 5
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    z = x * weight
    graph.increment_version([weight])
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_change_through_a_view_is_noticed():
    x = leaf(1.0, 2.0)
    y = x * 1
    z = y * y
    y[0].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize("operand", [lambda y: y, lambda y: y.flip(0)[:] * 0 + y[:], lambda y: y[:]])
def test_operand_that_is_changed_itself_is_noticed(operand):
    x = leaf(1.0, 2.0)
    y = x * 1
    other = operand(y)
    y.mul_(other)
    if other._version:  # it shares memory with what was changed
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.sum().backward()
    else:
        y.sum().backward()
        same(x.grad, [2.0, 4.0])


def test_change_by_a_number_saves_nothing():
    y = leaf(1.0, 2.0) * 1
    y.mul_(3.0)
    assert y.grad_fn._saved_self is None


def test_changes_are_differentiated():
    x = leaf(1.0, 2.0)
    y = x * 3
    y.mul_(2).add_(1)
    y[0].mul_(5)
    y.sum().backward()
    same(x.grad, [30.0, 6.0])


def test_view_follows_its_base():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    view = y[1:]
    y.mul_(10)
    (view * torch.tensor([1.0, 2.0], dtype=torch.float64)).sum().backward()
    same(x.grad, [0.0, 10.0, 20.0])


def test_leaf_cannot_be_changed():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        x.mul_(2)
    with pytest.raises(RuntimeError, match="view of a leaf Variable"):
        x[0].mul_(2)
    with torch.no_grad():
        x.mul_(2)
    assert x.tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="multiple views"):
        (x * 1).unbind()[0].mul_(2)


# -- modes ------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("context", "enabled"),
    [
        (torch.no_grad, False),
        (torch.enable_grad, True),
        (lambda: torch.set_grad_enabled(False), False),
        (lambda: torch.set_grad_enabled(True), True),
        (torch.inference_mode, False),
        (lambda: torch.inference_mode(False), True),
    ],
)
def test_modes(context, enabled):
    with context():
        assert torch.is_grad_enabled() is enabled
        with torch.no_grad():
            assert not torch.is_grad_enabled()
            with context():
                pass
            assert not torch.is_grad_enabled()
        assert torch.is_grad_enabled() is enabled
    assert torch.is_grad_enabled()

    @context()
    def function():
        return torch.is_grad_enabled()

    assert torch.is_grad_enabled()
    assert function() is enabled
    assert function() is enabled
    assert torch.is_grad_enabled()


def test_bare_decorators_keep_names():
    @torch.no_grad
    def first():
        """First."""
        return torch.is_grad_enabled()

    @torch.inference_mode
    def second():
        return torch.is_inference_mode_enabled()

    assert (first(), second(), first.__name__, first.__doc__) == (False, True, "first", "First.")
    assert not torch.is_inference_mode_enabled()


def test_mode_survives_exceptions_and_reentry():
    context = torch.no_grad()
    with pytest.raises(ValueError), context, context:
        raise ValueError
    assert torch.is_grad_enabled()


def test_inference_mode_cannot_be_left_by_enable_grad():
    x = leaf(1.0)
    with torch.inference_mode():
        with torch.enable_grad():
            assert not (x * 2).requires_grad
        with torch.no_grad():
            assert torch.is_inference_mode_enabled()
        assert torch.is_inference_mode_enabled()
        with torch.inference_mode(False):
            assert (x * 2).requires_grad


def test_set_grad_enabled_as_a_function():
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    assert torch.is_grad_enabled()


def test_generators_switch_at_each_step():
    seen = []

    @torch.no_grad()
    def generator():
        try:
            seen.append(torch.is_grad_enabled())
            got = yield 1
            seen.append(torch.is_grad_enabled())
            try:
                yield got
            except KeyError:
                seen.append(torch.is_grad_enabled())
                yield "caught"
            return "done"
        finally:
            seen.append(("closed", torch.is_grad_enabled()))

    steps = generator()
    assert next(steps) == 1
    assert torch.is_grad_enabled()
    assert steps.send("sent") == "sent"
    assert steps.throw(KeyError()) == "caught"
    assert torch.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        next(steps)
    assert stop.value.value == "done"
    assert seen == [False, False, False, ("closed", False)]
    seen.clear()
    steps = generator()
    next(steps)
    steps.close()
    assert seen == [False, ("closed", False)]


def test_mode_belongs_to_the_thread():
    found = {}

    def look():
        found["other"] = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    with torch.no_grad():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert found == {"other": True}
    assert torch.is_grad_enabled()


def test_threads_run_their_own_graphs():
    results, errors = {}, []

    def work(number):
        try:
            x = leaf(float(number))
            for _ in range(20):
                y = x
                for _ in range(100):
                    y = y * 1.0
                y.backward()
            results[number] = x.grad.item()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert results == dict.fromkeys(range(4), 20.0)


# -- saved-tensor hooks -----------------------------------------------------------------------------------------------
def test_saved_tensors_are_packed_and_unpacked():
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor.tolist())
        assert not torch.is_grad_enabled()
        return tensor.detach().numpy().copy()

    def unpack(array):
        unpacked.append(array.tolist())
        return torch.from_numpy(array)

    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with graph.saved_tensors_hooks(pack, unpack):
        z = (x * y).exp()
    assert sorted(packed) == sorted([x.tolist(), y.tolist(), z.tolist()])
    assert not unpacked
    z.sum().backward()
    assert len(unpacked) == 3
    same(x.grad, np.exp([3.0, 8.0]) * [3.0, 4.0])
    same(y.grad, np.exp([3.0, 8.0]) * [1.0, 2.0])
    (x * y).sum().backward()
    assert len(packed) == 3


def test_hooks_work_for_second_derivatives_lists_and_several_outputs():
    x = leaf(1.0, 2.0)
    copies = []
    with graph.saved_tensors_hooks(lambda t: copies.append(1) or t.detach().clone(), lambda t: t):
        y = torch.cat([x * x, x.exp()]).max(0)[0] * x.prod()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
    with_hooks = torch.autograd.grad(g.sum(), x)[0].tolist()
    y = torch.cat([x * x, x.exp()]).max(0)[0] * x.prod()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == with_hooks
    assert copies


def test_innermost_hooks_count_and_can_be_forbidden():
    x = leaf(1.0, 2.0)
    seen = []
    with graph.saved_tensors_hooks(lambda t: seen.append("outer") or t, lambda t: t):
        with graph.saved_tensors_hooks(lambda t: seen.append("inner") or t, lambda t: t):
            x * x
        inner = list(seen)
        x * x
    assert set(inner) == {"inner"}
    assert set(seen[len(inner) :]) == {"outer"}
    assert mode.recorder is True and mode.recording is True
    with (
        graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        pass


def test_hooks_do_not_switch_gradients_on():
    x = leaf(1.0, 2.0)
    seen = []
    with torch.no_grad(), graph.saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t):
        assert not (x * x).requires_grad
        with torch.enable_grad():
            assert (x * x).requires_grad
    assert seen
    assert torch.is_grad_enabled() and mode.recorder is True


def test_hooks_may_compute_and_may_keep_parameters():
    x, weight = leaf(1.0, 2.0), torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    kinds = []

    def pack(tensor):
        kinds.append(type(tensor))
        return tensor if tensor is weight else tensor * 1

    with graph.saved_tensors_hooks(pack, lambda t: t):
        y = x * weight
    y.sum().backward()
    assert set(kinds) == {torch.Tensor, torch.nn.Parameter}
    assert (x.grad.tolist(), weight.grad.tolist()) == ([1.0, 1.0], [1.0, 2.0])


def test_bad_hooks():
    x = leaf(1.0, 2.0)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type int"):
        y.sum().backward()
    with (
        graph.saved_tensors_hooks(lambda t: t.detach().mul_(2), lambda t: t),
        pytest.raises(RuntimeError, match="modifying its input in place"),
    ):
        x.exp()


def test_save_on_cpu():
    x = leaf(1.0, 2.0)
    with graph.save_on_cpu():
        y = (x * x).sum()
    y.backward()
    same(x.grad, [2.0, 4.0])


# -- anomaly mode -----------------------------------------------------------------------------------------------------
def test_anomaly_mode_names_function_and_line():
    x = leaf(float("nan"), 1.0)
    with (
        pytest.warns(UserWarning, match=r"(?s)Error detected in MulBackward0.*x \* x  # the culprit"),
        pytest.raises(RuntimeError, match="Function 'MulBackward0' returned nan values in its 0th output"),
        torch.autograd.set_detect_anomaly(True),
    ):
        y = x * x  # the culprit
        y.sum().backward()
    assert mode.recorder is True and mode.recording is True and mode.call_node is None


def test_anomaly_mode_without_forward_and_without_nan_check():
    x = leaf(float("nan"), 1.0)
    y = (x * x).sum()
    with (
        pytest.warns(UserWarning, match="No forward pass information"),
        pytest.raises(RuntimeError),
        torch.autograd.set_detect_anomaly(True),
    ):
        y.backward(retain_graph=True)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        y.backward()
    assert np.isnan(x.grad.tolist()[0])
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), torch.autograd.detect_anomaly():
        assert torch.autograd.anomaly_mode.is_anomaly_enabled()
    assert not torch.autograd.anomaly_mode.is_anomaly_enabled()


def test_anomaly_mode_explains_version_errors_and_stacks_with_hooks():
    x = leaf(1.0, 2.0)
    packed = []
    with (
        torch.autograd.set_detect_anomaly(True),
        graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t),
    ):
        y = x.exp()
        assert y.grad_fn.metadata["traceback_"]
    assert packed
    z = y * 1
    with torch.autograd.set_detect_anomaly(True):
        w = z * z
        z.add_(1)
        with (
            pytest.warns(UserWarning, match=r"(?s)MulBackward0.*w = z \* z"),
            pytest.raises(RuntimeError, match="inplace"),
        ):
            w.sum().backward()
    assert torch.is_grad_enabled() and mode.recorder is True


# -- leaves -----------------------------------------------------------------------------------------------------------
def test_leaf_rules():
    x = leaf(1.0, 2.0)
    y = x * 2
    assert (x.is_leaf, y.is_leaf, y.detach().is_leaf) == (True, False, True)
    assert x.grad_fn is None and y.detach().grad_fn is None
    with pytest.raises(RuntimeError, match="leaf variables"):
        y.requires_grad = False
    y.requires_grad_()
    with pytest.raises(RuntimeError, match="floating point"):
        torch.ones(2, dtype=torch.int64).requires_grad_()
    assert torch.autograd.Variable(torch.ones(1), requires_grad=True).requires_grad
    assert isinstance(x, torch.autograd.Variable)


def test_every_op_node_knows_what_it_saves():
    from corefw.dispatch.generation.compiling import node_class

    for op in set(registry.declared.values()):
        if op.gradients:
            cls = node_class(op)
            assert cls.saves_tensors == any(kind in ("output", "tensor", "tensors") for _, kind in cls.saved_kinds)


def test_a_picture_of_the_graph():
    x = torch.ones(3, requires_grad=True)
    values, _ = (x * x).max(0)
    text = torch.autograd.graph.dot(values, names={"weights": x})
    assert text.startswith("digraph {") and text.endswith("}")
    assert text.count("label=") == 3 and text.count("MulBackward0") == 1
    assert 'label="weights\\n(3,)" shape=box' in text
    assert text.count(" -> ") == 3  # both factors of the product are x
