"""Distances between the rows of one matrix."""

from __future__ import annotations

from corefw.dispatch.declare import composite, ops
from corefw.errors import ShapeError


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
