"""Hooks: of tensors and nodes, of what is saved, and anomaly mode, which is made of them."""

import numpy as np
import pytest

import corefw as torch
from corefw.autograd import graph
from corefw.graph.grad_mode import mode
from tests.leaves import leaf, same


# -- hooks ------------------------------------------------------------------------------------------------------------
def test_hooks_run_in_order_and_replace():
    x = leaf(1.0)
    y = x * 2
    order = []

    def tensor_hook(name, factor):
        def hook(gradient):
            order.append((name, gradient.item()))
            return gradient * factor

        return hook

    y.register_hook(tensor_hook("first", 2))
    y.retain_grad()
    y.register_hook(tensor_hook("second", 5))
    y.grad_fn.register_prehook(lambda gradients: order.append(("before", gradients[0].item())))
    y.grad_fn.register_hook(lambda inputs, outputs: order.append(("after", inputs[0].item(), outputs[0].item())))
    x.register_hook(tensor_hook("leaf", 1))
    x.register_post_accumulate_grad_hook(lambda t: order.append(("accumulated", t.grad.item())))
    y.backward()
    assert order == [
        *(("first", 1.0), ("second", 2.0), ("before", 10.0), ("after", 20.0, 10.0), ("leaf", 20.0)),
        ("accumulated", 20.0),
    ]
    assert (y.grad.item(), x.grad.item()) == (10.0, 20.0)


def test_node_hooks_replace():
    x = leaf(1.0)
    y = x * 2
    y.grad_fn.register_prehook(lambda gradients: (gradients[0] * 3,))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] + 1, *inputs[1:]))
    y.backward()
    assert x.grad.item() == 7.0
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: (None,) * 7)
    with pytest.raises(RuntimeError, match="returned 7 gradients"):
        y.backward()


def test_hooks_can_be_removed():
    x = leaf(1.0)
    handle = x.register_hook(lambda g: g * 100)
    with x.register_hook(lambda g: g * 10):
        x.sum().backward()
    handle.remove()
    handle.remove()
    x.sum().backward()
    assert x.grad.item() == 1001.0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: torch.ones(1).register_hook(print),
            "cannot register a hook on a tensor that doesn't require gradient",
        ),
        (lambda: torch.ones(1).retain_grad(), "can't retain_grad on Tensor that has requires_grad=False"),
        (lambda: torch.ones(1).register_post_accumulate_grad_hook(print), "doesn't require gradient"),
        (lambda: (leaf(1.0) * 2).register_post_accumulate_grad_hook(print), "non-leaf"),
    ],
)
def test_hook_errors(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def test_wrong_hook_results():
    x = leaf(1.0, 2.0)
    with x.register_hook(lambda g: 3.0), pytest.raises(TypeError, match="return None or a Tensor"):
        x.sum().backward()
    with x.register_hook(lambda g: g.sum()), pytest.raises(RuntimeError, match="changed the size"):
        x.sum().backward()


def test_hook_may_differentiate():
    x = leaf(3.0)
    y = x * x
    inner = []

    @torch.enable_grad()
    def hook(gradient):
        inner.append(torch.autograd.grad(x * x * x, x)[0].item())

    y.register_hook(hook)
    y.backward()
    assert (inner, x.grad.item()) == ([27.0], 6.0)


def test_retain_grad_keeps_its_own_copy_and_follows_changes():
    x = leaf(1.0, 2.0)
    y = x * 1.0
    y.retain_grad()
    assert y.retains_grad and not x.retains_grad
    z = y + x
    start = torch.ones(2, dtype=torch.float64)
    z.backward(start)
    y.grad.mul_(7)
    assert (start.tolist(), x.grad.tolist()) == ([1.0, 1.0], [2.0, 2.0])
    y = x * 1.0
    y.retain_grad()
    y.mul_(3.0)
    y.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]


def test_multi_grad_hook():
    x, y = leaf(1.0), leaf(2.0)
    found = []
    with graph.register_multi_grad_hook([x, y], lambda grads: found.append([g.item() for g in grads])):
        (x * y).backward()
    assert found == [[2.0, 1.0]]
    with graph.register_multi_grad_hook([x, y], lambda g: found.append(g.item()), mode="any"):
        (x * 1 + y * 1).backward()
    assert found[1:] == [1.0]


