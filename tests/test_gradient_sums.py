"""Sums of gradients: they take the memory of one that only the engine holds, and of no other."""

import numpy as np
import pytest

import corefw as torch
from tests.leaves import leaf, same

START = torch.ones(2, dtype=torch.float64)


class Given(torch.autograd.Function):
    """The identity, whose gradient is what `make` makes of the one that comes."""

    @staticmethod
    def forward(ctx, x, make):
        ctx.make = make
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return ctx.make(gradient), None


def summed(make, times=2.0):
    """The gradient of a tensor which first gets what `make` gives, then `times` the start."""
    x = leaf(1.0, 2.0)
    y = x * 1
    second, first = y * times, Given.apply(y, make)  # the newest goes first
    torch.autograd.backward([first, second], [START * 1, START * 1])
    return x.grad


def address(tensor):
    return tensor.array.__array_interface__["data"][0]


def test_a_sum_takes_the_memory_of_what_the_engine_holds_alone():
    addresses = []

    def make(g):
        gradient = g * 3
        addresses.append(address(gradient))
        return gradient

    x = torch.ones(1000, requires_grad=True)
    y = x * 1
    y.register_hook(lambda g: addresses.append(address(g)))
    others = [y * float(i) for i in range(4)]
    torch.autograd.backward([Given.apply(y, make), *others], [torch.ones(1000)] * 5)
    same(x.grad, [9.0] * 1000)
    first, end = addresses
    assert first == end


def kept_tensor(held):
    return lambda g: held.append(g * 3) or held[0]


def kept_array(held):
    def make(g):
        gradient = g * 3
        held.append(gradient.numpy())
        return gradient

    return make


def kept_view(held):
    def make(g):
        gradient = g * 3
        held.append(gradient[:])
        return gradient

    return make


def kept_whole(held):
    def make(g):
        held.append((g * 3).reshape(2, 1))
        return held[0].reshape(2)

    return make


def kept_detached(held):
    def make(g):
        gradient = g * 3
        held.append(gradient.detach())
        return gradient

    return make


def from_an_array(held):
    held.append(np.full(2, 3.0))
    return lambda g: torch.from_numpy(held[0])


def from_a_part_of_an_array(held):
    held.append(np.full(4, 3.0))
    return lambda g: torch.from_numpy(held[0][1:3])


def from_another_library(held):
    held.append(np.full(2, 3.0))
    return lambda g: torch.from_dlpack(held[0])


def from_a_buffer(held):
    memory = bytearray(np.full(2, 3.0).tobytes())
    held.append(np.frombuffer(memory))
    return lambda g: torch.frombuffer(memoryview(memory), dtype=torch.float64)


def from_a_capsule(held):
    held.append(torch.full((2,), 3.0, dtype=torch.float64))
    return lambda g: torch.from_dlpack(held[0].__dlpack__())


HOLDERS = [
    *(kept_tensor, kept_array, kept_view, kept_whole, kept_detached),
    *(from_an_array, from_a_part_of_an_array, from_another_library, from_a_buffer, from_a_capsule),
]


@pytest.mark.parametrize("holder", HOLDERS)
def test_what_others_hold_stays(holder):
    held = []
    same(summed(holder(held)), [5.0, 5.0])
    assert {float(value) for value in np.ravel(np.asarray(held[0]))} == {3.0}


def test_what_comes_in_stays():
    start = START * 1
    x = leaf(1.0, 2.0)
    y = x * 1
    torch.autograd.backward([y, y * 2], [start, start])
    same(start, [1.0, 1.0])
    same(x.grad, [3.0, 3.0])


def test_one_gradient_of_two_tensors_is_not_changed_for_one_of_them():
    x, y = leaf(1.0, 2.0), leaf(1.0, 2.0)
    a, b = x * 1, y * 1
    more, both = a * 2, a + b  # whose gradient is one tensor, of both
    torch.autograd.backward([both, more], [START * 5, START * 1])
    same(x.grad, [7.0, 7.0])
    same(y.grad, [5.0, 5.0])


def test_a_transpose_of_itself():
    x = torch.ones(3, 3, dtype=torch.float64, requires_grad=True)
    y = x * 1
    gradient = torch.arange(9.0, dtype=torch.float64).reshape(3, 3)
    (y + y.T).backward(gradient)
    same(x.grad, (gradient + gradient.T).tolist())


def test_expanded_gradients():
    x = torch.ones(3, 2, dtype=torch.float64, requires_grad=True)
    y = x * 1
    (y.sum() + (y * 2).sum()).backward()
    same(x.grad, np.full((3, 2), 3.0))


@pytest.mark.parametrize("times", [1, 2])
def test_hooks_and_retained_gradients(times):
    x, seen = leaf(1.0, 2.0), []
    for _ in range(times):
        y = x * 1
        y.retain_grad()
        a = y * 3
        a.retain_grad()
        b = y * 1
        b.register_hook(seen.append)
        c = Given.apply(y, lambda g: g)
        c.register_hook(lambda g: seen.append(g) or g * 2)
        torch.autograd.backward([a, b, c], [START] * 3)
    same(START, [1.0, 1.0])
    same(y.grad, [6.0, 6.0])
    same(a.grad, [1.0, 1.0])
    for gradient in seen:
        same(gradient, [1.0, 1.0])
    same(x.grad, [6.0 * times] * 2)


def test_gradients_of_several_outputs():
    x = leaf(1.0, 2.0, 3.0, 4.0)
    held = []
    first, second = (x * 1).split(2)
    terms = first * 2, Given.apply(first, kept_tensor(held)), first * 4, second * 1
    torch.autograd.backward(terms, [START] * 4)
    same(x.grad, [9.0, 9.0, 1.0, 1.0])
    same(held[0], [3.0, 3.0])


def test_saved_gradients_and_graphs_of_gradients():
    x = leaf(1.0, 2.0)
    y = x * x
    (first,) = torch.autograd.grad((y * y + y * 2 + y).sum(), x, create_graph=True)  # 4 x³ + 6 x
    first.sum().backward()
    same(x.grad, [18.0, 54.0])


def test_read_only_gradients_are_added_elsewhere():
    def make(g):
        array = np.full(2, 3.0)
        array.flags.writeable = False
        return torch.from_numpy(array)

    with pytest.warns(UserWarning, match="not writable"):
        same(summed(make), [5.0, 5.0])


def test_gradients_of_other_layouts():
    x = torch.ones(4, 3, dtype=torch.float64, requires_grad=True)
    y = x * 1
    sparse = torch.nn.functional.embedding(torch.tensor([1, 1]), y, sparse=True)
    ((y * 2).sum() + sparse.sum()).backward()
    same(x.grad, [[2.0] * 3, [4.0] * 3, [2.0] * 3, [2.0] * 3])
