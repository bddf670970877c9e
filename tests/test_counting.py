"""Counts and histograms: half types and errors beyond the rows of cases/counting.py."""

import pytest

import corefw as torch
from corefw.testing import targets

x = torch.tensor([1.0, 2.0, 1.0, 5.0])
points = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
nan = float("nan")


@pytest.mark.parametrize("target", targets(None), ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_histograms_of_half_types_are_those_of_float32(dtype, target):
    """Neither an element's place nor a count is rounded to the half type."""
    x = torch.cat([torch.linspace(-3, 5, 1001), torch.ones(2999)]).to(target.device, dtype)
    with target.preferred():
        found, expected = x.histc(64), x.float().histc(64)
    assert found.dtype is dtype
    assert torch.equal(found, expected.to(dtype))


def test_a_histogram_of_equal_elements_has_room_around_them():
    assert torch.histogram(torch.tensor([2.0, 2.0]), 3).bin_edges.tolist() == pytest.approx([1.5, 11 / 6, 13 / 6, 2.5])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: torch.tensor([-1]).bincount(), RuntimeError, "1-d non-negative integral"),
        (lambda: torch.tensor([[1]]).bincount(), RuntimeError, "1-d non-negative integral"),
        (lambda: torch.tensor([1.0]).bincount(), RuntimeError, "1-d non-negative integral"),
        (lambda: torch.tensor([1.0]).histc(0), RuntimeError, "bins must be > 0"),
        (lambda: torch.tensor([1.0, float("inf")]).histc(), RuntimeError, "not finite"),
        (lambda: torch.histogram(x, 0), RuntimeError, "bins must be > 0, but got 0 for dimension 0"),
        (lambda: torch.histogram(torch.tensor([1.0, nan]), 2), RuntimeError, "dimension 0's range .* is not finite"),
        (lambda: torch.histogram(x.int(), 2), NotImplementedError, "not implemented for 'Int'"),
        (lambda: torch.histogram(x, 2, range=(3.0, 1.0)), RuntimeError, "min should not exceed max"),
        (lambda: torch.histogram(x, 2, weight=torch.ones(3)), RuntimeError, "same shape"),
        (lambda: torch.histogram(x, 2, weight=torch.ones(4, dtype=torch.float64)), RuntimeError, "same dtype"),
        (lambda: torch.histogram(x, torch.ones(1, 2)), RuntimeError, "one dimension"),
        (lambda: torch.histogram(x, torch.tensor([1, 2])), RuntimeError, "same dtype"),
        (lambda: torch.histogram(x, torch.tensor([1.0])), RuntimeError, "bins must be > 0"),
        (lambda: torch.histogram(x, torch.tensor([1.0, 2.0]), range=(0.0, 1.0)), TypeError, "edges in 'bins'"),
        (lambda: torch.histogramdd(x, [3]), RuntimeError, "at least 2 dimensions"),
        (lambda: torch.histogramdd(points, [3]), RuntimeError, "equal to the innermost dimension"),
        (lambda: torch.histogramdd(points, 3, range=[0.0, 1.0]), RuntimeError, "should have 4 elements, but got 2"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
