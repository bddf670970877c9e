"""The engine: accumulation, targets, versions, views and leaves."""

import gc
import weakref

import numpy as np
import pytest

import corefw as torch
from corefw.autograd import graph
from corefw.dispatch.registry import registry
from tests.leaves import leaf, same


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
