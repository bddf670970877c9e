"""The support matrix: ops by dtypes, as text, Markdown and HTML."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from corefw import dtypes
from corefw.testing.conform.outcomes import Outcome, Result
from corefw.testing.conform.report import Report

#: how an outcome is shown in a cell
SIGNS = {
    Outcome.PASS: "ok",
    Outcome.WRONG: "WRONG",
    Outcome.RAISES: "RAISES",
    Outcome.UNPROVEN: "not proven",
    Outcome.MISSING: "missing",
    Outcome.UNSUPPORTED: "-",
    Outcome.EXCLUDED: "excluded",
    Outcome.NOT_RUN: "not run",
}
_WORST = list(Outcome)
LEGEND = (
    "A number is the greatest error that was seen, in units of the last place. What is empty is not the backend's: it "
    "has no kernel, or the op does not take the dtype."
)


@dataclass
class Cell:
    """What came of all checks of an op at a dtype."""

    results: list[Result] = field(default_factory=list)

    @property
    def outcome(self) -> Outcome:
        """The worst outcome; what did not run says nothing beside what passed."""
        found = {result.outcome for result in self.results}
        if Outcome.PASS in found:
            found -= {Outcome.NOT_RUN}
        return min(found, key=_WORST.index)

    def __str__(self) -> str:
        ulp = max(result.ulp for result in self.results)
        number = f"{ulp:.1f}".removesuffix(".0") if ulp < 10 else f"{ulp:.0f}" if ulp < 10_000 else f"{ulp:.0e}"
        return SIGNS[self.outcome] + (f" {number}" if ulp >= 0.05 and self.outcome is Outcome.PASS else "")


class Matrix:
    """The cells of a target's ops; what is about no op stands in a row of its section."""

    def __init__(self, results: Sequence[Result]):
        self.cells: dict[tuple[str, str], dict[str, Cell]] = defaultdict(lambda: defaultdict(Cell))
        for result in results:
            if result.section == "claims" and result.outcome is Outcome.PASS:
                continue  # the cells show it
            row = (result.family, result.op) if result.op else (result.section, result.property)
            self.cells[row][result.dtype].results.append(result)
        self.rows = sorted(self.cells)
        used = {dtype for cells in self.cells.values() for dtype in cells}
        self.columns = [d.name for d in dtypes.ALL if d.name in used] + [""] * ("" in used)

    def line(self, row: tuple[str, str]) -> list[str]:
        """The texts of one row."""
        cells = self.cells[row]
        return [*row, *(str(cells[column]) if column in cells else "" for column in self.columns)]

    def lines(self) -> list[list[str]]:
        """The texts of all rows, the head first."""
        return [["family", "op", *self.columns], *map(self.line, self.rows)]


def by_target(report: Report) -> dict[str, Matrix]:
    """A matrix for each backend and device."""
    found: dict[str, list[Result]] = defaultdict(list)
    for result in report.results:
        found[result.target].append(result)
    return {target: Matrix(results) for target, results in found.items()}


def text(matrix: Matrix) -> str:
    """For a terminal: columns aligned."""
    lines = matrix.lines()
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(f"{word:<{width}}" for word, width in zip(line, widths)).rstrip() for line in lines)


def summary(report: Report) -> str:
    """How many checks had which outcome, by section, and every one that did not pass for a fault."""
    sections: dict[str, list[Result]] = defaultdict(list)
    for result in report.results:
        sections[result.section].append(result)
    lines = []
    for section, results in sections.items():
        counts = Report(report.name, {}, results).counts()
        lines.append(
            f"{section}: " + ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome if counts[outcome])
        )
    return "\n".join(lines)


def markdown(report: Report) -> str:
    """For documentation."""
    parts = [
        f"# Conformance of {report.name}\n",
        _versions(report),
        "",
        *(f"- {line}" for line in summary(report).split("\n")),
        f"\n{LEGEND}",
    ]
    for target, matrix in by_target(report).items():
        head, *lines = matrix.lines()
        parts += [
            f"\n## {target}\n",
            _markdown_row(head),
            _markdown_row(["---"] * len(head)),
            *map(_markdown_row, lines),
        ]
    if report.failures():
        parts += ["\n## Faults\n", *(f"- `{r.check}` {r.outcome}: {r.reason}" for r in report.failures())]
    return "\n".join(parts) + "\n"


def _markdown_row(words: list[str]) -> str:
    return "| " + " | ".join(word.replace("|", "\\|") for word in words) + " |"


def _versions(report: Report) -> str:
    return ", ".join(f"{what} {version}" for what, version in report.versions.items())


_STYLE = """
body { font: 13px system-ui, sans-serif; margin: 2em; color: #222 }
table { border-collapse: collapse; margin: 1em 0; white-space: nowrap }
td, th { border: 1px solid #ddd; padding: 2px 6px; text-align: left }
th { background: #f4f4f4; position: sticky; top: 0 }
.PASS { background: #e3f4e3 } .WRONG, .RAISES { background: #f6c6c6 }
.NOT-PROVEN { background: #f6c6c6 } .MISSING, .EXCLUDED { background: #fbeec1 }
.NOT-RUN, .UNSUPPORTED-DTYPE { background: #f0f0f0; color: #777 }
"""


def html(report: Report) -> str:
    """One file that needs no other; a cell shows its reasons where the pointer is."""
    title = f"Conformance of {escape(report.name)}"
    parts = [f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{_STYLE}</style>"]
    parts += [f"<h1>{title}</h1><p>{escape(_versions(report))}</p>"]
    parts += ["<ul>", *(f"<li>{escape(line)}</li>" for line in summary(report).split("\n")), f"</ul><p>{LEGEND}</p>"]
    for target, matrix in by_target(report).items():
        head = "".join(f"<th>{escape(word)}</th>" for word in matrix.lines()[0])
        parts += [f"<h2>{escape(target)}</h2><table><tr>{head}</tr>", *(_html_row(matrix, row) for row in matrix.rows)]
        parts += ["</table>"]
    return "\n".join(parts) + "\n"


def _html_row(matrix: Matrix, row: tuple[str, str]) -> str:
    words = [f"<td>{escape(word)}</td>" for word in row]
    for column in matrix.columns:
        cell = matrix.cells[row].get(column)
        if cell is None:
            words.append("<td></td>")
            continue
        reasons = "\n".join(f"{r.property}: {r.outcome} {r.reason}" for r in cell.results if r.reason)
        kind = cell.outcome.replace(" ", "-")
        words.append(f'<td class="{kind}" title="{escape(reasons, quote=True)}">{escape(str(cell))}</td>')
    return f"<tr>{''.join(words)}</tr>"
