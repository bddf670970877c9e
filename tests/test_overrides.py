"""Classes and modes that answer for corefw's functions, by `__torch_function__`."""

import pytest

import corefw
from corefw.dispatch import overriding
from corefw.overrides import TorchFunctionMode, handle_torch_function, has_torch_function, is_tensor_like

F = corefw.nn.functional


class Diagonal:
    """A matrix that knows some functions."""

    def __init__(self, size):
        self.size = size

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return (func.__name__, args[0].size) if func in (corefw.mean, corefw.add) else NotImplemented


class Counted(TorchFunctionMode):
    """Counts the calls of each function."""

    def __init__(self):
        self.calls = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.calls.append(func.__name__)
        return func(*args, **(kwargs or {}))


def test_a_class_answers():
    assert corefw.mean(Diagonal(3)) == ("mean", 3) and corefw.add(Diagonal(2), corefw.ones(1)) == ("add", 2)
    with pytest.raises(TypeError, match=r"no implementation found for 'corefw.exp'.*Diagonal"):
        corefw.exp(Diagonal(1))
    with pytest.raises(TypeError, match="must be Tensor, not str"):
        corefw.exp("a")
    assert is_tensor_like(Diagonal(1)) and is_tensor_like(corefw.ones(1)) and not is_tensor_like(1)


def test_derived_classes_are_asked_first():
    class Derived(Diagonal):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return "derived", types

    answer, kinds = handle_torch_function(corefw.add, (Diagonal(1), Derived(1)), Diagonal(1), Derived(1))
    assert answer == "derived" and kinds == (Derived, Diagonal)
    assert has_torch_function([1, Derived(1)]) and not has_torch_function([corefw.ones(1)])


def test_a_mode_sees_every_call():
    with Counted() as counted:
        x = corefw.ones(2, 2)
        y = F.relu6(x @ x + 1)
        y.add_(1).mean((0, 1))
        F.conv1d(x[None], x[None])  # a function with free variables
    assert counted.calls == ["ones", "matmul", "add", "relu6", "add_", "mean", "getitem", "getitem", "conv1d"]
    assert not overriding.dressed and not overriding.modes
    corefw.ones(1).exp()
    assert len(counted.calls) == 9


def test_modes_nest_and_end_with_errors():
    with Counted() as outer, Counted() as inner:
        corefw.zeros(1)
    assert outer.calls == inner.calls == ["zeros"]
    with pytest.raises(ValueError), Counted():
        corefw.ones(2) + corefw.ones(3)
    assert not overriding.dressed and overriding._asking == 0


def test_functions_keep_their_defaults_and_keywords():
    x = corefw.tensor([[3.0, 1.0]])
    with overriding.asking():
        asked = corefw.sort(x, dim=1, descending=True), corefw.sum(x, 1, keepdim=True), corefw.add(x, x, alpha=2)
    plain = corefw.sort(x, dim=1, descending=True), corefw.sum(x, 1, keepdim=True), corefw.add(x, x, alpha=2)
    assert str(asked) == str(plain)
