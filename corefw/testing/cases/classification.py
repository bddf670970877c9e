"""Losses of classes."""

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.loss import FLOATS, reduced


def nll_terms(input, target, weight, ignore_index):
    """(losses, weights) of each sample, one after the other."""
    logs = input if input.ndim > 1 else input[None]
    logs = np.moveaxis(logs, 1, -1)
    losses, weights = np.zeros(logs.shape[:-1]), np.zeros(logs.shape[:-1])
    for position, c in np.ndenumerate(target.reshape(logs.shape[:-1])):
        if c != ignore_index:
            weights[position] = 1 if weight is None else weight[c]
            losses[position] = -logs[position][c] * weights[position]
    return losses.reshape(target.shape), weights.reshape(target.shape)


def class_nll(input, target, ignore_index, reduction, weight=None):
    return nll_loss(input, target, weight, ignore_index, reduction)


def nll_loss(input, target, weight=None, ignore_index=-100, reduction="mean"):
    losses, weights = nll_terms(input, target, weight, ignore_index)
    return losses.sum() / weights.sum() if reduction == "mean" else reduced(losses, reduction)


def log_softmax(input):
    return input - np.logaddexp.reduce(input, axis=0 if input.ndim == 1 else 1, keepdims=True)


def cross_entropy(input, target, weight=None, ignore_index=-100, reduction="mean", label_smoothing=0.0):
    logs = log_softmax(input)
    axis = 0 if input.ndim == 1 else 1
    classes = input.shape[axis]
    per_class = (1 if weight is None else weight).__mul__(np.ones(classes)) if weight is not None else np.ones(classes)
    per_class = per_class.reshape(-1, *(1,) * (input.ndim - axis - 1))
    if target.dtype.kind == "f":
        target = target * (1 - label_smoothing) + label_smoothing / classes
        losses = -(logs * target * per_class).sum(axis)
        return losses.sum() / max(losses.size, 1) if reduction == "mean" else reduced(losses, reduction)
    losses, weights = nll_terms(logs, target, weight, ignore_index)
    spread = np.where(target == ignore_index, 0, -(logs * per_class).sum(axis)) / classes
    losses = (1 - label_smoothing) * losses + label_smoothing * spread
    return losses.sum() / weights.sum() if reduction == "mean" else reduced(losses, reduction)


def class_calls(rng, numpy_dtype, log=True):
    """Inputs of every rank with their classes: all kinds of weights, ignored targets and reductions."""

    def drawn(*shape):
        input = rng.normal(size=shape)
        return (log_softmax(input) if log else input).astype(numpy_dtype)

    weight = rng.uniform(0.5, 2, 3).astype(numpy_dtype)
    ignored = np.array([1, -100, 0, 2, 2])
    return [
        ([drawn(5, 3), rng.integers(0, 3, 5)], {}),
        ([drawn(5, 3), ignored], {"reduction": "none"}),
        ([drawn(5, 3), ignored], {}),
        ([drawn(5, 3), rng.integers(0, 3, 5), weight], {"ignore_index": 1}),
        ([drawn(5, 3), ignored, weight], {"reduction": "sum"}),
        ([drawn(3), np.array(1)], {}),
        ([drawn(3), np.array(1), weight], {"reduction": "none"}),
        ([drawn(2, 3, 4), rng.integers(0, 3, (2, 4))], {}),
        ([drawn(2, 3, 2, 2), rng.integers(0, 3, (2, 2, 2)), weight], {"reduction": "none"}),
        ([drawn(2, 3, 2, 2), rng.integers(0, 3, (2, 2, 2))], {"reduction": "sum"}),
    ]


def class_cross_entropy_calls(rng, numpy_dtype):
    """Also scores so large that their differences are lost in what is rounded beside them."""
    scores = rng.integers(300, 304, (2, 4, 3)).astype(numpy_dtype)
    large = [([scores.reshape(6, 4), rng.integers(0, 4, 6)], {}), ([scores, rng.integers(0, 4, (2, 3))], {})]
    return class_calls(rng, numpy_dtype, log=False) + large


def cross_entropy_calls(rng, numpy_dtype):
    calls = class_cross_entropy_calls(rng, numpy_dtype)
    smoothed = [(arguments, {**attributes, "label_smoothing": 0.25}) for arguments, attributes in calls]
    logits = rng.normal(size=(4, 3)).astype(numpy_dtype)
    target = rng.dirichlet(np.ones(3), 4).astype(numpy_dtype)
    weight = rng.uniform(0.5, 2, 3).astype(numpy_dtype)
    probabilities = [
        ([logits, target], {}),
        ([logits, target, weight], {"reduction": "none"}),
        ([logits, target, weight], {"label_smoothing": 0.5, "reduction": "sum"}),
        ([logits[0], target[0]], {}),
        ([logits.reshape(2, 3, 2), target.reshape(2, 3, 2), weight], {}),
    ]
    return calls + smoothed + probabilities


