"""Checkpointing gives the same gradients, and keeps nothing of what is computed again."""

import gc
import weakref
from functools import partial

import pytest

import corefw as torch
from corefw.utils.checkpoint import (
    CheckpointError,
    CheckpointPolicy,
    DefaultDeviceType,
    SelectiveCheckpointContext,
    check_backward_validity,
    checkpoint,
    checkpoint_sequential,
    create_selective_checkpoint_contexts,
    detach_variable,
    get_device_states,
    noop_context_fn,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
    set_device_states,
)

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


def contexts(*ops, **options):
    return partial(create_selective_checkpoint_contexts, [*ops], **options)


@pytest.mark.parametrize("kept", ["mm", "addmm", "sin", "_scaled_dot_product_flash_attention", "native_layer_norm"])
def test_what_is_kept_is_not_computed_again(kept):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.LayerNorm(4), torch.nn.Linear(4, 4, bias=False))

    def function(x):
        y = net(x)
        return (
            (torch.nn.functional.scaled_dot_product_attention(y, y, y) @ torch.nn.functional.dropout(y).mT)
            .sin()
            .cos()
            .sum()
        )

    x = torch.randn(2, 3, 4, requires_grad=True)
    leaves = (x, *net.parameters())
    calls = {"mm": "linear", "addmm": "linear", "_scaled_dot_product_flash_attention": "attention"}
    calls["native_layer_norm"] = "layer_normalization"
    state = torch.get_rng_state()
    expected = torch.autograd.grad(function(x), leaves)
    counts = []
    for context_fn in (noop_context_fn, contexts(getattr(torch.ops.aten, kept).default)):
        torch.set_rng_state(state)
        y = checkpoint(function, x, use_reentrant=False, context_fn=context_fn)
        with torch.ledger() as book:
            torch.autograd.grad(y, leaves)
        counts.append(book.count(calls.get(kept, kept)))
        torch.set_rng_state(state)
        y = checkpoint(function, x, use_reentrant=False, context_fn=context_fn)
        for ours, theirs in zip(torch.autograd.grad(y, leaves), expected):
            torch.testing.assert_close(ours, theirs)
    assert counts[0] - counts[1] == 1


def test_a_policy_is_asked_of_each_kernel():
    seen = []

    def policy(context, op, *arguments, **options):
        seen.append((str(op), context.is_recompute, tuple(context.op_output.shape), tuple(arguments[0].shape)))
        return op == torch.ops.aten.bmm.default

    weight, x = torch.ones(2, 3, 3, dtype=torch.float64), leaf(1.0, 2.0, 3.0)

    def function(x):
        return (weight @ x.mul(2).expand(2, 3, 3)).sum(0)

    y = checkpoint(function, x, use_reentrant=False, context_fn=partial(create_selective_checkpoint_contexts, policy))
    y.sum().backward()
    assert [name for name, *_ in seen] == ["aten.mul.default", "aten.bmm.default", "aten.sum.default"]
    assert seen[1][1:] == (False, (2, 3, 3), (2, 3, 3))
    assert x.grad.tolist() == [36.0, 36.0, 36.0]


def test_kept_results_are_used_once_and_unchanged():
    kept = contexts(torch.ops.aten.mm.default)
    x = torch.ones(2, 2, requires_grad=True)

    def changed(x):
        y = x @ x
        y.mul_(2)
        return y.sin()

    def again(function, **options):
        context_fn = contexts(torch.ops.aten.mm.default, **options)
        return checkpoint(function, x, use_reentrant=False, context_fn=context_fn)

    y = checkpoint(lambda x: (x @ x).sin().cos(), x, use_reentrant=False, context_fn=kept).sum()
    y.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        y.backward()
    with pytest.raises(RuntimeError, match="has been mutated"):
        again(changed).sum().backward()
    again(changed, allow_cache_entry_mutation=True).sum().backward()
    x.grad = None
    y = again(lambda x: (x @ x).sin() @ x)
    y.add_(1)  # which no gradient needs
    y.sum().backward()
    expected = torch.autograd.grad(((x @ x).sin() @ x).sum(), x)[0]
    torch.testing.assert_close(x.grad, expected)


