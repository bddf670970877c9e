"""One run of a backend's checks, from their list to the files of the report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from corefw.testing.conform.evidence import claims
from corefw.testing.conform.items import Item, items
from corefw.testing.conform.matrix import html, markdown
from corefw.testing.conform.outcomes import Outcome
from corefw.testing.conform.report import Journal, Report, versions_of, write_whole
from corefw.testing.conform.supervisor import supervise
from corefw.testing.targets import Target

FILES = ("report.json", "matrix.md", "matrix.html")


@dataclass(frozen=True)
class Options:
    """What is to be run.

    Attributes: ``name`` of a backend or a device type, which means the ``targets``; ``select`` patterns of names of
    checks, ``exclude`` such patterns with reasons; ``folders`` of further rows; ``jobs`` processes; ``patience`` the
    seconds for one check; ``output`` the folder of the report; ``resume`` whether to keep what is there.
    """

    name: str
    targets: list[Target]
    output: Path
    select: tuple[str, ...] = ("*",)
    exclude: dict[str, str] | None = None
    folders: tuple[Path, ...] = ()
    jobs: int = 1
    patience: float = 120
    resume: bool = False


def run(options: Options, progress: Callable[[int, int], None] = lambda done, total: None) -> Report:
    """Run what is to be run, and write the report."""
    everything = [item for target in options.targets for item in items(target, options.folders)]
    exclude, versions = options.exclude or {}, versions_of(options.targets)
    options.output.mkdir(parents=True, exist_ok=True)
    journal = Journal(options.output / "journal.jsonl", versions, options.resume)
    selected = {number: item for number, item in enumerate(everything) if _matches(str(item), options.select)}
    results = {}
    wanted = []
    for number, item in selected.items():
        decided = _decided(item, exclude)
        if decided is not None:
            results[number] = item.result(*decided)
        elif str(item) in journal.known:
            results[number] = journal.known[str(item)]
        else:
            wanted.append(number)
    numbers = {str(item): number for number, item in selected.items()}
    progress(len(results), len(selected))
    if wanted:
        for result in supervise(options.name, options.folders, everything, wanted, options.jobs, options.patience):
            journal.add(result)
            results[numbers[result.check]] = result
            progress(len(results), len(selected))
    report = Report(options.name, versions, [results[number] for number in sorted(results)])
    for target in options.targets:
        proofs = [proof for proof in claims(target, report.results) if _matches(proof.check, options.select)]
        report.results += [proof for proof in proofs if not _matches(proof.check, exclude)]
    texts = (json.dumps(report.as_dict(), indent=1) + "\n", markdown(report), html(report))
    for file, text in zip(FILES, texts, strict=True):
        write_whole(options.output / file, text)
    return report


def _matches(check: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(check, pattern) for pattern in patterns)


def _decided(item: Item, exclude: dict[str, str]) -> tuple[Outcome, str] | None:
    """The outcome of what is not to be run, with the reason."""
    for pattern, reason in exclude.items():
        if fnmatchcase(str(item), pattern):
            return Outcome.EXCLUDED, reason
    return item.decided if item.run is None else None
