"""GradScaler: its scale beside a simulation by hand and PyTorch's, steps that are left out, and its errors."""

import copy
import math
import pickle

import numpy as np
import pytest

import corefw
from corefw.amp.grad_scaler import OptState

#: what the gradients of each step are multiplied by: some are not finite
FACTORS = [1.0, math.inf, 1.0, 1.0, 1.0, math.nan, 1.0, 1.0, 1.0, 1.0]
OPTIONS = {"init_scale": 1024.0, "growth_factor": 4.0, "backoff_factor": 0.25, "growth_interval": 3}


def training(torch, factors=FACTORS):
    """States and weights of a training run, some of whose gradients are not finite."""
    weights = [torch.nn.Parameter(torch.tensor([1.0, -2.0])), torch.nn.Parameter(torch.tensor([[0.5]]))]
    optimizer, scaler = torch.optim.SGD(weights, lr=0.125), torch.amp.GradScaler("cpu", **OPTIONS)
    for factor in factors:
        optimizer.zero_grad()
        loss = (weights[0] ** 2).sum() + (weights[1] * factor).sum()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        yield scaler.state_dict(), [w.detach().numpy().copy() for w in weights]


def by_hand(factors=FACTORS):
    """The same in NumPy."""
    a, b, scale, good = np.array([1.0, -2.0], "f4"), np.array([[0.5]], "f4"), 1024.0, 0
    for factor in factors:
        if math.isfinite(factor):
            a, b, good = a - np.float32(0.125) * 2 * a, b - np.float32(0.125 * factor), good + 1
            if good == 3:
                scale, good = scale * 4, 0
        else:
            scale, good = scale * 0.25, 0
        yield scale, good, [a, b]


def test_states_are_those_by_hand():
    for (state, weights), (scale, good, expected) in zip(training(corefw), by_hand(), strict=True):
        assert (state["scale"], state["_growth_tracker"]) == (scale, good)
        for w, e in zip(weights, expected, strict=True):
            np.testing.assert_array_equal(w, e)


@pytest.mark.oracle
def test_states_are_pytorchs():
    torch = pytest.importorskip("torch")
    for (state, weights), (theirs, others) in zip(training(corefw), training(torch), strict=True):
        assert state == theirs
        for w, o in zip(weights, others, strict=True):
            np.testing.assert_array_equal(w, o)


def one_step(dtype=corefw.float32):
    weight = corefw.nn.Parameter(corefw.ones(3, dtype=dtype))
    optimizer, scaler = corefw.optim.SGD([weight], 1.0), corefw.amp.GradScaler("cpu", init_scale=8.0)
    scaler.scale((weight * 2).sum()).backward()
    return weight, optimizer, scaler


def test_unscaling_comes_before_clipping():
    weight, optimizer, scaler = one_step()
    assert weight.grad.tolist() == [16, 16, 16]
    scaler.unscale_(optimizer)
    assert weight.grad.tolist() == [2, 2, 2]
    corefw.nn.utils.clip_grad_norm_([weight], 1e-3)
    scaler.step(optimizer)
    scaler.update()
    assert np.allclose(weight.tolist(), 1 - 1e-3 / math.sqrt(3), atol=1e-6)


def test_unscaling_checks_every_tensor():
    for place in range(3):
        for bad in (math.inf, -math.inf, math.nan):
            tensors = [corefw.ones(4), corefw.ones(2, 3), corefw.ones(())]
            tensors[place].view(-1)[-1] = bad
            found = corefw.zeros(())
            corefw._amp_foreach_non_finite_check_and_unscale_(tensors, found, corefw.tensor(0.5))
            assert found.item() == 1 and tensors[(place + 1) % 3].view(-1)[0] == 0.5
    found = corefw.zeros(())
    corefw._amp_foreach_non_finite_check_and_unscale_([corefw.full((3,), 1e38)], found, corefw.tensor(0.5))
    assert found.item() == 0


def test_a_scale_that_would_overflow_stays():
    scale, tracker = corefw.tensor(3e38), corefw.tensor(0, dtype=corefw.int32)
    corefw._amp_update_scale_(scale, tracker, corefw.tensor(0.0), 2.0, 0.5, 1)
    assert scale.isfinite() and tracker.item() == 0