# -- saved-tensor hooks -----------------------------------------------------------------------------------------------
def test_saved_tensors_are_packed_and_unpacked():
    packed, unpacked = [], []

    def pack(tensor):
        packed.append(tensor.tolist())
        assert not torch.is_grad_enabled()
        return tensor.detach().numpy().copy()

    def unpack(array):
        unpacked.append(array.tolist())
        return torch.from_numpy(array)

    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with graph.saved_tensors_hooks(pack, unpack):
        z = (x * y).exp()
    assert sorted(packed) == sorted([x.tolist(), y.tolist(), z.tolist()])
    assert not unpacked
    z.sum().backward()
    assert len(unpacked) == 3
    same(x.grad, np.exp([3.0, 8.0]) * [3.0, 4.0])
    same(y.grad, np.exp([3.0, 8.0]) * [1.0, 2.0])
    (x * y).sum().backward()
    assert len(packed) == 3


def test_hooks_work_for_second_derivatives_lists_and_several_outputs():
    x = leaf(1.0, 2.0)
    copies = []
    with graph.saved_tensors_hooks(lambda t: copies.append(1) or t.detach().clone(), lambda t: t):
        y = torch.cat([x * x, x.exp()]).max(0)[0] * x.prod()
        (g,) = torch.autograd.grad(y, x, create_graph=True)
    with_hooks = torch.autograd.grad(g.sum(), x)[0].tolist()
    y = torch.cat([x * x, x.exp()]).max(0)[0] * x.prod()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    assert torch.autograd.grad(g.sum(), x)[0].tolist() == with_hooks
    assert copies


def test_innermost_hooks_count_and_can_be_forbidden():
    x = leaf(1.0, 2.0)
    seen = []
    with graph.saved_tensors_hooks(lambda t: seen.append("outer") or t, lambda t: t):
        with graph.saved_tensors_hooks(lambda t: seen.append("inner") or t, lambda t: t):
            x * x
        inner = list(seen)
        x * x
    assert set(inner) == {"inner"}
    assert set(seen[len(inner) :]) == {"outer"}
    assert mode.recorder is True and mode.recording is True
    with (
        graph.disable_saved_tensors_hooks("not here"),
        pytest.raises(RuntimeError, match="not here"),
        graph.saved_tensors_hooks(lambda t: t, lambda t: t),
    ):
        pass


def test_hooks_do_not_switch_gradients_on():
    x = leaf(1.0, 2.0)
    seen = []
    with torch.no_grad(), graph.saved_tensors_hooks(lambda t: seen.append(1) or t, lambda t: t):
        assert not (x * x).requires_grad
        with torch.enable_grad():
            assert (x * x).requires_grad
    assert seen
    assert torch.is_grad_enabled() and mode.recorder is True


def test_hooks_may_compute_and_may_keep_parameters():
    x, weight = leaf(1.0, 2.0), torch.nn.Parameter(torch.ones(2, dtype=torch.float64))
    kinds = []

    def pack(tensor):
        kinds.append(type(tensor))
        return tensor if tensor is weight else tensor * 1

    with graph.saved_tensors_hooks(pack, lambda t: t):
        y = x * weight
    y.sum().backward()
    assert set(kinds) == {torch.Tensor, torch.nn.Parameter}
    assert (x.grad.tolist(), weight.grad.tolist()) == ([1.0, 1.0], [1.0, 2.0])


def test_bad_hooks():
    x = leaf(1.0, 2.0)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: 3):
        y = x * x
    with pytest.raises(TypeError, match="unpack_hook expected to be a Tensor but got result of type int"):
        y.sum().backward()
    with (
        graph.saved_tensors_hooks(lambda t: t.detach().mul_(2), lambda t: t),
        pytest.raises(RuntimeError, match="modifying its input in place"),
    ):
        x.exp()


def test_save_on_cpu():
    x = leaf(1.0, 2.0)
    with graph.save_on_cpu():
        y = (x * x).sum()
    y.backward()
    same(x.grad, [2.0, 4.0])


