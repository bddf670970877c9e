"""The report of a run: its results, kept line by line while it runs and as one JSON file when it ends."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import corefw
from corefw.dispatch.registry import registry
from corefw.testing.conform.outcomes import FAILURES, Outcome, Result
from corefw.testing.targets import Target


@dataclass
class Report:
    """What came of all checks.

    Attributes: ``name`` what was asked for; ``versions`` of everything that decides a result; ``results`` in the order
    of the checks.
    """

    name: str
    versions: dict[str, str]
    results: list[Result] = field(default_factory=list)

    def counts(self) -> Counter[Outcome]:
        """How many checks had each outcome."""
        return Counter(result.outcome for result in self.results)

    def failures(self) -> list[Result]:
        """What is wrong."""
        return [result for result in self.results if result.outcome in FAILURES]

    def conformant(self) -> bool:
        """Whether checks passed, and none found a fault."""
        return not self.failures() and self.counts()[Outcome.PASS] > 0

    def as_dict(self) -> dict:
        """For JSON."""
        counts = self.counts()
        return {
            "name": self.name,
            "conformant": self.conformant(),
            "versions": self.versions,
            "counts": {str(outcome): counts[outcome] for outcome in Outcome},
            "results": [result.as_dict() for result in self.results],
        }


def versions_of(targets: Iterable[Target]) -> dict[str, str]:
    """The versions of what a run tests."""
    found = {"corefw": corefw.__version__, "numpy": np.__version__, "python": platform.python_version()}
    for target in targets:
        backend = registry.backends[target.backend]
        found[f"backend {backend.name}"] = f"{backend.version} {backend.detail}".strip()
    return found


class Journal:
    """The results of a run that may be interrupted: a line of versions, then one for each check."""

    def __init__(self, path: Path, versions: dict[str, str], resume: bool):
        self.known = _read(path, versions) if resume else {}
        write_whole(
            path, "".join(json.dumps(line) + "\n" for line in (versions, *map(Result.as_dict, self.known.values())))
        )
        self.path = path

    def add(self, result: Result) -> None:
        """Keep a result."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(result.as_dict()) + "\n")


def _read(path: Path, versions: dict[str, str]) -> dict[str, Result]:
    """The results that an earlier run of the same versions has left; its last line may be torn."""
    if not path.exists():
        return {}
    first, *lines = path.read_text(encoding="utf-8").split("\n")
    if json.loads(first) != versions:
        return {}
    found = (Result.of_dict(json.loads(line)) for line in lines[:-1])
    return {result.check: result for result in found}


def write_whole(path: Path, text: str) -> None:
    """Write a file that is there as a whole or not at all."""
    beside = path.with_name(path.name + ".part")
    beside.write_text(text, encoding="utf-8")
    os.replace(beside, path)
