"""How losses are reduced: the argument `reduction` with its deprecated forms, means, sums and the resulting shape."""

from __future__ import annotations

from corefw.shapes import broadcast
from corefw.tracebacks import warn

REDUCTIONS = ("mean", "sum", "none")


def meant_reduction(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """The reduction that is meant, also by the deprecated flags `size_average` and `reduce`."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced_loss(loss, reduction: str):
    """`loss` as it is, its mean, or its sum."""
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def weighted_loss(loss, weight, reduction: str):
    """`reduced_loss` with a weight per element, by whose sum a mean is taken."""
    if weight is None:
        return reduced_loss(loss, reduction)
    weight = weight.expand(loss.shape)
    loss = loss * weight
    weight = weight.to(loss.dtype)
    return loss.sum() / weight.sum() if reduction == "mean" else reduced_loss(loss, reduction)


def loss_shape(input, target, reduction="mean", *attributes):
    """The shape rule of a loss of two tensors that broadcast."""
    shape = broadcast(input, target)
    return shape if reduction == "none" else ()