# -- anomaly mode -----------------------------------------------------------------------------------------------------
def test_anomaly_mode_names_function_and_line():
    x = leaf(float("nan"), 1.0)
    with (
        pytest.warns(UserWarning, match=r"(?s)Error detected in MulBackward0.*x \* x  # the culprit"),
        pytest.raises(RuntimeError, match="Function 'MulBackward0' returned nan values in its 0th output"),
        torch.autograd.set_detect_anomaly(True),
    ):
        y = x * x  # the culprit
        y.sum().backward()
    assert mode.recorder is True and mode.recording is True and mode.call_node is None


def test_anomaly_mode_without_forward_and_without_nan_check():
    x = leaf(float("nan"), 1.0)
    y = (x * x).sum()
    with (
        pytest.warns(UserWarning, match="No forward pass information"),
        pytest.raises(RuntimeError),
        torch.autograd.set_detect_anomaly(True),
    ):
        y.backward(retain_graph=True)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        y.backward()
    assert np.isnan(x.grad.tolist()[0])
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), torch.autograd.detect_anomaly():
        assert torch.autograd.anomaly_mode.is_anomaly_enabled()
    assert not torch.autograd.anomaly_mode.is_anomaly_enabled()


def test_anomaly_mode_explains_version_errors_and_stacks_with_hooks():
    x = leaf(1.0, 2.0)
    packed = []
    with (
        torch.autograd.set_detect_anomaly(True),
        graph.saved_tensors_hooks(lambda t: packed.append(1) or t, lambda t: t),
    ):
        y = x.exp()
        assert y.grad_fn.metadata["traceback_"]
    assert packed
    z = y * 1
    with torch.autograd.set_detect_anomaly(True):
        w = z * z
        z.add_(1)
        with (
            pytest.warns(UserWarning, match=r"(?s)MulBackward0.*w = z \* z"),
            pytest.raises(RuntimeError, match="inplace"),
        ):
            w.sum().backward()
    assert torch.is_grad_enabled() and mode.recorder is True


@pytest.mark.parametrize("mode", ["all", "any"])
def test_multi_grad_hooks_are_of_one_backward(mode):
    """A backward that reaches some of the tensors only is whole with these, and leaves nothing to the next."""
    x, y, found = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True), []
    graph.register_multi_grad_hook([x, y], lambda given: found.append(listed(given)), mode=mode)
    (y * 2).backward()
    (x * 3).backward()
    (x * y * 4).backward()
    torch.autograd.grad(x * y * 5, y)
    each = {"all": [[None, 2], [3, None], [4, 4], [None, 5]], "any": [2, 3, 4, 5]}
    assert found == each[mode]


def test_multi_grad_hooks_of_several_outputs_and_of_backwards_inside():
    x, found = torch.arange(4.0, requires_grad=True), []
    first, second = x.split(2)

    def inside(given):
        found.append([None if one is None else one.tolist() for one in given])
        if len(found) == 1:
            with torch.enable_grad():
                (first.detach().requires_grad_() * second).sum().backward()

    graph.register_multi_grad_hook([first, second], inside)
    (first * 2).sum().backward()
    assert found == [[[2, 2], None], [None, [0, 1]]]


def test_a_failed_backward_leaves_nothing_to_the_next():
    x, y, found = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True), []
    graph.register_multi_grad_hook([x, y], lambda given: found.append(listed(given)))

    def fail(gradient):
        raise ValueError("no")

    handle = x.register_hook(fail)
    with pytest.raises(ValueError, match="no"):
        (x * 2 + y * 3).backward()
    handle.remove()
    (x * 2 + y * 3).backward()
    assert found[-1] == [2, 3] and len(found) in (1, 2)


def listed(given):
    return [None if one is None else one.item() for one in given] if isinstance(given, list) else given.item()


def test_pack_hooks_may_take_tensors_with_a_graph_to_numpy():
    """Nothing is recorded in them, so that nothing is lost."""
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()
    with graph.saved_tensors_hooks(lambda tensor: tensor.numpy().copy(), torch.from_numpy):
        y = (x * x.exp()).sum()
    y.backward()
    assert torch.allclose(x.grad, 2 * x.detach().exp())
