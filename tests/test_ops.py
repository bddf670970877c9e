"""Every property of every op, on every backend: one test per row of tests/cases, property and target."""

from corefw.dispatch.registry import registry
from corefw.testing.conformance import test_op
from tests import loopback
from tests.cases import CASES

loopback.install()

#: declared ops without a row, with the reason
WITHOUT_ROW: dict[str, str] = {
    "view_as_complex": "takes no strided inputs; tests/test_pointwise.py",
}

__all__ = ["test_op"]


def test_every_op_has_a_row():
    declared = {op.name for op in registry.ops.values()}
    missing = declared - {case.op for case in CASES} - WITHOUT_ROW.keys()
    assert not missing, f"{len(missing)} ops have no row: {', '.join(sorted(missing))}"
    assert not WITHOUT_ROW.keys() - declared, "an exception names an op that is not declared"
