"""Functions of tensors with masks, against NumPy row by row, PyTorch, and finite differences."""

from math import inf

import numpy as np
import pytest

import corefw as torch
from tests.parity import import_torch

X = [[3.0, -1.0, 2.5, 0.5], [4.0, 5.0, -6.0, 7.0], [-2.0, 0.0, 1.0, 8.0]]
MASK = [[True, False, True, True], [False, False, False, False], [True, True, True, False]]


def median(row):
    return np.sort(row)[(len(row) - 1) // 2] if len(row) else np.nan


def deviation(row):
    return np.sqrt(variance(row))


def variance(row):
    return ((row - row.mean()) ** 2).sum() / (len(row) - 1) if len(row) > 1 else np.nan


#: name: (of the elements of a row that take part, further arguments)
REDUCTIONS = {
    "sum": (np.sum, ()),
    "prod": (np.prod, ()),
    "mean": (lambda row: row.mean() if len(row) else np.nan, ()),
    "median": (median, ()),
    "amax": (lambda row: row.max(initial=-inf), ()),
    "amin": (lambda row: row.min(initial=inf), ()),
    "var": (variance, ()),
    "std": (deviation, ()),
    "logsumexp": (lambda row: np.log(np.exp(row).sum()) if len(row) else -inf, ()),
    "norm": (lambda row: np.sqrt((row**2).sum()), (2.0,)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("keepdim", [False, True])
def test_reductions_see_only_what_takes_part(name, keepdim):
    reference, arguments = REDUCTIONS[name]
    x, mask = torch.tensor(X, dtype=torch.float64), torch.tensor(MASK)
    found = getattr(torch.masked, name)(x, *arguments, dim=1, keepdim=keepdim, mask=mask)
    expected = np.array([reference(np.array(row)[np.array(taken)]) for row, taken in zip(X, MASK, strict=True)])
    assert found.shape == ((3, 1) if keepdim else (3,))
    np.testing.assert_allclose(found.numpy().reshape(3), expected, rtol=1e-14)
    poisoned = torch.where(mask, x, torch.tensor(torch.nan, dtype=torch.float64))
    again = getattr(torch.masked, name)(poisoned, *arguments, dim=1, keepdim=keepdim, mask=mask)
    assert torch.equal(torch.nan_to_num(again), torch.nan_to_num(found))


CALLS = """
sum(x, mask=m)
sum(x, 0, mask=m[0])
sum(x, (0, 1), keepdim=True, mask=m)
sum(x, (), mask=m)
sum(i, 1, mask=m)
sum(i.to(T.int8), 1)
sum(x, 1, dtype=T.int32, mask=m)
prod(x, 1, dtype=T.float64, mask=m)
cumsum(i, 1, dtype=T.int32)
sum(x, -1, mask=m.to(T.float32))
prod(i, 0, mask=m)
prod(x, mask=m)
prod(i.bool(), 1, mask=m)
mean(x, mask=m)
mean(x, 1, dtype=T.float64, mask=m)
mean(i, 1, dtype=T.float32, mask=m)
median(x)
median(x, 0, keepdim=True, mask=m)
median(i, 1, mask=m | T.tensor([True, False, False, True]))
median(i, 1)
amax(i, 1, mask=m)
amin(i.to(T.uint8), 1, mask=m)
amax(x, (), mask=m)
argmax(x, mask=m)
argmax(i, 1, mask=m)
argmin(x, 0, keepdim=True, mask=m)
norm(x, mask=m)
norm(x, inf, 1, mask=m)
norm(x, -inf, 1, mask=m)
norm(x, 0, 1, mask=m)
norm(x, 3.0, (0, 1), keepdim=True)
var(x, 1, True, mask=m)
var(i, 1, unbiased=False, mask=m)
var(x, 1, correction=2, mask=m)
std(x, (0, 1), unbiased=True)
std(x, 0, mask=m)
logsumexp(x, (0, 1), mask=m)
cumsum(x, 0, mask=m)
cumsum(i, 1, mask=m)
cumprod(x, 1, mask=m)
softmax(x, 1, mask=m)
log_softmax(x, 0, mask=m)
softmin(x, 1, mask=m, dtype=T.float64)
normalize(x, 2.0, 1, mask=m)
normalize(x, 1.0, 0, eps=9.0, mask=m)
logaddexp(x, x * 2, input_mask=m, other_mask=~m)
logaddexp(x, x * 2, input_mask=m)
"""


def outcome(module, call):
    names = {"T": module, "inf": inf, "x": module.tensor(X), "m": module.tensor(MASK)}
    names["i"] = names["x"].to(module.int64)
    return eval(f"T.masked.{call}", names)


@pytest.mark.parametrize("call", CALLS.strip().splitlines())
def test_as_pytorch(call):
    found, expected = outcome(torch, call), outcome(import_torch(), call)
    assert str(found.dtype).rpartition(".")[2] == str(expected.dtype).rpartition(".")[2]
    assert found.shape == expected.shape
    np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=2e-6)


GRADIENTS = "sum prod mean median amax amin var std logsumexp norm cumsum cumprod softmax log_softmax softmin normalize"


@pytest.mark.parametrize("name", GRADIENTS.split())
def test_gradients_reach_only_what_takes_part(name):
    mask = torch.tensor(MASK)[[0, 2]]
    x = torch.tensor(X, dtype=torch.float64)[[0, 2]].requires_grad_()
    arguments = (2.0,) if name in ("norm", "normalize") else ()

    def call(x):
        result = getattr(torch.masked, name)(x, *arguments, dim=1, mask=mask)
        return torch.where(result == -inf, 0.0, result)

    assert torch.autograd.gradcheck(call, (x,))
    call(x).sum().backward()
    assert not x.grad[~mask].any()


def test_a_norm_of_negative_order_leaves_out_what_is_masked():
    found = torch.masked.norm(torch.tensor([1.0, 9.0, 3.0]), -1.0, mask=torch.tensor([True, False, True]))
    torch.testing.assert_close(found, torch.tensor(0.75))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        ("sum(x, mask=m[None])", IndexError, "higher than of the input"),
        ("sum(x, mask=m[:, :2])", RuntimeError, "must match the existing size"),
        ("sum(x, 5)", IndexError, "Dimension out of range"),
        ("mean(i)", ValueError, r"Got: torch\.int64"),
        ("logsumexp(i)", ValueError, "Give dtype="),
        ("median(i, 1, mask=m)", ValueError, "no fully masked out rows"),
        ("amax(x[:0], 0)", IndexError, "non-zero size"),
        ("argmin(x[:0])", IndexError, "non-zero size"),
        ("var(x, 1, True, correction=1)", RuntimeError, "only one of"),
    ],
)
def test_bad_arguments(call, error, text):
    with pytest.raises(error, match=text):
        outcome(torch, call)


@pytest.mark.parametrize(("name", "wanted"), [("amax", 2), ("amin", 2), ("argmax", 0), ("argmin", 0)])
def test_extremes_of_a_number(name, wanted):
    function, x = getattr(torch.masked, name), torch.tensor(2.0)
    assert function(x, 0, keepdim=True).tolist() == function(x, -1).tolist() == wanted
    with pytest.raises(IndexError, match="out of range"):
        function(x, 1)
