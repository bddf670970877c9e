"""Losses: how far predictions are from targets, with PyTorch's arguments and reductions."""

from __future__ import annotations

from collections.abc import Callable

from corefw import dtypes
from corefw.declarations._shared.reductions import (
    REDUCTIONS,
    loss_shape,
    meant_reduction,
    reduced_loss,
    weighted_loss,
)
from corefw.dispatch.declare import composite, ops
from corefw.dispatch.rules import promoted_real_floats, real_floats
from corefw.errors import ShapeError
from corefw.shapes import broadcast, same_shape
from corefw.tracebacks import warn


# -- differences ------------------------------------------------------------------------------------------------------
def _of_one_shape(input, target) -> tuple:
    """Both, broadcast with a warning if their shapes differ: as of one shape neither is weak beside the other."""
    if input.array.shape == target.array.shape:
        return input, target
    warn(
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
        "likely lead to incorrect results due to broadcasting. Please ensure they have the same size."
    )
    return ops.broadcast_tensors(input, target)


@composite(public="nn.functional")
def mse_loss(
    input, target, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", weight=None
):
    """The squared differences, ``(input - target) ** 2``.

    Args:
        input: any shape.
        target: the input's shape.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: "none", "mean" or "sum".
        weight: a weight per element; a mean is then divided by the weights' sum.

    >>> import corefw as torch
    >>> torch.nn.functional.mse_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(2.)
    """
    input, target = _of_one_shape(input, target)
    if size_average is not None or reduce is not None or reduction not in REDUCTIONS:
        reduction = meant_reduction(reduction, size_average, reduce)
    if weight is not None:  # PyTorch takes integers and complex numbers here, and here alone
        return weighted_loss((input - target).square(), weight, reduction)
    return squared_error(input, target, reduction)


@composite(dtype=promoted_real_floats, shape=loss_shape, public="", grad_name="MseLoss", name="squared_error")
def _squared_error(input, target, reduction: str):
    """The squared differences of `input` and `target`, reduced."""
    difference = input - target
    return reduced_loss(difference * difference, reduction)


squared_error = _squared_error.op.function


_squared_error.gradients(
    input=lambda grad, input, target, reduction: ops.squared_error_backward(grad, input, target, reduction),
    target=lambda grad, input, target, reduction: ops.squared_error_backward(grad, target, input, reduction),
)


@composite(dtype=promoted_real_floats, shape=lambda grad, input, target, reduction: broadcast(input, target), public="")
def squared_error_backward(grad, input, target, reduction: str):
    """The gradient of squared_error, ``grad * 2 * (input - target)``, over the number of elements for a mean."""
    difference = input - target
    factor = 2 / difference.numel() if reduction == "mean" and difference.numel() else 2
    return difference * (grad.to(difference.dtype) * factor)


@composite(public="nn.functional")
def l1_loss(
    input, target, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", weight=None
):
    """The absolute differences, ``|input - target|``. Arguments as for `mse_loss`.

    >>> import corefw as torch
    >>> torch.nn.functional.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(1.)
    """
    input, target = _of_one_shape(input, target)
    return weighted_loss((input - target).abs(), weight, meant_reduction(reduction, size_average, reduce))


@composite(public="nn.functional")
def smooth_l1_loss(
    input,
    target,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
):
    """The differences d, squared where small: ``d² / (2 beta)`` if ``|d| < beta``, else ``|d| - beta / 2``
    (Girshick 2015).

    Args:
        input: any shape.
        target: the input's shape.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: "none", "mean" or "sum".
        beta: where the square meets the line; 0 gives the absolute difference.

    >>> import corefw as torch
    >>> torch.nn.functional.smooth_l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 4.0]), reduction="none")
    tensor([0.1250, 1.5000])
    """
    input, target = _of_one_shape(input, target)
    if beta < 0:
        raise ValueError(f"smooth_l1_loss does not support negative values for beta, got {beta}")
    if beta == 0:
        return l1_loss(input, target, size_average, reduce, reduction)
    if target.dispatch_key.dtype is dtypes.bool_:  # which has no differences
        target = target.to(input.dtype)
    return reduced_loss(ops.huber(input - target, beta, 1 / beta), meant_reduction(reduction, size_average, reduce))


@composite(dtype=real_floats, shape=same_shape, public="", grad_name="HuberLoss")
def huber(difference, threshold: float, factor: float):
    """The differences d, squared where small: ``factor * d² / 2`` if ``|d| < threshold``, else ``factor * threshold *
    (|d| - threshold / 2)``."""
    size = difference.abs()
    square, line = size * size * (0.5 * factor), (size - 0.5 * threshold) * (threshold * factor)
    return ops.where(size < threshold, square, line)


huber.gradients(
    difference=lambda grad, difference, threshold, factor: ops.huber_backward(grad, difference, threshold, factor),
)


@composite(dtype=real_floats, shape=broadcast, public="")
def huber_backward(grad, difference, threshold: float, factor: float):
    """The gradient of huber, ``grad * factor * difference`` with a difference of at most `threshold` to either side."""
    return grad * (difference.clamp(-threshold, threshold) * factor)


