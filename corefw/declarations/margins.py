"""Losses of classes that are to be ahead of the others by a margin."""

from __future__ import annotations

from corefw.declarations._shared.reductions import meant_reduction, reduced_loss
from corefw.dispatch.declare import Index, composite, ops
from corefw.errors import ShapeError


def _check_sample(name: str, input, target, per_sample: tuple) -> None:
    """Refuse what is not (N, C) or (C,) scores with a target of the shape that goes with them."""
    if not (0 < input.ndim <= 2 and input.shape[-1] > 0):
        raise ShapeError(
            f"{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}"
        )
    if tuple(target.shape) != per_sample:
        raise ShapeError(f"{name}: inconsistent target size, expected {list(per_sample)} but got {list(target.shape)}")


@composite(public="nn.functional")
def multi_margin_loss(
    input, target: Index, p: int = 1, margin: float = 1.0, weight=None, size_average: bool | None = None,
    reduce: bool | None = None, reduction: str = "mean",
):  # fmt: skip
    """The mean over the classes of ``max(0, margin - input[target] + input[i]) ** p``, without the target itself.

    Args:
        input: scores, shape (N, C) or (C,).
        target: classes from 0 to C - 1, shape (N,) or ().
        p: 1 or 2.
        margin: how far the target's score is to be ahead.
        weight: a weight per class, shape (C,), by which a sample's loss is multiplied.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: "none", "mean" or "sum".

    >>> import corefw as torch
    >>> torch.nn.functional.multi_margin_loss(torch.tensor([[0.5, 1.0]]), torch.tensor([1]))
    tensor(0.2500)
    """
    if input.ndim < 2:  # one sample
        input, target = input.reshape(-1), target.squeeze()
    _check_sample("multi_margin_loss", input, target, tuple(input.shape[:-1]))
    if p not in (1, 2):
        raise ValueError(f"multi_margin_loss: only p == 1 and p == 2 supported, got {p}")
    if weight is not None and tuple(weight.shape) != (input.shape[-1],):
        raise ShapeError(
            f"multi_margin_loss: inconsistent weight size, expected {[input.shape[-1]]} but got {list(weight.shape)}"
        )
    position = target.unsqueeze(-1)
    terms = (input - input.gather(-1, position) + margin).clamp_min(0)
    terms = terms.scatter(-1, position, 0)
    terms = terms * terms if p == 2 else terms
    loss = (terms if weight is None else terms * weight[position]).mean(-1)
    return reduced_loss(loss, meant_reduction(reduction, size_average, reduce))


@composite(public="nn.functional")
def multilabel_margin_loss(
    input,
    target: Index,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
):
    """The sum of ``max(0, 1 - input[j] + input[i])`` over the labels j of a sample and all other classes i, over the
    number of classes.

    Args:
        input: scores, shape (N, C) or (C,).
        target: the labels of each sample, of the input's shape: those before the first -1 count.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: "none", "mean" or "sum".

    >>> import corefw as torch
    >>> torch.nn.functional.multilabel_margin_loss(torch.tensor([0.5, 1.0, 0.0]), torch.tensor([1, -1, 0]))
    tensor(0.1667)
    """
    if not input.ndim:  # one class, of one sample
        input, target = input.unsqueeze(0), target.reshape(-1)
    _check_sample("multilabel_margin_loss", input, target, tuple(input.shape))
    counted = (target >= 0).cumprod(-1) > 0
    labels = target.masked_fill(counted.logical_not(), 0)
    classes = ops.arange(input.shape[-1], device=input.device)
    named = (labels.unsqueeze(-1) == classes).logical_and(counted.unsqueeze(-1)).any(-2)
    terms = (input.unsqueeze(-2) - input.gather(-1, labels).unsqueeze(-1) + 1).clamp_min(0)
    pairs = counted.unsqueeze(-1).logical_and(named.logical_not().unsqueeze(-2))
    loss = terms.masked_fill(pairs.logical_not(), 0).sum((-2, -1)) / input.shape[-1]
    return reduced_loss(loss, meant_reduction(reduction, size_average, reduce))
