"""Losses of classes: the negative log-likelihood and the cross entropy of scores and class indices."""

from __future__ import annotations

from math import prod
from typing import Any

from corefw import dtypes
from corefw.declarations._shared.factories import ArgumentError
from corefw.declarations._shared.reductions import REDUCTIONS, meant_reduction, reduced_loss
from corefw.dispatch.declare import Index, Statistic, composite, ops
from corefw.dispatch.rules import real_floats, statistic
from corefw.errors import DtypeError, ShapeError
from corefw.tracebacks import warn


def _class_dim(shape) -> int:
    return 0 if len(shape) == 1 else 1


def _nll_name(input_shape):
    return "NllLoss" if len(input_shape or ()) < 3 else "NllLoss2D"


def _check_classes(name: str, input, target) -> None:
    """Refuse a target that does not name one class per sample: its shape is the input's without the classes."""
    if len(input) == 0:
        raise ShapeError(f"{name}: input must have at least one dimension")
    dim = _class_dim(input)
    if target == input[:dim] + input[dim + 1 :]:
        return
    if name == "cross_entropy" and target == input:
        raise ShapeError(
            f"cross_entropy: a target of the input's shape {list(input)} holds class probabilities, expected floating "
            "point type"
        )
    if len(input) > 1 and target and input[0] != target[0]:
        raise ShapeError(f"Expected input batch_size ({input[0]}) to match target batch_size ({target[0]}).")
    raise ShapeError(
        f"{name}: expected target size {list(input[:dim] + input[dim + 1 :])}, got {list(target)} for input of shape "
        f"{list(input)}"
    )


def _sample_shape(input, target, ignore_index, reduction, weight=None):
    _check_classes("nll_loss", input, target)
    classes = input[_class_dim(input)]
    if weight is not None and tuple(weight) != (classes,):
        raise ShapeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight)}"
        )
    return () if reduction != "none" else target


@composite(public="nn.functional")
def nll_loss(
    input, target: Index, weight=None, size_average: bool | None = None, ignore_index: int = -100,
    reduce: bool | None = None, reduction: str = "mean",
):  # fmt: skip
    """The negative log-likelihood of the target classes, ``-weight[target] * input[target]``.

    Args:
        input: log-probabilities, shape (N, C, *d) or (C,).
        target: classes from 0 to C - 1, shape (N, *d) or ().
        weight: a weight per class, shape (C,); a mean is divided by the sum of the targets' weights.
        size_average, reduce: deprecated forms of `reduction`.
        ignore_index: a target that contributes neither loss nor gradient.
        reduction: "none", "mean" or "sum".

    >>> import corefw as torch
    >>> torch.nn.functional.nll_loss(torch.tensor([[-0.5, -1.0]]), torch.tensor([1]))
    tensor(1.)
    """
    reduction = meant_reduction(reduction, size_average, reduce)
    if target.dispatch_key.dtype is not dtypes.int64:
        _check_class_dtype(target)
    return ops.class_nll(input, target, ignore_index, reduction, weight)


def _check_class_dtype(target) -> None:
    """Refuse classes of another dtype than PyTorch takes: int64, and uint8 where a sample has a single class."""
    found = target.dispatch_key.dtype
    if found is dtypes.uint8 and target.ndim > 1:
        raise DtypeError("expected scalar type Long but found Byte")
    if found not in (dtypes.int64, dtypes.uint8):
        raise DtypeError(f"expected target dtype to be Long or Byte, but got {found.title}")


def _target_weights(input, target, weight, ignore_index: int) -> tuple:
    """(positions of the target classes, their weights), in the input's shape with one class; ignored ones weigh 0."""
    dim = _class_dim(input.shape)
    positions = target.unsqueeze(dim)
    ignored = positions == ignore_index
    positions = positions.to(ops.arange(0).dtype).masked_fill(ignored, 0)
    if weight is None:
        weights = ops.ones_like(positions, dtype=input.dtype)
    else:
        weights = weight[positions]
    return positions, weights.masked_fill(ignored, 0)


