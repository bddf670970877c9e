"""Elementwise ops beyond their rows: operators, numbers as operands, errors, and values where definitions differ."""

import math
import operator

import numpy as np
import pytest

import corefw as torch
from corefw.errors import DtypeError
from corefw.testing import targets

ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow")
BITS = ("and_", "or_", "xor", "lshift", "rshift")
ORDER = ("eq", "ne", "lt", "le", "gt", "ge")


def same(actual, expected, dtype=None):
    assert isinstance(actual, torch.Tensor)
    np.testing.assert_array_equal(actual.numpy(), expected)
    assert dtype is None or actual.dtype is dtype


# -- operators --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", (*ARITHMETIC, *ORDER))
@pytest.mark.parametrize("other", (2.0, np.float32(2), np.float64(2), np.array([2.0, 3.0], np.float32)))
def test_floating_operators_take_numbers_and_arrays_on_either_side(name, other):
    function = getattr(operator, name)
    values = np.array([1.5, 4.0], np.float32)
    x = torch.tensor(values)
    result = (torch.bool, np.bool_) if name in ORDER else (torch.float32, np.float32)
    same(function(x, other), function(values, other).astype(result[1]), result[0])
    same(function(other, x), function(other, values).astype(result[1]), result[0])


@pytest.mark.parametrize("name", (*ARITHMETIC[:3], *ARITHMETIC[4:], *BITS))
@pytest.mark.parametrize("other", (2, np.int64(2), np.array([1, 2])))
def test_integer_operators_take_numbers_and_arrays_on_either_side(name, other):
    function = getattr(operator, name)
    values = np.array([3, 5])
    x = torch.tensor(values)
    same(function(x, other), function(values, other), torch.int64)
    same(function(other, x), function(other, values), torch.int64)


@pytest.mark.parametrize("name", ("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"))
def test_assignment_operators_write_in_place(name):
    x = torch.tensor([5.0, 3.0])
    memory = x
    changed = getattr(operator, name)(x, 2)
    assert changed is memory and x._version == 1
    same(x, getattr(operator, name)(np.array([5.0, 3.0], np.float32), 2))


@pytest.mark.parametrize("name", ("iand", "ior", "ixor", "ilshift", "irshift"))
def test_bit_assignment_operators(name):
    x = torch.tensor([5, 3])
    same(getattr(operator, name)(x, 1), getattr(operator, name)(np.array([5, 3]), 1))


def test_unary_operators():
    x = torch.tensor([1.0, -2.0])
    same(-x, [-1, 2])
    same(abs(x), [1, 2])
    assert +x is x
    same(~torch.tensor([True, False]), [False, True])
    same(~torch.tensor([0, 5]), [-1, -6])


class Foreign:
    """A type that knows what to do with tensors."""

    def __radd__(self, other):
        return "added"

    def __rtruediv__(self, other):
        return "divided"


def test_operators_leave_foreign_types_their_turn():
    x = torch.tensor([1.0])
    assert x + Foreign() == "added" and x / Foreign() == "divided"
    assert (x == "text") is False and (x != None) is True  # noqa: E711
    for function in (operator.add, operator.lt, operator.pow, operator.matmul):
        with pytest.raises(TypeError):
            function(x, "text")
        with pytest.raises(TypeError):
            function(None, x)


# -- numbers and dtypes -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda u: u / 256, [5 / 256, 250 / 256]),
        (lambda u: u / -1, [-5, -250]),
        (lambda u: u + 300, [49, 38]),
        (lambda u: u > 300, [False, True]),
        (lambda u: torch.atan2(u, torch.tensor(-1)), np.arctan2([5, 250], -1).astype(np.float32)),
    ],
)
def test_numbers_that_do_not_fit_into_narrow_integers(function, expected):
    """Floating results take them as they are; integer ones wrap as in C."""
    same(function(torch.tensor([5, 250], dtype=torch.uint8)), np.float32(expected) if expected[0] != 49 else expected)


def test_bool_is_not_subtracted():
    mask, x = torch.tensor([True, False]), torch.tensor([1.0, 2.0])
    for function in (
        lambda: mask - mask,
        lambda: x - mask,
        lambda: mask - 1,
        lambda: 1 - mask,
        lambda: torch.rsub(mask, 1),
    ):
        with pytest.raises(RuntimeError, match="bool"):
            function()
    for function in (lambda: -mask, lambda: +mask):
        with pytest.raises(RuntimeError):
            function()


