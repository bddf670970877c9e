"""Losses: how far predictions are from targets, with PyTorch's arguments and reductions."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from math import log, pi

from corefw.dispatch.declare import Index, composite, ops
from corefw.dispatch.rules import same
from corefw.errors import DtypeError, ShapeError
from corefw.shapes import broadcast
from corefw.tensor import Tensor

REDUCTIONS = ("mean", "sum", "none")
floating_loss = same.without("bool", "integer", "complex")


# -- reductions -------------------------------------------------------------------------------------------------------
def _reduction(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> str:
    """The reduction that is meant, also by the deprecated flags `size_average` and `reduce`."""
    if size_average is not None or reduce is not None:
        reduction = "none" if reduce is False else "sum" if size_average is False else "mean"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=3,
        )
    if reduction not in REDUCTIONS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def _reduced(loss, reduction: str):
    """`loss` as it is, its mean, or its sum."""
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


def _weighted(loss, weight, reduction: str):
    """`_reduced` with a weight per element, by whose sum a mean is taken."""
    if weight is None:
        return _reduced(loss, reduction)
    weight = weight.expand(loss.shape)
    loss = loss * weight
    return loss.sum() / weight.sum() if reduction == "mean" else _reduced(loss, reduction)


def _reduced_shape(input, target, reduction="mean", *statics):
    shape = broadcast(input, target)
    return shape if reduction == "none" else ()


def _warn_of_broadcasting(input, target) -> None:
    if input.shape != target.shape:
        warnings.warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
            stacklevel=3,
        )


# -- differences ------------------------------------------------------------------------------------------------------
@composite(method=False)
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
    if input.array.shape != target.array.shape:
        _warn_of_broadcasting(input, target)
    if size_average is not None or reduce is not None or reduction not in REDUCTIONS:
        reduction = _reduction(reduction, size_average, reduce)
    if weight is not None:
        return _weighted(squared_error(input, target, "none"), weight, reduction)
    return squared_error(input, target, reduction)


@composite(dtype=floating_loss, shape=_reduced_shape, method=False, grad_name="MseLoss", name="squared_error")
def _squared_error(input, target, reduction: str):
    """The squared differences of `input` and `target`, reduced."""
    difference = input - target
    return _reduced(difference * difference, reduction)


squared_error = _squared_error.op.function


@_squared_error.gradient("input")
def _(grad, input, target, reduction):
    return ops.squared_error_backward(grad, input, target, reduction)


@_squared_error.gradient("target")
def _(grad, input, target, reduction):
    return ops.squared_error_backward(grad, target, input, reduction)


@composite(dtype=floating_loss, shape=lambda grad, input, target, reduction: broadcast(input, target), method=False)
def squared_error_backward(grad, input, target, reduction: str):
    """The gradient of squared_error, ``grad * 2 * (input - target)``, over the number of elements for a mean."""
    difference = input - target
    return difference * (grad * (2 / difference.numel() if reduction == "mean" and difference.numel() else 2))


@composite(method=False)
def l1_loss(
    input, target, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean", weight=None
):
    """The absolute differences, ``|input - target|``.

    Args:
        input: any shape.
        target: the input's shape.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: "none", "mean" or "sum".
        weight: a weight per element; a mean is then divided by the weights' sum.

    >>> import corefw as torch
    >>> torch.nn.functional.l1_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
    tensor(1.)
    """
    _warn_of_broadcasting(input, target)
    return _weighted((input - target).abs(), weight, _reduction(reduction, size_average, reduce))


@composite(method=False)
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
    if beta < 0:
        raise ValueError(f"smooth_l1_loss does not support negative values for beta, got {beta}")
    if beta == 0:
        return l1_loss(input, target, size_average, reduce, reduction)
    _warn_of_broadcasting(input, target)
    size = (input - target).abs()
    loss = ops.where(size < beta, size * size * (0.5 / beta), size - 0.5 * beta)
    return _reduced(loss, _reduction(reduction, size_average, reduce))


@composite(method=False)
def huber_loss(input, target, reduction: str = "mean", delta: float = 1.0, weight=None):
    """The differences d, squared where small: ``d² / 2`` if ``|d| < delta``, else ``delta * (|d| - delta / 2)``
    (Huber 1964).

    Args:
        input: any shape.
        target: the input's shape.
        reduction: "none", "mean" or "sum".
        delta: where the square meets the line, positive.
        weight: a weight per element; a mean is then divided by the weights' sum.

    >>> import corefw as torch
    >>> torch.nn.functional.huber_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 4.0]), reduction="none")
    tensor([0.1250, 1.5000])
    """
    if delta <= 0:
        raise ValueError(f"huber_loss does not support non-positive values for delta, got {delta}")
    _warn_of_broadcasting(input, target)
    size = (input - target).abs()
    loss = ops.where(size < delta, 0.5 * size * size, delta * (size - 0.5 * delta))
    return _weighted(loss, weight, _reduction(reduction))


# -- classes ----------------------------------------------------------------------------------------------------------
def _class_dim(shape) -> int:
    return 0 if len(shape) == 1 else 1


def _check_classes(name: str, input, target) -> None:
    """Refuse a target that does not name one class per sample: its shape is the input's without the classes."""
    if len(input) == 0:
        raise ShapeError(f"{name}: input must have at least one dimension")
    dim = _class_dim(input)
    if target == input[:dim] + input[dim + 1 :]:
        return
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


