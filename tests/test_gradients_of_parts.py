"""Gradients of slices, rows and diagonals: they are added to that of the whole, where they belong."""

import numpy as np
import pytest

import corefw as torch
from tests.leaves import leaf, same

PARTS = [
    lambda x: [x[i] for i in range(3)],
    lambda x: [x[:, i] for i in (-1, 0, 2, 0)],
    lambda x: [x[0:2], x[1:3, ::2], x[..., None, 1]],
    lambda x: [x.select(1, 1), x.narrow(0, 1, 2), x.diagonal(), x.diagonal(1)],
    lambda x: [x[1][2], x[1], x[2, 1:]],
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("parts_of", PARTS)
def test_gradients_of_parts_are_added_where_they_belong(parts_of, dtype):
    x = torch.arange(9.0).reshape(3, 3).to(dtype).requires_grad_()
    with torch.ledger() as book:
        sum((part * (i + 1)).sum() for i, part in enumerate(parts_of(x * 1))).backward()
    expected = np.zeros((3, 3))
    for i, part in enumerate(parts_of(torch.from_numpy(expected))):
        part += i + 1
    np.testing.assert_array_equal(x.grad.double().numpy(), expected)
    places = book.count("basic_index_backward") + book.count("diagonal_backward")
    assert places == (2 if parts_of is PARTS[-1] else 1)  # x[1][2] is a part of a part


def test_gradients_of_parts_are_not_added_to_what_others_hold():
    x, y, start = leaf(1.0, 2.0), leaf(3.0, 4.0), torch.ones(2, dtype=torch.float64)
    seen = []
    a, b, c = x * 1, y * 1, x * 1
    c.retain_grad()
    parts = a[0], c[0]
    whole, kept = a + b, c * 1
    kept.register_hook(seen.append)
    torch.autograd.backward([whole, kept, *parts], [start, start, *[torch.tensor(5.0, dtype=torch.float64)] * 2])
    same(x.grad, [12.0, 2.0])
    for held in (y.grad, start, *seen):
        same(held, [1.0, 1.0])
    same(c.grad, [6.0, 1.0])


def test_gradients_of_parts_have_gradients():
    x = leaf(1.0, 2.0, 3.0)
    y = x**3
    (found,) = torch.autograd.grad(y[0] + 2 * y[0] + y[1:].sum() + y.sum(), x, create_graph=True)
    found.sum().backward()
    same(x.grad, [24.0, 24.0, 36.0])
