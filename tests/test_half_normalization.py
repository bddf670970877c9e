"""Normalisations and losses of half types, and their gradients, at every level of the C backend that this machine has,
beside float32 and float64; no array is converted as a whole."""

import numpy as np
import pytest

import corefw as torch
from tests.halves import HALVES, WHOLE, check_gradients, random, rounded

pytest.importorskip("tests.compiled")
from tests.scratch import extra

F = torch.nn.functional


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_normalisations(level, dtype):
    for shape in [(4, 8, 5, 5), (16, 64), (3, 6, 100), (2, 4, 40, 40), (3, 2, 60, 70), (5, 4, 1), (70, 300)]:
        x, weight, bias = (random(dtype, *size) for size in (shape, shape[1:2], shape[1:2]))
        for function in (
            lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
            lambda x, w, b: F.group_norm(x, 2, w, b),
            lambda x, w, b: F.layer_norm(x, x.shape[1:]),
            lambda x, w, b: F.rms_norm(x.transpose(1, -1), w.shape, w, eps=1e-5),
        ):
            rounded(function, x, weight, bias, level=level)


def evaluated(x, w, b):
    return F.batch_norm(x, torch.full_like(w, 0.25).detach(), torch.full_like(w, 3.0).detach(), w, b)


NORMALISATIONS = {
    "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, True),
    "batch_norm evaluated": evaluated,
    "batch_norm plain": lambda x, w, b: F.batch_norm(x, None, None, training=True),
    "group_norm": lambda x, w, b: F.group_norm(x, 2, w, b),
    "instance_norm": lambda x, w, b: F.instance_norm(x, None, None, w, b),
    "layer_norm": lambda x, w, b: F.layer_norm(x.transpose(1, -1), w.shape, w, b),
    "layer_norm of several": lambda x, w, b: F.layer_norm(x, x.shape[1:]),
    "rms_norm": lambda x, w, b: F.rms_norm(x.transpose(1, -1), w.shape, w, eps=1e-5),
}


@pytest.mark.parametrize("weights", ["float32", "half"])
@pytest.mark.parametrize("name", NORMALISATIONS)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_gradients_of_normalisations(level, dtype, name, weights):
    """Beside weights of float32, as under autocast, and of the half type."""
    for shape in [(4, 8, 5, 5), (16, 64), (3, 6, 100), (2, 4, 90, 100), (300, 70), (9, 2, 3)]:
        if len(shape) > 2 or name != "instance_norm":
            vectors = (random(dtype if weights == "half" else "float32", shape[1]) for _ in range(2))
            check_gradients(NORMALISATIONS[name], [random(dtype, *shape), *vectors], level, dtype)


LOSSES = {
    "cross_entropy": lambda x, t, w: F.cross_entropy(x, t),
    "cross_entropy of each": lambda x, t, w: F.cross_entropy(x, t, reduction="none"),
    "nll_loss": lambda x, t, w: F.nll_loss(x, t, w),
    "nll_loss of each": lambda x, t, w: F.nll_loss(x, t, w, reduction="none"),
}


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_losses_of_classes(level, dtype, name):
    for shape in [(5, 7), (40, 1000), (3, 9000), (2, 5, 9, 11), (3, 4, 200), (6,)]:
        count = shape[1] if len(shape) > 1 else shape[0]
        targets = np.random.default_rng(0).integers(0, count, shape[:1] + shape[2:] if len(shape) > 1 else ())
        target = torch.tensor(np.where(targets == 1, -100, targets) if targets.ndim else targets)
        weight = random(dtype, count).abs()
        check_gradients(
            lambda x, t, w: LOSSES[name](x, t, w.detach()), [random(dtype, *shape), target, weight], level, dtype
        )


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["mse_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_losses_of_elements(level, dtype, name, reduction):
    def loss(x, y):
        return getattr(F, name)(x, y, reduction=reduction)

    for shape in [(7,), (3, 1500), (50, 1000)]:
        x, y = (torch.rand(*shape).mul(0.9).add(0.05).to(getattr(torch, dtype)) for _ in range(2))
        if reduction == "none" or name == "mse_loss":  # others reduce half types that were rounded
            rounded(loss, x, y, level=level)
        if name == "mse_loss":
            check_gradients(loss, [x, y], level, dtype)


@pytest.mark.parametrize("dtype", HALVES)
def test_no_array_is_converted_as_a_whole(dtype, set_threads):
    """Inputs and gradients are not widened beside weights of float32, nor results narrowed."""
    set_threads(2)
    x = random(dtype, 16, 32, 48, 48).requires_grad_()
    w, b = (random("float32", 32).requires_grad_() for _ in range(2))
    scores, classes = random(dtype, 600, 1000).requires_grad_(), torch.arange(600)
    others = scores.detach() * 2
    calls = {
        "batch_norm": ((x, w, b), lambda: F.batch_norm(x, None, None, w, b, True)),
        "batch_norm evaluated": ((x,), lambda: evaluated(x, w.detach(), b.detach())),
        "group_norm": ((x, w, b), lambda: F.group_norm(x, 4, w, b)),
        "layer_norm": ((x,), lambda: F.layer_norm(x, x.shape[2:])),
        "cross_entropy": ((scores,), lambda: F.cross_entropy(scores, classes)),
        "mse_loss": ((scores,), lambda: F.mse_loss(scores, others)),
    }
    for name, (leaves, function) in calls.items():
        half = leaves[0].numel()  # bytes of half a copy
        with torch.backend("c"):
            assert extra(function) < half, name
            y = function()
            gradient = torch.ones_like(y)
            assert extra(torch.autograd.grad, y, leaves, gradient, retain_graph=True) < half, f"gradient of {name}"