def test_several_outputs_and_a_scale_of_ones_own():
    _, optimizer, scaler = one_step()
    assert [t.item() for t in scaler.scale([corefw.tensor(1.0), corefw.tensor(2.0)])] == [8, 16]
    assert scaler.scale((corefw.tensor(3.0),))[0].item() == 24
    with pytest.raises(ValueError, match="iterable of Tensors"):
        scaler.scale(3)
    scaler.step(optimizer)
    scaler.update(4.0)
    assert scaler.get_scale() == 4 and scaler.scale(corefw.tensor(1.0)).item() == 4
    scaler.update(corefw.tensor([2.0]))
    assert scaler.get_scale() == 2
    with pytest.raises(AssertionError, match="1-element"):
        scaler.update(corefw.ones(2))


def test_calls_out_of_order():
    weight, optimizer, scaler = one_step()
    with pytest.raises(RuntimeError, match="Closure"):
        scaler.step(optimizer, closure=lambda: 0)
    scaler.unscale_(optimizer)
    with pytest.raises(RuntimeError, match=r"unscale_\(\) has already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
        scaler.step(optimizer)
    with pytest.raises(RuntimeError, match=r"after step\(\)"):
        scaler.unscale_(optimizer)
    with pytest.raises(AssertionError, match="pickled"):
        pickle.dumps(scaler)
    scaler.update()
    with pytest.raises(AssertionError, match="prior to update"):
        scaler.update()
    weight.grad = None
    with pytest.raises(AssertionError, match="No inf checks"):
        scaler.step(optimizer)
    for call in ("unscale_", "step"):
        with pytest.raises(AssertionError, match="scale is None"):
            getattr(corefw.amp.GradScaler("cpu"), call)(optimizer)
    with pytest.raises(AssertionError, match="growth factor"):
        corefw.amp.GradScaler("cpu", growth_factor=1.0)
    with pytest.raises(AssertionError, match="backoff factor"):
        corefw.amp.GradScaler("cpu", backoff_factor=1.0)


def test_half_gradients_are_refused():
    _, optimizer, scaler = one_step(corefw.float16)
    with pytest.raises(ValueError, match="FP16"):
        scaler.step(optimizer)


def test_it_goes_on_from_a_state():
    _, optimizer, scaler = one_step()
    scaler.step(optimizer)
    scaler.update()
    other = corefw.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.state_dict() == scaler.state_dict() == pickle.loads(pickle.dumps(scaler)).state_dict()
    assert copy.deepcopy(scaler).state_dict() == scaler.state_dict()
    assert other.scale(corefw.tensor(1.0)).item() == 8 and other._get_growth_tracker() == 1
    other.load_state_dict({**scaler.state_dict(), "scale": 2.0})
    assert other.scale(corefw.tensor(1.0)).item() == 2
    with pytest.raises(RuntimeError, match="empty"):
        other.load_state_dict({})
    assert OptState.READY.value == 0 and other.get_growth_interval() == 2000


def test_turned_off():
    weight, scaler = corefw.nn.Parameter(corefw.ones(1)), corefw.amp.GradScaler(enabled=False)
    optimizer = corefw.optim.SGD([weight], 0.5)
    scaler.scale(weight.sum()).backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    assert weight.item() == 0.5 and scaler.state_dict() == {} and scaler.get_scale() == 1 and not scaler.is_enabled()
    assert pickle.loads(pickle.dumps(scaler)).get_scale() == 1


def test_float16_on_the_cpu_needs_it():
    """A gradient below float16's range arrives with a scale and is 0 without."""
    weight = corefw.nn.Parameter(corefw.ones(1, 1))

    def gradient(scaler):
        weight.grad = None
        with corefw.autocast("cpu", dtype=corefw.float16):
            loss = corefw.nn.functional.linear(corefw.ones(1, 1), weight).float().sum() * 1e-9
        scaler.scale(loss).backward()
        scaler.unscale_(corefw.optim.SGD([weight], 1.0))
        return weight.grad.item()

    assert gradient(corefw.amp.GradScaler("cpu", enabled=False)) == 0
    assert abs(gradient(corefw.amp.GradScaler("cpu")) / 1e-9 - 1) < 0.01
