"""Losses."""

import math

import numpy as np
from scipy.special import logsumexp

from corefw.testing import Case

F = "nn.functional."
FLOATS = ("float32", "float64")
PAIRS = (((2, 3), (2, 3)), ((), ()), ((5,), (5,)))
REDUCTIONS = ({}, {"reduction": "none"}, {"reduction": "sum"})


def reduced(loss, reduction="mean", weight=None):
    if weight is not None:
        loss = loss * weight
        return (
            loss.sum() / np.broadcast_to(weight, loss.shape).sum() if reduction == "mean" else reduced(loss, reduction)
        )
    return {"none": loss, "mean": loss.mean(), "sum": loss.sum()}[reduction]


def elementwise(function):
    """The loss whose element is `function` of input, target and further arguments."""

    def reference(input, target, reduction="mean", weight=None, **statics):
        return reduced(function(input, target, **statics), reduction, weight)

    return reference


def smooth_l1(x, y, beta=1.0):
    size = np.abs(x - y)
    return np.where(size < beta, size**2 / (2 * beta), size - beta / 2) if beta else size


def huber(x, y, delta=1.0):
    size = np.abs(x - y)
    return np.where(size < delta, size**2 / 2, delta * (size - delta / 2))


def squared_error(input, target, reduction):
    return reduced((input - target) ** 2, reduction)


def squared_error_backward(grad, input, target, reduction):
    return grad * 2 * (input - target) / (input.size if reduction == "mean" else 1)


# -- classes ----------------------------------------------------------------------------------------------------------
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
    return input - logsumexp(input, axis=0 if input.ndim == 1 else 1, keepdims=True)


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


def cross_entropy_calls(rng, numpy_dtype):
    calls = class_calls(rng, numpy_dtype, log=False)
    smoothed = [(arguments, {**statics, "label_smoothing": 0.25}) for arguments, statics in calls]
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
        for (input, target, *weight), statics in calls(rng, numpy_dtype):
            values = {**defaults, **statics, **({"weight": weight[0]} if weight else {})}
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


def class_cross_entropy(input, target, ignore_index, reduction):
    total = logsumexp(input, axis=0 if input.ndim == 1 else 1)
    return cross_entropy(input, target, ignore_index=ignore_index, reduction=reduction), total


def class_cross_entropy_calls(rng, numpy_dtype):
    return class_calls(rng, numpy_dtype, log=False)


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


def class_cross_entropy_backward(grad, input, logsumexp, target, ignore_index, reduction):
    axis = 0 if input.ndim == 1 else 1
    share = -class_nll_backward(grad, target, input.shape, ignore_index, reduction)
    probabilities = np.exp(input - np.expand_dims(logsumexp, axis))
    return probabilities * share.sum(axis, keepdims=True) - share


# -- probabilities ----------------------------------------------------------------------------------------------------
def binary_cross_entropy(x, y):
    return -(y * np.maximum(np.log(x), -100) + (1 - y) * np.maximum(np.log1p(-x), -100))


def logistic(x, y, pos_weight=1):
    return (1 - y) * x + (1 + (pos_weight - 1) * y) * np.log1p(np.exp(-x))


def with_weight(function):
    def reference(input, target, weight=None, reduction="mean", pos_weight=1):
        loss = function(input, target) if function is binary_cross_entropy else function(input, target, pos_weight)
        return reduced(loss if weight is None else loss * weight, reduction)

    return reference


def probability_calls(rng, numpy_dtype, logits=False):
    def drawn(*shape):
        return rng.uniform(0.05, 0.95, shape).astype(numpy_dtype)

    calls = [
        ([drawn(2, 3), drawn(2, 3)], {}),
        ([drawn(2, 3), drawn(2, 3), drawn(3)], {"reduction": "sum"}),
        ([drawn(), drawn()], {"reduction": "none"}),
    ]
    if logits:
        calls += [
            ([drawn(2, 3) * 4 - 2, drawn(2, 3)], {"pos_weight": drawn(3), "reduction": r}) for r in ("mean", "none")
        ]
    return calls


def kl_div(x, y, log_target=False):
    return np.exp(y) * (y - x) if log_target else np.where(y > 0, y * np.log(y), 0) - y * x


def kl_div_reduced(input, target, reduction="mean", log_target=False):
    loss = kl_div(input, target, log_target)
    return loss.sum() / input.shape[0] if reduction == "batchmean" else reduced(loss, reduction)


