"""Scans: options, errors and corner cases beyond the rows of cases/scan.py."""

from math import log

import pytest

import corefw as torch

nan = float("nan")


def test_dtypes():
    assert torch.ones(2, dtype=torch.uint8).cumsum(0).dtype is torch.int64
    assert torch.ones(2, dtype=torch.bool).cumprod(0).dtype is torch.int64
    assert torch.ones(2, dtype=torch.int8).cumsum(0, dtype=torch.float64).dtype is torch.float64


def test_in_place():
    x = torch.tensor([1.0, 2.0, 3.0])
    assert x.cumsum_(0) is x
    assert x.tolist() == [1, 3, 6]


def test_running_sum_keeps_its_precision():
    assert torch.full((100_000,), 0.1).cumsum(0)[-1].item() == pytest.approx(10_000, rel=1e-6)


def test_product_gradient_with_zeros():
    x = torch.tensor([2.0, 0.0, 3.0, 0.0], requires_grad=True)
    x.cumprod(0).sum().backward()
    assert x.grad.tolist() == [1, 8, 0, 0]
    y = torch.tensor([2.0, 0.0, 3.0], requires_grad=True)
    y.prod().backward()
    assert y.grad.tolist() == [0, 6, 0]


def test_running_extremes_with_not_a_number():
    found = torch.tensor([1.0, nan, 3.0]).cummax(0)
    assert found.indices.tolist() == [0, 1, 1]
    assert found.values.isnan().tolist() == [False, True, True]


def test_logcumsumexp_from_minus_infinity():
    x = torch.tensor([-float("inf"), 0.0, 0.0], requires_grad=True)
    result = x.logcumsumexp(0)
    assert result.tolist() == pytest.approx([-float("inf"), 0, 0.6931472])
    result[2].backward()
    assert x.grad.tolist() == pytest.approx([0, 0.5, 0.5])


def test_logcumsumexp_of_complex_elements_far_apart():
    x = torch.tensor([-float("inf"), -1000 + 1j, -1000 + 1j, 1000.0], dtype=torch.complex128, requires_grad=True)
    result = x.logcumsumexp(0)
    assert result.tolist() == pytest.approx([-float("inf"), -1000 + 1j, -1000 + log(2) + 1j, 1000])
    result[2].abs().backward()
    assert x.grad.abs().tolist() == pytest.approx([0, 0.5, 0.5, 0])


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: torch.ones(2).cumsum(1), IndexError),
        (lambda: torch.ones(2, dtype=torch.int64).logcumsumexp(0), RuntimeError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        call()
