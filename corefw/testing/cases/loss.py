"""Losses."""

import numpy as np

from corefw.testing.case import Case

FLOATS = ("float16", "bfloat16", "float32", "float64")

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

    def reference(input, target, reduction="mean", weight=None, **attributes):
        return reduced(function(input, target, **attributes), reduction, weight)

    return reference


def smooth_l1(x, y, beta=1.0):
    size = np.abs(x - y)
    return np.where(size < beta, size**2 / (2 * beta), size - beta / 2) if beta else size


def huber(x, y, delta=1.0):
    size = np.abs(x - y)
    return np.where(size < delta, size**2 / 2, delta * (size - delta / 2))


def huber_with_factor(d, threshold, factor):
    return factor * huber(d, 0, threshold)


def squared_error(input, target, reduction):
    return reduced((input - target) ** 2, reduction)


def squared_error_backward(grad, input, target, reduction):
    return grad * 2 * (input - target) / (input.size if reduction == "mean" else 1)


def signs(rng, shape, numpy_dtype):
    return rng.choice([-1, 1], shape).astype(numpy_dtype)


def sign_calls(*shapes, attributes=({},)):
    """Calls whose last tensor consists of 1 and -1."""

    def made(rng, numpy_dtype):
        *inputs, last = shapes
        drawn = [rng.normal(size=shape).astype(numpy_dtype) for shape in inputs]
        return [
            ([*drawn, signs(rng, last, numpy_dtype)], {**options, **reduction})
            for options in attributes
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
        attributes=REDUCTIONS,
        dtypes=FLOATS,
    ),
    Case(
        "squared_error",
        squared_error,
        shapes=(*PAIRS, ((70, 70), (70, 70))),
        attributes=({"reduction": "mean"}, {"reduction": "none"}, {"reduction": "sum"}),
        valid=lambda a, b, reduction: a != (70, 70) or reduction != "none",
        gradient=False,
        torch="nn.functional.mse_loss",
    ),
    Case(
        "squared_error_backward",
        squared_error_backward,
        shapes=(((), (2, 3), (2, 3)), ((2, 3), (2, 3), (2, 3))),
        attributes=({"reduction": "mean"}, {"reduction": "none"}),
        special=False,
    ),
    Case(
        "l1_loss",
        elementwise(lambda x, y: np.abs(x - y)),
        shapes=PAIRS,
        attributes=REDUCTIONS,
        dtypes=FLOATS,
    ),
    Case("huber", huber_with_factor, attributes=({"threshold": 0.5, "factor": 2.0},)),
    Case(
        "huber_backward",
        lambda g, d, threshold, factor: g * factor * np.clip(d, -threshold, threshold),
        shapes=PAIRS,
        attributes=({"threshold": 0.5, "factor": 2.0},),
    ),
    Case(
        "smooth_l1_loss",
        elementwise(smooth_l1),
        shapes=PAIRS,
        attributes=(*REDUCTIONS, {"beta": 0.5}, {"beta": 0}),
        special=False,
    ),
    Case(
        "huber_loss",
        elementwise(huber),
        shapes=PAIRS,
        attributes=(*REDUCTIONS, {"delta": 0.5}),
        special=False,
    ),
    Case(
        "hinge_embedding_loss",
        elementwise(hinge_embedding),
        make=sign_calls((3, 2), (3, 2), attributes=({}, {"margin": 0.5})),
        constant=(1,),
    ),
    Case(
        "margin_ranking_loss",
        margin_ranking,
        make=sign_calls((6,), (6,), (6,), attributes=({}, {"margin": 0.5})),
        constant=(2,),
    ),
    Case(
        "cosine_embedding_loss",
        cosine_embedding,
        make=sign_calls((4, 3), (4, 3), (4,), attributes=({}, {"margin": 0.25})),
        constant=(2,),
    ),
    Case(
        "triplet_margin_loss",
        triplet_margin,
        shapes=TRIPLES,
        attributes=(*REDUCTIONS, {"swap": True}, {"p": 1, "margin": 0.5}),
        special=False,
    ),
    Case(
        "triplet_margin_with_distance_loss",
        triplet_margin,
        shapes=TRIPLES,
        attributes=(*REDUCTIONS, {"swap": True}),
        special=False,
    ),
)
