"""Patterns: kernels that backends offer for calls that follow each other give what the calls give, and nothing is
joined that others see."""

import sys

import numpy as np
import pytest

import corefw as torch
from corefw.compiling.passes import patterns
from corefw.dispatch.pattern import Name, Pattern
from corefw.dispatch.registry import registry
from corefw.testing.targets import Target
from tests.plans import better, names, run, same_bits

F = torch.nn.functional
search = sys.modules[patterns.__module__]
registry.runtime("cpu")
#: by backend the patterns of ops for which it has kernels: levels within a module have some only
OFFERED = {
    name: [p for p in backend.patterns if {step.op for step in p.steps} <= {k.op for k in backend.kernels["cpu"]}]
    for name, backend in registry.backends.items()
    if backend.patterns and not backend.unusable
}


def batch_norm(x, weight, bias):
    return F.batch_norm(x, None, None, weight, bias, True)


#: by pattern a function that has it, and the shapes of its arguments, one row for each kind of layout
PROGRAMS = {
    "batch_norm_relu": (
        lambda x, weight, bias: F.relu(batch_norm(x, weight, bias)),
        [[(4, 3, 5, 7), (3,), (3,)], [(9, 5), (5,), (5,)], [(2, 3, 1), (3,), (3,)]],
    ),
    "batch_norm_add_relu": (
        lambda x, weight, bias, other: F.relu(other + batch_norm(x, weight, bias)),
        [[(4, 3, 5, 7), (3,), (3,), (4, 3, 5, 7)], [(9, 5), (5,), (5,), (9, 5)]],
    ),
}


def tensors(shapes, dtype=torch.float32, special=False):
    rng = np.random.default_rng(0)
    made = [torch.tensor(rng.normal(size=shape)).to(dtype) for shape in shapes]
    if special:
        made[-1].flatten()[:3] = torch.tensor([np.nan, np.inf, -0.0]).to(dtype)
    return made


def check(function, inputs, passes=("updates", "patterns")):
    """A function as a plan gives what it gives, bit for bit; its plan."""
    plan = better(function, *(x.clone() for x in inputs), passes=passes)
    expected = function(*(x.clone() for x in inputs))
    for actual, wanted in zip(
        run(plan, *inputs), expected if isinstance(expected, tuple) else (expected,), strict=True
    ):
        same_bits(actual, wanted.array)
    return plan


def test_each_pattern_that_is_offered_has_a_program():
    assert {p.name for offered in OFFERED.values() for p in offered} <= PROGRAMS.keys()


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize(("level", "name"), [(level, p.name) for level, offered in OFFERED.items() for p in offered])
def test_kernels_give_what_the_calls_give(level, name, dtype, special):
    function, rows = PROGRAMS[name]
    with Target(level, "cpu").preferred():
        for shapes in rows:
            inputs = tensors(shapes, dtype, special)
            wider = [t.float() if len(shape) == 1 and dtype.itemsize == 2 else t for shape, t in zip(shapes, inputs)]
            for given in (inputs, wider):
                plan = check(function, given)
                assert names(plan) == [name] and plan.calls[0].who == level


# -- the search, with a backend of no other kernels -------------------------------------------------------------------
@pytest.fixture
def offer(monkeypatch):
    """Have the backend of `matmul` on the CPU offer a pattern."""
    who = next(call.who for call in better(lambda x: x @ x, torch.ones(2, 2), passes=()).calls)

    def offer(*offered):
        monkeypatch.setattr(registry.backends[who], "patterns", offered)

    return offer


def product_sine(x, y):
    return np.sin(np.matmul(x, y))


SINE = Pattern("product_sine", "sin(matmul(x, y))", product_sine)


def square(*shape):
    return torch.tensor(np.random.default_rng(0).normal(size=shape or (4, 4)).astype(np.float32))


def joined(function, *inputs, passes=("patterns",)):
    """The names of the calls of a function's plan, which gives what the function gives, nearly."""
    plan = better(function, *(x.clone() for x in inputs), passes=passes)
    expected = function(*(x.clone() for x in inputs))
    for actual, wanted in zip(run(plan, *(x.clone() for x in inputs)), expected, strict=True):
        np.testing.assert_allclose(actual, wanted.array, 1e-5, 1e-5)
    return names(plan)