@composite(dtype=real_floats, shape=_sample_shape, public="", grad_name=_nll_name)
def class_nll(input, target: Index, ignore_index: int, reduction: str, weight=None):
    """The negative log-likelihood of class indices, reduced."""
    _sample_shape(input.shape, target.shape, ignore_index, reduction, None if weight is None else weight.shape)
    dim = _class_dim(input.shape)
    positions, weights = _target_weights(input, target, weight, ignore_index)
    picked = input.gather(dim, positions)
    loss = (picked * -weights).masked_fill(weights == 0, 0).squeeze(dim)
    if reduction == "mean":
        return loss.sum() / weights.sum()
    return reduced_loss(loss, reduction)


@class_nll.gradient("input")
def class_nll_vjp(grad, input_shape, target, weight, ignore_index, reduction):
    return ops.class_nll_backward(grad, target, input_shape, ignore_index, reduction, weight)


def _check_gradient(name: str, grad, input, target, reduction: str) -> None:
    """Refuse a gradient that is not of the loss's shape."""
    _check_classes(name, input, target)
    expected = target if reduction == "none" else ()
    if grad != expected:
        raise ShapeError(f"{name}: expected a gradient of shape {list(expected)}, got {list(grad)}")


def _nll_gradient_shape(grad, target, shape, ignore_index, reduction, weight=None):
    _check_gradient("nll_loss", grad, shape, target, reduction)
    return shape


@composite(dtype=real_floats, shape=_nll_gradient_shape, public="")
def class_nll_backward(grad, target: Index, shape: tuple, ignore_index: int, reduction: str, weight=None):
    """The gradient of class_nll: ``-weight[target] * grad`` at the target classes, 0 elsewhere."""
    _nll_gradient_shape(grad.shape, target.shape, shape, ignore_index, reduction)
    dim = _class_dim(shape)
    zeros = ops.zeros(shape, dtype=grad.dtype, device=grad.device)
    positions, weights = _target_weights(zeros, target, weight, ignore_index)
    if reduction == "mean":
        weights = weights / weights.sum()
    share = (grad.unsqueeze(dim) if reduction == "none" else grad) * -weights
    return zeros.scatter(dim, positions, share)


@class_nll_backward.gradient("grad")
def class_nll_backward_vjp(grad, target, weight, ignore_index, reduction):
    return ops.class_nll(grad, target, ignore_index, reduction, weight)


@composite(public="nn.functional")
def cross_entropy(
    input, target, weight=None, size_average: bool | None = None, ignore_index: int = -100, reduce: bool | None = None,
    reduction: str = "mean", label_smoothing: float = 0.0,
):  # fmt: skip
    """The cross entropy of target classes, or of target probabilities, and the softmax of `input`.

    Args:
        input: logits, shape (N, C, *d) or (C,).
        target: classes from 0 to C - 1, shape (N, *d) or (), or floating probabilities of the input's shape.
        weight: a weight per class, shape (C,).
        size_average, reduce: deprecated forms of `reduction`.
        ignore_index: a target class that contributes neither loss nor gradient.
        reduction: "none", "mean" or "sum"; a mean over classes is divided by the sum of the targets' weights.
        label_smoothing: the share of probability, from 0 to 1, that is spread evenly over all classes
            (Szegedy et al. 2016).

    >>> import corefw as torch
    >>> torch.nn.functional.cross_entropy(torch.tensor([[0.0, 0.0]]), torch.tensor([1]))
    tensor(0.6931)
    """
    if size_average is not None or reduce is not None or reduction not in REDUCTIONS:
        reduction = meant_reduction(reduction, size_average, reduce)
    classes = target.dispatch_key.dtype is dtypes.int64 or _are_classes(input, target)
    if classes and label_smoothing == 0 and weight is None:
        return ops.class_cross_entropy(input, target, ignore_index, reduction)[0]
    if not 0 <= label_smoothing <= 1:
        raise ArgumentError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    dim = _class_dim(input.shape)
    logs = ops.log_softmax(input, dim)
    if not classes:
        return _probability_cross_entropy(logs, target, weight, reduction, label_smoothing, dim)
    loss = ops.class_nll(logs, target, ignore_index, reduction, weight)
    return (
        loss
        if label_smoothing == 0
        else _smoothed(loss, logs, target, weight, ignore_index, reduction, label_smoothing, dim)
    )