def test_selective_contexts_of_regions_in_regions():
    x = torch.rand(3, 3, requires_grad=True)
    kept = contexts(torch.ops.aten.mm.default)

    def outer(x):
        y = checkpoint(lambda x: (x @ x).sin(), x.cos(), use_reentrant=False, context_fn=kept)
        return (y @ y).exp()

    checkpoint(outer, x, use_reentrant=False, context_fn=kept).sum().backward()
    inner = (x.cos() @ x.cos()).sin()
    torch.testing.assert_close(x.grad, torch.autograd.grad((inner @ inner).exp().sum(), x)[0])


def test_kernels_that_the_first_call_lacked():
    calls = []

    def function(x):
        calls.append(1)
        return x.sin().exp() if len(calls) == 1 else x.cos().exp()

    y = checkpoint(function, leaf(1.0), use_reentrant=False, context_fn=contexts(torch.ops.aten.exp.default))
    with pytest.raises(RuntimeError, match="cos invocation index 0 encountered during backward but not found"):
        y.backward()


def test_selective_contexts_refuse():
    with pytest.raises(ValueError, match=r"Expected op in `op_list` to be an OpOverload but got: aten.mm of type"):
        create_selective_checkpoint_contexts([torch.ops.aten.mm])
    with pytest.raises(TypeError, match="policy_fn_or_list must be either"):
        create_selective_checkpoint_contexts(3)
    for options in ({"context_fn": contexts()}, {"debug": True}):
        with pytest.raises(ValueError, match="`context_fn` or `debug` is only supported"):
            checkpoint(torch.sin, leaf(1.0), use_reentrant=True, **options)
    assert [policy.name for policy in CheckpointPolicy][:2] == ["MUST_SAVE", "PREFER_SAVE"]
    assert SelectiveCheckpointContext(is_recompute=False).op_output is None


def test_debugging_tells_what_ran():
    calls = []

    def fewer(x):
        calls.append(1)
        return x.exp().sin() if len(calls) == 1 else x.exp()

    expected = (
        r"(?s)original forward:\n\nexp\(float64\[1\]\) -> float64\[1\]\nsin.*recomputation:\n\nexp.*different number"
    )
    with pytest.raises(CheckpointError, match=expected):
        checkpoint(fewer, leaf(0.1), use_reentrant=False, debug=True).backward()
    calls.clear()
    with set_checkpoint_debug_enabled(True):
        y = checkpoint(fewer, leaf(0.1), use_reentrant=False)
    with pytest.raises(CheckpointError, match=expected):
        y.backward()
    with set_checkpoint_debug_enabled(True), pytest.raises(ValueError, match="incompatible with non-default"):
        checkpoint(fewer, leaf(0.1), use_reentrant=False, context_fn=contexts())


def test_a_block_says_whether_to_stop_early():
    reached = []

    def function(x):
        y = x.exp() * 2
        reached.append(1)
        return y

    with set_checkpoint_early_stop(False):
        y = checkpoint(function, leaf(0.1), use_reentrant=False)
    y.backward()
    assert len(reached) == 2
    checkpoint(function, leaf(0.1), use_reentrant=False).backward()
    assert len(reached) == 3


def test_parts_of_checkpointing():
    x = leaf(1.0)
    found, number = detach_variable((x * 2, 3))
    assert number == 3 and found.is_leaf and found.requires_grad
    with pytest.raises(RuntimeError, match="Only tuple of tensors"):
        detach_variable([x])
    with pytest.warns(UserWarning, match="None of the inputs"):
        check_backward_validity([x.detach(), 2])
    assert get_device_states(x, 3) == ([], [])
    set_device_states([], [])
    before = DefaultDeviceType.get_device_type()
    DefaultDeviceType.set_device_type("cpu")
    assert DefaultDeviceType.get_device_type() == "cpu"
    DefaultDeviceType.set_device_type(before)
