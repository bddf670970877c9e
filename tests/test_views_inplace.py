"""In-place changes of views: values and gradients, as PyTorch's."""

import numpy as np
import pytest

import corefw
from tests.scenarios import Scenarios, leaf, rounded

scenario = Scenarios()


# -- changes of a view, seen by its base and by other views -----------------------------------------------------------
@scenario(([2.0, 4.0, 12.0, 8.0], [4.0, 12.0], [40.0, 160.0, 96.0, 32.0], "torch::autograd::CopySlices"))
def view_of_a_computed_tensor(torch):
    x = leaf(torch, 1, 2, 3, 4)
    y = x * 2
    v = y[1:3]
    v.mul_(x[0:2])
    y.pow(2).sum().backward()
    return y.tolist(), v.tolist(), x.grad.tolist(), y.grad_fn.name()


@scenario(([12.0, 18.0], [0.0, 6.0, 6.0, 0.0]))
def base_changed_after_the_view_was_taken(torch):
    x = leaf(torch, 1, 2, 3, 4)
    y = x * 2
    v = y[1:3]
    y.mul_(3)
    v.sum().backward()
    return v.tolist(), x.grad.tolist()


@scenario(([[10.0, 2.0], [30.0, 4.0]], [[200.0, 4.0], [600.0, 8.0]]))
def chain_of_views(torch):
    x = leaf(torch, [1, 2], [3, 4])
    y = x * 1
    y.t()[0].unsqueeze(0).mul_(10)
    (y * y).sum().backward()
    return y.tolist(), x.grad.tolist()


@scenario(([[5.0, 10.0], [3.0, 4.0]], [50.0, 100.0, 6.0, 8.0]))
def another_view_of_the_same_base(torch):
    x = leaf(torch, 1, 2, 3, 4)
    y = x * 1
    a, b = y[:2], y.view(2, 2)
    a.mul_(5)
    (b * b).sum().backward()
    return b.tolist(), x.grad.tolist()


@scenario(([2.0, 3.0, 1.0, 1.0], [4.0, 6.0], [True, True, True]))
def base_without_a_history(torch):
    w = leaf(torch, 2, 3)
    y = torch.ones(4, dtype=torch.float64)
    v, u = y[:2], y[1:]
    v.mul_(w)
    (y * y).sum().backward()
    return y.tolist(), w.grad.tolist(), [t.requires_grad for t in (y, v, u)]


@scenario(([[4.0, 2.0], [0.0, 3.0]], [5.0, 1.0]))
def copies_into_views(torch):
    w = leaf(torch, 2, 3)
    y = torch.zeros(2, 2, dtype=torch.float64)
    y[0] = w * w
    y[:, 1].copy_(w)
    y.sum().backward()
    return y.tolist(), w.grad.tolist()


@scenario([2.0, 0.0, 18.0])
def element_replaced_by_a_number(torch):
    x = leaf(torch, 1, 2, 3)
    y = x * x
    y[1] = 0
    (y * torch.tensor([1, 2, 3])).sum().backward()
    return x.grad.tolist()


@scenario(([1.0, 7.0, 7.0], [2.0, 0.0, 0.0]))
def view_filled(torch):
    x = leaf(torch, 1, 2, 3)
    y = x * x
    y[1:].fill_(7)
    y.sum().backward()
    return y.tolist(), x.grad.tolist()


@scenario(([0.0, 0.0, 0.0], [0.0, 0.0]))
def base_zeroed(torch):
    x = leaf(torch, 1, 2, 3)
    y = x * x
    v = y[1:]
    y.zero_()
    v.sum().backward()
    return x.grad.tolist(), v.tolist()


@scenario(([[8.0, 100.0], [24.0, 200.0]], [40.0, 200.0]))
def broadcast_operand(torch):
    x, w = leaf(torch, [1, 2], [3, 4]), leaf(torch, 2, 5)
    y = x * 1
    y[0:2].mul_(w)
    (y * y).sum().backward()
    return x.grad.tolist(), w.grad.tolist()


@scenario([2.0, 16.0, 54.0])
def tensor_filled_in_a_loop(torch):
    x = leaf(torch, 1, 2, 3)
    y = torch.zeros(3, dtype=torch.float64)
    for i in range(3):
        y[i] = x[i] * (i + 1)
    (y * y).sum().backward()
    return x.grad.tolist()