@composite(public="nn.functional")
def linear_cross_entropy(
    input, linear_weight, target, *, linear_bias=None, weight=None, reduction: str = "mean",
    ignore_index: int | None = None, label_smoothing: float = 0.0, options: Any | None = None,
):  # fmt: skip
    """`cross_entropy` of what a linear layer makes of `input`.

    Args:
        input: shape (N, D) or (D,).
        linear_weight: shape (C, D), or (C, *d, D) for a loss in several dimensions of a batched input.
        target: classes of shape (N, *d) or (), or probabilities of shape (N, C, *d) or (C,).
        linear_bias: shape (C, *d).
        weight: a weight per class, shape (C,).
        reduction, label_smoothing: as for `cross_entropy`.
        ignore_index: a target class that contributes neither loss nor gradient; -100 if missing.
        options: how PyTorch cuts the batch to save memory; without effect, of which a warning tells.

    >>> import corefw as torch
    >>> torch.nn.functional.linear_cross_entropy(torch.ones(1, 3), torch.zeros(2, 3), torch.tensor([1]))
    tensor(0.6931)
    """
    if options is not None:
        warn("linear_cross_entropy: options have no effect: the logits are always computed at once")
    given = f"got input of shape {list(input.shape)} and linear_weight of shape {list(linear_weight.shape)}"
    if input.ndim not in (1, 2) or linear_weight.ndim < 2:
        raise ShapeError(
            f"linear_cross_entropy: expected input of 1 or 2 dimensions, linear_weight of 2 or more; {given}"
        )
    if input.shape[-1] != linear_weight.shape[-1]:
        raise ShapeError(
            f"linear_cross_entropy: expected equal input and linear_weight last dimensions (in_features), {given}"
        )
    outputs = tuple(linear_weight.shape[:-1])
    if linear_bias is not None and tuple(linear_bias.shape) != outputs:
        raise ShapeError(f"expected linear_bias shape {outputs}, got {tuple(linear_bias.shape)}")
    if len(outputs) > 1 and input.ndim == 1:
        raise ShapeError(f"linear_cross_entropy: a loss of several dimensions requires batched input, {given}")
    shape = (*input.shape[:-1], *outputs)
    if ignore_index is not None and tuple(target.shape) == shape:
        raise ArgumentError("ignore_index cannot be specified when target contains probabilities")
    rows = linear_weight.reshape(prod(outputs), input.shape[-1])
    logits = ops.linear(input, rows, None if linear_bias is None else linear_bias.reshape(prod(outputs)))
    return cross_entropy(
        logits.reshape(shape),
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def _are_classes(input, target) -> bool:
    """Whether a target that is not int64 names classes, as one does that has another shape than the input."""
    found = target.dispatch_key.dtype
    if target.shape == input.shape:
        if not found.is_floating_point:
            raise DtypeError(f"Expected floating point type for target with class probabilities, got {found.title}")
        return False
    if found.is_floating_point:
        raise DtypeError(
            f"expected target dtype to be Long or Byte, but got {found.title} (class probabilities have the input's "
            f"shape {list(input.shape)}, this target has {list(target.shape)})"
        )
    _check_class_dtype(target)
    return True


def _per_class(weight, logs, dim: int):
    """The class weights in a shape that broadcasts with `logs`."""
    if tuple(weight.shape) != (logs.shape[dim],):
        raise ShapeError(
            "cross_entropy: weight tensor should be defined either for all or no classes; got shape "
            f"{list(weight.shape)} for {logs.shape[dim]} classes"
        )
    return weight.reshape(-1, *(1,) * (logs.ndim - dim - 1))


def _probability_cross_entropy(logs, target, weight, reduction: str, label_smoothing: float, dim: int):
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / max(logs.shape[dim], 1)
    terms = logs * target if weight is None else logs * target * _per_class(weight, logs, dim)
    if reduction == "none":
        return -terms.sum(dim)
    samples = logs.numel() // max(logs.shape[dim], 1) if reduction == "mean" else 1
    return -terms.sum() / samples  # NaN without samples, or without classes


def _smoothed(loss, logs, target, weight, ignore_index: int, reduction: str, label_smoothing: float, dim: int):
    """The loss of the target classes mixed with the loss averaged over all classes."""
    ignored = target == ignore_index
    terms = logs if weight is None else logs * _per_class(weight, logs, dim)
    spread = (-terms.sum(dim)).masked_fill(ignored, 0)
    if reduction == "mean":
        _, weights = _target_weights(logs, target, weight, ignore_index)
        spread = spread.sum() / weights.sum()
    else:
        spread = reduced_loss(spread, reduction)
    return (1 - label_smoothing) * loss + label_smoothing / max(logs.shape[dim], 1) * spread


def _loss_and_normalizer_shape(input, target, ignore_index, reduction):
    _check_classes("cross_entropy", input, target)
    return (target if reduction == "none" else ()), (2, *target)


@composite(
    dtype=real_floats.giving(real_floats, statistic),
    shape=_loss_and_normalizer_shape,
    outputs=("loss", "normalizer"),
    public="",
    grad_name=_nll_name,
)
def class_cross_entropy(input, target: Index, ignore_index: int, reduction: str):
    """The cross entropy of class indices and the softmax of `input`, reduced; beside it for each sample the greatest
    score m and the sum of exp(score - m), from which the gradient makes the probabilities again instead of keeping
    them. Their one logarithm, m + log(sum), would lose the sum where m is large."""
    _check_classes("cross_entropy", input.shape, target.shape)
    dim = _class_dim(input.shape)
    greatest = input.detach().amax(dim)
    relative = input - greatest.unsqueeze(dim)
    total = relative.exp().sum(dim)
    loss = ops.class_nll(relative - total.log().unsqueeze(dim), target, ignore_index, reduction)
    return loss, ops.stack([greatest, total])


def _class_gradient_shape(grad, input, normalizer, target, ignore_index, reduction):
    _check_gradient("cross_entropy", grad, input, target, reduction)
    if tuple(normalizer) != (2, *target):
        raise ShapeError(f"cross_entropy: expected a normalizer of shape {[2, *target]}, got {list(normalizer)}")
    return input


def _relative_exponentials(input, normalizer, dim: int):
    """exp(score - m) for the greatest scores m, which count as constants: the probabilities do not depend on them."""
    return (input - normalizer[0].detach().unsqueeze(dim)).exp()


@class_cross_entropy.gradient("input")
def class_cross_entropy_vjp(grad_loss, grad_normalizer, input, normalizer, target, ignore_index, reduction):
    through_sum = None
    if grad_normalizer is not None:
        dim = _class_dim(input.shape)
        through_sum = _relative_exponentials(input, normalizer, dim) * grad_normalizer[1].unsqueeze(dim)
    if grad_loss is None:
        return through_sum
    through_loss = ops.class_cross_entropy_backward(grad_loss, input, normalizer, target, ignore_index, reduction)
    return through_loss if through_sum is None else through_sum + through_loss


@composite(dtype=real_floats, shape=_class_gradient_shape, public="")
def class_cross_entropy_backward(grad, input, normalizer: Statistic, target: Index, ignore_index: int, reduction: str):
    """The gradient of class_cross_entropy, ``grad * (softmax(input) - onehot(target))``, over the number of samples for
    a mean."""
    _class_gradient_shape(grad.shape, input.shape, normalizer.shape, target.shape, ignore_index, reduction)
    dim = _class_dim(input.shape)
    positions, weights = _target_weights(input, target, None, ignore_index)
    if reduction == "mean":
        weights = weights / weights.sum()
    share = (grad.unsqueeze(dim) if reduction == "none" else grad) * weights
    probabilities = _relative_exponentials(input, normalizer, dim) / normalizer[1].unsqueeze(dim)
    return probabilities * share - ops.zeros_like(input).scatter(dim, positions, share)
