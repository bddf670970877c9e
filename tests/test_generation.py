"""The generator: what it writes is what tests/golden shows, and names only what it is given."""

import builtins
import dis
from pathlib import Path
from types import CodeType

import pytest

from corefw.dispatch.generation.compiling import RESERVED
from corefw.dispatch.generation.fill import fill
from corefw.dispatch.generation.functions import backward, forward, inplace
from corefw.dispatch.registry import registry
from tests import scripts

ROOT = Path(__file__).resolve().parent.parent
OPS = {op.name: op for op in registry.declared.values() if op.rule is not None}
#: what a function is given of its op
GIVEN = {"BODY", "DEFAULTS", "INPLACE", "INPLACE_BODY", "NODE", "OP", "PART", "RESULT", "THIS", "inplace_table"}


def test_golden_files_are_current():
    script = scripts.load("make_golden")
    assert {path.stem for path in script.FOLDER.glob("*.py")} == set(script.OPS)
    for name in script.OPS:
        assert (script.FOLDER / f"{name}.py").read_text() == script.text(registry.declared[name]), "run make generated"


def test_a_hole_in_a_line_takes_text_and_one_alone_takes_lines():
    template = """
def {name}():
    {nothing}
    if True:
        {lines}
    return {name}
"""
    expected = "def f():\n    if True:\n        a = 1\n        b = 2\n    return f"
    assert fill(template, name="f", nothing="", lines="a = 1\nb = 2") == expected


def test_a_hole_without_a_filling_is_an_error():
    with pytest.raises(KeyError, match="missing"):
        fill("return {missing}")


def names(code):
    """The globals that a function uses."""
    inner = [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    loaded = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    return (loaded - set(dir(builtins))).union(*map(names, inner))


@pytest.mark.parametrize("write", [forward, inplace, backward])
def test_generated_code_uses_no_other_names(write):
    checked = 0
    for op in OPS.values():
        if write is inplace and (not op.inplace or op.view):
            continue
        scope = {}
        exec(write(op), {"DEFAULTS": [None] * len(op.parameters)}, scope)
        (function,) = scope.values()
        formulas = {f"G{i}" for i in range(len(op.gradients))}
        assert names(function.__code__) <= RESERVED | GIVEN | formulas, op.name
        checked += 1
    assert checked > 100
