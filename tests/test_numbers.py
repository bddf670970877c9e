"""Python numbers beside tensors: what they become, what is refused, and the dtypes of results, beside PyTorch's."""

from functools import partial
from itertools import product

import numpy as np
import pytest

import corefw
from corefw.dispatch.constants import operand, set_default_dtype
from tests.parity import import_torch

DTYPES = ("bool", "uint8", "int8", "int32", "int64", "bfloat16", "float32", "float64", "complex64")
NUMBERS = (
    2,
    -1,
    300,
    -300,
    2**31,
    -(2**31) - 1,
    2**62,
    True,
    1.5,
    -1.5,
    300.7,
    7e4,
    1e40,
    float("inf"),
    float("nan"),
)

FORMS = """
x.fill_(v)
x.masked_fill(t.tensor([True, False]), v)
x.masked_fill_(t.tensor([True, False]), v)
t.full((2,), v, dtype=x.dtype)
t.full_like(x, v)
x.new_full((2,), v)
x.index_fill(0, t.tensor([0]), v)
x.index_fill_(0, t.tensor([0]), v)
x.scatter(0, t.tensor([0]), v)
x.scatter_(0, t.tensor([0]), v)
put(x, 0, v)
put(x, slice(None), v)
put(x, t.tensor([0]), v)
put(x, t.tensor([True, False]), v)
put(x, True, v)
x.clamp(min=v)
x.clamp(max=v)
x.clamp_(min=v)
t.where(x == x, x, v)
x * v
x < v
x.copy_(v)
t.nn.functional.pad(x, (1, 1), value=v)
t.linspace(0, v, 2, dtype=x.dtype)
"""


def put(x, key, value):
    x[key] = value
    return x


def ones(t, d, ndim):
    return t.ones((2,) * ndim, dtype=getattr(t, d))


def outcome(t, expression, names):
    """The dtype and the values of a result, or that it is refused."""
    found = {name: value(t) if callable(value) else value for name, value in names.items()}
    try:
        result = eval(expression, {"t": t, "put": put, "ones": partial(ones, t), **found})
    except (RuntimeError, TypeError, OverflowError):
        return "refused"
    return str(result.dtype), str(result.detach().to(t.complex128).tolist()), result.requires_grad


def same_outcome(expression, **names):
    """Compare a result with PyTorch's; `names` are what the expression names, tensors as functions of the module."""
    assert outcome(corefw, expression, names) == outcome(import_torch(), expression, names), names


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMS.strip().splitlines())
def test_numbers_become_elements_as_in_pytorch(form):
    for d, v in product(DTYPES, NUMBERS):
        if ("clamp" in form and (d == "bfloat16" or d == "bool" == type(v).__name__)) or (
            d == "complex64" and "linspace" in form
        ):
            continue  # bounds of half types are compared in float32, of bool taken; infinite complex ends differ in NaN
        same_outcome(form, d=d, x=partial(ones, d=d, ndim=1), v=v)


def test_a_number_that_an_element_cannot_hold_is_refused():
    x = corefw.zeros(2, dtype=corefw.int32)
    for change in (x.fill_, lambda v: put(x, 0, v), lambda v: x.masked_fill_(x == 0, v), lambda v: x.clamp_(v)):
        with pytest.raises(RuntimeError, match="cannot be converted to type int"):
            change(2**31)
    with pytest.raises(RuntimeError, match="cannot be converted to type int64_t"):
        corefw.zeros(2, dtype=corefw.int64) + 2**64
    assert x.tolist() == [0, 0]


# -- factors ----------------------------------------------------------------------------------------------------------
PAIRS = list(product(DTYPES, DTYPES))
DIMENSIONS = ((1, 1), (1, 0), (0, 1), (0, 0))
FACTORS = (2, -1, 0.5, True, 2j)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["add", "sub", "rsub"])
def test_a_factor_has_no_part_in_the_dtype(name):
    for (a, b), (m, n), alpha in product(PAIRS, DIMENSIONS, FACTORS):
        same_outcome(f"t.{name}(ones(a, m), ones(b, n), alpha=alpha)", a=a, b=b, m=m, n=n, alpha=alpha)
        if m >= n and name != "rsub":
            same_outcome(f"ones(a, m).{name}_(ones(b, n), alpha=alpha)", a=a, b=b, m=m, n=n, alpha=alpha)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["add", "sub"])
def test_a_factor_beside_numbers(name):
    for d, number, alpha in product(DTYPES, (2, 1.5, 1j), FACTORS):
        same_outcome(f"t.{name}(ones(d, 1), number, alpha=alpha)", d=d, number=number, alpha=alpha)