def test_alpha():
    integers, mask = torch.tensor([3, -4]), torch.tensor([True, False])
    with pytest.raises(RuntimeError, match="alpha"):
        torch.add(integers, integers, alpha=0.5)
    same(torch.add(integers, 1, alpha=2), [5, -2])
    same(torch.sub(integers, 1, alpha=2), [1, -6])
    same(torch.add(mask, mask, alpha=True), [True, False], torch.bool)
    same(torch.rsub(torch.tensor([1.5]), 2, alpha=2), [-1])
    same(torch.tensor([1.0]).add_(torch.tensor([2.0]), alpha=3), [7])


# -- division ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("function", (operator.floordiv, operator.mod, torch.fmod, torch.remainder, torch.floor_divide))
def test_integer_division_by_zero(function):
    integers = torch.tensor([3, -4])
    for zero in (0, torch.tensor([1, 0])):
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            function(integers, zero)
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        torch.div(integers, 0, rounding_mode="trunc")
    assert function(integers[:0], 0).shape == (0,)
    assert function(torch.tensor([3.0]), 0).isfinite().logical_not().all()


def test_rounding_modes():
    a, b = torch.tensor([7, -7, 7, -7]), torch.tensor([2, 2, -2, -2])
    same(torch.div(a, b), [3.5, -3.5, -3.5, 3.5], torch.float32)
    same(torch.div(a, b, rounding_mode="trunc"), [3, -3, -3, 3], torch.int64)
    same(torch.div(a, b, rounding_mode="floor"), [3, -4, -4, 3], torch.int64)
    same(a.clone().div_(b, rounding_mode="floor"), [3, -4, -4, 3])
    with pytest.raises(RuntimeError, match="rounding_mode"):
        torch.div(a, b, rounding_mode="up")
    with pytest.raises(RuntimeError, match="can't be cast"):
        a.div_(b)


def test_rounding_goes_to_the_even_neighbour():
    same(torch.round(torch.tensor([0.5, 1.5, 2.5, -0.5])), [0, 2, 2, 0])
    same(torch.round(torch.tensor([1234]), decimals=0), [1234])
    same(torch.round(torch.tensor([1251.0]), decimals=-2), [1300])
    with pytest.raises(RuntimeError):
        torch.round(torch.tensor([1234]), decimals=-2)


# -- powers -----------------------------------------------------------------------------------------------------------
def test_negative_integer_powers():
    integers = torch.tensor([1, -1, -1, 2, 0])
    with pytest.raises(RuntimeError, match="negative integer powers"):
        integers**-1
    same(integers ** torch.tensor([-2, -2, -3, -1, -1]), [1, 1, -1, 0, 0])


@pytest.mark.parametrize("target", targets(), ids=str)
@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_negative_powers_given_as_an_element(dtype, target):
    """A tensor is no number: what it holds is not looked at before."""
    bases = torch.tensor([1, -1, 2, 0, -3]).to(target.device)
    with target.preferred():
        for exponent, expected in ((-1, [1, -1, 0, 0, 0]), (-2, [1, 1, 0, 0, 0]), (2, [1, 1, 4, 0, 9])):
            power = torch.tensor(exponent, dtype=getattr(torch, dtype)).to(target.device)
            same((bases**power).cpu(), expected)
            same(bases.clone().pow_(power).cpu(), expected)
            same((bases[2] ** power).cpu(), expected[2])


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16"])
def test_exponents_that_narrow_integers_do_not_hold(dtype):
    integers = torch.tensor([0, 1, 3], dtype=getattr(torch, dtype))
    for power in (operator.pow, operator.ipow, torch.pow):
        with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed"):
            power(integers, -2)
        with pytest.raises(RuntimeError, match="without overflow"):
            power(integers, 1 << 20)
    assert integers.tolist() == [0, 1, 3]
    assert (2**integers).tolist() == [1, 2, 8]