def private(calls, *names):
    """Calls of the op behind a loss: all arguments are given, by position."""
    defaults = {"weight": None, "ignore_index": -100, "reduction": "mean"}

    def made(rng, numpy_dtype):
        found = []
        for (input, target, *weight), attributes in calls(rng, numpy_dtype):
            values = {**defaults, **attributes, **({"weight": weight[0]} if weight else {})}
            if "weight" in names or not weight:
                found.append(([input, target, *(values[name] for name in names)], {}))
        return found

    return made


def backward_of(calls, *names, before):
    """Calls of the op's backward: the gradient and what `before` makes of each call come first."""

    def made(rng, numpy_dtype):
        found = []
        for (input, target, *values), _ in private(calls, *names)(rng, numpy_dtype):
            grad = rng.normal(
                size=target.shape if any(v == "none" for v in values if isinstance(v, str)) else ()
            ).astype(numpy_dtype)
            found.append(([grad, *before(input, target, *values)], {}))
        return found

    return made


def normalizer(input):
    """For each sample the greatest score, and the sum of exponentials relative to it."""
    axis = 0 if input.ndim == 1 else 1
    greatest = input.max(axis)
    return np.stack([greatest, np.exp(input - np.expand_dims(greatest, axis)).sum(axis)])


def class_cross_entropy(input, target, ignore_index, reduction):
    return cross_entropy(input, target, ignore_index=ignore_index, reduction=reduction), normalizer(input)


def class_nll_backward(grad, target, shape, ignore_index, reduction, weight=None):
    out = np.zeros(shape)
    _, weights = nll_terms(out, target, weight, ignore_index)
    scale = -weights / (weights.sum() if reduction == "mean" else 1) * grad
    axis = 0 if len(shape) == 1 else 1
    moved = np.moveaxis(out, axis, -1)
    for position, c in np.ndenumerate(target):
        if c != ignore_index:
            moved[(*position, c)] = scale[position] if scale.ndim else scale
    return out


def class_cross_entropy_backward(grad, input, normalizer, target, ignore_index, reduction):
    axis = 0 if input.ndim == 1 else 1
    share = -class_nll_backward(grad, target, input.shape, ignore_index, reduction)
    greatest, total = np.expand_dims(normalizer[0], axis), np.expand_dims(normalizer[1], axis)
    probabilities = np.exp(input - greatest) / total
    return probabilities * share.sum(axis, keepdims=True) - share


def linear_cross_entropy(input, linear_weight, target, linear_bias=None, **options):
    logits = np.tensordot(input, linear_weight, (-1, -1))
    return cross_entropy(logits if linear_bias is None else logits + linear_bias, target, **options)


def linear_calls(rng, numpy_dtype):
    def drawn(*shape):
        return rng.normal(size=shape).astype(numpy_dtype)

    classes, deep = rng.integers(0, 3, 4), rng.integers(0, 3, (4, 2))
    weighted = {"linear_bias": drawn(3), "weight": np.abs(drawn(3))}
    return [
        ([drawn(4, 5), drawn(3, 5), classes], {}),
        ([drawn(4, 5), drawn(3, 5), classes], {**weighted, "ignore_index": 1, "reduction": "sum"}),
        ([drawn(4, 5), drawn(3, 2, 5), deep], {"linear_bias": drawn(3, 2), "reduction": "none"}),
        ([drawn(5), drawn(3, 5), np.abs(drawn(3))], {"label_smoothing": 0.1}),
    ]


CASES = (
    Case("nll_loss", nll_loss, make=class_calls, dtypes=FLOATS, constant=(2,)),
    Case(
        "class_nll",
        class_nll,
        make=private(class_calls, "ignore_index", "reduction", "weight"),
        constant=(2,),
        meta=False,
    ),
    Case(
        "class_nll_backward",
        class_nll_backward,
        make=backward_of(
            class_calls,
            *("ignore_index", "reduction", "weight"),
            before=lambda input, target, *rest: [target, input.shape, *rest],
        ),
        constant=(2,),
    ),
    Case(
        "cross_entropy",
        cross_entropy,
        make=cross_entropy_calls,
        dtypes=FLOATS,
        constant=(2,),
    ),
    Case(
        "class_cross_entropy",
        class_cross_entropy,
        make=private(class_cross_entropy_calls, "ignore_index", "reduction"),
        gradient=False,  # the greatest score counts as constant: cross_entropy's row checks what the loss makes of it
    ),
    Case(
        "class_cross_entropy_backward",
        class_cross_entropy_backward,
        make=backward_of(
            class_cross_entropy_calls,
            *("ignore_index", "reduction"),
            before=lambda input, target, *rest: [
                input,
                normalizer(input.astype("f4" if input.dtype.itemsize == 2 else input.dtype)),
                target,
                *rest,
            ],
        ),
        constant=(2,),
    ),
    Case(
        "linear_cross_entropy",
        linear_cross_entropy,
        make=linear_calls,
        dtypes=("float32", "float64"),
        constant=(4,),
        special=False,
    ),
)
