"""Assignments to parts of tensors: what asks kernels alone is seen, counted and recorded as ever."""

import numpy as np
import pytest

import corefw as torch


@pytest.mark.parametrize(
    ("key", "value", "op"),
    [
        (0, 1.5, "fill"),
        (slice(1, 3), True, "fill"),
        (slice(1, 3), torch.zeros(2), "copy"),
        (0, torch.tensor(2.0), "copy"),
        (torch.tensor([True, False, True, False]), 7, "masked_fill"),
    ],
)
def test_an_assignment_without_a_history_is_seen_by_modes_and_counted(key, value, op):
    x, expected = torch.ones(4), np.ones(4, np.float32)
    expected[key if op != "masked_fill" else key.numpy()] = value
    with torch.ledger() as book:
        x[key] = value
    assert book.count(op) == 1
    assert x._version == 1
    np.testing.assert_array_equal(x.numpy(), expected)


@pytest.mark.parametrize("value", [2.0, torch.tensor([5.0, 6.0])])
def test_an_assignment_to_what_has_a_history_is_recorded(value):
    leaf = torch.ones(4, requires_grad=True)
    x = leaf * 3
    x[1:3] = value
    x.sum().backward()
    assert leaf.grad.tolist() == [3.0, 0.0, 0.0, 3.0]
    source = torch.ones(2, requires_grad=True)
    y = torch.zeros(4)
    y[:2] = source
    y.sum().backward()
    assert source.grad.tolist() == [1.0, 1.0]


def test_an_assignment_of_its_own_memory_is_as_ever():
    x = torch.arange(6)
    with pytest.raises(RuntimeError, match="single memory location"):
        x[1:] = x[:-1]
    x[:] = x
    assert x.tolist() == [0, 1, 2, 3, 4, 5]
    mask = torch.tensor([True, False, True])
    mask[mask] = False
    assert mask.tolist() == [False, False, False]
