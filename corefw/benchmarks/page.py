"""The report of a comparison: one page of HTML that needs nothing else."""

from __future__ import annotations

import re
from html import escape
from itertools import groupby

from corefw.benchmarks.chart import draw
from corefw.benchmarks.comparison import baseline, speed
from corefw.benchmarks.suites import op_of
from corefw.benchmarks.table import cells, header, notes

STYLE = """
:root { color-scheme: light dark; --line: #8884; --bar: #4a90d966; --slow: #d9734a66; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 80rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: .15rem .8rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { position: sticky; top: 0; background: Canvas; }
th:first-child, td:first-child { text-align: left; }
tbody tr:first-child td { border-top: 2px solid var(--line); }
dt { float: left; clear: left; width: 8rem; opacity: .7; } dd { margin-left: 9rem; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; background: white; }
.wide { overflow-x: auto; }
"""


def page(comparison: dict, earlier: dict | None = None) -> str:
    """The page; with the chart where matplotlib is installed."""
    machine = comparison["machine"]
    facts = {
        "measured": f"{comparison['date']}, corefw {machine['corefw']}, Python {machine['python']}",
        "processor": f"{machine['processor']}, {machine['cores']} cores; {comparison['threads']} threads used",
        "device": f"{comparison['device']}, {comparison['dtype']}",
        "columns": ", ".join(f"{name} {version}" for name, version in comparison["columns"].items()),
        "environment": ", ".join(f"{k}={v}" for k, v in machine["environment"].items()) or "nothing set",
    } | ({"beside": f"a comparison of {earlier['date']}, corefw {earlier['machine']['corefw']}"} if earlier else {})
    title = f"{comparison['suite']} on {comparison['device']}: {', '.join(comparison['columns'])}"
    titles = "".join(f"<th>{escape(text)}</th>" for text in header(comparison, earlier))
    bodies = (
        f"<tbody>{''.join(_row(comparison, name, earlier) for name in names)}</tbody>"
        for _, names in groupby(comparison["rows"], key=op_of)
    )
    return "\n".join(
        [
            "<!doctype html>",
            f'<html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>',
            f"<h1>{escape(title)}</h1>",
            "<dl>" + "".join(f"<dt>{name}</dt><dd>{escape(text)}</dd>" for name, text in facts.items()) + "</dl>",
            "".join(f"<p>{escape(line)}</p>" for line in notes(comparison)),
            _figure(comparison),
            f'<div class="wide"><table><thead><tr>{titles}</tr></thead>',
            *bodies,
            "</table></div></html>\n",
        ]
    )


def _row(comparison: dict, name: str, earlier: dict | None) -> str:
    row, than, names = comparison["rows"][name], baseline(comparison), list(comparison["columns"])
    factors = [speed(row, column, than) for column in names if than and column != than]
    styles = [""] * (1 + len(names)) + [_bar(factor) for factor in factors]
    found = cells(comparison, name, earlier)
    styles += [""] * (len(found) - len(styles))
    return "<tr>" + "".join(f"<td{style}>{escape(text)}</td>" for text, style in zip(found, styles)) + "</tr>"


def _bar(factor: float | None) -> str:
    """A bar behind a factor, which fills the cell at four times the speed."""
    if factor is None:
        return ""
    color, filled = "var(--bar)" if factor >= 1 else "var(--slow)", min(100.0, 25 * factor)
    return f' style="background: linear-gradient(to right, {color} {filled:.0f}%, transparent 0)"'


def _figure(comparison: dict) -> str:
    try:
        picture = draw(comparison, "svg").decode()
    except ImportError as error:
        return f"<p>{escape(str(error))}</p>"
    return f"<figure>{re.sub(r'^.*?(?=<svg)', '', picture, flags=re.DOTALL)}</figure>"
