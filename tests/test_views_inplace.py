"""In-place changes of views: values, gradients and refusals, as PyTorch's.

Each scenario is a program with its outcome written down; where torch is importable it must have the same outcome.
"""

import importlib.util

import pytest

import corefw

FRAMEWORKS = [corefw, *([importlib.import_module("torch")] if importlib.util.find_spec("torch") else [])]
SCENARIOS = []


def scenario(outcome):
    """Register a program with what it returns, or with a part of the message of the RuntimeError it raises."""

    def register(program):
        SCENARIOS.append(pytest.param(program, outcome, id=program.__name__))
        return program

    return register


def leaf(torch, *values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def rounded(*tensors):
    return [round(value, 6) for tensor in tensors for value in tensor.tolist()]


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


# -- refusals ---------------------------------------------------------------------------------------------------------
@scenario("a leaf Variable that requires grad is being used in an in-place operation")
def leaf_changed(torch):
    leaf(torch, 1, 2).mul_(2)


@scenario("a view of a leaf Variable that requires grad is being used in an in-place operation")
def view_of_a_leaf_changed(torch):
    leaf(torch, 1, 2)[0].mul_(2)


@scenario("a view of a leaf Variable that requires grad is being used in an in-place operation")
def element_of_a_leaf_replaced(torch):
    leaf(torch, 1, 2)[0] = 2


@scenario(([7.0, 4.0], [14.0, 8.0]))
def leaf_changed_without_gradients(torch):
    x = leaf(torch, 1, 2)
    with torch.no_grad():
        x.mul_(2)
        x[0] = 7
    (x * x).sum().backward()
    return x.tolist(), x.grad.tolist()


def first_without_gradients(torch, y):
    with torch.no_grad():
        return y[0:1]


@scenario("A view was created in no_grad mode and is being modified inplace")
def view_taken_without_gradients(torch):
    y = leaf(torch, 1, 2) * 1
    v = first_without_gradients(torch, y)
    v.mul_(2)


@scenario("A view was created in no_grad mode and is being modified inplace")
def view_taken_without_gradients_of_a_plain_tensor(torch):
    y = torch.ones(2, dtype=torch.float64)
    v = first_without_gradients(torch, y)
    v.mul_(leaf(torch, 3))


@scenario("A view was created in no_grad mode and its base or another view of its base has been modified inplace")
def base_of_a_view_taken_without_gradients(torch):
    y = leaf(torch, 1, 2) * 1
    v = first_without_gradients(torch, y)
    y.mul_(2)
    return (v * 2).tolist()


@scenario("Output 0 of Split is a view and is being modified inplace")
def part_of_a_split(torch):
    (leaf(torch, 1, 2, 3, 4) * 1).split(2)[0].mul_(2)


@scenario("Output 1 of Unbind is a view and is being modified inplace")
def part_of_an_unbinding(torch):
    (leaf(torch, [1, 2], [3, 4]) * 1).unbind()[1].add_(1)


@scenario("is a view|is the output of a function that returns multiple views")
def part_changed_by_a_recorded_value(torch):
    torch.ones(4, dtype=torch.float64).split(2)[0].mul_(leaf(torch, 3, 4))


@scenario([2.0, 2.0, 1.0, 1.0])
def part_without_gradients(torch):
    y = torch.ones(4)
    y.chunk(2)[0].mul_(2)
    return y.tolist()


@scenario("one of the variables needed for gradient computation has been modified by an inplace operation")
def saved_input_changed(torch):
    y = leaf(torch, 1, 2) * 1
    z = y * y
    y[0] = 5
    z.sum().backward()


@scenario("one of the variables needed for gradient computation has been modified by an inplace operation")
def saved_output_changed_through_a_view(torch):
    y = leaf(torch, 1, 2).exp()
    y.view(2, 1).mul_(2)
    y.sum().backward()


@scenario("one of the variables needed for gradient computation has been modified by an inplace operation")
def saved_input_changed_through_detach(torch):
    y = leaf(torch, 1, 2) * 1
    z = y * y
    y.detach().zero_()
    z.sum().backward()


@scenario([0.0, 0.0])
def saved_input_changed_through_data(torch):
    x = leaf(torch, 1, 2)
    y = x * 1
    z = y * y
    y.data.zero_()
    z.sum().backward()
    return x.grad.tolist()


@scenario("more than one element of the written-to tensor refers to a single memory location")
def expanded_view_changed(torch):
    torch.zeros(1).expand(3).add_(1)


@scenario([[[1.0], [1.0], [1.0]]])
def expanded_without_repetition_changed(torch):
    return torch.zeros(3, 1).expand(1, 3, 1).add_(1).tolist()


@scenario("Can't detach views in-place")
def view_detached_in_place(torch):
    torch.zeros(4)[:2].detach_()


@scenario((False, True, None))
def computed_tensor_detached_in_place(torch):
    y = (leaf(torch, 1) * 2).detach_()
    return y.requires_grad, y.is_leaf, y.grad_fn


@scenario((True, [6.0, 0.0], [6.0, 0.0]))
def views_of_a_base_detached_in_place_keep_their_history(torch):
    grads = []
    for asked_before in (False, True):
        x = leaf(torch, 1, 1)
        y = x * 2
        v = y[0]
        kept = v.requires_grad if asked_before else None
        y.detach_()
        kept = v.requires_grad
        (v * 3).backward()
        grads.append(x.grad.tolist())
    return kept, *grads


def detached_base_and_view(x):
    y = x * 2
    v = y[0]
    return y.detach_(), v


@scenario((None, [4.0, 0.0]))
def base_detached_in_place_and_changed(torch):
    x, w = leaf(torch, 1, 1), leaf(torch, 1, 1)
    y, v = detached_base_and_view(x)
    y.mul_(2)
    y.requires_grad_()
    (v * w[0]).backward()
    return x.grad, w.grad.tolist()


@scenario((None, [6.0, 0.0]))
def base_detached_in_place_and_part_of_another_graph(torch):
    x, w = leaf(torch, 1, 1), leaf(torch, 1, 1)
    y, v = detached_base_and_view(x)
    y.mul_(w)
    (v * 3).backward()
    return x.grad, w.grad.tolist()


@scenario((None, [2.0, 4.0], None))
def leaf_that_no_longer_requires_a_gradient(torch):
    x, w = leaf(torch, 1, 2), leaf(torch, 2, 2)
    v, y = x[1], x * w
    x.requires_grad_(False)
    y.sum().backward()
    first = w.grad.tolist()
    (v * 3).backward()
    return x.grad, [a * 2 for a in first], x.grad


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


@pytest.mark.parametrize("torch", FRAMEWORKS, ids=lambda framework: framework.__name__)
@pytest.mark.parametrize("program, outcome", SCENARIOS)
def test_scenario(torch, program, outcome):
    if isinstance(outcome, str):
        with pytest.raises(RuntimeError, match=outcome):
            program(torch)
    else:
        assert program(torch) == outcome


@pytest.mark.parametrize("change", [lambda x: x.t_(), lambda x: x.transpose_(0, 1), lambda x: x.unsqueeze_(0)])
def test_a_tensor_turned_without_recording_keeps_its_history(change):
    leaf = corefw.ones((1, 1), requires_grad=True)
    turned = leaf * 2
    with corefw.no_grad():
        change(turned)
    assert turned.requires_grad
    turned.sum().backward()
    assert leaf.grad.tolist() == [[2.0]]
