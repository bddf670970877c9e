"""Losses on the CUDA backend beyond what the rows reach: many samples and classes, sums of blocks, half types, and
classes that there are not."""

import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw.testing.checks import settle
from corefw_numpy import classification, loss
from tests.cuda_kernels import DTYPES, TOLERANCES, compare, kernels, rounded
from tests.emulation import memory

REFERENCE = classification.kernels(np) | loss.kernels(np)
REDUCTIONS = ("none", "sum", "mean")
SHAPES = [(700, 10), (70, 300), (1100, 260), (2, 9000), (2, 17000), (3, 21, 400), (2, 300, 3, 3), (0, 3), (2, 3, 0)]


def drawn(shape):
    """(scores, classes with some to ignore) of samples."""
    rng = np.random.default_rng(1)
    target = rng.integers(0, shape[1], (shape[0], *shape[2:]))
    target.ravel()[1::5] = -100
    return rng.normal(size=shape) * 3, target


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_many_samples_and_classes(shape, reduction):
    scores, target = drawn(shape)
    expected = REFERENCE["class_cross_entropy"](scores, target, -100, reduction)
    compare(kernels()["class_cross_entropy"], (scores, target, -100, reduction), expected)
    gradient = np.random.default_rng(2).normal(size=expected[0].shape)
    gradient = np.asarray(gradient)
    arguments = gradient, scores, expected[1], target, -100, reduction
    compare(kernels()["class_cross_entropy_backward"], arguments, REFERENCE["class_cross_entropy_backward"](*arguments))
    weight = np.random.default_rng(3).uniform(0, 2, shape[1])
    arguments = scores, target, -100, reduction, weight
    compare(kernels()["class_nll"], arguments, REFERENCE["class_nll"](*arguments))
    if target.size:
        arguments = gradient, target, shape, -100, reduction, weight
        compare(kernels()["class_nll_backward"], arguments, REFERENCE["class_nll_backward"](*arguments))


@pytest.mark.parametrize("dtype", DTYPES)
def test_rounded_once(dtype):
    scores, target = drawn((64, 50))
    scores = rounded(scores, dtype)
    wide = scores.astype("f8")
    for reduction in REDUCTIONS:
        expected = REFERENCE["class_cross_entropy"](wide, target, -100, reduction)
        compare(kernels()["class_cross_entropy"], (scores, target, -100, reduction), expected, TOLERANCES[dtype] / 2)
        other = rounded(np.roll(scores, 1), dtype)
        error = REFERENCE["squared_error"](wide / 64, other.astype("f8") / 64, reduction)
        divided = rounded(wide / 64, dtype), rounded(other.astype("f8") / 64, dtype)
        compare(kernels()["squared_error"], (*divided, reduction), error)


@pytest.mark.parametrize("wrong", [-1, 3])
def test_classes_that_there_are_not(wrong):
    scores, target = memory.device(np.ones((2, 3))), memory.device(np.array([1, wrong]))
    gradient, sums = memory.device(np.ones(())), memory.device(np.ones((2, 2)))
    for op, arguments in {
        "class_nll": (scores, target, -100, "mean", None),
        "class_nll_backward": (gradient, target, (2, 3), -100, "mean", None),
        "class_cross_entropy": (scores, target, -100, "mean"),
        "class_cross_entropy_backward": (gradient, scores, sums, target, -100, "mean"),
    }.items():
        with pytest.raises(IndexError, match=f"Target {wrong} is out of bounds for 3 classes"):
            kernels()[op](*arguments)
            settle()


def test_squared_errors_of_many_blocks():
    x, y = np.random.default_rng(4).normal(size=(2, 30_001)).astype(np.float32)
    for reduction in ("sum", "mean"):
        expected = REFERENCE["squared_error"](x.astype("f8"), y.astype("f8"), reduction)
        compare(kernels()["squared_error"], (x, y, reduction), expected, 1e-6)
