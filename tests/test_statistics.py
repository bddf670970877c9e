"""Covariances: errors and warnings beyond the rows of cases/statistics.py."""

import pytest

import corefw as torch

x = torch.tensor([[0.0, 1.0], [1.0, 0.0]])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: torch.cov(torch.zeros(2, 2, 2)), "two or fewer dimensions but got an input with 3"),
        (lambda: torch.corrcoef(torch.zeros(2, 2, 2)), "two or fewer dimensions"),
        (lambda: torch.cov(x.bool()), "bool dtype is not supported"),
        (lambda: torch.cov(x, fweights=torch.ones(2)), "expected fweights to have integral dtype"),
        (lambda: torch.cov(x, fweights=torch.tensor([1, -2])), "fweights cannot be negative"),
        (lambda: torch.cov(x, fweights=torch.tensor([1])), r"got 1 != 2"),
        (lambda: torch.cov(x, fweights=torch.tensor([[1]])), "one or fewer dimensions"),
        (lambda: torch.cov(x, aweights=torch.tensor([1, 2])), "expected aweights to have floating point dtype"),
        (lambda: torch.cov(x, aweights=torch.tensor([1.0, -2.0])), "aweights cannot be negative"),
        (lambda: torch.cov(x, aweights=torch.zeros(2)), "weights sum to zero"),
    ],
)
def test_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


@pytest.mark.parametrize("count", [0, 1])
def test_too_few_observations_give_nan_and_a_warning(count):
    with pytest.warns(UserWarning, match="degrees of freedom is <= 0"):
        assert torch.cov(x[:, :count]).isnan().all()
