"""Losses of classes that are to be ahead of the others by a margin."""

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.loss import FLOATS, reduced


def multi_margin(input, target, weight=None, p=1, margin=1.0, reduction="mean"):
    losses = []
    for x, t in zip(np.atleast_2d(input), np.atleast_1d(target), strict=True):
        terms = [max(0, margin - x[t] + x[i]) ** p for i in range(len(x)) if i != t]
        losses.append(sum(terms) / len(x) * (1 if weight is None else weight[t]))
    return reduced(np.reshape(losses, target.shape), reduction)


def multilabel_margin(input, target, reduction="mean"):
    losses = []
    for x, labels in zip(np.atleast_2d(input), np.atleast_2d(target), strict=True):
        named = [int(t) for t in labels[: list(labels).index(-1) if -1 in labels else None]]
        others = [i for i in range(len(x)) if i not in named]
        losses.append(sum(max(0, 1 - x[j] + x[i]) for j in named for i in others) / len(x))
    return reduced(np.reshape(losses, target.shape[:-1]), reduction)


def classes(rng, dtype):
    def drawn(*shape):
        return rng.uniform(-1, 1, shape).astype(dtype)

    several, single = np.array([2, 0, 1]), np.array(1)
    weight = {"weight": np.abs(drawn(4))}
    return [
        ([drawn(3, 4), several], {}),
        ([drawn(3, 4), several], {"p": 2, "margin": 0.7, "reduction": "none", **weight}),
        ([drawn(4), single], {"reduction": "sum"}),
    ]


def labels(rng, dtype):
    targets = np.array([[0, 2, -1, 1], [3, 1, 0, 2], [-1, 2, 1, 0]])
    input = rng.uniform(-1, 1, (3, 4)).astype(dtype)
    return [([input, targets], {}), ([input, targets], {"reduction": "none"}), ([input[0], targets[0]], {})]


CASES = (
    Case("multi_margin_loss", multi_margin, make=classes, dtypes=FLOATS, special=False),
    Case("multilabel_margin_loss", multilabel_margin, make=labels, dtypes=FLOATS, special=False),
)
