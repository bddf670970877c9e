"""The chart of a comparison: bars, drawn with matplotlib."""

from __future__ import annotations

from io import BytesIO

from corefw.benchmarks.comparison import baseline, least, mean, speed
from corefw.benchmarks.suites import op_of

MOST = 40  # bars for each column; more rows are shown as the mean of their op


def _by_op(comparison: dict) -> bool:
    """Whether a bar stands for all rows of an op."""
    return len(comparison["rows"]) > MOST


def _figures(comparison: dict, column: str) -> dict[str, float]:
    """What the bars of a column show: its speed beside the last column's, or seconds where it stands alone."""
    than = baseline(comparison)
    found = {
        name: value
        for name, row in comparison["rows"].items()
        if (value := speed(row, column, than) if than else least(row, column))
    }
    if not _by_op(comparison):
        return found
    ops: dict[str, list[float]] = {}
    for name, value in found.items():
        ops.setdefault(op_of(name), []).append(value)
    return {op: mean(values) for op, values in ops.items()}


def draw(comparison: dict, form: str) -> bytes:
    """The picture, as "png" or "svg"; ImportError with advice where matplotlib is missing."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
        from matplotlib.ticker import FuncFormatter, NullFormatter
    except ImportError as error:
        raise ImportError("charts are drawn with matplotlib: pip install matplotlib") from error
    than = baseline(comparison)
    columns = [name for name in comparison["columns"] if name != than]
    figures = {column: _figures(comparison, column) for column in columns}
    rows = list(dict.fromkeys(name for found in figures.values() for name in found))
    height = 0.8 / len(columns)
    with matplotlib.rc_context({"svg.hashsalt": "corefw", "font.size": 9}):
        figure = Figure(figsize=(8, max(2.0, (0.16 + 0.16 * len(columns)) * len(rows) + 1.4)), layout="constrained")
        axes = figure.subplots()
        for i, column in enumerate(columns):
            places = [place + (i - (len(columns) - 1) / 2) * height for place in range(len(rows))]
            values = [figures[column].get(name) for name in rows]
            # A factor of 1 has no bar: faster ones go to the right, slower ones as far to the left.
            lengths = [(value or 1) - 1 for value in values] if than else [value or 0 for value in values]
            bars = axes.barh(places, lengths, 0.9 * height, left=1 if than else 0, label=column)
            texts = ["" if value is None else f"{value:.3g}" for value in values]
            axes.bar_label(bars, texts, padding=2, fontsize=7)
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xscale("log", base=2 if than else 10)
        axes.margins(x=0.1)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, place: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
        if than:
            axes.axvline(1, color="black", linewidth=1)
        axes.set_xlabel(f"speed, {than} = 1; more is faster" if than else "seconds")
        means = ": means of each op's sizes" if _by_op(comparison) else ""
        axes.set_title(f"{comparison['suite']} on {comparison['device']}, {comparison['dtype']}{means}", fontsize=10)
        figure.legend(loc="outside upper center", ncols=len(columns))
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        buffer = BytesIO()
        metadata = {"Date": None} if form == "svg" else {}
        figure.savefig(buffer, format=form, dpi=120, metadata=metadata)
    return buffer.getvalue()
