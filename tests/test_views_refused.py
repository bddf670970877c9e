"""In-place changes of views that are refused, and those that look like them and are not, as PyTorch does."""

from tests.scenarios import Scenarios, leaf

scenario = Scenarios()


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


test_scenario = scenario.test()