def poisson(x, y, log_input=True, full=False, eps=1e-8):
    loss = np.exp(x) - y * x if log_input else x - y * np.log(x + eps)
    return loss + np.where(y > 1, y * np.log(y) - y + 0.5 * np.log(2 * np.pi * y), 0) if full else loss


def gaussian(input, target, var, full=False, eps=1e-6, reduction="mean"):
    if var.ndim < input.ndim:
        var = var[..., None]
    var = np.maximum(var, eps)
    return reduced(
        0.5 * (np.log(var) + (input - target) ** 2 / var) + (0.5 * math.log(2 * math.pi) if full else 0), reduction
    )


def multilabel_soft_margin(input, target, weight=None, reduction="mean"):
    loss = logistic(input, target) * (1 if weight is None else weight)
    return reduced(loss.mean(-1), reduction)


# -- embeddings and ranks ---------------------------------------------------------------------------------------------
def signs(rng, shape, numpy_dtype):
    return rng.choice([-1, 1], shape).astype(numpy_dtype)


def sign_calls(*shapes, statics=({},)):
    """Calls whose last tensor consists of 1 and -1."""

    def made(rng, numpy_dtype):
        *inputs, last = shapes
        drawn = [rng.normal(size=shape).astype(numpy_dtype) for shape in inputs]
        return [
            ([*drawn, signs(rng, last, numpy_dtype)], {**options, **reduction})
            for options in statics
            for reduction in REDUCTIONS
        ]

    return made


def hinge_embedding(x, y, margin=1.0):
    return np.where(y == 1, x, np.maximum(0, margin - x))


def margin_ranking(input1, input2, target, margin=0, reduction="mean"):
    return reduced(np.maximum(0, -target * (input1 - input2) + margin), reduction)


def cosine_embedding(input1, input2, target, margin=0, reduction="mean"):
    cosine = (input1 * input2).sum(-1) / np.sqrt((input1**2).sum(-1) * (input2**2).sum(-1))
    return reduced(np.where(target == 1, 1 - cosine, np.maximum(0, cosine - margin)), reduction)


def triplet_margin(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, reduction="mean"):
    def distance(a, b):
        return (np.abs(a - b + eps) ** p).sum(-1) ** (1 / p)

    apart = distance(anchor, negative)
    if swap:
        apart = np.minimum(apart, distance(positive, negative))
    return reduced(np.maximum(0, distance(anchor, positive) - apart + margin), reduction)


TRIPLES = (((3, 4), (3, 4), (3, 4)), ((4,), (4,), (4,)))

