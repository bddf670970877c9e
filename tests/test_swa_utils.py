"""Averages of weights: PyTorch's numbers, checkpoints, buffers, running statistics, misuse."""

import numpy as np
import pytest

import corefw as torch
from corefw import nn
from corefw.optim import swa_utils


def trajectory():
    return np.random.default_rng(0).standard_normal((5, 2, 3))


def average(lib, utils, values, **options):
    """The averaged weights after each update, and the model that holds them."""
    model = lib.nn.Sequential(lib.nn.Linear(3, 2), lib.nn.BatchNorm1d(2))
    averaged, rows = utils.AveragedModel(model, **options), []
    for value in values:
        with lib.no_grad():
            model[0].weight.copy_(lib.tensor(value))
            model[1].running_mean.copy_(lib.tensor(value[:, 0]))
        averaged.update_parameters(model)
        rows.append([averaged.module[0].weight.detach().numpy().copy(), averaged.module[1].running_mean.numpy().copy()])
    return rows, averaged


CHOICES = {
    "mean": lambda utils: {},
    "mean of lists": lambda utils: {"multi_avg_fn": utils.get_swa_multi_avg_fn()},
    "mean with buffers": lambda utils: {"use_buffers": True, "avg_fn": utils.get_swa_avg_fn()},
    "exponential": lambda utils: {"avg_fn": utils.get_ema_avg_fn(0.8)},
    "exponential of lists": lambda utils: {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.8)},
}


@pytest.mark.parametrize("choice", CHOICES)
def test_averages(choice):
    values = trajectory()
    rows, averaged = average(torch, swa_utils, values, **CHOICES[choice](swa_utils))
    wanted, buffer = values[0], values[0, :, 0]
    for i, (found, mean) in enumerate(rows):
        share = 1 / (i + 1) if "mean" in choice else (1.0 if i == 0 else 0.2)
        wanted = wanted + share * (values[i] - wanted)
        buffer = wanted[:, 0] if "buffers" in choice else values[i, :, 0]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(mean, buffer, rtol=1e-5, atol=1e-6)
    assert averaged.n_averaged.item() == 5
    again = swa_utils.AveragedModel(nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)))
    again.load_state_dict(averaged.state_dict())
    x = torch.ones(4, 3)
    assert torch.equal(again.eval()(x), averaged.eval()(x)) and again.n_averaged.item() == 5


@pytest.mark.parametrize("choice", CHOICES)
def test_averages_equal_pytorch(choice):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    theirs = oracle.optim.swa_utils
    found, ours = average(torch, swa_utils, trajectory(), **CHOICES[choice](swa_utils))
    wanted, held = average(oracle, theirs, trajectory(), **CHOICES[choice](theirs))
    for a, b in zip(found, wanted, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
    assert list(ours.state_dict()) == list(held.state_dict())


def test_update_bn_averages_all_batches_alike():
    model = nn.Sequential(nn.BatchNorm1d(2, momentum=0.3), nn.ReLU()).eval()
    batches = torch.tensor(np.random.default_rng(1).standard_normal((3, 8, 2)), dtype=torch.float32)
    swa_utils.update_bn([(b, 0) for b in batches], model, device="cpu")
    np.testing.assert_allclose(model[0].running_mean.numpy(), batches.numpy().mean((0, 1)), rtol=1e-5, atol=1e-6)
    wanted = batches.numpy().var(1, ddof=1).mean(0)
    np.testing.assert_allclose(model[0].running_var.numpy(), wanted, rtol=1e-5)
    assert model[0].momentum == 0.3 and not model.training
    swa_utils.update_bn([], nn.Linear(1, 1))


@pytest.mark.parametrize(
    "options", [{}, {"anneal_strategy": "linear", "anneal_epochs": 4}, {"anneal_epochs": 0}, {"swa_lr": [0.3, 0.01]}]
)
def test_swalr_equals_pytorch_and_resumes(options):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    rows = []
    for lib in (torch, oracle):
        groups = [{"params": lib.nn.Parameter(lib.ones(1))}, {"params": lib.nn.Parameter(lib.ones(1)), "lr": 0.2}]
        optimizer = lib.optim.SGD(groups, lr=0.5)
        make = lib.optim.swa_utils.SWALR
        scheduler, rates = make(optimizer, **{"swa_lr": 0.05, **options}), []
        for epoch in range(20):
            if epoch == 3:
                state, saved = scheduler.state_dict(), optimizer.state_dict()
                scheduler = make(optimizer, 0.7)
                scheduler.load_state_dict(state)
                optimizer.load_state_dict(saved)
            rates.append([*scheduler.get_last_lr(), *(g["lr"] for g in optimizer.param_groups)])
            optimizer.step()
            scheduler.step()
        rows.append(rates)
    np.testing.assert_allclose(*rows, rtol=1e-12)


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda sgd: swa_utils.get_ema_avg_fn(1.5), ValueError),
        (lambda sgd: swa_utils.get_ema_multi_avg_fn(-1), ValueError),
        (lambda sgd: swa_utils.AveragedModel(nn.Linear(1, 1), avg_fn=max, multi_avg_fn=max), AssertionError),
        (lambda sgd: swa_utils.SWALR(sgd, 0.1, anneal_strategy="jump"), ValueError),
        (lambda sgd: swa_utils.SWALR(sgd, 0.1, anneal_epochs=-1), ValueError),
        (lambda sgd: swa_utils.SWALR(sgd, [0.1, 0.2]), ValueError),
        (lambda sgd: swa_utils.SWALR(3, 0.1), TypeError),
    ],
)
def test_misuse_is_refused(make, kind):
    with pytest.raises(kind):
        make(torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=0.1))
