"""Losses of probabilities: cross entropies, divergences and negative log-likelihoods of distributions."""

from __future__ import annotations

from math import log, pi

from corefw.declarations._shared.reductions import meant_reduction, reduced_loss
from corefw.dispatch.batching.calls import elementwise
from corefw.dispatch.batching.tensors import all_examples
from corefw.dispatch.declare import composite, ops
from corefw.dispatch.rules import promoted_real_floats, real_floats
from corefw.errors import ShapeError
from corefw.graph.grad_mode import no_recording
from corefw.shapes import broadcast
from corefw.tensor import Tensor
from corefw.tracebacks import warn


def _weighted(loss, weight):
    """The loss times a weight per element, if there is one, in its own dtype."""
    return loss if weight is None else (loss * weight).to(loss.dtype)


@composite(public="nn.functional")
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
    reduction = meant_reduction(reduction, size_average, reduce)
    if input.shape != target.shape:
        raise ShapeError(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
            "Please ensure they have the same size."
        )
    loss = ops.bernoulli_nll(input, target)
    return reduced_loss(_weighted(loss, weight), reduction)


@composite(dtype=real_floats, shape=broadcast, public="", grad_name="BinaryCrossEntropy")
def bernoulli_nll(input, target):
    """The elementwise cross entropy of probabilities, with logarithms of at least -100."""
    return (target - 1) * (-input).log1p().clamp_min(-100) - target * input.log().clamp_min(-100)


bernoulli_nll.batching(elementwise)
bernoulli_nll.gradients(
    input=lambda grad, input, target: grad * (input - target) / ((1 - input) * input).clamp_min(1e-12),
    target=lambda grad, input: grad * ((-input).log1p().clamp_min(-100) - input.log().clamp_min(-100)),
)


@composite(public="nn.functional")
def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean",
    pos_weight=None,
):  # fmt: skip
    """The binary cross entropy of target probabilities and the sigmoid of `input`, computed without overflow.

    Args:
        input: logits, any shape.
        target, weight, size_average, reduce, reduction: as for `binary_cross_entropy`.
        pos_weight: a weight for the positive part of each element's loss, broadcasts with the input.

    >>> import corefw as torch
    >>> torch.nn.functional.binary_cross_entropy_with_logits(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(0.6931)
    """
    reduction = meant_reduction(reduction, size_average, reduce)
    if input.shape != target.shape:
        raise ShapeError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")
    if pos_weight is None:
        loss = ops.logistic_loss(input, target)
    else:
        factor = (1 + (pos_weight - 1) * target).to(input.dtype)
        loss = (1 - target) * input - factor * ops.logsigmoid(input)
    return reduced_loss(_weighted(loss, weight), reduction)


@composite(dtype=promoted_real_floats, shape=broadcast, public="", grad_name="BinaryCrossEntropyWithLogits")
def logistic_loss(input, target):
    """The elementwise logistic loss, ``log(1 + exp(x)) - target * x``."""
    return input.clamp_min(0) - input * target + (-input.abs()).exp().log1p()


logistic_loss.batching(elementwise)
logistic_loss.gradients(
    input=lambda grad, input, target: grad * (input.sigmoid() - target),
    target=lambda grad, input: grad * -input,
)


@composite(public="nn.functional")
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
    reduction = meant_reduction("sum" if batch_mean else reduction, size_average, reduce)
    if reduction == "mean":
        warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides "
            "only by the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the "
            "same as 'batchmean' in the next major release."
        )
    loss = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    loss = reduced_loss(loss, reduction)
    return loss / input.shape[0] if batch_mean and input.ndim else loss


@composite(public="nn.functional")
def poisson_nll_loss(
    input, target, log_input: bool = True, full: bool = False, size_average: bool | None = None, eps: float = 1e-8,
    reduce: bool | None = None, reduction: str = "mean",
):  # fmt: skip
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
    loss = input.exp() - target * input if log_input else input - target * (input + float(eps)).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0).to(loss.dtype)
    return reduced_loss(loss, meant_reduction(reduction, size_average, reduce))


@composite(public="nn.functional")
def gaussian_nll_loss(input, target, var, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
    """The negative log-likelihood under normal distributions, ``(log(var) + (input - target)² / var) / 2``.

    Args:
        input: means, any shape.
        target: samples of a shape that broadcasts with the input.
        var: variances: a number, the input's shape, or without its last dimension, or with size 1 in one.
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
    elif all_examples(ops.lt(var, 0)).any():
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if var.shape == input.shape[:-1]:
            var = var.unsqueeze(-1)
        elif var.ndim != input.ndim or [m for n, m in zip(input.shape, var.shape) if m != n] != [1]:
            raise ValueError("var is of incorrect size")
    reduction = meant_reduction(reduction)
    var = var.clone()
    with no_recording():  # limited, but with the gradient of the variance itself
        var.clamp_min_(eps)
    loss = 0.5 * (var.log() + (input - target).square() / var)
    return reduced_loss(loss + 0.5 * log(2 * pi) if full else loss, reduction)


@composite(public="nn.functional")
def soft_margin_loss(
    input, target, size_average: bool | None = None, reduce: bool | None = None, reduction: str = "mean"
):
    """The logistic loss of targets of 1 and -1, ``log(1 + exp(-target * input))``.

    >>> import corefw as torch
    >>> torch.nn.functional.soft_margin_loss(torch.tensor([0.0]), torch.tensor([1.0]))
    tensor(0.6931)
    """
    loss = ops.softplus(-(target * input), 1.0, float("inf"))
    return reduced_loss(loss, meant_reduction(reduction, size_average, reduce))


@composite(public="nn.functional")
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
    return reduced_loss(loss.sum(-1) / input.shape[-1], meant_reduction(reduction, size_average, reduce))