@composite(method=False)
def nll_loss(
    input,
    target: Index,
    weight=None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
):
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
    reduction = _reduction(reduction, size_average, reduce)
    _check_class_indices("nll_loss", target)
    return ops.class_nll(input, target, ignore_index, reduction, weight)


def _check_class_indices(name: str, target) -> None:
    if target.place.dtype.is_floating_point or target.place.dtype.is_complex:
        raise DtypeError(f"{name}: expected target of an integer dtype, but got {target.place.dtype.title}")


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


@composite(dtype=floating_loss, shape=_sample_shape, method=False, grad_name="NllLoss")
def class_nll(input, target: Index, ignore_index: int, reduction: str, weight=None):
    """The negative log-likelihood of class indices, reduced."""
    _sample_shape(input.shape, target.shape, ignore_index, reduction, None if weight is None else weight.shape)
    dim = _class_dim(input.shape)
    positions, weights = _target_weights(input, target, weight, ignore_index)
    picked = input.gather(dim, positions)
    loss = (picked * -weights).masked_fill(weights == 0, 0).squeeze(dim)
    if reduction == "mean":
        return loss.sum() / weights.sum()
    return _reduced(loss, reduction)


@class_nll.gradient("input")
def _(grad, input_shape, target, weight, ignore_index, reduction):
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


@composite(dtype=floating_loss, shape=_nll_gradient_shape, method=False)
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
def _(grad, target, weight, ignore_index, reduction):
    return ops.class_nll(grad, target, ignore_index, reduction, weight)


@composite(method=False)
def cross_entropy(
    input,
    target,
    weight=None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
):
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
        reduction = _reduction(reduction, size_average, reduce)
    if label_smoothing == 0 and weight is None and not target.place.dtype.is_floating_point:
        return ops.class_cross_entropy(input, target, ignore_index, reduction)[0]
    if not 0 <= label_smoothing <= 1:
        raise ValueError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    dim = _class_dim(input.shape)
    logs = ops.log_softmax(input, dim)
    if target.place.dtype.is_floating_point:
        return _probability_cross_entropy(logs, target, weight, reduction, label_smoothing, dim)
    loss = ops.class_nll(logs, target, ignore_index, reduction, weight)
    return (
        loss
        if label_smoothing == 0
        else _smoothed(loss, logs, target, weight, ignore_index, reduction, label_smoothing, dim)
    )


def _per_class(weight, logs, dim: int):
    """The class weights in a shape that broadcasts with `logs`."""
    if tuple(weight.shape) != (logs.shape[dim],):
        raise ShapeError(
            "cross_entropy: weight tensor should be defined either for all or no classes; got shape "
            f"{list(weight.shape)} for {logs.shape[dim]} classes"
        )
    return weight.reshape(-1, *(1,) * (logs.ndim - dim - 1))


def _probability_cross_entropy(logs, target, weight, reduction: str, label_smoothing: float, dim: int):
    if target.shape != logs.shape:
        raise ShapeError(
            f"cross_entropy: expected class probabilities of the input's shape {list(logs.shape)}, got "
            f"{list(target.shape)}"
        )
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / logs.shape[dim]
    terms = logs * target if weight is None else logs * target * _per_class(weight, logs, dim)
    if reduction == "none":
        return -terms.sum(dim)
    samples = logs.numel() // logs.shape[dim] if reduction == "mean" else 1
    return -terms.sum() / samples