@scenario([0.0, 1.0])
def masked_assignment(torch):
    x = leaf(torch, -1, 2)
    y = x * 1
    y[y < 0] = 0
    y.sum().backward()
    return x.grad.tolist()


@scenario(([[3.0, 2.0], [3.0, 12.0]], [[18.0, 4.0], [6.0, 72.0]]))
def diagonal_changed(torch):
    x = leaf(torch, [1, 2], [3, 4])
    y = x * 1
    y.diagonal().mul_(3)
    (y * y).sum().backward()
    return y.tolist(), x.grad.tolist()


@scenario(([1.0, 2.0, 3.0, 8.0], [4.0, 68.0, 6.0, 32.0]))
def strided_view_changed(torch):
    x = leaf(torch, 1, 2, 3, 4)
    y = x * 1
    y.as_strided((2,), (3,)).mul_(x[:2])
    (y * y).sum().backward()
    return y.tolist(), x.grad.tolist()


@scenario([[1.0, 15.0], [10.0, 4.0]])
def gradient_in_another_memory_order(torch):
    x = leaf(torch, [1, 2], [3, 4])
    y = x * 1
    y.view(-1)[1:3].mul_(5)
    (y.t().contiguous() * torch.tensor([[1, 2], [3, 4]])).sum().backward()
    return x.grad.tolist()


@scenario(((1, 2), [[1.0, 15.0], [10.0, 4.0]]))
def base_in_another_memory_order(torch):
    x = leaf(torch, [1, 2], [3, 4])
    y = x.t().clone()
    y.t().view(-1)[1:3].mul_(5)
    (y * torch.tensor([[1, 2], [3, 4]])).sum().backward()
    return y.stride(), x.grad.tolist()


@scenario(([3.0, 1.0], [3.0, 1.0]))
def gradient_retained_of_the_newest_value(torch):
    x = leaf(torch, 1, 2)
    y = x * 1
    z = y.clone()
    z[0].mul_(3)
    z.retain_grad()
    (z * torch.tensor([1, 1])).sum().backward()
    return [3.0 * z.grad[0].item(), z.grad[1].item()], x.grad.tolist()


@scenario((3, 3, 3, 0, [2.0, 2.0, 1.0, 1.0]))
def versions_are_shared(torch):
    y = torch.zeros(4)
    v, d = y[:2], y.detach()
    v.add_(1)
    y.add_(1)
    y.detach()[:2].mul_(1)
    return y._version, v._version, d._version, y.data._version, y.tolist()


# -- second derivatives -----------------------------------------------------------------------------------------------
@scenario(([16.0, 292.0, 204.0], [64.0, 642.0, 332.0]))
def second_derivative_of_a_product(torch):
    x = leaf(torch, 1, 2, 3)
    y = x * x
    y[:2].mul_(x[1:])
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return g.tolist(), h.tolist()


@scenario([3.297443, 4.0, 13.18977, 12.0])
def second_derivative_through_a_saved_output(torch):
    x = leaf(torch, 0.5, 1)
    y = x * x
    y.view(2, 1)[0].exp_()
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return rounded(g, h)


