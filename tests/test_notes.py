"""The statements of introductory notes, each with the outcome that they promise."""

import math

import numpy as np
import pytest

import corefw as torch
from tests.programs import two_layer_net


def test_ways_to_create():
    assert torch.empty(7, 19).shape == torch.rand(7, 19).shape == (7, 19)
    assert torch.zeros(5, 3, dtype=torch.long).dtype == torch.int64
    assert torch.tensor([5.5, 3]).tolist() == [5.5, 3]
    assert torch.Tensor([1, 2]).dtype == torch.float32
    x = torch.zeros(5, 3).new_ones(5, 3, dtype=torch.double)
    assert x.dtype == torch.float64 and x.size() == torch.Size([5, 3])
    like = torch.randn_like(x, dtype=torch.float)
    assert like.dtype == torch.float32 and like.shape == (5, 3)


def test_ways_to_add():
    x, y = torch.rand(5, 3), torch.rand(5, 3)
    result = torch.empty(5, 3)
    torch.add(x, y, out=result)
    assert torch.equal(x + y, torch.add(x, y)) and torch.equal(result, x + y)
    expected = x + y
    assert y.add_(x) is y and torch.equal(y, expected)


def test_view_item_and_numpy_share_memory():
    x = torch.randn(4, 4)
    assert x.view(16).size() == (16,) and x.view(-1, 8).size() == (2, 8)
    assert isinstance(torch.randn(1).item(), float)
    a = torch.ones(5)
    b = a.numpy()
    a.add_(1)
    assert b.tolist() == [2.0] * 5
    c = np.ones(5)
    d = torch.from_numpy(c)
    np.add(c, 1, out=c)
    assert d.tolist() == [2.0] * 5


def test_the_graph_of_a_mean():
    x = torch.ones(2, 2, requires_grad=True)
    y = x + 2
    assert type(y.grad_fn).__name__ == "AddBackward0" and repr(y.grad_fn).startswith("<AddBackward0 object at 0x")
    z = y * y * 3
    out = z.mean()
    assert str(z).endswith("grad_fn=<MulBackward0>)") and "MeanBackward0" in str(out)
    out.backward()
    assert str(x.grad) == "tensor([[4.5000, 4.5000],\n        [4.5000, 4.5000]])"


def test_requires_grad_of_leaves_and_results():
    a = torch.randn(2, 2)
    a = (a * 3) / (a - 1)
    assert a.requires_grad is False
    a.requires_grad_(True)
    assert a.requires_grad is True
    b = (a * a).sum()
    assert b.requires_grad is True and b.grad_fn is not None and a.grad_fn is None
    with pytest.raises(RuntimeError, match="leaf variables"):
        b.requires_grad_(False)


def test_a_vector_needs_a_gradient_to_start_from():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    while y.data.norm() < 1000:
        y = y * 2
    with pytest.raises(RuntimeError, match="scalar outputs"):
        y.backward()
    v = torch.tensor([0.1, 1.0, 0.0001], dtype=torch.float)
    y.backward(v)
    factor = 2 ** math.ceil(math.log2(1000 / 3**0.5))
    np.testing.assert_allclose(x.grad.numpy(), factor * v.numpy(), rtol=1e-6)


def test_stopping_the_history():
    x = torch.ones(2, requires_grad=True)
    assert x.requires_grad and (x**2).requires_grad
    with torch.no_grad():
        assert not (x**2).requires_grad
    y = x.detach()
    assert not y.requires_grad and x.eq(y).all()


def test_in_place_with_underscore_and_division_by_a_number():
    weights = torch.randn(784, 10) / math.sqrt(784)
    weights.requires_grad_()
    bias = torch.zeros(10, requires_grad=True)
    assert weights.is_leaf and bias.is_leaf and 0.03 < float(weights.std()) < 0.04


def test_devices_are_answered_truthfully():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.ones(2, device=device)
    z = x + torch.ones_like(x, device=device)
    moved = z.to("cpu", torch.double)
    assert moved.dtype == torch.float64 and moved.device == torch.device("cpu")
    torch.cuda.manual_seed(1)
    torch.cuda.manual_seed_all(1)
    torch.cuda.empty_cache()
    assert torch.cuda.device_count() >= 0
    if torch.cuda.is_available():
        index = torch.cuda.current_device()
        assert torch.cuda.get_device_name(index) and torch.cuda.get_device_capability(index)
        return
    for ask in (torch.cuda.current_device, torch.cuda.get_device_name, torch.cuda.synchronize, torch.cuda.Stream):
        with pytest.raises((RuntimeError, AssertionError), match="cuda"):
            ask()
    with pytest.raises(RuntimeError, match="cuda"):
        torch.ones(1, device="cuda")
    with pytest.raises((RuntimeError, AssertionError)):
        torch.ones(1).cuda()


def test_the_current_seed_of_a_gpu_that_is_not_there():
    torch.cuda.manual_seed(12)
    assert torch.cuda.initial_seed() == 12
    state = torch.cuda.get_rng_state()
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.cuda.get_rng_state(), state)


def test_a_list_of_parameters_from_instances():
    params = list(two_layer_net(torch)(10, 5, 2).parameters())
    assert [tuple(p.shape) for p in params] == [(5, 10), (5,), (2, 5), (2,)]
