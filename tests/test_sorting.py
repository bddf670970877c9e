"""Sorting: stability, special values, options and errors beyond the rows of cases/sorting.py."""

import pytest

import corefw as torch

nan = float("nan")


@pytest.mark.parametrize("descending", [False, True])
def test_equal_elements_keep_their_order(descending):
    x = torch.tensor([1, 0, 1, 0, 1])
    expected = [0, 2, 4, 1, 3] if descending else [1, 3, 0, 2, 4]
    assert x.sort(descending=descending, stable=True).indices.tolist() == expected
    assert x.argsort(descending=descending).tolist() == expected


def test_not_a_number_is_largest():
    x = torch.tensor([1.0, nan, 3.0, 2.0])
    assert x.sort().indices.tolist() == [0, 3, 2, 1]
    assert x.sort(descending=True).indices.tolist() == [1, 2, 3, 0]
    assert x.topk(2).indices.tolist() == [1, 2]
    assert x.topk(2, largest=False).indices.tolist() == [0, 3]
    assert x.kthvalue(4).indices.item() == 1


def test_no_not_a_number_equals_another():
    output, inverse = torch.tensor([1.0, nan, nan]).unique(return_inverse=True)
    assert output.isnan().tolist() == [False, True, True]
    assert inverse.tolist() == [0, 1, 2]


def test_empty():
    assert torch.ones(0).unique().tolist() == []
    assert torch.ones(0).unique_consecutive(return_counts=True)[1].tolist() == []
    assert torch.ones(0, dtype=torch.int64).bincount(minlength=2).tolist() == [0, 0]
    assert tuple(torch.ones(2, 0).sort().values.shape) == (2, 0)
    assert tuple(torch.ones(2, 3).topk(0).values.shape) == (2, 0)


def test_weighted_counts():
    positions = torch.tensor([0, 2, 2])
    weights = torch.tensor([0.5, 1.0, 2.0])
    assert positions.bincount(weights).tolist() == [0.5, 0, 3]
    assert positions.bincount(weights).dtype is torch.float32
    assert positions.bincount(weights.half()).dtype is torch.float64


def test_search_options():
    edges = torch.tensor([1, 3, 5])
    assert torch.searchsorted(edges, 3).item() == 1
    assert torch.searchsorted(edges, 3, side="right").item() == 2
    assert torch.searchsorted(edges, edges, out_int32=True).dtype is torch.int32
    unsorted = torch.tensor([5, 1, 3])
    assert torch.searchsorted(unsorted, 4, sorter=unsorted.argsort()).item() == 2
    assert torch.bucketize(4, edges).item() == 2


def test_membership_of_numbers():
    assert torch.isin(3, torch.tensor([3, 4])).item() is True
    assert torch.isin(torch.tensor([1.5, 3.0]), 3, invert=True).tolist() == [True, False]


def test_half_types_sort_exactly():
    for dtype in (torch.float16, torch.bfloat16):
        found = torch.tensor([3, 1, 2], dtype=dtype).sort()
        assert found.values.dtype is dtype
        assert found.values.tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: torch.ones(3).topk(4), RuntimeError),
        (lambda: torch.ones(3).topk(1, dim=2), IndexError),
        (lambda: torch.ones(3).sort(1), IndexError),
        (lambda: torch.tensor([1j]).sort(), RuntimeError),
        (lambda: torch.searchsorted(torch.ones(2, 3), torch.ones(3, 3)), RuntimeError),
        (lambda: torch.searchsorted(torch.ones(3), 1.0, side="left", right=True), RuntimeError),
        (lambda: torch.bucketize(torch.ones(3), torch.ones(2, 2)), RuntimeError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        call()