def _smoothed(loss, logs, target, weight, ignore_index: int, reduction: str, label_smoothing: float, dim: int):
    """The loss of the target classes mixed with the loss averaged over all classes."""
    ignored = target == ignore_index
    terms = logs if weight is None else logs * _per_class(weight, logs, dim)
    spread = (-terms.sum(dim)).masked_fill(ignored, 0)
    if reduction == "mean":
        _, weights = _target_weights(logs, target, weight, ignore_index)
        spread = spread.sum() / weights.sum()
    else:
        spread = _reduced(spread, reduction)
    return (1 - label_smoothing) * loss + label_smoothing / logs.shape[dim] * spread


def _loss_and_logsumexp_shape(input, target, ignore_index, reduction):
    _check_classes("cross_entropy", input, target)
    return (target if reduction == "none" else ()), target


@composite(
    dtype=floating_loss.giving(floating_loss, floating_loss),
    shape=_loss_and_logsumexp_shape,
    outputs=("loss", "logsumexp"),
    method=False,
    grad_name="CrossEntropyLoss",
)
def class_cross_entropy(input, target: Index, ignore_index: int, reduction: str):
    """The cross entropy of class indices and the softmax of `input`, reduced; beside it the logarithm of the softmax's
    denominator, from which the gradient makes the probabilities again instead of keeping them."""
    _check_classes("cross_entropy", input.shape, target.shape)
    dim = _class_dim(input.shape)
    total = input.logsumexp(dim)
    return ops.class_nll(input - total.unsqueeze(dim), target, ignore_index, reduction), total


def _class_gradient_shape(grad, input, logsumexp, target, ignore_index, reduction):
    _check_gradient("cross_entropy", grad, input, target, reduction)
    if logsumexp != target:
        raise ShapeError(
            f"cross_entropy: expected logsumexp of the target's shape {list(target)}, got {list(logsumexp)}"
        )
    return input


@class_cross_entropy.gradient("input")
def _(grad_loss, grad_logsumexp, input, logsumexp, target, ignore_index, reduction):
    if grad_logsumexp is None:
        return ops.class_cross_entropy_backward(grad_loss, input, logsumexp, target, ignore_index, reduction)
    dim = _class_dim(input.shape)
    through_sum = (input - logsumexp.unsqueeze(dim)).exp() * grad_logsumexp.unsqueeze(dim)
    if grad_loss is None:
        return through_sum
    return through_sum + ops.class_cross_entropy_backward(grad_loss, input, logsumexp, target, ignore_index, reduction)


@composite(dtype=floating_loss, shape=_class_gradient_shape, method=False)
def class_cross_entropy_backward(grad, input, logsumexp, target: Index, ignore_index: int, reduction: str):
    """The gradient of class_cross_entropy, ``grad * (softmax(input) - onehot(target))``, over the number of samples for
    a mean."""
    _class_gradient_shape(grad.shape, input.shape, logsumexp.shape, target.shape, ignore_index, reduction)
    dim = _class_dim(input.shape)
    positions, weights = _target_weights(input, target, None, ignore_index)
    if reduction == "mean":
        weights = weights / weights.sum()
    share = (grad.unsqueeze(dim) if reduction == "none" else grad) * weights
    probabilities = (input - logsumexp.unsqueeze(dim)).exp()
    return probabilities * share - ops.zeros_like(input).scatter(dim, positions, share)


# -- probabilities ----------------------------------------------------------------------------------------------------
@composite(method=False)
def binary_cross_entropy(
    input, target, weight=None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
):
    """The cross entropy of target probabilities and predicted ones, ``-(t * log(x) + (1 - t) * log(1 - x))``.

    Args:
        input: probabilities, any shape.
        target: probabilities of the input's shape.
        weight: a weight per element that broadcasts with the input.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: "none", "mean" or "sum".

    Logarithms are limited to at least -100, so that the loss stays finite.

    Raises:
        RuntimeError: an input lies outside [0, 1].

    >>> import corefw as torch
    >>> torch.nn.functional.binary_cross_entropy(torch.tensor([0.5]), torch.tensor([1.0]))
    tensor(0.6931)
    """
    reduction = _reduction(reduction, size_average, reduce)
    if input.shape != target.shape:
        raise ShapeError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    loss = ops.bernoulli_nll(input, target)
    return _reduced(loss if weight is None else loss * weight, reduction)


