"""`corefw conform`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from corefw.commands.parsing import Commands, UsageError, count
from corefw.progress import Progress
from corefw.testing.conform.items import targets_of, why_none
from corefw.testing.conform.matrix import by_target, summary, text
from corefw.testing.conform.outcomes import Outcome
from corefw.testing.conform.run import FILES, Options, run


def add(commands: Commands) -> None:
    """Its parser."""
    command = commands.add(
        "conform",
        conform,
        "test a backend: every op and dtype, its memory, random streams and training",
        "corefw conform numpy",
        "corefw conform acme --select 'softmax-*' --matrix",
        "corefw conform acme --output acme --resume",
    )
    command.add_argument("name", help="a backend, or a device type: all backends that serve it")
    command.add_argument("--select", action="append", metavar="PATTERN", help="only checks so named, such as 'add-*'")
    command.add_argument(
        "--exclude", action="append", default=[], metavar="PATTERN=REASON", help="checks to leave out, and why"
    )
    command.add_argument("--cases", action="append", default=[], type=Path, help="a folder with more files of rows")
    command.add_argument("--jobs", type=count(1), default=os.cpu_count() or 1, help="processes (default: processors)")
    command.add_argument("--timeout", type=count(1), default=120, help="seconds for one check (default: 120)")
    command.add_argument("--output", type=Path, help="the folder of the report (default: conform-NAME)")
    command.add_argument("--resume", action="store_true", help="keep what an interrupted run has found there")
    command.add_argument("--matrix", action="store_true", help="print the matrix of all ops and dtypes")


def conform(arguments: argparse.Namespace) -> int:
    """Test a backend; the status is 0 if it conforms."""
    targets = targets_of(arguments.name)
    if not targets:
        raise UsageError(why_none(arguments.name))
    options = Options(
        name=arguments.name,
        targets=targets,
        select=tuple(arguments.select or ("*",)),
        exclude=_exclusions(arguments.exclude),
        folders=tuple(arguments.cases),
        jobs=arguments.jobs,
        patience=arguments.timeout,
        output=arguments.output or Path(f"conform-{arguments.name}"),
        resume=arguments.resume,
    )
    with Progress(f"conform {arguments.name}", unit="checks") as progress:
        report = run(options, progress.reached)
    for target, matrix in by_target(report).items():
        if arguments.matrix:
            print(f"{target}\n{text(matrix)}\n")
    for result in report.failures():
        print(f"{result.outcome}: {result.check}: {result.reason}")
    print(summary(report))
    state = "conforms" if report.conformant() else "does not conform"
    if not report.counts()[Outcome.PASS]:
        state += ": no check passed"
    print(f"{arguments.name} {state}; the report is in {options.output}/: {', '.join(FILES)}")
    return 0 if report.conformant() else 1


def _exclusions(texts: list[str]) -> dict[str, str]:
    """{pattern: reason}; an exclusion must have a reason."""
    found = dict(text.partition("=")[::2] for text in texts)
    if wrong := [pattern for pattern, reason in found.items() if not reason]:
        raise UsageError(f"--exclude {wrong[0]}: expected PATTERN=REASON")
    return found
