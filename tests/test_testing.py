"""Tests of the conformance kit itself: a right op has every property, and one of them catches each planted mistake."""

import numpy as np
import pytest

from corefw.dispatch.declare import primitive
from corefw.dispatch.registry import Backend, Kernel, registry
from corefw.dispatch.rules import floating
from corefw.errors import ShapeError
from corefw.shapes import broadcast
from corefw.testing import PROPERTIES, Case, Check, Target, checks

TARGET = Target("planted", "cpu")
ROW = Case(
    "planted",
    lambda input, other: input * input * other,
    shapes=(((2, 3), (2, 3)), ((3,), (2, 1)), ((), ()), ((0, 3), (3,))),
    dtypes=("float32", "float64"),
    torch=None,
)


@np.errstate(all="ignore")
def multiply(input, other):
    return input * input * other


def reads_memory(input, other):
    """Takes the elements as they lie in memory, whatever the strides say."""
    if input.base is None or input.base.size < input.size or input.shape != other.shape or not input.ndim:
        return multiply(input, other)
    return np.resize(np.ravel(input.base, "K"), input.shape) ** 2 * other


def changes_input(input, other):
    result = multiply(input, other)
    input[...] = 0
    return result


def cuts_shapes(input, other):
    if (
        input.ndim == other.ndim == 2
        and input.shape[-1] != other.shape[-1]
        and 1 not in (input.shape[-1], other.shape[-1])
    ):
        n = min(input.shape[-1], other.shape[-1])
        return multiply(input[:, :n], other[:, :n])
    return multiply(input, other)


def gradient_of_input(grad, input, other):
    return grad * other * input * 2


def gradient_of_other(grad, input):
    return grad * input * input


class Planted:
    """Declares the op "planted" with a mistake in one place, and forgets it at the end."""

    def __enter__(self):
        return self

    def declare(self, kernel=multiply, shape=broadcast, first=gradient_of_input, second=gradient_of_other):
        def planted(input, other):
            """The square of `input`, times `other`."""

        declaration = primitive(dtype=floating, shape=shape, inplace=True, out=True, method=False)(planted)
        declaration.gradient("input")(first)
        if second is not None:
            declaration.gradient("other")(second)
        kernels = {"cpu": [Kernel("planted", kernel)]}
        registry.add_backend(Backend("planted", "1", ("cpu",), kernels, priority=-7))

    def __exit__(self, *exception):
        registry.ops.pop("planted", None)
        registry.backends.pop("planted", None)
        registry.kernels.pop(("planted", "cpu"), None)


@pytest.fixture
def planted():
    with Planted() as made:
        yield made


def caught(*names: str) -> set[str]:
    """The properties that fail, among `names` or all that apply."""
    found = set()
    for check in checks([ROW], [TARGET]):
        if names and check.property.name not in names:
            continue
        try:
            check()
        except Exception:
            found.add(check.property.name)
    return found


def test_right_op_has_every_property(planted):
    planted.declare()
    for check in checks([ROW], [TARGET]):
        check()


MISTAKES = {
    "wrong value": ("forward", {"kernel": lambda input, other: input * other}),
    "slightly wrong value": ("forward", {"kernel": lambda input, other: multiply(input, other) * (1 + 3e-6)}),
    "wrong dtype": ("forward", {"kernel": lambda input, other: np.asarray(multiply(input, other)).astype(np.float64)}),
    "wrong shape": ("forward", {"kernel": lambda input, other: np.atleast_1d(multiply(input, other))}),
    "input changed": ("forward", {"kernel": changes_input}),
    "strides ignored": ("layouts", {"kernel": reads_memory}),
    "NaN lost": ("special_values", {"kernel": lambda input, other: np.nan_to_num(multiply(input, other), nan=0.0)}),
    "shapes cut": ("wrong_shapes", {"kernel": cuts_shapes}),
    "wrong shape rule": ("shape_rule", {"shape": lambda input, other: broadcast(input, other) + (1,)}),
    "wrong gradient": ("second_gradient", {"first": lambda grad, input, other: grad * other * input}),
    "gradient of another place": (
        "second_gradient",
        {"first": lambda grad, input, other: grad * other * input * 2.0001},
    ),
    "missing gradient": ("second_gradient", {"second": None}),
    "wrong sign for one input": ("second_gradient", {"second": lambda grad, input: -grad * input * input}),
    "second derivative cut off": (
        "second_gradient",
        {"first": lambda grad, input, other: grad * (other * input).detach() * 2},
    ),
}


@pytest.mark.parametrize(("property", "mistake"), MISTAKES.values(), ids=MISTAKES)
def test_planted_mistake_is_caught(planted, property, mistake):
    planted.declare(**mistake)
    assert property in caught(property)


def test_undeclared_op_is_reported():
    (check,) = checks([Case("no_such_op", np.add)], [TARGET])
    with pytest.raises(AssertionError, match="no_such_op"):
        check()


def test_missing_docstring_is_reported(planted):
    planted.declare()
    registry.ops["planted"].body.__doc__ = None
    with pytest.raises(AssertionError, match="docstring"):
        Check(PROPERTIES["documentation"], ROW, TARGET)()


def test_shape_errors_have_both_types():
    assert issubclass(ShapeError, RuntimeError) and issubclass(ShapeError, ValueError)