@composite(dtype=floating_loss, shape=broadcast, method=False, grad_name="BinaryCrossEntropy")
def bernoulli_nll(input, target):
    """The elementwise cross entropy of probabilities, with logarithms of at least -100."""
    return (target - 1) * (-input).log1p().clamp_min(-100) - target * input.log().clamp_min(-100)


@bernoulli_nll.gradient("input")
def _(grad, input, target):
    return grad * (input - target) / ((1 - input) * input).clamp_min(1e-12)


@bernoulli_nll.gradient("target")
def _(grad, input):
    return grad * ((-input).log1p().clamp_min(-100) - input.log().clamp_min(-100))


@composite(method=False)
def binary_cross_entropy_with_logits(
    input,
    target,
    weight=None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight=None,
):
    """The binary cross entropy of target probabilities and the sigmoid of `input`, computed without overflow.

    Args:
        input: logits, any shape.
        target: probabilities of the input's shape.
        weight: a weight per element that broadcasts with the input.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: "none", "mean" or "sum".
        pos_weight: a weight for the positive part of each element's loss, broadcasts with the input.

    >>> import corefw as torch
    >>> torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(0.6931)
    """
    reduction = _reduction(reduction, size_average, reduce)
    if input.shape != target.shape:
        raise ShapeError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if pos_weight is None:
        loss = ops.logistic_loss(input, target)
    else:
        loss = (1 - target) * input + (1 + (pos_weight - 1) * target) * ops.softplus(-input, 1.0, float("inf"))
    return _reduced(loss if weight is None else loss * weight, reduction)


@composite(dtype=floating_loss, shape=broadcast, method=False, grad_name="BinaryCrossEntropyWithLogits")
def logistic_loss(input, target):
    """The elementwise logistic loss, ``log(1 + exp(x)) - target * x``."""
    return input.clamp_min(0) - input * target + (-input.abs()).exp().log1p()


@logistic_loss.gradient("input")
def _(grad, input, target):
    return grad * (input.sigmoid() - target)


@logistic_loss.gradient("target")
def _(grad, input):
    return grad * -input


@composite(method=False)
def kl_div(
    input,
    target,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
):
    """The Kullback-Leibler divergence of the target from the input's distribution, ``target * (log(target) - input)``.

    Args:
        input: log-probabilities, any shape.
        target: probabilities of the input's shape, or their logarithms.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: "none", "mean" (over all elements), "batchmean" (the sum over the size of dimension 0: the
            divergence's usual definition) or "sum".
        log_target: whether `target` has logarithms.

    >>> import corefw as torch
    >>> torch.nn.functional.kl_div(torch.tensor([[0.5, 0.5]]).log(), torch.tensor([[1.0, 0.0]]), reduction="batchmean")
    tensor(0.6931)
    """
    batch_mean = reduction == "batchmean"
    reduction = _reduction("sum" if batch_mean else reduction, size_average, reduce)
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release.",
            stacklevel=3,
        )
    loss = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    loss = _reduced(loss, reduction)
    return loss / input.shape[0] if batch_mean and input.ndim else loss


@composite(method=False)
def poisson_nll_loss(
    input,
    target,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
):
    """The negative log-likelihood of counts under Poisson distributions, ``exp(input) - target * input``.

    Args:
        input: the logarithm of the rate, any shape.
        target: counts of the input's shape.
        log_input: False if `input` is the rate itself: ``input - target * log(input + eps)``.
        full: add Stirling's approximation of ``log(target!)`` for targets above 1.
        size_average, reduce: deprecated forms of `reduction`.
        eps: keeps the logarithm finite.
        reduction: "none", "mean" or "sum".

    >>> import corefw as torch
    >>> torch.nn.functional.poisson_nll_loss(torch.tensor([0.0]), torch.tensor([3.0]))
    tensor(1.)
    """
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduced(loss, _reduction(reduction, size_average, reduce))


