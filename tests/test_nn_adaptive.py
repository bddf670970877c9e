"""The adaptive softmax, a linear layer with its loss, and batches that several processes share."""

import numpy as np
import pytest

import corefw as torch
from corefw import nn
from tests.parity import compare_layers, import_torch, to_corefw

rng = np.random.default_rng(0)
X, CLASSES = rng.normal(size=(6, 16)).astype("f4"), np.array([0, 9, 3, 5, 2, 7])


@pytest.mark.parametrize(
    ("inputs", "bias"), [((X, CLASSES), True), ((X, CLASSES % 3), False), ((X[0], np.array(9)), False)]
)
def test_the_adaptive_softmax_is_pytorchs(inputs, bias):
    arguments, options = (16, 10, [3, 6]), {"div_value": 2.0, "head_bias": bias}
    ours = nn.AdaptiveLogSoftmaxWithLoss(*arguments, **options)
    theirs = import_torch().nn.AdaptiveLogSoftmaxWithLoss(*arguments, **options)
    compare_layers(ours, theirs, *inputs)
    rows = import_torch().tensor(X) * 3
    np.testing.assert_allclose(ours.log_prob(to_corefw(rows)).detach(), theirs.log_prob(rows).detach(), 1e-5, 1e-5)
    assert ours.predict(to_corefw(rows)).tolist() == theirs.predict(rows).tolist()
    ours.reset_parameters()
    assert (ours.log_prob(to_corefw(rows)).exp().sum(1) - 1).abs().max() < 1e-5


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ({"bias": True}, CLASSES % 4),
        ({"weight": True, "reduction": "sum", "ignore_index": 1}, CLASSES % 4),
        ({"out_features": (2,), "bias": True, "reduction": "none"}, np.stack([CLASSES % 4, CLASSES % 3], 1)),
        ({"label_smoothing": 0.2}, CLASSES % 4),
    ],
)
def test_linear_cross_entropy_is_pytorchs(options, target):
    ours, theirs = (
        module.nn.LinearCrossEntropyLoss(
            16, 4, **{**options, **({"weight": module.tensor([1.0, 2, 3, 4])} if "weight" in options else {})}
        )
        for module in (torch, import_torch())
    )
    compare_layers(ours, theirs, X, target)


def test_batches_of_one_process():
    shape = (4, 3, 5)
    ours, theirs = nn.SyncBatchNorm(3, momentum=0.3), import_torch().nn.SyncBatchNorm(3, momentum=0.3)
    compare_layers(ours, theirs, rng.normal(size=shape).astype("f4"))
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.Sequential(nn.BatchNorm2d(4, affine=False, eps=0.1), nn.ReLU()))
    model.eval()
    x = torch.rand(2, 3, 5, 5)
    expected = model(x)
    converted = nn.SyncBatchNorm.convert_sync_batchnorm(model, "processes")
    layer = converted[1][0]
    assert converted is model and type(layer) is nn.SyncBatchNorm and layer.process_group == "processes"
    assert not layer.training and (converted(x) == expected).all()
    single = nn.BatchNorm1d(3)
    assert nn.SyncBatchNorm.convert_sync_batchnorm(single).weight is single.weight


LAYER = nn.AdaptiveLogSoftmaxWithLoss(16, 10, [3, 6])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, []), ValueError, "length larger than 0"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [6, 3]), ValueError, "sorted in an increasing order"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [10]), ValueError, "between 1 and n_classes-1"),
        (lambda: nn.AdaptiveLogSoftmaxWithLoss(8, 10, [2.5]), ValueError, "unique, positive integers"),
        (lambda: LAYER(torch.zeros(2, 16), torch.tensor([1])), RuntimeError, "same size in the batch"),
        (lambda: LAYER(torch.zeros(16), torch.tensor([1])), RuntimeError, "1D target tensor expects 2D"),
        (lambda: LAYER(torch.zeros(2, 16), torch.tensor([[1]])), RuntimeError, "multi-target not supported"),
        (lambda: LAYER(torch.zeros(2, 16), torch.tensor([1, 10])), RuntimeError, r"values in range \[1, 10\]"),
        (lambda: nn.SyncBatchNorm(3)(torch.zeros(3)), ValueError, "at least 2D"),
        (lambda: nn.SyncBatchNorm(3)(torch.zeros(3, 0)), ValueError, "should be non-zero"),
        (lambda: nn.LinearCrossEntropyLoss(3, 4, weight=torch.ones(3)), RuntimeError, "weight shape to be"),
        (lambda: nn.LinearCrossEntropyLoss(3, 4, label_smoothing=2), RuntimeError, "in range"),
    ],
)
def test_misuse_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call()