CASES = (
    Case(
        "mse_loss",
        elementwise(lambda x, y: (x - y) ** 2),
        shapes=PAIRS,
        statics=REDUCTIONS,
        dtypes=FLOATS,
        torch=F + "mse_loss",
    ),
    Case(
        "squared_error",
        squared_error,
        shapes=(*PAIRS, ((70, 70), (70, 70))),
        statics=({"reduction": "mean"}, {"reduction": "none"}, {"reduction": "sum"}),
        valid=lambda a, b, reduction: a != (70, 70) or reduction != "none",
        gradient=False,
        torch=F + "mse_loss",
    ),
    Case(
        "squared_error_backward",
        squared_error_backward,
        shapes=(((), (2, 3), (2, 3)), ((2, 3), (2, 3), (2, 3))),
        statics=({"reduction": "mean"}, {"reduction": "none"}),
        special=False,
        torch=None,
    ),
    Case(
        "l1_loss",
        elementwise(lambda x, y: np.abs(x - y)),
        shapes=PAIRS,
        statics=REDUCTIONS,
        dtypes=FLOATS,
        torch=F + "l1_loss",
    ),
    Case(
        "smooth_l1_loss",
        elementwise(smooth_l1),
        shapes=PAIRS,
        statics=(*REDUCTIONS, {"beta": 0.5}, {"beta": 0}),
        special=False,
        torch=F + "smooth_l1_loss",
    ),
    Case(
        "huber_loss",
        elementwise(huber),
        shapes=PAIRS,
        statics=(*REDUCTIONS, {"delta": 0.5}),
        special=False,
        torch=F + "huber_loss",
    ),
    Case("nll_loss", nll_loss, make=class_calls, dtypes=FLOATS, constant=(2,), torch=F + "nll_loss"),
    Case(
        "class_nll",
        class_nll,
        make=private(class_calls, "ignore_index", "reduction", "weight"),
        constant=(2,),
        meta=False,
        torch=None,
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
        torch=None,
    ),
    Case(
        "cross_entropy",
        cross_entropy,
        make=cross_entropy_calls,
        dtypes=FLOATS,
        gradient=False,
        torch=F + "cross_entropy",
    ),
    Case(
        "class_cross_entropy",
        class_cross_entropy,
        make=private(class_cross_entropy_calls, "ignore_index", "reduction"),
        torch=None,
    ),
    Case(
        "class_cross_entropy_backward",
        class_cross_entropy_backward,
        make=backward_of(
            class_cross_entropy_calls,
            *("ignore_index", "reduction"),
            before=lambda input, target, *rest: [
                input,
                np.asarray(logsumexp(input.astype("f8"), axis=0 if input.ndim == 1 else 1)).astype(input.dtype),
                target,
                *rest,
            ],
        ),
        torch=None,
    ),
    Case(
        "binary_cross_entropy",
        with_weight(binary_cross_entropy),
        make=probability_calls,
        dtypes=FLOATS,
        torch=F + "binary_cross_entropy",
    ),
    Case("bernoulli_nll", binary_cross_entropy, shapes=PAIRS, domain=(0.05, 0.95), special=False, torch=None),
    Case(
        "binary_cross_entropy_with_logits",
        with_weight(logistic),
        make=lambda rng, d: probability_calls(rng, d, logits=True),
        dtypes=FLOATS,
        torch=F + "binary_cross_entropy_with_logits",
    ),
    Case("logistic_loss", logistic, shapes=PAIRS, special=False, torch=None),
    Case(
        "kl_div",
        kl_div_reduced,
        shapes=PAIRS[:1],
        statics=(
            {"reduction": "none"},
            {"reduction": "sum"},
            {"reduction": "batchmean"},
            {"reduction": "sum", "log_target": True},
        ),
        domain=(0.05, 1),
        special=False,
        torch=F + "kl_div",
    ),
    Case(
        "poisson_nll_loss",
        elementwise(poisson),
        shapes=PAIRS,
        statics=(*REDUCTIONS, {"log_input": False}, {"full": True}),
        domain=(0.1, 3),
        special=False,
        torch=F + "poisson_nll_loss",
    ),
    Case(
        "gaussian_nll_loss",
        gaussian,
        shapes=(((2, 3), (2, 3), (2, 3)), ((2, 3), (2, 3), (2,)), ((2, 3), (2, 3), (2, 1))),
        statics=(*REDUCTIONS, {"full": True}),
        domain=(0.1, 3),
        special=False,
        meta=False,
        torch=F + "gaussian_nll_loss",
    ),
    Case(
        "soft_margin_loss",
        elementwise(lambda x, y: np.log1p(np.exp(-y * x))),
        shapes=PAIRS,
        statics=REDUCTIONS,
        special=False,
        torch=F + "soft_margin_loss",
    ),
    Case(
        "multilabel_soft_margin_loss",
        multilabel_soft_margin,
        shapes=(((2, 3), (2, 3)), ((3,), (3,)), ((2, 3), (2, 3), (3,))),
        statics=REDUCTIONS,
        special=False,
        torch=F + "multilabel_soft_margin_loss",
    ),
    Case(
        "hinge_embedding_loss",
        elementwise(hinge_embedding),
        make=sign_calls((3, 2), (3, 2), statics=({}, {"margin": 0.5})),
        constant=(1,),
        torch=F + "hinge_embedding_loss",
    ),
    Case(
        "margin_ranking_loss",
        margin_ranking,
        make=sign_calls((6,), (6,), (6,), statics=({}, {"margin": 0.5})),
        constant=(2,),
        torch=F + "margin_ranking_loss",
    ),
    Case(
        "cosine_embedding_loss",
        cosine_embedding,
        make=sign_calls((4, 3), (4, 3), (4,), statics=({}, {"margin": 0.25})),
        constant=(2,),
        torch=F + "cosine_embedding_loss",
    ),
    Case(
        "triplet_margin_loss",
        triplet_margin,
        shapes=TRIPLES,
        statics=(*REDUCTIONS, {"swap": True}, {"p": 1, "margin": 0.5}),
        special=False,
        torch=F + "triplet_margin_loss",
    ),
    Case(
        "triplet_margin_with_distance_loss",
        triplet_margin,
        shapes=TRIPLES,
        statics=(*REDUCTIONS, {"swap": True}),
        special=False,
        torch=F + "triplet_margin_with_distance_loss",
    ),
)
