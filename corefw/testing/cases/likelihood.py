"""Losses of probabilities."""

import math

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.loss import FLOATS, PAIRS, REDUCTIONS, elementwise, reduced


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


CASES = (
    Case(
        "binary_cross_entropy",
        with_weight(binary_cross_entropy),
        make=probability_calls,
        dtypes=FLOATS,
    ),
    Case("bernoulli_nll", binary_cross_entropy, shapes=PAIRS, domain=(0.05, 0.95), special=False),
    Case(
        "binary_cross_entropy_with_logits",
        with_weight(logistic),
        make=lambda rng, d: probability_calls(rng, d, logits=True),
        dtypes=FLOATS,
    ),
    Case("logistic_loss", logistic, shapes=PAIRS, special=False),
    Case(
        "kl_div",
        kl_div_reduced,
        shapes=PAIRS[:1],
        attributes=(
            {"reduction": "none"},
            {"reduction": "sum"},
            {"reduction": "batchmean"},
            {"reduction": "sum", "log_target": True},
        ),
        domain=(0.05, 1),
        special=False,
    ),
    Case(
        "poisson_nll_loss",
        elementwise(poisson),
        shapes=PAIRS,
        attributes=(*REDUCTIONS, {"log_input": False}, {"full": True}),
        domain=(0.1, 3),
        special=False,
    ),
    Case(
        "gaussian_nll_loss",
        gaussian,
        shapes=(((2, 3), (2, 3), (2, 3)), ((2, 3), (2, 3), (2,)), ((2, 3), (2, 3), (2, 1))),
        attributes=(*REDUCTIONS, {"full": True}),
        domain=(0.1, 3),
        special=False,
        meta=False,
    ),
    Case(
        "soft_margin_loss",
        elementwise(lambda x, y: np.log1p(np.exp(-y * x))),
        shapes=PAIRS,
        attributes=REDUCTIONS,
        special=False,
    ),
    Case(
        "multilabel_soft_margin_loss",
        multilabel_soft_margin,
        shapes=(((2, 3), (2, 3)), ((3,), (3,)), ((2, 3), (2, 3), (3,))),
        attributes=REDUCTIONS,
        special=False,
    ),
)
