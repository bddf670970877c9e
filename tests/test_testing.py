"""Tests of the conformance kit itself: a right op has every property, and one of them catches each planted mistake."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import corefw
from corefw import dtypes
from corefw.dispatch import declare
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.declare import primitive
from corefw.dispatch.registry import registry
from corefw.dispatch.rules import floating
from corefw.shapes import broadcast
from corefw.testing import (
    PROPERTIES,
    Case,
    CaseFileError,
    Check,
    Target,
    assert_close,
    checks,
    load_folder,
    make_tensor,
    samples,
)
from corefw.testing.comparison import host
from corefw.testing.samples import LAYOUTS, to_tensor
from tests import loopback

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

        declaration = primitive(dtype=floating, shape=shape, inplace=True, out=True, public="")(planted)
        declaration.gradient("input")(first)
        if second is not None:
            declaration.gradient("other")(second)
        kernels = {"cpu": [Kernel("planted", kernel)]}
        registry.add_backend(Backend("planted", "1", ("cpu",), kernels, priority=-7))

    def __exit__(self, *exception):
        registry.declared.pop("planted", None)
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
    "input's memory returned": ("memory", {"kernel": lambda input, other: input}),
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


AXIS = declare.Dim


def aliased(input, dim: "AXIS", dims: "declare.GivenDims | None", size: "int", where: "declare.Index", other=None):
    """Its parameters have annotations of other names."""


def test_the_kind_of_a_parameter_is_that_of_its_annotation_under_any_name():
    kinds = [parameter.kind for parameter in declare._parameters(aliased)]
    assert kinds == ["tensor", "dim", "given_dims", "attribute", "index", "optional"]


def test_undeclared_op_is_reported():
    (check,) = checks([Case("no_such_op", np.add)], [TARGET])
    with pytest.raises(AssertionError, match="no_such_op"):
        check()


def test_missing_docstring_is_reported(planted):
    planted.declare()
    registry.declared["planted"].body.__doc__ = None
    with pytest.raises(AssertionError, match="docstring"):
        Check(PROPERTIES["documentation"], ROW, TARGET)()


# -- assert_close -----------------------------------------------------------------------------------------------------
def tensor(values, dtype="float32"):
    return to_tensor(np.asarray(values).astype(dtypes.of_name(dtype).numpy))


@pytest.mark.parametrize(
    ("actual", "expected", "options"),
    [
        ([1.0, 2.0], [1.0, 2.0 + 1e-6], {}),
        ([np.inf, 1.0], [np.inf, 1.0], {}),
        ([np.nan], [np.nan], {"equal_nan": True}),
        ([1.0], [1.1], {"rtol": 0.2, "atol": 0.0}),
    ],
)
def test_close_tensors_pass(actual, expected, options):
    assert_close(tensor(actual), tensor(expected), **options)


@pytest.mark.parametrize(
    ("actual", "expected", "options", "text"),
    [
        (tensor([1.0, 2.0]), tensor([1.0, 2.1]), {}, "index \\(1,\\)"),
        (tensor([1.0]), tensor([1.0, 2.0]), {}, "shape"),
        (tensor([1.0]), tensor([1.0], "float64"), {}, "dtype"),
        (tensor([np.nan]), tensor([np.nan]), {}, "not close"),
        (tensor([np.inf]), tensor([-np.inf]), {}, "not close"),
        (tensor([1], "int64"), tensor([2], "int64"), {}, "not close"),
        ([tensor([1.0]), 2.0], [tensor([1.0]), 3.0], {}, "item \\[1\\]"),
        ({"a": 1}, {"b": 1}, {}, "keys"),
        ([1], [1, 2], {}, "length"),
        (tensor([1.0]), tensor([2.0]), {"msg": "mine"}, "^mine$"),
        (tensor([1.0]), tensor([2.0]), {"msg": lambda text: "Prefix " + text}, "^Prefix Tensor"),
    ],
)
def test_different_values_are_reported(actual, expected, options, text):
    with pytest.raises(AssertionError, match=text):
        assert_close(actual, expected, **options)


def test_assert_close_refuses_what_it_cannot_compare():
    with pytest.raises(TypeError, match="handle inputs"):
        assert_close(tensor([1.0]), np.ones(1))
    with pytest.raises(ValueError, match="both"):
        assert_close(1.0, 1.0, rtol=1e-3)


def test_dtypes_may_differ_where_they_are_not_checked():
    assert_close(tensor([1, 2], "int64"), tensor([1.0, 2.0]), check_dtype=False)


# -- samples ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 3), (2, 1, 3)], ids=str)
def test_layouts_show_the_elements(layout, shape):
    array = np.arange(float(np.prod(shape))).reshape(shape)
    shown = host(layout(array, "cpu"))
    assert shown.shape == shape
    if layout is not LAYOUTS["expanded"]:
        np.testing.assert_array_equal(shown, array)
    elif array.size:
        np.testing.assert_array_equal(shown, np.broadcast_to(array[:1] if shape else array, shape))


def test_samples_are_the_same_every_time():
    first, second = samples(ROW, dtypes.float32), samples(ROW, dtypes.float32)
    assert len(first) == len(ROW.shapes)
    for a, b in zip(first, second):
        for x, y in zip(a.arrays(), b.arrays()):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", dtypes.ALL, ids=str)
def test_make_tensor(dtype):
    made = make_tensor(2, 50, dtype=dtype, low=0, high=5)
    values = host(made)
    assert values.shape == (2, 50) and made.dispatch_key.dtype is dtype
    assert (np.abs(values.astype(complex)) <= 5 * 2**0.5).all() and len(np.unique(values.astype(complex))) > 1
    values = host(make_tensor((40,), dtype=dtype, low=0, high=2, exclude_zero=True, noncontiguous=True))
    assert dtype is dtypes.bool_ or (values != 0).all()


def test_make_tensor_follows_the_seed():
    def made():
        corefw.manual_seed(3)
        return host(make_tensor(5, dtype=dtypes.float32)).tolist()

    assert made() == made()


def test_make_tensor_refuses_gradients_of_integers():
    with pytest.raises(ValueError, match="requires_grad"):
        make_tensor(2, dtype=dtypes.int64, requires_grad=True)


# -- the device for tests, and the plugin -----------------------------------------------------------------------------
@pytest.mark.parametrize(
    "use",
    [np.asarray, np.sum, bool, lambda a: a + 1, lambda a: np.add(a, 1), lambda a: a[0], len, lambda a: a.sum()],
    ids=range(8),
)
def test_loopback_arrays_are_opaque(use):
    loopback.install()
    array = to_tensor(np.ones(1), "loopback").array
    with pytest.raises((TypeError, AttributeError)):
        use(array)


def conformance(*options):
    """What the author of a backend runs."""
    plugin = ["-p", "corefw.testing.plugin", "--pyargs", "corefw.testing.conformance"]
    command = [sys.executable, "-m", "pytest", "-c", os.devnull, "-q", "-p", "no:cacheprovider", *plugin, *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parent.parent, check=False)
    return done.returncode, done.stdout + done.stderr


def test_plugin_tests_one_backend():
    status, said = conformance("--corefw-backend", "numpy", "-k", "add-forward")
    assert status == 0 and " passed" in said, said
    status, said = conformance("--corefw-backend", "none")
    assert status != 0 and "--corefw-backend: no backend or device is called 'none'" in said


ROWS = """
import numpy as np
from corefw.testing import Case, require
CASES = (Case("exp", np.exp{options}),)
"""
OWN = ("--corefw-backend", "numpy", "-k", "(exp and forward.2) or not-run")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("CASES = (", "SyntaxError: '(' was never closed"),
        ("", "AttributeError"),
        ("CASES = ()", "CASES is empty"),
        (None, "no files of rows"),
    ],
)
def test_a_file_of_rows_that_cannot_be_used_fails_the_run(tmp_path, source, reason):
    (tmp_path / "__init__.py").write_text("")
    if source is not None:
        (tmp_path / "right.py").write_text(ROWS.format(options=""))
        (tmp_path / "wrong.py").write_text(source)
    with pytest.raises(CaseFileError, match=re.escape(str(tmp_path))) as raised:
        load_folder(tmp_path)
    assert reason in str(raised.value) and (source is None or f"wrong.py: {reason}" in str(raised.value))
    if source == "CASES = ()":
        status, said = conformance("--corefw-cases", tmp_path)
        assert status != 0 and str(raised.value) in said and " passed" not in said


def test_rows_with_a_requirement_that_is_missing_are_reported(tmp_path):
    (tmp_path / "right.py").write_text(ROWS.format(options=""))
    (tmp_path / "file.py").write_text("from corefw.testing import require\nrequire('no_such_package.part')")
    (tmp_path / "row.py").write_text(ROWS.format(options=", requires=('numpy', 'no_such_package')"))
    status, said = conformance("--corefw-cases", tmp_path, *OWN)
    assert status == 0 and " passed, 2 skipped" in said, said
    assert "NOT RUN: file.py needs no_such_package, not installed\n" in said
    assert "NOT RUN: row.py: exp needs no_such_package, not installed\n" in said


def test_zero_checks_are_a_failure(tmp_path):
    numpy = ("--corefw-backend", "numpy")
    status, said = conformance(*numpy, "-k", "no_such_op")
    assert status == pytest.ExitCode.NO_TESTS_COLLECTED, said
    status, said = conformance(*numpy, "--corefw-cases", tmp_path / "absent")
    assert status != 0 and "absent: no such folder" in said
    (tmp_path / "file.py").write_text("from corefw.testing import require\nrequire('no_such_package')")
    status, said = conformance(*numpy, "--corefw-cases", tmp_path, "-k", "not-run")
    assert status == 1 and "no check of a row ran: all 1 were skipped" in said, said
