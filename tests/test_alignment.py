"""The loss of labels whose places in time are not known: values and gradients are PyTorch's, its arguments' checks."""

import numpy as np
import pytest

import corefw
from corefw.nn import functional as F
from tests.parity import import_torch

rng = np.random.default_rng(0)


def drawn(concatenated: bool, blank: int, times: int = 9, batch: int = 4, classes: int = 5, most: int = 4) -> tuple:
    """Scores, targets in one of the layouts, and lengths, of which some leave too little time."""
    scores = rng.normal(size=(times, batch, classes))
    labels = [label for label in range(classes) if label != blank]
    targets = rng.choice(labels, (batch, most))
    lengths, counts = rng.integers(most // 2, times + 1, batch), rng.integers(0, most + 1, batch)
    if concatenated:
        targets = np.concatenate([row[:count] for row, count in zip(targets, counts, strict=True)])
    return scores, targets, lengths, counts


@pytest.mark.parametrize("concatenated", [False, True])
@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("zero_infinity", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_losses_and_gradients_are_pytorchs(concatenated, blank, reduction, zero_infinity, dtype):
    for _ in range(3):
        scores, targets, lengths, counts = drawn(concatenated, blank)
        found = []
        for module in (corefw, import_torch()):
            x = module.tensor(scores.astype(dtype), requires_grad=True)
            layer = module.nn.CTCLoss(blank, reduction, zero_infinity)
            loss = layer(x.log_softmax(-1), *map(module.tensor, (targets, lengths, counts)))
            (loss * loss).sum().backward()
            found.append((loss.detach().numpy(), x.grad.numpy()))
        for ours, theirs in zip(*found, strict=True):
            tolerance = 1e-10 if dtype == "float64" else 2e-5
            np.testing.assert_allclose(ours, theirs, tolerance, tolerance)


def test_the_gradient_of_the_composition_is_the_derivative():
    scores, targets, _, _ = drawn(False, 0, times=4, batch=3, classes=3, most=2)
    lengths, counts = (4, 3, 4), (2, 1, 0)

    def loss(x):
        return F.ctc_loss(x.log_softmax(-1), corefw.tensor(targets), lengths, counts)

    x = corefw.tensor(scores, requires_grad=True)
    assert corefw.autograd.gradcheck(loss, (x,))
    assert corefw.autograd.gradgradcheck(loss, (x,))


def test_long_sequences_keep_their_digits():
    scores, targets, _, _ = drawn(False, 0, times=400, batch=2, classes=30, most=60)
    losses = [
        F.ctc_loss(corefw.tensor(scores.astype(dtype)).log_softmax(-1), corefw.tensor(targets), (400, 350), (60, 41))
        for dtype in ("float32", "float64")
    ]
    np.testing.assert_allclose(losses[0].item(), losses[1].item(), 1e-6)


def test_what_is_not_a_number_stays_none():
    log_probs = corefw.zeros(3, 1, 2)
    log_probs[1] = float("nan")
    assert F.ctc_loss(log_probs, corefw.tensor([[1]]), (3,), (1,)).isnan()


LOG_PROBS, TARGETS = corefw.zeros(5, 2, 4), corefw.tensor([[1, 2, 3], [1, 1, 0]])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: F.ctc_loss(LOG_PROBS.half(), TARGETS, (5, 5), (3, 2)), NotImplementedError, "ctc_loss_cpu.*Half"),
        (lambda: F.ctc_loss(LOG_PROBS[0, 0], TARGETS, (5, 5), (3, 2)), RuntimeError, r"\(T, N, C\) or \(T, C\)"),
        (lambda: F.ctc_loss(LOG_PROBS[:, :0], TARGETS[:0], (), ()), RuntimeError, "not empty"),
        (lambda: F.ctc_loss(LOG_PROBS, TARGETS, (5, 5), (3, 2), 4), RuntimeError, "blank must be in label range"),
        (lambda: F.ctc_loss(LOG_PROBS, TARGETS, (5, 6), (3, 2)), RuntimeError, "from 0 to 5, but got value 6"),
        (lambda: F.ctc_loss(LOG_PROBS, TARGETS, (5, 5), (3, 4)), RuntimeError, "from 0 to 3, but got value 4"),
        (lambda: F.ctc_loss(LOG_PROBS, TARGETS, (5, -1), (3, 2)), RuntimeError, "got value -1"),
        (
            lambda: F.ctc_loss(LOG_PROBS, TARGETS, (5,), (3, 2)),
            RuntimeError,
            "input_lengths must be of size batch_size",
        ),
        (lambda: F.ctc_loss(LOG_PROBS, TARGETS, corefw.ones(2), (3, 2)), RuntimeError, "must be integral"),
        (lambda: F.ctc_loss(LOG_PROBS, TARGETS.flatten(), (5, 5), (3, 2)), RuntimeError, "sum 5, got 6"),
        (lambda: F.ctc_loss(LOG_PROBS, TARGETS[:1], (5, 5), (3, 2)), RuntimeError, "2 rows of at least 3 labels"),
        (lambda: F.ctc_loss(LOG_PROBS, TARGETS[None], (5, 5), (3, 2)), RuntimeError, "1 or 2 dimensions"),
        (lambda: F.ctc_loss(LOG_PROBS, TARGETS + 3, (5, 5), (3, 2)), IndexError, "out of bounds"),
        (lambda: F.ctc_loss(LOG_PROBS, TARGETS, (5, 5), (3, 2), reduction="all"), ValueError, "not a valid value"),
    ],
)
def test_misuse_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
