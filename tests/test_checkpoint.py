"""Checkpointing gives the same gradients, and keeps nothing of what is computed again."""

import gc
import weakref

import pytest

import corefw as torch
from corefw.utils.checkpoint import CheckpointError, checkpoint, checkpoint_sequential

BOTH = pytest.mark.parametrize("use_reentrant", [False, True])


def leaf(*values):
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def block(x, weight, scale=1.0):
    return ((x * weight).exp() * scale).sin() * weight


@BOTH
def test_same_gradients(use_reentrant):
    expected_x, expected_w = torch.autograd.grad(block(*(leaves := (leaf(0.1, 0.2), leaf(1.0, -1.0)))).sum(), leaves)
    x, weight = leaf(0.1, 0.2), leaf(1.0, -1.0)
    calls = []

    def counted(x, weight):
        calls.append(torch.is_grad_enabled())
        return block(x, weight)

    checkpoint(counted, x * 1, weight, use_reentrant=use_reentrant).sum().backward()
    assert x.grad.tolist() == expected_x.tolist()
    assert weight.grad.tolist() == expected_w.tolist()
    assert calls == [not use_reentrant, True]


@BOTH
def test_several_outputs_and_other_arguments(use_reentrant):
    x = leaf(1.0, 2.0)
    first, text, second = checkpoint(
        lambda x, n, flag: (x * x * n, "text", x.exp()),
        x,
        3,
        None,
        use_reentrant=use_reentrant,
        preserve_rng_state=False,
    )
    assert text == "text"
    (first.sum() + second.sum() * 0).backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_keywords_closures_and_second_derivatives():
    x, weight = leaf(0.1, 0.2), leaf(1.0, -1.0)
    y = checkpoint(lambda x, scale: block(x, weight, scale=scale), x, scale=2.0, use_reentrant=False)
    g = torch.autograd.grad(y.sum(), (x, weight), create_graph=True)
    second = torch.autograd.grad(g[0].sum() + g[1].sum(), (x, weight))
    z = block(x, weight, 2.0)
    plain = torch.autograd.grad(z.sum(), (x, weight), create_graph=True)
    expected = torch.autograd.grad(plain[0].sum() + plain[1].sum(), (x, weight))
    assert [t.tolist() for t in (*g, *second)] == [t.tolist() for t in (*plain, *expected)]


def test_nothing_is_kept_and_nothing_stays():
    arrays = []

    def function(x):
        y = x.exp()
        arrays.append(weakref.ref(y.array))
        return y * y

    gc.disable()
    try:
        x = leaf(0.1, 0.2)
        y = checkpoint(function, x, use_reentrant=False)
        assert arrays[0]() is None
        y.sum().backward()
        assert len(arrays) == 2 and arrays[1]() is None
        del y
    finally:
        gc.enable()


def test_backward_twice():
    x = leaf(0.1, 0.2)
    calls = []
    y = checkpoint(lambda x: calls.append(1) or x.exp().sin(), x, use_reentrant=False)
    y.sum().backward(retain_graph=True)
    first = x.grad.tolist()
    y.sum().backward()
    assert x.grad.tolist() == [2 * g for g in first]
    assert len(calls) == 3
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


@pytest.mark.parametrize("early_stop", [True, False])
def test_stops_early(early_stop):
    reached = []

    def function(x):
        y = x.exp()
        y = y * y
        reached.append(1)
        return y + 1  # saves nothing

    x = leaf(0.1)
    checkpoint(function, x, use_reentrant=False, early_stop=early_stop).backward()
    assert len(reached) == (1 if early_stop else 2)
    assert torch.is_grad_enabled()


def test_nested():
    x = leaf(0.1, 0.2)

    def inner(x):
        return x.exp().sin()

    def outer(x):
        return checkpoint(inner, x.cos(), use_reentrant=False) * x

    checkpoint(outer, x, use_reentrant=False).sum().backward()
    y = leaf(0.1, 0.2)
    (inner(y.cos()) * y).sum().backward()
    assert x.grad.tolist() == y.grad.tolist()


def test_differences_are_noticed():
    x = leaf(0.1, 0.2)
    calls = []

    def fewer(x):
        calls.append(1)
        return x.exp().sin() if len(calls) == 1 else x.exp()

    with pytest.raises(CheckpointError, match=r"(?s)different number of tensors.*forward: 2.*recomputation: 1"):
        checkpoint(fewer, x, use_reentrant=False).sum().backward()
    calls.clear()

    def smaller(x):
        calls.append(1)
        return (x if len(calls) == 1 else x[:1]).exp().sum()

    with pytest.raises(CheckpointError, match="different metadata"):
        checkpoint(smaller, x, use_reentrant=False).backward()


@BOTH
def test_random_numbers_are_the_same(use_reentrant):
    drawn = []

    def noisy(x):
        noise = torch.rand(2, dtype=torch.float64)
        drawn.append(noise.tolist())
        return x * noise

    x = leaf(1.0, 2.0)
    y = checkpoint(noisy, x, use_reentrant=use_reentrant)
    between = torch.get_rng_state().tolist()
    y.sum().backward()
    assert drawn[0] == drawn[1] == x.grad.tolist()
    assert torch.get_rng_state().tolist() == between


def test_reentrant_form_has_limits():
    x = leaf(1.0)
    y = checkpoint(lambda x: x * x, x, use_reentrant=True)
    with pytest.raises(RuntimeError, match="use_reentrant=True"):
        torch.autograd.grad(y, x)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert not checkpoint(lambda x: x * x, x.detach(), use_reentrant=True).requires_grad
    with pytest.raises(ValueError, match="Unexpected keyword"):
        checkpoint(lambda x: x, x, use_reentrant=True, scale=2)
    with pytest.warns(UserWarning, match="use_reentrant parameter should be passed explicitly"):
        checkpoint(lambda x: x * x, x)
    with pytest.raises(ValueError, match="determinism_check"):
        checkpoint(lambda x: x, x, use_reentrant=False, determinism_check="?")


@BOTH
@pytest.mark.parametrize("segments", [1, 2, 3])
def test_sequential(use_reentrant, segments):
    functions = [lambda x: x.exp(), lambda x: x.sin(), lambda x: x * x, lambda x: x.cos()]
    x, y = leaf(0.1, 0.2), leaf(0.1, 0.2)
    checkpoint_sequential(functions, segments, x, use_reentrant=use_reentrant).sum().backward()
    ((y.exp().sin()) ** 2).cos().sum().backward()
    assert x.grad.tolist() == pytest.approx(y.grad.tolist())