@composite(method=False)
def gaussian_nll_loss(input, target, var, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
    """The negative log-likelihood under normal distributions, ``(log(var) + (input - target)² / var) / 2``.

    Args:
        input: means, any shape.
        target: samples of a shape that broadcasts with the input.
        var: variances: a number, the input's shape, or without (or with size 1 in) its last dimension.
        full: add the constant ``log(2 π) / 2``.
        eps: the least variance.
        reduction: "none", "mean" or "sum".

    >>> import corefw as torch
    >>> torch.nn.functional.gaussian_nll_loss(torch.tensor([0.0]), torch.tensor([2.0]), torch.tensor([1.0]))
    tensor(2.)
    """
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = ops.full_like(input, var)
    elif bool(ops.lt(var, 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if var.shape == input.shape[:-1]:
            var = var.unsqueeze(-1)
        elif not (input.shape[:-1] == var.shape[:-1] and var.shape[-1:] == (1,)):
            raise ValueError("var is of incorrect size")
    reduction = _reduction(reduction)
    var = var + (var.detach().clamp_min(eps) - var.detach())  # limited, but with the gradient of the variance itself
    loss = 0.5 * (var.log() + (input - target).square() / var)
    return _reduced(loss + 0.5 * log(2 * pi) if full else loss, reduction)


@composite(method=False)
def soft_margin_loss(
    input, target, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
):
    """The logistic loss of targets of 1 and -1, ``log(1 + exp(-target * input))``.

    >>> import corefw as torch
    >>> torch.nn.functional.soft_margin_loss(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(0.6931)
    """
    loss = ops.softplus(-target * input, 1.0, float("inf"))
    return _reduced(loss, _reduction(reduction, size_average, reduce))


@composite(method=False)
def multilabel_soft_margin_loss(
    input, target, weight=None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
):
    """The logistic loss of several labels of 1 and 0, averaged over the last dimension, the classes.

    Args:
        input: logits, shape (..., C).
        target: shape (..., C).
        weight: a weight per class.
        size_average, reduce: deprecated forms of `reduction`.
        reduction: "none", "mean" or "sum".

    >>> import corefw as torch
    >>> torch.nn.functional.multilabel_soft_margin_loss(torch.tensor([[0.0, 0.0]]), torch.tensor([[1.0, 0.0]]))
    tensor(0.6931)
    """
    loss = -(target * ops.logsigmoid(input) + (1 - target) * ops.logsigmoid(-input))
    loss = loss if weight is None else loss * weight
    return _reduced(loss.sum(-1) / input.shape[-1], _reduction(reduction, size_average, reduce))


# -- embeddings and ranks ---------------------------------------------------------------------------------------------
@composite(method=False)
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
    return _reduced(apart + close, _reduction(reduction, size_average, reduce))


@composite(method=False)
def margin_ranking_loss(
    input1,
    input2,
    target,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
):
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
    loss = (-target * (input1 - input2) + margin).clamp_min(0)
    return _reduced(loss, _reduction(reduction, size_average, reduce))


@composite(method=False)
def cosine_embedding_loss(
    input1,
    input2,
    target,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
):
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
    return _reduced(loss, _reduction(reduction, size_average, reduce))


@composite(method=False)
def triplet_margin_loss(
    anchor,
    positive,
    negative,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
):
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

    reduction = _reduction(reduction, size_average, reduce)
    return triplet_margin_with_distance_loss(
        anchor, positive, negative, distance_function=distance, margin=margin, swap=swap, reduction=reduction
    )


@composite(method=False)
def triplet_margin_with_distance_loss(
    anchor,
    positive,
    negative,
    *,
    distance_function: Callable | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
):
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
    return _reduced((to_positive - to_negative + margin).clamp_min(0), _reduction(reduction))


#: the functions that are (also) in `corefw.nn.functional`
FUNCTIONAL = (
    *("binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "cross_entropy"),
    *(
        "gaussian_nll_loss",
        "hinge_embedding_loss",
        "huber_loss",
        "kl_div",
        "l1_loss",
        "margin_ranking_loss",
        "mse_loss",
    ),
    *("multilabel_soft_margin_loss", "nll_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss"),
    *("triplet_margin_loss", "triplet_margin_with_distance_loss"),
)