@pytest.mark.oracle
def test_products_added_with_a_value():
    for (a, b), (m, n), value in product(PAIRS, DIMENSIONS, (1, 2, -1, 0.5, True, 1j)):
        names = {"a": a, "b": b, "m": m, "n": n, "value": value}
        same_outcome("t.addcmul(ones(a, m), ones(b, n), ones(b, n), value=value)", **names)
        if getattr(corefw, b).is_floating_point:  # PyTorch divides no integers here
            same_outcome("t.addcdiv(ones(a, m), ones(b, n), ones(b, n), value=value)", **names)


@pytest.mark.oracle
def test_interpolation_wants_tensors_that_agree():
    for (a, b), (m, n), weight in product(PAIRS, DIMENSIONS, (0.5, 1)):
        same_outcome("t.lerp(ones(a, m), ones(b, n), weight)", a=a, b=b, m=m, n=n, weight=weight)


def test_a_factor_beside_halves_is_rounded_once():
    x, y = corefw.tensor([1.0], dtype=corefw.bfloat16), corefw.tensor([2.0**-7], dtype=corefw.bfloat16)
    assert corefw.add(x, y, alpha=0.75).item() == 1 + 2.0**-7
    assert corefw.add(corefw.ones(1, dtype=corefw.bfloat16), corefw.ones(1, dtype=corefw.int64), alpha=0.5).dtype is (
        corefw.bfloat16
    )


def test_the_gradient_of_a_factor():
    x, y = (corefw.ones(2, dtype=corefw.float64, requires_grad=True) for _ in range(2))
    assert corefw.autograd.gradcheck(lambda a, b: corefw.add(a, b, alpha=-2.5), (x, y))
    assert corefw.autograd.gradcheck(lambda a, b: corefw.sub(a, b, alpha=-2.5), (x, y))
    a, b = x.to(corefw.complex128), y.to(corefw.complex128)
    assert corefw.autograd.gradcheck(lambda a, b: corefw.sub(a, b, alpha=2 - 1j), (a, b))


# -- integers and gradients, masks ------------------------------------------------------------------------------------
CHANGES = """
x.copy_(v)
put(x, slice(0, 2), v)
put(x, 0, v[0])
x.view(2, 1).copy_(v[:, None])
x.fill_(v[0])
x.masked_fill_(x == 1, v[0])
x.masked_fill(x == 1, v[0])
x.index_fill(0, t.tensor([0]), v[0])
put(x, x == 1, v[0])
"""


@pytest.mark.parametrize("change", CHANGES.strip().splitlines())
def test_gradients_do_not_flow_into_integers(change):
    for d in (corefw.int64, corefw.bool, corefw.float32, corefw.complex64):
        x, v = corefw.ones(2, dtype=d), corefw.tensor([2.0, 3.0], requires_grad=True)
        result = eval(change, {"t": corefw, "x": x, "v": v, "put": put})
        assert result.requires_grad == (result.grad_fn is not None) == (d.is_floating_point or d.is_complex)


MASKS = ("x == 0", "t.zeros(3, 4, dtype=t.bool)", "x[:, 0] == 0", "(slice(None), x[0] == 0)", "[True, False, True]")
POSITIONS = (
    "t.tensor([0, 1])",
    "t.tensor(0)",
    "(0, t.tensor(1))",
    "(slice(None), t.tensor([1]))",
    "[0]",
    "t.tensor(True)",
)


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", [*MASKS, *POSITIONS, "True", "False"])
def test_assigned_tensors_of_another_dtype(key):
    for d, e, shape in product(("float32", "int64", "bool"), DTYPES, ((), (1,), (4,), (1, 1), (1, 4))):
        value = partial(lambda t, e, shape: t.ones(shape, dtype=getattr(t, e)), e=e, shape=shape)
        same_outcome(
            f"put(x, {key}, v)", x=partial(lambda t, d: t.zeros(3, 4, dtype=getattr(t, d)), d=d), v=value, e=e, d=d
        )


# -- operands ---------------------------------------------------------------------------------------------------------
def test_operands_are_shared_and_tell_numbers_apart_that_are_equal():
    key = corefw.ones(1).dispatch_key
    for numbers in ((0, 0.0, -0.0, False, 0j), (1, 1.0, True, 1 + 0j)):
        made = [operand(number, key) for number in numbers]
        assert len(set(map(id, made))) == len(numbers)
        assert all(operand(number, key) is found for number, found in zip(numbers, made, strict=True))
        assert [str(found.number) for found in made] == list(map(str, numbers))
    x = corefw.ones(2)
    assert np.signbit(x.fill_(-0.0).numpy()).all() and not np.signbit(x.fill_(0.0).numpy()).any()
    assert not np.signbit(x.fill_(-0.0).zero_().numpy()).any()


def test_operands_of_very_many_numbers_are_not_kept():
    key = corefw.ones(1).dispatch_key
    for number in range(10_000):
        assert operand(number + 0.5, key).array.item() == number + 0.5
    assert 0 < len(operand.made[float][key]) <= 4096
    set_default_dtype(corefw.float32)
    assert not operand.made[float]