def test_gradient_of_the_next_number():
    x, y = torch.tensor([1.0, 2.0, 3.0]).requires_grad_(), torch.tensor([2.0, 2.0, 1.0]).requires_grad_()
    torch.nextafter(x, y).sum().backward()
    assert x.grad.tolist() == [1.0, 0.0, 1.0] and y.grad.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("target", targets(None), ids=str)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_factors_beside_half_types_are_not_rounded(dtype, target):
    """The result is that of float32, rounded once."""
    half = torch.linspace(0.5, 2, 101).to(target.device, getattr(torch, dtype))
    functions = [
        *(lambda x, s=s: torch.addcmul(x, x, x, value=s) for s in (0.1, 1e-9)),
        lambda x: torch.addcdiv(x, x, x.flip(0), value=0.1),
        lambda x: torch.add(x, x.flip(0), alpha=0.1),
        lambda x: torch.sub(x, x.flip(0), alpha=0.1),
        lambda x: torch.lerp(x, x.flip(0), 0.1),
        lambda x: torch.nn.functional.leaky_relu(-x, 0.1),
        lambda x: torch.nn.functional.elu(-x, 0.1),
        lambda x: torch.nn.functional.softplus(x, 0.3),
        lambda x: torch.nan_to_num(x / 0 * 0, nan=0.1),
        *(lambda x, n=n: torch.round(x, decimals=n) for n in (1, 5)),
    ]
    with target.preferred():
        for function in functions:
            assert torch.equal(function(half), function(half.float()).to(half.dtype))


@pytest.mark.parametrize("target", targets(None), ids=str)
def test_zeros_among_the_numbers_keep_their_signs(target):
    functions = [
        lambda x, zero: torch.nn.functional.threshold(x, 0.0, zero),
        lambda x, zero: torch.nn.functional.hardtanh(x, zero, 2.0),
        lambda x, zero: torch.nan_to_num(x / 0, neginf=zero),
        lambda x, zero: torch.nn.functional.leaky_relu(x, -zero),
    ]
    x = torch.tensor([-1.0], device=target.device)
    with target.preferred():
        for function in functions:
            assert [function(x, zero).signbit().item() for zero in (0.0, -0.0, 0.0)] == [False, True, False]


@pytest.mark.parametrize("exponent", (0, 1, 2, 3, 0.5, -1, 2.5))
def test_gradients_of_powers_at_zero(exponent):
    x = torch.tensor([0.0, 2.0], requires_grad=True)
    (x**exponent).sum().backward()
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = exponent * np.float32([0, 2]) ** np.float32(exponent - 1) if exponent else np.zeros(2)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-6)
    y = torch.tensor([exponent], dtype=torch.float32, requires_grad=True)
    (torch.tensor([0.0]) ** y).sum().backward()
    assert exponent < 0 or y.grad.item() == 0


def test_float_power_is_computed_in_double():
    same(torch.float_power(torch.tensor([4]), 0.5), [2], torch.float64)
    same(torch.float_power(2, torch.tensor([3.0])), [8], torch.float64)
    assert torch.float_power(torch.tensor([4.0]), 1j).dtype is torch.complex128


# -- special values ---------------------------------------------------------------------------------------------------
def test_signs():
    nan = float("nan")
    same(torch.sign(torch.tensor([nan, -0.0, 3.0])), [0, 0, 1])
    same(torch.sgn(torch.tensor([True, False])), [True, False], torch.bool)
    same(torch.angle(torch.tensor([-0.0, -1.0, nan])), np.float32([0, math.pi, nan]))
    same(torch.copysign(torch.tensor([1.0]), -0.0), [-1])
    same(torch.lerp(torch.tensor([1.0]), torch.tensor([3.0]), 1.0), [3])


def test_shifts_beyond_the_bits():
    integers = torch.tensor([3, -4])
    same(integers << -1, [0, 0])
    same(integers << 64, [0, 0])
    same(integers >> 70, [0, -1])


def test_extremes_and_nan():
    a, b = torch.tensor([1.0, float("nan")]), torch.tensor([float("nan"), 2.0])
    assert torch.maximum(a, b).isnan().all() and torch.clamp(a, min=b).isnan().all()
    same(torch.fmax(a, b), [1, 2])
    with pytest.raises(RuntimeError, match="None"):
        torch.clamp(a)
    same(torch.clamp(torch.tensor([3, -4]), 0.5), [3, 0.5], torch.float32)


@pytest.mark.parametrize(("dtype", "largest"), [(torch.float16, 65504.0), (torch.float32, 3.4028234663852886e38)])
def test_nan_to_num_knows_the_dtype(dtype, largest):
    x = torch.tensor([float("nan"), float("inf"), -float("inf")], dtype=dtype)
    assert torch.nan_to_num(x).tolist() == [0, largest, -largest]
    z = torch.tensor([complex(float("nan"), 1), complex(2, float("inf"))], requires_grad=True)
    torch.nan_to_num(z, posinf=3.0).real.sum().backward()
    assert torch.nan_to_num(z, posinf=3.0).tolist() == [1j, 2 + 3j] and z.grad.tolist() == [0, 1]


