"""The loss of labels whose places in time are not known: all paths through time are walked."""

from itertools import groupby, product

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.loss import FLOATS

REALS = FLOATS[2:]


def paths_of(target, blank: int, classes: int, length: int):
    """The paths that give a target: without what repeats, then without blanks."""
    for path in product(range(classes), repeat=length):
        if [label for label, _ in groupby(path) if label != blank] == list(target):
            yield path


def probabilities(log_probs, target, blank: int, length: int):
    """The probability of a target, and for each time and class that of the paths which are there."""
    p, shares = np.exp(log_probs.astype(np.float64)), np.zeros(log_probs.shape)
    total = 0.0
    for path in paths_of(target, blank, p.shape[1], length):
        probability = np.prod([p[t, label] for t, label in enumerate(path)])
        total += probability
        for t, label in enumerate(path):
            shares[t, label] += probability
    return total, shares


def ctc_costs(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    found = [
        probabilities(log_probs[:, n], targets[n, : target_lengths[n]], blank, input_lengths[n])[0]
        for n in range(log_probs.shape[1])
    ]
    return np.array([-np.log(p) if p else 0 if zero_infinity else np.inf for p in found], log_probs.dtype)


def ctc_costs_backward(grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    result = np.zeros_like(log_probs)
    for n, length in enumerate(input_lengths):
        total, shares = probabilities(log_probs[:, n], targets[n, : target_lengths[n]], blank, length)
        if total:
            result[:length, n] = (np.exp(log_probs[:, n]) - shares / total)[:length] * grad[n]
        else:
            result[:length, n] = 0 if zero_infinity else np.nan
    return result


def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction="mean", zero_infinity=False):
    if log_probs.ndim == 2:
        arguments = log_probs[:, None], targets, input_lengths, target_lengths, blank, reduction, zero_infinity
        return ctc_loss(*arguments).reshape(())
    counts = np.asarray(target_lengths)
    rows = targets if targets.ndim == 2 else np.zeros((len(counts), counts.max()), int)
    if targets.ndim == 1:
        for row, labels in zip(rows, np.split(targets, counts.cumsum()[:-1]), strict=True):
            row[: len(labels)] = labels
    losses = ctc_costs(log_probs, rows, input_lengths, counts, blank, zero_infinity)
    return {"none": losses, "mean": (losses / counts.clip(1)).mean(), "sum": losses.sum()}[reduction]


TARGETS = np.array([[1, 2], [1, 1], [2, 0], [1, 1]])
INPUT_LENGTHS, TARGET_LENGTHS = np.array([4, 4, 2, 2]), np.array([2, 2, 1, 2])  # the last has too little time


def normalized(rng, dtype, *shape):
    scores = rng.normal(size=shape)
    return (scores - np.log(np.exp(scores).sum(-1, keepdims=True))).astype(dtype)


def inner_calls(rng, dtype, before=0):
    calls = []
    for zero_infinity in (False, True):
        for blank, targets in ((0, TARGETS), (2, 2 - TARGETS), (0, TARGETS[:, :0])):
            lengths = INPUT_LENGTHS, TARGET_LENGTHS.clip(max=targets.shape[1])
            arrays = [normalized(rng, dtype, 4, 4, 3), targets, *lengths]
            gradients = [rng.normal(size=4).astype(dtype)][:before]
            calls.append(([*gradients, *arrays], {"blank": blank, "zero_infinity": zero_infinity}))
    return calls


def calls(rng, dtype):
    lengths = {"input_lengths": (4, 3), "target_lengths": (2, 1)}
    input = normalized(rng, dtype, 4, 2, 3)
    return [
        ([input, TARGETS[:2]], lengths),
        ([input, TARGETS[:2, ::-1].copy()], {**lengths, "blank": 0, "reduction": "none"}),
        ([input, np.array([1, 0, 1])], {**lengths, "blank": 2, "reduction": "sum"}),
        ([input, TARGETS[:2]], {**lengths, "input_lengths": (1, 4), "zero_infinity": True}),
        ([input[:, 0], TARGETS[0]], {"input_lengths": (4,), "target_lengths": (2,), "reduction": "none"}),
    ]


# The gradient is that of scores behind a softmax, so that it is no derivative: tests/test_alignment.py compares it.
CASES = (
    Case("ctc_costs", ctc_costs, make=inner_calls, dtypes=REALS, gradient=False, special=False),
    Case(
        "ctc_costs_backward",
        ctc_costs_backward,
        make=lambda rng, dtype: inner_calls(rng, dtype, before=1),
        dtypes=REALS,
        gradient=False,
        special=False,
    ),
    Case("ctc_loss", ctc_loss, make=calls, dtypes=REALS, gradient=False, special=False, meta=False),
)