def test_calls_are_joined_where_nobody_sees_what_is_between(offer):
    offer(SINE)
    x = square()
    assert joined(lambda x: ((x @ x).sin(),), x) == ["product_sine"]
    assert joined(lambda x: ((y := x @ x).sin(), y), x) == ["matmul", "sin"]
    assert joined(lambda x: ((y := x @ x).sin(), y.cos()), x) == ["matmul", "sin", "cos"]
    assert joined(lambda x: ((y := x @ x).sin(), y[0] * 2.0), x).count("product_sine") == 0
    assert joined(lambda x: ((x @ x).sin(), (x @ x).sin() + 1.0), x) == ["product_sine", "product_sine", "add"]


RESIDUAL = Pattern("residual", "add(x, matmul(y, z))", lambda x, y, z: x + y @ z)


def changed(x):
    """A product of what is changed before all is there that it is added to."""
    y = x @ x
    x += 1.0
    return x.cumsum(0) + y, x


def test_what_is_read_is_the_same_in_the_place_of_the_call(offer):
    offer(RESIDUAL)
    assert joined(changed, square()) == ["matmul", "add", "cumsum", "add"]
    assert joined(lambda x: (x + x @ x, x.add_(1.0)), square()) == ["residual", "add"]


def test_wanted_results_are_there_when_others_need_them(offer):
    both = Pattern("both", "y = matmul(x, x)\ny, sin(y)", lambda x: (y := np.matmul(x, x), np.sin(y)))
    offer(both)
    assert joined(lambda x: ((y := x @ x).sin(), y.cos()), square()) == ["both", "cos"]

    def needed_before(x):
        y = x @ x
        return (y + y.cumsum(0).sin() * 0 + y).cumsum(0), (y.cumsum(0) @ x), y.sin()

    assert joined(needed_before, square()).count("both") == 1


def test_attributes_and_equal_arguments(offer):
    offer(
        Pattern("rows", "sin(cumsum(x, 1))", lambda x: np.sin(np.cumsum(x, 1))),
        Pattern("own", "sin(matmul(x, x))", lambda x: np.sin(x @ x)),
    )
    x = square()
    assert joined(lambda x: (x.cumsum(1).sin(),), x) == ["rows"]
    assert joined(lambda x: (x.cumsum(0).sin(),), x) == ["cumsum", "sin"]
    assert joined(lambda x: ((x @ x).sin(),), x) == ["own"]
    assert joined(lambda x, y: ((x @ y).sin(),), x, square()) == ["matmul", "sin"]


def test_dtypes_and_shapes_that_do_not_suit(offer):
    offer(Pattern("small", "sin(matmul(x, y))", product_sine, frozenset({torch.float32}), lambda x, y: x.shape[0] < 5))
    assert joined(lambda x: ((x @ x).sin(),), square()) == ["small"]
    assert joined(lambda x: ((x @ x).sin(),), square().double()) == ["matmul", "sin"]
    assert joined(lambda x: ((x @ x).sin(),), square(6, 6)) == ["matmul", "sin"]


def test_operands_of_sums_come_in_any_order(offer):
    offer(RESIDUAL)
    x = square()
    assert joined(lambda x: (x + x @ x,), x) == joined(lambda x: (x @ x + x,), x) == ["residual"]


def test_plans_tell_what_is_joined(offer):
    offer(SINE)
    plan = better(lambda x: (x @ x).sin(), square())
    assert "product_sine(%0, %0): float32[4, 4]" in str(plan)
    assert plan.flops() == 2 * 4**3


# -- texts ------------------------------------------------------------------------------------------------------------
def test_texts_are_read():
    pattern = Pattern("p", "y, m, v = batch_normalization(input, weight, None, eps)\nrelu(add(y, other)), m", print)
    assert [step.op for step in pattern.steps] == ["batch_normalization", "add", "relu"]
    assert pattern.steps[0].arguments == (Name("input"), Name("weight"), None, Name("eps"))
    assert pattern.given == ("input", "weight", "eps", "other") and len(pattern.wanted) == 2


@pytest.mark.parametrize("text", ["x + y", "y = sin(x)", "sin(x), x", "sin(x, out=y)", "a.sin(x)", "y += sin(x)\ny"])
def test_texts_that_are_no_pattern(text):
    with pytest.raises(ValueError, match="wanted are assignments of calls"):
        _ = Pattern("p", text, print).steps


# -- planted faults ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", ["may_run", "is_own"])
def test_planted_faults_are_seen(fault, monkeypatch, offer):
    offer(SINE, RESIDUAL)
    monkeypatch.setattr(search.Facts, fault, lambda self, *arguments: True)
    function = changed if fault == "may_run" else lambda x: ((y := x @ x).sin(), y)
    with pytest.raises((AssertionError, NameError)):
        joined(function, square())
