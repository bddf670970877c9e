"""Contractions: the call forms and errors of einsum and tensordot."""

import numpy as np
import pytest

import corefw as torch


def drawn(*shape):
    return torch.from_numpy(np.random.default_rng(0).normal(size=shape))


@pytest.mark.parametrize(
    ("equation", "sublists", "output"),
    [
        ("ij,jk->ik", ([0, 1], [1, 2]), [0, 2]),
        ("ij,jk", ([0, 1], [1, 2]), None),
        ("...i,...i->...", ([..., 0], [..., 0]), [...]),
    ],
)
def test_call_forms(equation, sublists, output):
    shapes = ((2, 3), (3, 2)) if "k" in equation else ((2, 3), (2, 3))
    operands = [drawn(*shape) for shape in shapes]
    expected = np.einsum(equation, *(o.numpy() for o in operands))
    interleaved = [part for pair in zip(operands, sublists) for part in pair]
    for result in (
        torch.einsum(equation, *operands),
        torch.einsum(equation, operands),
        torch.einsum(" " + equation.replace(",", " , "), *operands),
        torch.einsum(*interleaved, *([] if output is None else [output])),
    ):
        np.testing.assert_allclose(result.numpy(), expected)


def test_sizes_of_one_broadcast():
    a, b = drawn(2, 1), drawn(3, 2)
    np.testing.assert_allclose(torch.einsum("ij,jk->ik", a, b), np.broadcast_to(a, (2, 3)) @ b.numpy())


@pytest.mark.parametrize(
    ("equation", "shapes", "text"),
    [
        ("ij,jk->ik", ((2, 3),), "more operands were|operands were provided"),
        ("ij->i", ((2, 3, 4),), "number of subscripts"),
        ("ij,jk->ik", ((2, 3), (4, 5)), "does not broadcast with previously seen size 3"),
        ("ij->k", ((2, 3),), "output subscript k does not appear"),
        ("ij->ii", ((2, 3),), "appears more than once"),
        ("i$->i", ((2, 3),), "invalid subscript"),
        ("ii->i", ((2, 3),), "2|sizes don't match"),
    ],
)
def test_einsum_errors(equation, shapes, text):
    with pytest.raises(RuntimeError, match=text):
        torch.einsum(equation, *(drawn(*shape) for shape in shapes))


@pytest.mark.parametrize("dims", [3, -1, ([0], [0, 1]), ([0], [0])])
def test_tensordot_errors(dims):
    with pytest.raises(RuntimeError):
        torch.tensordot(drawn(2, 3), drawn(3, 4), dims)


@pytest.mark.parametrize("equation", ["bij,bjk->bki", "ij,kj->ki", "i,j->ji"])
def test_a_product_turned_as_a_whole_lies_in_row_major_order(equation):
    sizes = dict(zip("bijk", (2, 3, 4, 5)))
    terms = equation.split("->")[0].split(",")
    operands = [torch.rand(*(sizes[letter] for letter in term), dtype=torch.float64) for term in terms]
    result = torch.einsum(equation, *operands)
    assert result.is_contiguous()
    np.testing.assert_allclose(result.numpy(), np.einsum(equation, *(o.numpy() for o in operands)), rtol=1e-12)
