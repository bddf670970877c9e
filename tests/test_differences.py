"""Differences, derivatives and integrals: corner cases and errors beyond the rows of cases/differences.py."""

import pytest

import corefw as torch

x = torch.tensor([1.0, 2.0, 4.0, 7.0])


def test_differences_of_bool():
    assert torch.tensor([True, False, False]).diff().tolist() == [True, False]


def test_no_difference_leaves_out_what_is_set_beside():
    x = torch.tensor([1.0, 2.0])
    assert x.diff(0, prepend=x, append=x).tolist() == [1, 2]


def test_a_derivative_inside_does_not_see_the_element_itself():
    (found,) = torch.gradient(torch.tensor([1.0, 2.0, float("inf"), 4.0, 7.0, 9.0]))
    assert found[2] == 1 and found[4] == 2.5


def test_integers_are_differentiated_as_floating_numbers():
    (found,) = torch.gradient(torch.tensor([1, 2, 4]))
    assert found.tolist() == [1, 1.5, 2]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: torch.tensor(1.0).diff(), RuntimeError),
        (lambda: torch.zeros(2, 3).diff(0, append=torch.zeros(3, 1)), RuntimeError),
        (lambda: torch.ones(2).diff(-1), RuntimeError),
        (lambda: torch.ones(2).diff(0, prepend=torch.ones(1, 1)), RuntimeError),
        (lambda: torch.trapezoid(torch.ones(3), torch.ones(2)), RuntimeError),
        (lambda: torch.trapezoid(torch.ones(2), torch.tensor([True, False])), RuntimeError),
        (lambda: torch.cumulative_trapezoid(torch.tensor([True, False])), RuntimeError),
        (lambda: torch.gradient(x, edge_order=3), RuntimeError),
        (lambda: torch.gradient(x[:1]), RuntimeError),
        (lambda: torch.gradient(x[:2], edge_order=2), RuntimeError),
        (lambda: torch.gradient(x, dim=(0, 0)), RuntimeError),
        (lambda: torch.gradient(x, dim=1), IndexError),
        (lambda: torch.gradient(x, spacing=[1.0, 2.0]), RuntimeError),
        (lambda: torch.gradient(x, spacing=[torch.ones(2)]), RuntimeError),
        (lambda: torch.gradient(x.to(torch.uint8)), RuntimeError),
        (lambda: torch.gradient(x > 2), RuntimeError),
    ],
)
def test_errors(call, error):
    with pytest.raises(error):
        call()
