"""The table of a comparison, in text and as cells for other forms."""

from __future__ import annotations

from corefw.benchmarks.comparison import baseline, change, helped, least, rates, speed, summary


def seconds(value: float | None) -> str:
    """A time with three digits."""
    if value is None:
        return "-"
    for unit, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}"
    return f"{value * 1e9:.0f} ns"


def header(comparison: dict, earlier: dict | None = None) -> list[str]:
    """The titles of the table's columns."""
    names, than = list(comparison["columns"]), baseline(comparison)
    titles = ["", *names, *(f"{name}/{than}" for name in names if than and name != than)]
    titles += [f"rate of {names[0]}"]
    return titles + ([f"{name} then/now" for name in names] if earlier else [])


def cells(comparison: dict, name: str, earlier: dict | None = None) -> list[str]:
    """A row: times, how many times faster than the last column, rates with their share of the limit, and how many times
    faster than in an earlier comparison."""
    row, names, than = comparison["rows"][name], list(comparison["columns"]), baseline(comparison)
    found = [name]
    for column in names:
        found.append(
            "failed" if column in row["failed"] else seconds(least(row, column)) + "*" * bool(helped(row, column))
        )
    found += [_factor(speed(row, column, than)) for column in names if than and column != than]
    said = (f"{rate:.3g} {unit} ({share:.0%})" for rate, share, unit in rates(comparison, row, names[0]))
    found.append(", ".join(said))
    return found + ([_factor(change(comparison, earlier, name, column)) for column in names] if earlier else [])


def _factor(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def widths(comparison: dict, rows: list[str], earlier: dict | None = None) -> list[int]:
    """How wide the columns of the text are; the rows need not be measured yet."""
    titles = header(comparison, earlier)
    return [max(map(len, [*rows, "op"])), *(max(9, len(title)) for title in titles[1:])]


def line(values: list[str], wide: list[int]) -> str:
    """A line of the text."""
    first, *others = (f"{value:<{w}}" if not i else f"{value:>{w}}" for i, (value, w) in enumerate(zip(values, wide)))
    return "  ".join([first, *others]).rstrip()


def notes(comparison: dict) -> list[str]:
    """What stands below the table: the means, what was not computed by its column, and what failed."""
    limits, lines = comparison["limits"], summary(comparison)
    reached = {"GFLOP/s in a product": limits["flops"], "GB/s in a copy": limits["bytes"]}
    if said := ", ".join(f"{rate / 1e9:.0f} {what}" for what, rate in reached.items() if rate):
        threads = comparison["threads"]
        lines.append(
            f"limits, as the fastest column reached them: {said} ({threads} threads); rates beyond are of caches"
        )
    for column in comparison["columns"]:
        others: dict[str, list[str]] = {}
        for name, row in comparison["rows"].items():
            for who in helped(row, column):
                others.setdefault(who, []).append(name)
        lines += [f"* {column}: {who} ran kernels of {_listed(names)}" for who, names in others.items()]
        failed = {n: row["failed"][column] for n, row in comparison["rows"].items() if column in row["failed"]}
        lines += [f"failed: {column}: {name}: {' '.join(error.split())}" for name, error in failed.items()]
    return lines


def _listed(names: list[str], most: int = 6) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
