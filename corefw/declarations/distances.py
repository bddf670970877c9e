"""Distances between rows of matrices."""

from __future__ import annotations

from math import inf

from corefw.dispatch.declare import composite, ops
from corefw.dispatch.rules import promoted_real_floats
from corefw.errors import ShapeError
from corefw.shapes import broadcast


@composite(public="corefw nn.functional")
def pdist(input, p: float = 2):
    """The p-norm distances between all pairs of rows, first with second, first with third, and so on.

    Args:
        input: shape (N, D).
        p: which norm, not negative.

    Returns:
        shape (N * (N - 1) / 2,).

    >>> import corefw as torch
    >>> torch.pdist(torch.tensor([[0.0, 0.0], [3.0, 4.0], [0.0, 1.0]]))
    tensor([5.0000, 1.0000, 4.2426])
    """
    if input.ndim != 2:
        raise ShapeError(f"pdist only supports 2D tensors, got: {input.ndim}D")
    if not p >= 0:
        raise ValueError(f"pdist only supports non-negative p values, got {p}")
    first, second = ops.triu_indices(input.shape[0], input.shape[0], 1, device=input.device)
    return ops.vector_norm(input[first] - input[second], float(p), -1)


@composite(public="corefw nn.functional", other_names=True)
def pairwise_distance(x1, x2, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
    """The p-norm of ``x1 - x2 + eps`` over the last dimension.

    Args:
        x1: shape (..., d), broadcasts with `x2`.
        x2: likewise.
        p: which norm.
        eps: added to the difference, so that equal vectors have a gradient.
        keepdim: keep the last dimension with size 1.

    >>> import corefw as torch
    >>> torch.pairwise_distance(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))
    tensor([5.0000])
    """
    return ops.vector_norm(x1 - x2 + float(eps), p, -1, keepdim)


@composite(
    dtype=promoted_real_floats,
    shape=lambda x1, x2: (*broadcast(x1[:-2], x2[:-2]), x1[-2], x2[-2]),
    public="",
    grad_name="EuclideanDist",
)
def euclidean_distances(x1, x2):
    """The distances between each row of `x1` and each row of `x2` by one product, ``sqrt(|a|² + |b|² - 2 a · b)``:
    those that are small beside the rows are inexact."""
    ones = (x.new_ones((*x.shape[:-1], 1)) for x in (x1, x2))
    left = ops.cat([x1 * -2, (x1 * x1).sum(-1, True), next(ones)], -1)
    right = ops.cat([x2, next(ones), (x2 * x2).sum(-1, True)], -1)
    return ops.matmul_adjoint(left, right).clamp_min(0).sqrt()


@euclidean_distances.gradient("x1", "x2")
def euclidean_distances_vjp(grad, x1, x2, out, needs):
    ratio = grad / out.masked_fill(out == 0, inf)  # of equal rows: 0, as for the norm of no difference
    return (
        x1 * ratio.sum(-1, True) - ratio.matmul(x2) if needs[0] else None,
        x2 * ratio.sum(-2).unsqueeze(-1) - ops.adjoint_matmul(ratio, x1) if needs[1] else None,
    )


_MANY_ROWS = 25  # PyTorch's: more than these are taken by a product, unless that is forbidden
_EXACTLY, _BY_PRODUCTS = "donot_use_mm_for_euclid_dist", "use_mm_for_euclid_dist"


@composite()
def cdist(x1, x2, p: float = 2.0, compute_mode: str = "use_mm_for_euclid_dist_if_necessary"):
    """The p-norm distances between each row of `x1` and each row of `x2`.

    Args:
        x1: shape (..., n, d).
        x2: shape (..., m, d).
        p: which norm.
        compute_mode: whether Euclidean distances are taken from one product, which is faster, needs no memory for
            differences and is less exact where rows are close: "use_mm_for_euclid_dist_if_necessary" where there are
            more than 25 rows, "use_mm_for_euclid_dist" always, "donot_use_mm_for_euclid_dist" never.

    Returns:
        shape (..., n, m).

    >>> import corefw as torch
    >>> torch.cdist(torch.tensor([[0.0, 0.0]]), torch.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if x1.ndim < 2 or x2.ndim < 2 or x1.shape[-1] != x2.shape[-1]:
        raise ShapeError(
            f"cdist: X1 and X2 must have rows of one length, got shapes {list(x1.shape)} and {list(x2.shape)}"
        )
    if compute_mode not in (f"{_BY_PRODUCTS}_if_necessary", _BY_PRODUCTS, _EXACTLY):
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    many = max(x1.shape[-2], x2.shape[-2]) > _MANY_ROWS
    if p == 2 and x1.shape[-1] and (compute_mode == _BY_PRODUCTS or (many and compute_mode != _EXACTLY)):
        return euclidean_distances(x1, x2)
    difference = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    if not x1.shape[-1]:  # of which no norm but the sum knows what it is
        return difference.sum(-1)
    if p == 0:  # how many differ, of which NaN makes NaN
        return difference.abs().ceil().clamp_max(1).sum(-1)
    return ops.vector_norm(difference, p, -1, False)
