"""The property of docstrings: they exist, and their examples run."""

from __future__ import annotations

import doctest

import corefw
from corefw.dispatch.op import Op
from corefw.testing.case import Case
from corefw.testing.checks import (
    property_of,
)
from corefw.testing.targets import Target


@property_of(once=True)
def documentation(case: Case, op: Op, target: Target) -> None:
    """The docstring says what the op means, with an example that runs if the op is public."""
    text = op.body.__doc__
    assert text and text.strip(), "the op has no docstring"
    if op.public:
        assert ">>>" in text, "the docstring has no example"
    run_examples(op.name, text)


def run_examples(name: str, text: str) -> None:
    """Run the examples of a docstring; AssertionError with what differed."""
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    test = doctest.DocTestParser().get_doctest(text, {"torch": corefw}, name, None, None)
    said: list[str] = []
    runner.run(test, out=said.append)
    assert not runner.failures, "".join(said)
