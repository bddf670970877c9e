"""`autograd.grad`: gradients of chosen tensors, in batches, at edges, and what is not computed for them."""

import numpy as np
import pytest

import corefw as torch
from corefw.autograd import graph
from tests.leaves import leaf, same


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


@pytest.mark.parametrize("create_graph", [False, True])
def test_grad_computes_nothing_for_other_inputs(create_graph):
    first, second = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[5.0, 6.0], [7.0, 8.0]])
    product = (first.exp() @ second).sum()
    with torch.ledger() as ran:
        (found,) = torch.autograd.grad(product, second, create_graph=create_graph, retain_graph=True)
    columns = first.detach().exp().sum(0)
    same(found.detach(), torch.stack([columns, columns], 1))
    assert sum(count for (op, *_), count in ran.counts.items() if "matmul" in op) == 1
    product.backward()  # the graph still has all its nodes
    same(first.grad, (first.exp() * second.sum(1)).detach())
    same(second.grad, found.detach())


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
