"""Optimizers: PyTorch's arithmetic step by step, groups, state, misuse."""

import numpy as np
import pytest

import corefw as torch
from corefw import nn

OPTIONS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.05}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.9), "eps": 1e-3}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.2}),
]


def gradients(rng, shapes):
    return [[rng.standard_normal(shape) for shape in shapes] for _ in range(6)]


def reference_step(name, options, params, grads, state):
    """The papers' formulas in plain NumPy, in float64."""
    for i, (p, g) in enumerate(zip(params, grads, strict=True)):
        g = -g if options.get("maximize") else g
        decay = options.get("weight_decay", 0.01 if name == "AdamW" else 0)
        if name == "AdamW":
            p *= 1 - options["lr"] * decay
        else:
            g = g + decay * p
        if name == "SGD":
            momentum = options.get("momentum", 0)
            if momentum:
                b = state.get(i)
                b = g.copy() if b is None else momentum * b + (1 - options.get("dampening", 0)) * g
                state[i] = b
                g = g + momentum * b if options.get("nesterov") else b
            p -= options["lr"] * g
            continue
        beta1, beta2 = options.get("betas", (0.9, 0.999))
        t, m, v, largest = state.get(i, (0, 0, 0, 0))
        t, m, v = t + 1, beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        largest = np.maximum(largest, v)
        state[i] = (t, m, v, largest)
        used = largest if options.get("amsgrad") else v
        p -= options["lr"] / (1 - beta1**t) * m / (np.sqrt(used) / np.sqrt(1 - beta2**t) + options.get("eps", 1e-8))


@pytest.mark.parametrize(("name", "options"), OPTIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_arithmetic(name, options, dtype):
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (5,), ()]
    start = [rng.standard_normal(s) for s in shapes]
    ours = [nn.Parameter(torch.tensor(a, dtype=dtype)) for a in start]
    wanted = [np.array(a) for a in start]
    optimizer, state = getattr(torch.optim, name)(ours, **options), {}
    for grads in gradients(rng, shapes):
        for p, g in zip(ours, grads, strict=True):
            p.grad = torch.tensor(g, dtype=dtype)
        optimizer.step()
        reference_step(name, options, wanted, grads, state)
    tolerance = 1e-12 if dtype is torch.float64 else 2e-6
    for p, w in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), w, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_equals_pytorch_and_shares_its_state_keys(name, options):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    rng = np.random.default_rng(1)
    start = [rng.standard_normal(s).astype("f4") for s in [(3, 4), (5,)]]
    ours = [nn.Parameter(torch.tensor(a)) for a in start]
    theirs = [oracle.nn.Parameter(oracle.tensor(a)) for a in start]
    a, b = getattr(torch.optim, name)(ours, **options), getattr(oracle.optim, name)(theirs, **options)
    for grads in gradients(rng, [(3, 4), (5,)]):
        for p, q, g in zip(ours, theirs, grads, strict=True):
            p.grad, q.grad = torch.tensor(g, dtype=torch.float32), oracle.tensor(g, dtype=oracle.float32)
        a.step()
        b.step()
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=3e-6, atol=1e-7)
    x, y = a.state_dict(), b.state_dict()
    assert {k: set(s) for k, s in x["state"].items()} == {
        k: {n for n, v in s.items() if v is not None} for k, s in y["state"].items()
    }
    assert set(x["param_groups"][0]) <= set(y["param_groups"][0]) | {"params"}


def test_state_dict_round_trip_continues_the_same_way():
    def run(reload):
        torch.manual_seed(0)
        layer = nn.Linear(3, 2)
        optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
        for i in range(6):
            if reload and i == 3:
                state = optimizer.state_dict()
                optimizer = torch.optim.Adam(layer.parameters(), lr=0.5)
                optimizer.load_state_dict(state)
            optimizer.zero_grad()
            layer(torch.ones(2, 3)).pow(2).sum().backward()
            optimizer.step()
        return layer.weight.detach()

    assert torch.equal(run(False), run(True))


def test_groups_have_options_of_their_own():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([{"params": [a], "lr": 1.0}, {"params": b}], lr=0.1)
    (a + b).sum().backward()
    optimizer.step()
    assert a.item() == 0 and abs(b.item() - 0.9) < 1e-6
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    assert optimizer.param_groups[2]["lr"] == 0.1 and "Parameter Group 2" in repr(optimizer)


def test_parameters_without_a_gradient_stay():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.Adam([a, b], lr=0.1)
    a.sum().backward()
    optimizer.step()
    assert b.item() == 1 and b not in optimizer.state and a.item() < 1


def test_a_step_is_an_in_place_change():
    w = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([w], lr=0.1)
    w.grad = torch.ones(1)
    loss = (w * w).sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_closure_hooks_and_zero_grad():
    w = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([w], lr=0.1)
    calls = []
    handle = optimizer.register_step_post_hook(lambda *a: calls.append(1))

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 1
    handle.remove()
    optimizer.step(closure)
    assert calls == [1]
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.item() == 0
    optimizer.zero_grad()
    assert w.grad is None


W = nn.Parameter(torch.ones(1))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: torch.optim.SGD([], lr=0.1), ValueError),
        (lambda: torch.optim.SGD(W, lr=0.1), TypeError),
        (lambda: torch.optim.SGD([1], lr=0.1), TypeError),
        (lambda: torch.optim.SGD([W * 1], lr=0.1), ValueError),
        (lambda: torch.optim.SGD([W, W], lr=0.1), ValueError),
        (lambda: torch.optim.SGD([{"params": W}, {"params": W}], lr=0.1), ValueError),
        (lambda: torch.optim.SGD([W], lr=-1), ValueError),
        (lambda: torch.optim.SGD([W], lr=1, nesterov=True), ValueError),
        (lambda: torch.optim.Adam([W], betas=(1.0, 0.9)), ValueError),
        (lambda: torch.optim.Adam([W]).load_state_dict({"state": {}, "param_groups": []}), ValueError),
    ],
)
def test_misuse_is_refused(make, kind):
    with pytest.raises(kind):
        make()