def test_closeness_as_a_python_bool():
    x = torch.tensor([1.0, float("inf"), float("nan")])
    assert not torch.allclose(x, x) and torch.allclose(x, x, equal_nan=True)
    assert torch.equal(torch.tensor([1.0]), torch.tensor([1])) and not torch.equal(torch.ones(2), torch.ones(3))
    with pytest.raises(RuntimeError):
        torch.isclose(x, x, rtol=-1.0)
    with pytest.raises(RuntimeError, match="ambiguous"):
        torch.is_nonzero(torch.ones(2))


NARROW = {"int8": [-128, -100, -3, 2, 3, 7, 127, 100], "uint8": [200, 255, 3, 1, 2, 16, 17, 100]}


@pytest.mark.parametrize(
    "function",
    [
        torch.atan2,
        lambda x, n: torch.atan2(n, x),
        torch.pow,
        torch.nn.functional.soft_margin_loss,
        torch.trapezoid,
        lambda x, n: torch.trapezoid(n, x),
        torch.cumulative_trapezoid,
        lambda x, n: torch.special.log_ndtr(n) * x,
        lambda x, n: torch.special.ndtri(n) * x,
        lambda x, n: torch.isclose(n, n[:1], rtol=1.0) * x,
    ],
)
@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_integers_count_as_numbers(function, dtype):
    """Nothing on the way to a floating result, or to its gradient, wraps around."""
    found = []
    for n in (torch.tensor(NARROW[dtype], dtype=getattr(torch, dtype)), torch.tensor(NARROW[dtype]).double()):
        x = torch.linspace(0.3, 2.9, 8, dtype=torch.float64).requires_grad_()
        result = function(x, n)
        result.sum().backward()
        found.append((result.detach().numpy(), x.grad.numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5, atol=1e-30)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize(("name", "reference"), [("erf", math.erf), ("erfc", math.erfc)])
def test_error_function_is_exact_to_units_in_the_last_place(name, reference):
    x = np.linspace(-6, 26, 4001)
    actual = getattr(torch, name)(torch.tensor(x)).numpy()
    expected = np.array([reference(value) for value in x])
    assert (np.abs(actual - expected) <= 3 * np.spacing(np.abs(expected))).all()


@pytest.mark.parametrize("target", targets(None), ids=str)
def test_the_lower_tail_of_the_normal_distribution_is_exact(target):
    x = torch.tensor([-1.0, -3.0, -5.0, -10.0], device=target.device)
    with target.preferred():
        found = torch.special.ndtr(x).tolist()
    assert found == pytest.approx([math.erfc(v * math.sqrt(0.5)) / 2 for v in (1, 3, 5, 10)], rel=2e-5, abs=0)


@pytest.mark.parametrize("target", targets(None), ids=str)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 3e-7), ("float64", 1e-14)])
def test_quantiles_of_the_tails_are_exact(dtype, tolerance, target):
    x = [-1.0, -1.4, -3.0, -5.0, -10.0, -12.9, *([-25.0, -37.5] if dtype == "float64" else [])]
    p = torch.tensor([math.erfc(v * -math.sqrt(0.5)) / 2 for v in x], dtype=getattr(torch, dtype), device=target.device)
    p.requires_grad_()
    with target.preferred():
        found = torch.special.ndtri(p)
        (gradient,) = torch.autograd.grad(found.sum(), p)
    assert found.tolist() == pytest.approx(x, rel=tolerance)
    inverse = [math.exp(-v * v / 2) / math.sqrt(2 * math.pi) for v in x]
    assert (1 / gradient.double()).tolist() == pytest.approx(inverse, rel=300 * tolerance, abs=1e-300)