@composite(public="nn.functional")
def huber_loss(input, target, reduction: str = "mean", delta: float = 1.0, weight=None):
    """The differences d, squared where small: ``d² / 2`` if ``|d| < delta``, else ``delta * (|d| - delta / 2)``
    (Huber 1964).

    Args:
        input: any shape.
        target: the input's shape.
        reduction: "none", "mean" or "sum".
        delta: where the square meets the line, positive.
        weight: a weight per element; unlike `mse_loss` a mean is divided by the number of elements.

    >>> import corefw as torch
    >>> torch.nn.functional.huber_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 4.0]), reduction="none")
    tensor([0.1250, 1.5000])
    """
    input, target = _of_one_shape(input, target)
    if delta <= 0:
        raise ValueError(f"huber_loss does not support non-positive values for delta, got {delta}")
    loss = ops.huber(input - target.to(input.dtype), delta, 1.0)  # of the input's dtype, unlike other losses
    return reduced_loss(loss if weight is None else loss * weight, meant_reduction(reduction))


# -- embeddings and ranks ---------------------------------------------------------------------------------------------
@composite(public="nn.functional")
def hinge_embedding_loss(
    input,
    target,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
):
    """The input where the target is 1, ``max(0, margin - input)`` where it is -1.

    >>> import corefw as torch
    >>> torch.nn.functional.hinge_embedding_loss(torch.tensor([0.5, 0.2]), torch.tensor([1, -1]), reduction="none")
    tensor([0.5000, 0.8000])
    """
    apart = (margin - input).clamp_min(0).masked_fill(target == 1, 0)
    close = input.masked_fill(target == -1, 0)
    return reduced_loss(apart + close, meant_reduction(reduction, size_average, reduce))


@composite(public="nn.functional")
def margin_ranking_loss(
    input1, input2, target, margin: float = 0, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
):  # fmt: skip
    """How far `input1` fails to exceed `input2` (target 1) or to stay below (-1),
    ``max(0, -target * (input1 - input2) + margin)``.

    >>> import corefw as torch
    >>> torch.nn.functional.margin_ranking_loss(torch.tensor([1.0]), torch.tensor([3.0]), torch.tensor([1]))
    tensor(2.)
    """
    if not input1.ndim == input2.ndim == target.ndim:
        raise ShapeError(
            f"margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
            f"{input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    loss = (-target * (input1 - input2) + float(margin)).clamp_min(0)
    return reduced_loss(loss, meant_reduction(reduction, size_average, reduce))


@composite(public="nn.functional")
def cosine_embedding_loss(
    input1, input2, target, margin: float = 0, size_average: bool | None = None, reduce: bool | None = None,
    reduction: str = "mean",
):  # fmt: skip
    """One minus the cosine of two vectors where the target is 1, ``max(0, cosine - margin)`` where it is -1.

    Args:
        input1: shape (N, D) or (D,).
        input2: likewise.
        target: 1 or -1, shape (N,) or ().
        margin: the cosine that dissimilar vectors may have.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: "none", "mean" or "sum".

    >>> import corefw as torch
    >>> torch.nn.functional.cosine_embedding_loss(torch.ones(1, 2), torch.ones(1, 2), torch.tensor([-1]))
    tensor(1.)
    """
    if target.ndim not in (0, 1):
        raise ShapeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise ShapeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes "
            f"{list(input1.shape)} and {list(input2.shape)}."
        )
    least = 1e-12  # added to squared norms, as PyTorch does
    product = (input1 * input2).sum(target.ndim)
    lengths = ((input1 * input1).sum(target.ndim) + least) * ((input2 * input2).sum(target.ndim) + least)
    cosine = product / lengths.sqrt()
    loss = (1 - cosine).masked_fill(target != 1, 0) + (cosine - margin).clamp_min(0).masked_fill(target != -1, 0)
    return reduced_loss(loss, meant_reduction(reduction, size_average, reduce))


@composite(public="nn.functional")
def triplet_margin_loss(
    anchor, positive, negative, margin: float = 1.0, p: float = 2, eps: float = 1e-6, swap: bool = False,
    size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
):  # fmt: skip
    """How far the anchor is not closer to the positive than to the negative sample by a margin,
    ``max(0, d(anchor, positive) - d(anchor, negative) + margin)`` (Balntas et al. 2016).

    Args:
        anchor, positive, negative: shape (N, D) or (D,).
        margin: the least difference of distances.
        p: the norm of the distance.
        eps: added to differences, so that equal vectors have a gradient.
        swap: take the smaller of the negative's distances to anchor and positive.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: "none", "mean" or "sum".

    >>> import corefw as torch
    >>> a = torch.zeros(1, 2)
    >>> torch.nn.functional.triplet_margin_loss(a, a + 3, a + 3)
    tensor(1.)
    """

    def distance(x1, x2):
        return ops.pairwise_distance(x1, x2, p, eps)

    reduction = meant_reduction(reduction, size_average, reduce)
    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap, reduction=reduction
    )


@composite(public="nn.functional")
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function: Callable | None = None, margin: float = 1.0, swap: bool = False,
    reduction: str = "mean",
):  # fmt: skip
    """`triplet_margin_loss` with any distance of two tensors, by default `pairwise_distance`.

    >>> import corefw as torch
    >>> a = torch.zeros(1, 2)
    >>> torch.nn.functional.triplet_margin_with_distance_loss(a, a + 3, a + 3)
    tensor(1.)
    """
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise ShapeError(
            "The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
            f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    distance = ops.pairwise_distance if distance_function is None else distance_function
    to_positive, to_negative = distance(anchor, positive), distance(anchor, negative)
    if swap:
        to_negative = to_negative.minimum(distance(positive, negative))
    return reduced_loss((to_positive - to_negative + margin).clamp_min(0), meant_reduction(reduction))
