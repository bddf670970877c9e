"""PyTorch's public names: each one is here and tested, or refused with a reason."""

import importlib
import re

import pytest

import corefw
from corefw.refusals import REFUSALS
from tests.scripts import FOLDER, load

coverage = load("api_coverage")
NAMES = coverage.sections(coverage.LIST.read_text())
FOUND = {section.heading: section for section in coverage.covered(NAMES)}


@pytest.mark.parametrize("heading", NAMES)
def test_names_are_here_or_refused(heading):
    assert FOUND[heading].missing == []


@pytest.mark.parametrize("heading", NAMES)
def test_names_are_tested(heading):
    """A name that no test mentions lacks one: a row, or a test of its values."""
    assert FOUND[heading].untested == []


def test_the_list_is_not_empty():
    assert sum(map(len, NAMES.values())) > 1700 and len(NAMES) > 25


@pytest.mark.parametrize("name", REFUSALS)
def test_refused_names_say_why(name):
    path, _, last = name.rpartition(".")
    owner = corefw.Tensor if path == "Tensor" else importlib.import_module(f"corefw.{path}")
    assert not hasattr(owner, last)
    with pytest.raises(AttributeError, match=re.escape(f"corefw.{name} is left out on purpose: {REFUSALS[name]}")):
        getattr(owner, last)
    if path == "Tensor":
        with pytest.raises(AttributeError, match="left out on purpose"):
            getattr(corefw.ones(2), last)


def test_other_names_are_unknown():
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        corefw.masked.nonsense
    assert not hasattr(corefw.ones(2), "nonsense")


def test_the_page_shows_all_refusals():
    rows = dict(
        re.findall(r"^\| (`.*`) \| (.*) \|$", (FOLDER.parent / "docs" / "refusals.md").read_text(), re.MULTILINE)
    )
    shown = {name: reason for names, reason in rows.items() for name in re.findall(r"`([^`]+)`", names)}
    assert shown == REFUSALS


def test_other_names_of_an_op_are_its_function():
    """So that the rows of the op test them all."""
    for namespace in ("corefw", "special", "linalg", "fft", "nn.functional"):
        module = importlib.import_module(f"corefw.{namespace}".removesuffix(".corefw"))
        for name, (_, function) in coverage.forms(namespace).items():
            assert getattr(module, name) is function, name
