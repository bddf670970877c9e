"""FileCheck: whether a text has some strings in an order, as LLVM's tool of that name asks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class _Check:
    """One thing that is asked of a text.

    Attributes: ``kind`` as in a file of checks: "", "NEXT", "SAME", "NOT", "DAG", "COUNT", "REGEX" or
    "SOURCE-HIGHLIGHTED"; ``text`` what is looked for; ``count`` how often.
    """

    kind: str
    text: str
    count: int = 1

    def __str__(self) -> str:
        kind = f"COUNT-{self.count}" if self.kind == "COUNT" else self.kind
        return f"CHECK{'-' if kind else ''}{kind}: {self.text}"


_CHECK = re.compile(r"^\s*#\s*CHECK(-[A-Z-]+?)?(?:-(\d+))?:\s?(.*)$", re.MULTILINE)
_KINDS = ("", "NEXT", "SAME", "NOT", "DAG", "COUNT", "COUNT-EXACTLY", "REGEX", "SOURCE-HIGHLIGHTED")


class FileCheck:
    """Checks of a text, each of what comes behind the match of the one before.

    >>> FileCheck().check("conv").check_not("relu").check_next("add").run("x = conv(y)\\nz = add(x)")
    >>> FileCheck().run("# CHECK: conv\\n# CHECK-SAME: y", "x = conv(y)")
    """

    def __init__(self) -> None:
        self._checks: list[_Check] = []

    def __repr__(self) -> str:
        return "\n\t".join(["FileCheck checks:", *map(str, self._checks)])

    # -- what is asked --------------------------------------------------------------------------------------------
    def _add(self, kind: str, text: str, count: int = 1) -> FileCheck:
        if not isinstance(text, str) or not text:
            raise RuntimeError(f"FileCheck expects a string that is not empty, but got {text!r}")
        self._checks.append(_Check(kind, text, count))
        return self

    def check(self, text: str) -> FileCheck:
        """There is this string."""
        return self._add("", text)

    def check_not(self, text: str) -> FileCheck:
        """There is no such string before the next match, or the end."""
        return self._add("NOT", text)

    def check_same(self, text: str) -> FileCheck:
        """There is this string in the same line."""
        return self._add("SAME", text)

    def check_next(self, text: str) -> FileCheck:
        """There is this string in the next line."""
        return self._add("NEXT", text)

    def check_count(self, text: str, count: int, exactly: bool = False) -> FileCheck:
        """There is this string so many times; with `exactly` no more often."""
        self._add("COUNT", text, count)
        return self._add("NOT", text) if exactly else self

    def check_dag(self, text: str) -> FileCheck:
        """There is this string, in any order with those of the checks beside that are of this kind."""
        return self._add("DAG", text)

    def check_regex(self, text: str) -> FileCheck:
        """There is a match of this regular expression."""
        return self._add("REGEX", text)

    def check_source_highlighted(self, text: str) -> FileCheck:
        """There is this string, with ``~`` below all of it in the next line."""
        return self._add("SOURCE-HIGHLIGHTED", text)

    def _parse(self, checks: str) -> None:
        """Add what the comments of a text ask for."""
        for kind, count, text in _CHECK.findall(checks):
            kind = kind.removeprefix("-")
            if kind not in _KINDS:
                raise RuntimeError(f"FileCheck knows no check CHECK-{kind}, but {', '.join(_KINDS[1:])}")
            if kind.startswith("COUNT"):
                self.check_count(text.strip(), int(count), kind == "COUNT-EXACTLY")
            else:
                self._add(kind, text.strip())

    # -- asking ---------------------------------------------------------------------------------------------------
    def run(self, checks: str, text: str | None = None) -> None:
        """Check a text.

        Args:
            checks: the text; or, if there are two, one whose comments ``# CHECK: ...`` add checks.
            text: the text.

        Raises RuntimeError that shows the check which fails.
        """
        if text is None:
            text = checks
        else:
            self._parse(checks)
        if not self._checks:
            raise RuntimeError("No checks have been added to this instance of FileCheck! Check for bad input.")
        begin, forbidden, unordered = 0, [], None
        for check in self._checks:
            if check.kind == "NOT":
                forbidden.append(check)
                continue
            start = unordered[0] if check.kind == "DAG" and unordered else begin
            first, end = _found(check, text, start)
            for other in forbidden:
                _refuse(other, text, begin, first)
            if check.kind == "DAG":
                unordered = (start, max(end, unordered[1] if unordered else end))
                end = unordered[1]
            else:
                unordered = None
            begin, forbidden = end, []
        for other in forbidden:
            _refuse(other, text, begin, len(text))


def _found(check: _Check, text: str, begin: int) -> tuple[int, int]:
    """Where the match of a check begins and ends."""
    look, first = _SEARCHES.get(check.kind, _string), -1
    end = begin
    for _ in range(check.count):
        start, end = look(check, text, end)
        first = start if first < 0 else first
    lines = {"SAME": 0, "NEXT": 1}.get(check.kind)
    between = text.count("\n", begin, first)
    if lines is not None and between != lines:
        where = "in the same line" if check.kind == "SAME" else "in the next line"
        raise _failure(f'Expected to find "{check.text}" {where} but found it {between} lines on', check, text, first)
    return first, end


def _string(check: _Check, text: str, begin: int) -> tuple[int, int]:
    at = text.find(check.text, begin)
    if at < 0:
        raise _failure(f'Expected to find "{check.text}" but did not find it', check, text, begin)
    return at, at + len(check.text)


def _expression(check: _Check, text: str, begin: int) -> tuple[int, int]:
    match = re.compile(check.text).search(text, begin)
    if match is None:
        raise _failure(f'Expected to find regex "{check.text}" but did not find it', check, text, begin)
    return match.span()


def _highlighted(check: _Check, text: str, begin: int) -> tuple[int, int]:
    at = text.find(check.text, begin)
    while at >= 0:
        column = at - (text.rfind("\n", 0, at) + 1)
        below = text[at:].partition("\n")[2].partition("\n")[0]
        if below[column : column + len(check.text)] == "~" * len(check.text):
            return at, at + len(check.text)
        at = text.find(check.text, at + 1)
    raise _failure(f'Expected to find "{check.text}" highlighted but did not find it', check, text, begin)


_SEARCHES: dict[str, Callable[[_Check, str, int], tuple[int, int]]] = {
    "REGEX": _expression,
    "SOURCE-HIGHLIGHTED": _highlighted,
}


def _refuse(check: _Check, text: str, begin: int, end: int) -> None:
    """Raise if a string is in a part of a text."""
    at = text.find(check.text, begin, end)
    if at >= 0:
        raise _failure(f'Expected to not find "{check.text}" but found it', check, text, at)


def _failure(what: str, check: _Check, text: str, at: int) -> RuntimeError:
    line = text.count("\n", 0, at) + 1
    return RuntimeError(f"{what}, from line {line} on, in\n{text}\nFrom {check}\n")
