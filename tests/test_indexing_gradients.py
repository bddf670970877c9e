"""Gradients through reading and writing parts of tensors."""

import numpy as np
import pytest

import corefw as torch
from corefw.autograd import gradcheck, gradgradcheck


def parameter(*shape):
    values = np.random.default_rng(len(shape) + sum(shape)).normal(size=shape)
    return torch.from_numpy(np.asarray(values)).requires_grad_()


MASK = torch.tensor([[True, False, True], [False, True, True]])
KEYS = {
    "int": 1,
    "slices": (slice(None), slice(0, None, 2)),
    "none and ellipsis": (None, ..., 0),
    "index": torch.tensor([1, 0, 1]),
    "index of a later dimension": (slice(None), torch.tensor([[2, 2], [0, -1]])),
    "mask": MASK,
    "bool": True,
    "mixed": (torch.tensor([0, 1]), None, torch.tensor([2, 0])),
}


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_gradient_of_getitem(key):
    x = parameter(2, 3)
    assert gradcheck(lambda x: x[key], (x,))
    assert gradgradcheck(lambda x: x[key] * x[key], (x,))


@pytest.mark.parametrize(
    "key", [key for name, key in KEYS.items() if name not in ("index", "index of a later dimension")]
)
def test_gradient_of_setitem_flows_to_both(key):
    x = parameter(2, 3)
    value = parameter(*x.detach()[key].shape)

    def changed(x, value):
        y = x * 1
        y[key] = value * value
        return y * y

    assert gradcheck(changed, (x, value))
    assert gradgradcheck(changed, (x, value))
    assert gradcheck(changed, (x, parameter()))


def test_gradient_of_setitem_with_a_number():
    x = parameter(3)
    y = x * 2
    y[1:] = 5
    y[torch.tensor([0])] = 7
    y.sum().backward()
    assert y.tolist() == [7, 5, 5]
    assert x.grad.tolist() == [0, 0, 0]


def test_gradient_of_setitem_on_a_view():
    x = parameter(2, 3)
    y = x * 1
    y[0][torch.tensor([2, 0])] = 0
    y[:, 1] *= 3
    y.sum().backward()
    assert x.grad.tolist() == [[0, 3, 0], [1, 3, 1]]


def test_setitem_on_a_leaf_is_refused():
    with pytest.raises(RuntimeError, match="leaf Variable"):
        parameter(2)[0] = 1


@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("include_self", [True, False])
def test_gradient_where_the_source_is_larger_than_the_index(reduce, include_self):
    index = torch.tensor([[0, 2, 0]])

    def reduced(x, src):
        return x.scatter_reduce(1, index, src, reduce, include_self=include_self)

    assert gradcheck(reduced, (parameter(2, 3), parameter(2, 4)))
    assert gradgradcheck(reduced, (parameter(2, 3), parameter(2, 4)))


@pytest.mark.parametrize("zeros", [1, 2])
def test_gradient_of_products_of_zeros(zeros):
    src = torch.tensor([0.0] * zeros + [2.0, 3.0], requires_grad=True)
    x = torch.tensor([5.0, 0.0], requires_grad=True)
    x.scatter_reduce(0, torch.tensor([0] * zeros + [0, 1]), src, "prod").sum().backward()
    assert x.grad.tolist() == [0, 3]
    assert src.grad.tolist() == ([10, 0, 0] if zeros == 1 else [0, 0, 0, 0])


def test_gradient_of_scatter_with_a_larger_source():
    index = torch.tensor([[0, 2]])
    assert gradcheck(lambda x, src: x.scatter(1, index, src), (parameter(2, 3), parameter(2, 4)))
    assert gradcheck(lambda x, src: x.scatter_add(1, index, src), (parameter(2, 3), parameter(2, 4)))


def test_gradient_of_fill_values():
    x, value = parameter(2, 3), parameter()
    assert gradcheck(lambda x, v: (x * 1).fill_(v) * x, (x, value))
    assert gradcheck(lambda x, v: x.masked_fill(MASK, v), (x, value))
    assert gradcheck(lambda x, v: x.index_fill(1, torch.tensor([0, -1]), v), (x, value))


def test_where_gives_its_gradient_to_numbers_neighbours():
    x = parameter(2, 3)
    assert gradcheck(lambda x: torch.where(MASK, x, 0), (x,))
    assert gradcheck(lambda x: x.where(MASK, x * x), (x,))


@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
@pytest.mark.parametrize("shape", [(0,), (0, 0)])
def test_gradient_of_what_was_scattered_nowhere(name, shape):
    """No position needs no dimensions."""
    src = torch.ones((), dtype=torch.float64, requires_grad=True)
    index = torch.zeros(shape, dtype=torch.int64)
    getattr(torch, name)(torch.zeros((), dtype=torch.float64), 0, index, src).backward()
    assert src.grad.item() == 0
