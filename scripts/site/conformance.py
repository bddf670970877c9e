"""What the conformance kit found of the project's own backends, as scripts/make_conformance has kept it."""

from __future__ import annotations

import json
from pathlib import Path

FIGURES = Path(__file__).with_name("conformance.json")
EMULATED = "CuPy's ran on the CPU, as the [emulated device](../decisions/0014-cuda-without-a-gpu.md)."
NAMES = {"numpy": "numpy", "c": "c", "emulated": "cupy, emulated"}


def page() -> str:
    """The page."""
    reports = json.loads(FIGURES.read_text(encoding="utf-8"))
    lines = [
        *("# Conformance of the project's backends", ""),
        "What `corefw conform` finds of each ([how](../conformance.md)): of every family of ops how many checks",
        "passed, and the greatest error among them, in units of the last place, with the op and dtype that has it.",
        "Where a result is 0 but for rounding, as that of `sinc(1)`, many units say nothing.",
        *([EMULATED] if "emulated" in reports else []),
        "",
        *("| backend | conforms | passed | faults | not run or left out | tested |", "|---|---|---|---|---|---|"),
        *(_row(name, report) for name, report in reports.items()),
        "",
        f"| family | {' | '.join(NAMES[name] for name in reports)} |",
        f"|---|{'---|' * len(reports)}",
    ]
    for family in sorted({family for report in reports.values() for family in report["families"]}):
        lines.append(
            f"| {family} | {' | '.join(_cell(report['families'].get(family)) for report in reports.values())} |"
        )
    for name, report in reports.items():
        if report["faults"]:
            lines += ["", f"## What is wrong, or not proven, of {NAMES[name]}", ""]
            lines += [f"- {fault}" for fault in report["faults"]]
    return "\n".join([*lines, ""])


def _row(name: str, report: dict) -> str:
    counts: dict[str, int] = {}
    for family in report["families"].values():
        for outcome, count in family["outcomes"].items():
            counts[outcome] = counts.get(outcome, 0) + count
    others = sum(counts.values()) - counts.get("PASS", 0) - len(report["faults"])
    versions = ", ".join(f"{of.removeprefix('backend ')} {version}" for of, version in report["versions"].items())
    verdict = "yes" if report["conformant"] else "no"
    return (
        f"| {NAMES[name]} | {verdict} | {counts.get('PASS', 0):,} | {len(report['faults'])} | {others:,} | {versions} |"
    )


def _cell(family: dict | None) -> str:
    if family is None:
        return ""
    passed, total = family["outcomes"].get("PASS", 0), sum(family["outcomes"].values())
    count = f"{passed:,}" if passed == total else f"{passed:,} of {total:,}"
    error = f"{family['ulp']:g}" if family["ulp"] < 10_000 else f"{family['ulp']:.0e}"
    return f"{count}; {error} in `{family['op']}`" if family["op"] else count
