"""Optimizers that look at whole matrices; the signatures and states of all, beside PyTorch's."""

from inspect import signature

import numpy as np
import pytest

import corefw as torch
from corefw import nn
from tests.optimizers import gradients, states_in

OPTIMIZERS = [name for name in torch.optim.__all__ if name[0].isupper() and name != "Optimizer"]


def adafactor(p, g, s, t, lr=1e-2, beta2_decay=-0.8, eps=(2.0**-52, 1e-3), d=1.0, weight_decay=0):
    weight, scale = t**beta2_decay, max(eps[1], np.sqrt((p * p).mean())) * min(lr, 1 / np.sqrt(t))
    if p.ndim < 2:
        squares = s["v"] = (1 - weight) * s.get("v", 0) + weight * g * g
    else:
        for axis in (-1, -2):
            s[axis] = (1 - weight) * s.get(axis, 0) + weight * (g * g).mean(axis, keepdims=True)
        squares = s[-1] @ s[-2] / np.maximum(s[-1].mean(-2, keepdims=True), eps[0])
    change = g / np.sqrt(np.maximum(squares, eps[0] ** 2))
    return p * (1 - lr * weight_decay) - scale * change / max(1, np.sqrt((change * change).mean()) / d)


ADAFACTOR = [{}, {"lr": 0.1, "beta2_decay": -0.3, "eps": (1e-3, 0.1), "d": 1.5, "weight_decay": 0.1}]


@pytest.mark.parametrize("options", ADAFACTOR)
def test_adafactor_keeps_rows_and_columns(options):
    rng = np.random.default_rng(3)
    shapes = [(3, 4), (2, 3, 2), (5,), ()]
    wanted = [rng.standard_normal(shape) for shape in shapes]
    ours = [nn.Parameter(torch.tensor(w)) for w in wanted]
    optimizer, states = torch.optim.Adafactor(ours, **options), [{} for _ in shapes]
    for t, grads in enumerate(gradients(rng, shapes), 1):
        for i, (p, g) in enumerate(zip(ours, grads, strict=True)):
            p.grad = torch.tensor(g)
            wanted[i] = np.asarray(adafactor(wanted[i], np.asarray(g), states[i], t, **options))
        optimizer.step()
    for p, w in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), w, rtol=1e-12)
    kept = [
        tuple(optimizer.state[p][n].shape) for p, n in zip(ours[:3], ("row_var", "col_var", "variance"), strict=True)
    ]
    assert kept == [(3, 1), (2, 1, 2), (5,)]


@pytest.mark.parametrize("shape", [(4, 6), (6, 4), (5, 5)])
@pytest.mark.parametrize("adjustment", [None, "original", "match_rms_adamw"])
def test_muon_steps_along_nearly_orthogonal_matrices(shape, adjustment):
    rng = np.random.default_rng(4)
    w = nn.Parameter(torch.zeros(shape))
    optimizer = torch.optim.Muon([w], lr=1.0, adjust_lr_fn=adjustment)
    w.grad = torch.tensor(rng.standard_normal(shape), dtype=torch.float32)
    optimizer.step()
    factor = 0.2 * max(shape) ** 0.5 if adjustment == "match_rms_adamw" else max(1, shape[0] / shape[1]) ** 0.5
    U, _, Vh = np.linalg.svd(w.grad.numpy(), full_matrices=False)
    found = -U.T @ w.detach().numpy() @ Vh.T / factor
    assert (np.diagonal(found) > 0.6).all() and (np.diagonal(found) < 1.25).all()
    np.testing.assert_allclose(found, np.diag(np.diagonal(found)), atol=0.03)


@pytest.mark.parametrize(
    ("name", "options", "tolerance"),
    [
        *(("Adafactor", options, 1e-6) for options in ADAFACTOR),
        ("Adafactor", {"maximize": True}, 1e-6),
        ("Muon", {"lr": 0.1}, 0.02),
        ("Muon", {"lr": 0.1, "nesterov": False, "ns_steps": 3, "weight_decay": 0.2, "momentum": 0.8}, 0.02),
    ],
)
def test_steps_of_matrices_are_pytorchs(name, options, tolerance):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    rng = np.random.default_rng(5)
    start = rng.standard_normal((6, 4)).astype("f4")
    p, q = nn.Parameter(torch.tensor(start)), oracle.nn.Parameter(oracle.tensor(start))
    a, b = getattr(torch.optim, name)([p], **options), getattr(oracle.optim, name)([q], **options)
    for (g,) in gradients(rng, [(6, 4)]):
        p.grad, q.grad = torch.tensor(g.astype("f4")), oracle.tensor(g.astype("f4"))
        a.step()
        b.step()
    np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), atol=tolerance)
    assert states_in(a.state_dict()) == states_in(b.state_dict())
    a.load_state_dict(b.state_dict())


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda w: torch.optim.Rprop([w], etas=(1.5, 1.2)), ValueError, "Invalid eta values: 1.5, 1.2"),
        (lambda w: torch.optim.Rprop([w], capturable=True), NotImplementedError, "capturable"),
        (lambda w: torch.optim.ASGD([w], lr=-1.0), ValueError, "Invalid learning rate"),
        (lambda w: torch.optim.Adafactor([w], d=0.5), ValueError, "threshold d should be >= 1"),
        (lambda w: torch.optim.Adafactor([w], eps=(-1.0, 0.1)), ValueError, "epsilon1 should be >= 0"),
        (lambda w: torch.optim.Adafactor([w], beta2_decay=0.1), ValueError, "beta2_decay should be <= 0"),
        (lambda w: torch.optim.Muon([w]), ValueError, "only supports 2D parameters"),
        (lambda w: torch.optim.Muon([w], adjust_lr_fn="best"), ValueError, "best is not supported"),
    ],
)
def test_wrong_options_of_these(make, error, text):
    with pytest.raises(error, match=text):
        make(nn.Parameter(torch.ones(3)))


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_signatures_and_the_order_of_states_are_pytorchs(name):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    ours, theirs = (getattr(framework.optim, name) for framework in (torch, oracle))

    def listed(kind):
        return [(p.name, p.kind, p.default) for p in signature(kind).parameters.values()]

    assert listed(ours) == listed(theirs)
    names = []
    for framework in (torch, oracle):
        w = framework.nn.Parameter(framework.ones(2, 2))
        optimizer = getattr(framework.optim, name)([w])
        rows = framework.tensor([0, 1])
        rows = framework.nn.functional.embedding(rows, w, sparse=True) if name == "SparseAdam" else w
        (rows * rows).sum().backward()
        optimizer.step(lambda w=w: (w * w).sum())
        names.append([key for key, value in optimizer.state[w].items() if value is not None])
    assert names[0] == names[1]
