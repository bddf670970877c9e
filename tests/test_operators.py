"""Python's operators on tensors: each method against NumPy's operator of the same arrays."""

import copy
import operator

import numpy as np
import pytest

import corefw
from tests.parity import import_torch

FLOATS = np.array([[1.5, -2.0, 3.0], [4.0, 0.5, -6.0]])
OTHERS = np.array([[2.0, 3.0, -1.0], [0.5, 4.0, 2.0]])
INTEGERS = np.array([[1, 2, 3], [4, 5, 6]])
SHIFTS = np.array([[1, 2, 0], [3, 1, 2]])

#: Python's operator, its method and the reflected and in-place ones
ARITHMETIC = [
    ("add", "__add__ __radd__ __iadd__"),
    ("sub", "__sub__ __rsub__ __isub__"),
    ("mul", "__mul__ __rmul__ __imul__"),
    ("truediv", "__truediv__ __rtruediv__ __itruediv__"),
    ("truediv", "__truediv__ __rdiv__ __idiv__"),  # Python 2's names
    ("floordiv", "__floordiv__ __rfloordiv__ __ifloordiv__"),
    ("mod", "__mod__ __rmod__ __imod__"),
    ("pow", "__pow__ __rpow__ __ipow__"),
]
BITWISE = [
    ("and_", "__and__ __rand__ __iand__"),
    ("or_", "__or__ __ror__ __ior__"),
    ("xor", "__xor__ __rxor__ __ixor__"),
    ("lshift", "__lshift__ __rlshift__ __ilshift__"),
    ("rshift", "__rshift__ __rrshift__ __irshift__"),
]
COMPARISONS = [(name, f"__{name}__") for name in ("eq", "ne", "lt", "le", "gt", "ge")]


def check(result, expected):
    assert isinstance(result, corefw.Tensor)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6 if result.dtype is corefw.float32 else 1e-12)


def method(name):
    return getattr(corefw.Tensor, name)


@pytest.mark.parametrize(("name", "methods"), ARITHMETIC + BITWISE)
def test_arithmetic(name, methods):
    """Beside a tensor and beside a number."""
    meaning, (plain, reflected, inplace) = getattr(operator, name), methods.split()
    bitwise = (name, methods) in BITWISE
    left, right, number = (INTEGERS, SHIFTS, 2) if bitwise else (FLOATS, OTHERS, 2.5)
    if name == "pow":
        left = abs(left)
    a, b = corefw.tensor(left), corefw.tensor(right)
    check(method(plain)(a, b), meaning(left, right))
    check(method(plain)(a, number), meaning(left, number))
    check(meaning(a, b), meaning(left, right))
    check(meaning(number, corefw.tensor(INTEGERS)), meaning(number, INTEGERS))
    check(method(reflected)(a, number), meaning(number, left))
    changed = corefw.tensor(left)
    assert method(inplace)(changed, b) is changed
    check(changed, meaning(left, right))


@pytest.mark.parametrize(("name", "plain"), COMPARISONS)
def test_comparisons(name, plain):
    """``__eq__``, ``__ne__``, ``__lt__``, ``__le__``, ``__gt__``, ``__ge__``."""
    meaning = getattr(operator, name)
    for other in (OTHERS, 0.5):
        result = method(plain)(corefw.tensor(FLOATS), corefw.tensor(other) if other is OTHERS else other)
        assert result.dtype is corefw.bool and result.tolist() == meaning(FLOATS, other).tolist()


def test_products():
    a, b = corefw.tensor(FLOATS), corefw.tensor(OTHERS)
    check(method("__matmul__")(a, b.T), FLOATS @ OTHERS.T)
    check(method("__rmatmul__")(b.T, a), FLOATS @ OTHERS.T)


def test_unary():
    a, n = corefw.tensor(FLOATS), corefw.tensor(INTEGERS)
    check(method("__neg__")(a), -FLOATS)
    check(method("__abs__")(a), abs(FLOATS))
    check(method("__invert__")(n), ~INTEGERS)
    assert method("__invert__")(n > 3).tolist() == (INTEGERS <= 3).tolist()
    assert method("__pos__")(a) is a
    check(method("__reversed__")(a), FLOATS[::-1])


def test_conversions():
    one = corefw.tensor([2.75])
    assert method("__float__")(one) == 2.75 and method("__int__")(one) == 2 and method("__complex__")(one) == 2.75 + 0j
    assert method("__index__")(corefw.tensor(2)) == 2 and [4, 5, 6][corefw.tensor(2)] == 6
    assert method("__format__")(corefw.tensor(2.75), ".1f") == "2.8" and f"{corefw.tensor(3):>4}" == "   3"
    for convert in (float, int, complex):
        with pytest.raises(ValueError, match="only one element tensors can be converted"):
            convert(corefw.tensor(FLOATS))
    with pytest.raises(TypeError, match="only integer tensors of a single element"):
        operator.index(corefw.tensor(2.5))


def test_deepcopy():
    a = corefw.tensor(FLOATS, requires_grad=True)
    copied = method("__deepcopy__")(a, {})
    assert copied is not a and copied.requires_grad and copied.tolist() == a.tolist()
    assert copied.data_ptr() != a.data_ptr()
    twice = copy.deepcopy([a, a])
    assert twice[0] is twice[1]


def test_gradients_of_reflected_operators():
    a = corefw.tensor(abs(FLOATS), requires_grad=True)
    for call, slope in (
        (lambda: 2.5 - a, lambda v: -np.ones_like(v)),
        (lambda: 2.5 / a, lambda v: -2.5 / v**2),
        (lambda: 2.5**a, lambda v: np.log(2.5) * 2.5**v),
    ):
        (grad,) = corefw.autograd.grad(call().sum(), a)
        np.testing.assert_allclose(grad.numpy(), slope(abs(FLOATS)), rtol=1e-12)


def test_kinds_are_pytorchs():
    """The dtypes of operators beside numbers, and that nothing foreign is taken."""
    torch = import_torch()
    for _, methods in ARITHMETIC:
        symbol = methods.split()[1]
        for number in (2, 2.5):
            ours = getattr(corefw.tensor(INTEGERS), symbol)(number)
            theirs = getattr(torch.tensor(INTEGERS), symbol)(number)
            assert str(ours.dtype) == str(theirs.dtype), symbol
            np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-6)
    for _, methods in BITWISE:
        symbol = methods.split()[1]
        assert getattr(corefw.tensor(SHIFTS), symbol)(5).tolist() == getattr(torch.tensor(SHIFTS), symbol)(5).tolist()
    with pytest.raises(TypeError):
        corefw.tensor(FLOATS) + "text"