@pytest.mark.parametrize("target", targets(None), ids=str)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("exponent", [-2040, -140, -20, 7, 40, 128, 2047])
def test_powers_of_two_beyond_the_range(exponent, dtype, target):
    """The product is that of C's ldexp, though the power alone is infinite or 0."""
    tiny = float(np.finfo(dtype).tiny)
    values = np.array([0.0, -0.0, math.inf, -math.inf, 1.0, -tiny, 0.75, -1.5], dtype)
    x = torch.tensor(values, device=target.device, requires_grad=True)
    with target.preferred():
        result = torch.ldexp(x, torch.tensor(exponent, device=target.device))
        (gradient,) = torch.autograd.grad(result, x, torch.full_like(x, tiny))
    with np.errstate(over="ignore"):
        same(result.detach().cpu(), np.ldexp(values, exponent))
        same(gradient.cpu(), np.ldexp(np.full_like(values, tiny), exponent))


@pytest.mark.parametrize("eps", [None, 0.0, 0.1])
def test_logit_of_nan_has_no_gradient(eps):
    x = torch.tensor([0.5, math.nan], requires_grad=True)
    torch.logit(x, eps).sum().backward()
    assert x.grad[0] == 4 and x.grad[1].isnan()


# -- complex numbers --------------------------------------------------------------------------------------------------
def test_complex_memory_is_shared():
    z = torch.tensor([1 + 2j, 3 - 4j])
    pairs = torch.view_as_real(z)
    pairs[0, 1] = 7.0
    z.imag[1] = 5.0
    z.real = torch.tensor([8.0, 9.0])
    assert z.tolist() == [8 + 7j, 9 + 5j] and torch.view_as_complex(pairs).data_ptr() == z.data_ptr()
    x = torch.ones(2)
    assert torch.real(x) is x and x.conj() is x and x.real is x


@pytest.mark.parametrize(
    "wrong", (torch.ones(3), torch.ones(2, 3).T, torch.ones(3, 3)[:, :2], torch.ones(5)[1:3], torch.tensor(1.0))
)
def test_pairs_that_are_no_complex_numbers(wrong):
    with pytest.raises(RuntimeError, match="view_as_complex"):
        torch.view_as_complex(wrong)


def test_parts_of_real_numbers():
    with pytest.raises(DtypeError, match="imag"):
        torch.imag(torch.ones(2))
    with pytest.raises(RuntimeError):
        torch.view_as_real(torch.ones(2))
    half = torch.ones(2, dtype=torch.float16)
    with pytest.raises(RuntimeError, match="complex is not supported for float16"):
        torch.complex(half, half)  # whose results would be complex32


def test_gradients_of_complex_views():
    pairs = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    z = torch.view_as_complex(pairs)
    (z * z.conj()).real.sum().backward()
    same(pairs.grad, [[2, 4], [6, 8]])
    z = torch.tensor([3 + 4j], requires_grad=True)
    (z.abs() + z.imag).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), [0.6 + 1.8j], rtol=1e-6)


# -- in place ---------------------------------------------------------------------------------------------------------
def test_comparison_in_place_ends_the_history():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y[:1].gt_(0)
    y.sum().backward()
    same(x.grad, [0, 3])
    with pytest.raises(RuntimeError, match="leaf"):
        x.eq_(1)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_log1p_of_small_complex_numbers(dtype):
    """Not by a sum with 1, which would round them away."""
    x = torch.tensor([1e-3, 1e-20 + 1e-20j, 1e-3j, -1e-3 + 1e-4j, 1e20 + 1e20j], dtype=dtype)
    real = [9.995003330835332e-4, 1e-20, 4.9999975000016667e-7, -1.00049532e-3, 46.398275]
    found = torch.log1p(x)
    assert found.real.tolist() == pytest.approx(real, rel=1e-6, abs=0)
    assert found.imag.tolist() == pytest.approx([0, 1e-20, 9.99999666e-4, 1.001001e-4, 0.78539816], rel=1e-5, abs=0)


@pytest.mark.parametrize("exponent", [2.0, 0.5, -0.5, -1.0, 3.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_of_special_values_are_those_of_the_functions(exponent, dtype):
    """As in PyTorch a number as exponent stands for `square`, `sqrt`, `rsqrt`, `reciprocal`: a root of -inf is NaN."""
    values = torch.tensor([-math.inf, -1.0, -0.0, 0.0, 4.0, math.inf, math.nan], dtype=getattr(torch, dtype))
    functions = {2.0: "square", 0.5: "sqrt", -0.5: "rsqrt", -1.0: "reciprocal"}
    expected = getattr(values, functions[exponent])() if exponent in functions else values * values * values
    assert torch.equal((values**exponent).nan_to_num(7, 8, 9), expected.nan_to_num(7, 8, 9))