@scenario([0.276742, 0.574939, 0.640234, 0.352811])
def second_derivative_of_a_base(torch):
    x = leaf(torch, 0.5, 1)
    y = x * x
    y.sigmoid_()
    (g,) = torch.autograd.grad((y * y).sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return rounded(g, h)


# -- in-place forms of view ops ---------------------------------------------------------------------------------------
@scenario(((2, 3), [[2.0, 6.0, 10.0], [2.0, 4.0, 6.0]], [[8.0, 4.0], [24.0, 8.0], [40.0, 12.0]], 2))
def base_transposed_in_place(torch):
    x = leaf(torch, [1, 2], [3, 4], [5, 6])
    y = x * 1
    y.t_()
    y[0].mul_(2)
    (y * y).sum().backward()
    return tuple(y.shape), y.tolist(), x.grad.tolist(), y._version


@scenario(([[2.0, 6.0], [2.0, 4.0]], [2.0, 2.0], [[2.0, 2.0], [0.0, 0.0]]))
def base_transposed_under_a_view(torch):
    x = leaf(torch, [1, 2], [3, 4])
    y = x * 1
    v = y[0]
    y.t_()
    y[0].mul_(2)
    (v * torch.tensor([1, 2])).sum().backward()
    return y.tolist(), v.tolist(), x.grad.tolist()


@scenario(([[10.0, 6.0], [20.0, 4.0]], [[10.0, 10.0], [2.0, 1.0]]))
def view_changed_over_a_transposed_base(torch):
    x = leaf(torch, [1, 2], [3, 4])
    y = x * 1
    v = y[0]
    y.t_()
    y[0, 1].mul_(2)
    v.mul_(10)
    y.sum().backward()
    return y.tolist(), x.grad.tolist()


@scenario(([[3.0, 9.0]], [[3.0, 1.0], [3.0, 1.0]]))
def view_transposed_in_place(torch):
    x = leaf(torch, [1, 2], [3, 4])
    y = x * 1
    v = y[:, :1]
    v.t_()
    v.mul_(3)
    y.sum().backward()
    return v.tolist(), x.grad.tolist()


@scenario([[2.0, 4.0]])
def dimensions_inserted_and_removed(torch):
    x = leaf(torch, [1, 2])
    y = x * 1
    y.unsqueeze_(0).squeeze_(0).swapaxes_(0, 0)
    (y * y).sum().backward()
    return x.grad.tolist()


@scenario("a leaf Variable that requires grad is being used in an in-place operation")
def leaf_transposed_in_place(torch):
    leaf(torch, [1, 2], [3, 4]).t_()


@scenario(((2, 1), True, [[2.0], [4.0]]))
def leaf_transposed_without_gradients(torch):
    x = leaf(torch, [1, 2])
    with torch.no_grad():
        x.t_()
    (x * x).sum().backward()
    return tuple(x.shape), x.requires_grad, x.grad.tolist()


@scenario(([[0.0, 2.0]], (1, 2)))
def strides_set_in_place(torch):
    y = torch.arange(4.0)
    y.as_strided_((1, 2), (1, 2))
    return y.tolist(), tuple(y.shape)


test_scenario = scenario.test()


@pytest.mark.parametrize("change", [lambda x: x.t_(), lambda x: x.transpose_(0, 1), lambda x: x.unsqueeze_(0)])
def test_a_tensor_turned_without_recording_keeps_its_history(change):
    leaf = corefw.ones((1, 1), requires_grad=True)
    turned = leaf * 2
    with corefw.no_grad():
        change(turned)
    assert turned.requires_grad
    turned.sum().backward()
    assert leaf.grad.tolist() == [[2.0]]


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", [(3, 3), (2, 4), (7, 2), (4, 2), (0, 2), (3, 0), (3, 3, 3), (2, 2, 2, 2)])
def test_a_filled_diagonal(shape, wrap):
    values = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    expected, kept = values.copy(), np.ones(shape)
    if values.size:
        for array, value in (expected, -5.0), (kept, 0.0):
            np.fill_diagonal(array, value, wrap)
    x = corefw.tensor(values, requires_grad=True)
    y = x.clone()
    assert y.fill_diagonal_(-5, wrap=wrap) is y
    y.sum().backward()
    assert y.tolist() == expected.tolist() and x.grad.tolist() == kept.tolist()
    backwards = corefw.tensor(values.T.copy()).permute(*reversed(range(len(shape))))
    assert backwards.fill_diagonal_(-5, wrap).tolist() == expected.tolist()


def test_zeros_follow_the_rules_of_changes_in_place():
    leaf = corefw.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf Variable"):
        leaf.zero_()
    with pytest.raises(RuntimeError, match="leaf Variable"):
        leaf[:2].zero_()
    one = corefw.ones(1)
    assert one.expand(3).zero_().tolist() == [0] * 3 and one.item() == 0
    y = leaf * 2
    z = y * y
    y.zero_()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    y = leaf * 2
    y.zero_()
    y.sum().backward()
    assert leaf.grad.tolist() == [0] * 3 and leaf.tolist() == [1] * 3
    with corefw.no_grad():
        assert leaf.zero_() is leaf and leaf.tolist() == [0] * 3 and leaf._version == 1
