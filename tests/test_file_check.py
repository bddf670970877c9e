"""FileCheck finds what PyTorch's finds, and says what it did not find; assert_allclose."""

import numpy as np
import pytest

import corefw
from corefw.testing import FileCheck
from tests.parity import import_torch

TEXT = "a x b\nc x d\nx + y\n    ~ <--- HERE\ne x"

CHECKS = [
    lambda f: f.check("x").check("d"),
    lambda f: f.check("d").check("c"),
    lambda f: f.check("q"),
    lambda f: f.check("x").check_not("q").check("d"),
    lambda f: f.check("x").check_not("c").check("d"),
    lambda f: f.check("d").check_not("a"),
    lambda f: f.check_not("x"),
    lambda f: f.check_not("a").check("x"),
    lambda f: f.check_count("x", 4),
    lambda f: f.check_count("x", 5),
    lambda f: f.check_count("x", 4, exactly=True),
    lambda f: f.check_count("x", 3, exactly=True),
    lambda f: f.check("a").check_same("b").check_next("c"),
    lambda f: f.check("a").check_same("d"),
    lambda f: f.check("a").check_next("e"),
    lambda f: f.check("a").check_next("b"),
    lambda f: f.check_dag("d").check_dag("a").check("e"),
    lambda f: f.check_dag("e").check_dag("a").check("c"),
    lambda f: f.check_regex("c . d").check("y"),
    lambda f: f.check_regex("c . e"),
    lambda f: f.check_source_highlighted("y"),
    lambda f: f.check_source_highlighted("+"),
]


def passes(check) -> bool:
    try:
        check.run(TEXT)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("number", range(len(CHECKS)))
def test_verdicts_are_pytorchs(number):
    ask = CHECKS[number]
    assert passes(ask(FileCheck())) == passes(ask(import_torch().testing.FileCheck()))


@pytest.mark.parametrize(
    ("comments", "passing"),
    [
        ("# CHECK: a\n# CHECK-SAME: b\n# CHECK-NEXT: c", True),
        ("   # CHECK-COUNT-2: x\n# CHECK-NOT: x\n# CHECK: d", True),
        ("# CHECK-COUNT-EXACTLY-2: x", False),
        ("# CHECK-DAG: d\n# CHECK-DAG: a", True),
    ],
)
def test_comments_are_checks(comments, passing):
    for module in (corefw, import_torch()):
        try:
            module.testing.FileCheck().run(comments, TEXT)
        except RuntimeError:
            assert not passing
        else:
            assert passing


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: FileCheck().run(TEXT), "No checks have been added"),
        (lambda: FileCheck().check(""), "a string that is not empty"),
        (lambda: FileCheck().run("# CHECK-LATER: x", TEXT), "knows no check CHECK-LATER"),
        (lambda: FileCheck().check("q").run(TEXT), '(?s)Expected to find "q" but did not find it.*From CHECK: q'),
        (lambda: FileCheck().check("a").check_same("d").run(TEXT), "in the same line but found it 1 lines on"),
        (lambda: FileCheck().check("c").check_not("x").run(TEXT), 'not find "x" but found it, from line 2 on'),
        (lambda: FileCheck().check_regex("q+").run(TEXT), r"regex \"q\+\""),
    ],
)
def test_what_is_not_found_is_told(call, text):
    with pytest.raises(RuntimeError, match=text):
        call()


def test_its_checks_are_shown():
    assert repr(FileCheck().check("a").check_count("b", 2)) == "FileCheck checks:\n\tCHECK: a\n\tCHECK-COUNT-2: b"


@pytest.mark.filterwarnings("ignore:.*assert_allclose")
def test_assert_allclose():
    close = corefw.testing.assert_allclose
    close(corefw.tensor([1.0]), [1.00005])
    close(np.array([1.0, np.nan]), [1.0, np.nan])
    close(corefw.tensor([1]), corefw.tensor([1.0]))
    for actual, expected, options in (([1.0], [1.1], {}), ([1], [2], {}), ([1.0], [1.05], {"rtol": 0.01, "atol": 0})):
        with pytest.raises(AssertionError, match="not close"):
            close(actual, expected, **options)
    with pytest.raises(AssertionError, match="as I say"):
        close([1.0], [2.0], msg="as I say")


def test_assert_allclose_is_deprecated():
    with pytest.warns(FutureWarning, match="use `torch.testing.assert_close"):
        corefw.testing.assert_allclose([1.0], [1.0])
