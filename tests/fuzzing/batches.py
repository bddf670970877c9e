"""Batches of programs: grown, run on every framework, compared; and the programs that show a difference, shrunk."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

import numpy as np

from tests.fuzzing.builder import Builder
from tests.fuzzing.compare import Difference, compare
from tests.fuzzing.generators import FAMILIES
from tests.fuzzing.programs import Program
from tests.fuzzing.runs import Run, run, run_in_scope
from tests.fuzzing.shrink import shrink

Mark = Callable[[int, int], None]  # is told the number of the program and the position of the framework that runs it


@dataclass(frozen=True)
class Found:
    """A difference, the program that shows it, and where it came from."""

    difference: Difference
    program: Program
    family: str
    number: int


@dataclass
class Batch:
    """What came of the programs of one family from `first` on."""

    family: str
    programs: int
    steps: int
    found: list[Found]


def grown(family: str, seed: int, number: int, guide, trace: bool = False) -> Builder:
    """The program of this number, with its run on the guide."""
    builder = Builder(Random(f"{seed}:{family}:{number}"), guide)
    builder.trace = trace
    FAMILIES[family](builder)
    builder.run.finish()
    return builder


def run_batch(family: str, seed: int, numbers: Sequence[int], frameworks: Sequence, mark: Mark | None = None) -> Batch:
    """Grow the programs on the first framework, run them on the others, and compare."""
    mark = mark or (lambda number, position: None)
    programs: list[Program] = []
    runs: list[list[Run]] = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        with frameworks[0].scope:
            for number in numbers:
                mark(number, 0)
                builder = grown(family, seed, number, frameworks[0])
                programs.append(builder.program())
                runs.append([builder.run])
        for position, framework in enumerate(frameworks[1:], 1):
            with framework.scope:
                for number, program, several in zip(numbers, programs, runs):
                    mark(number, position)
                    several.append(run(program, framework))
        batch = Batch(family, len(programs), sum(p.steps for p in programs), [])
        for number, program, several in zip(numbers, programs, runs):
            mark(number, 0)
            batch.found += [Found(d, p, family, number) for d, p in _differences(program, several)]
    return batch


def _differences(program: Program, runs: Sequence[Run]) -> Iterable[tuple[Difference, Program]]:
    """The first difference between each framework and the next; none is looked for after one."""
    for first, second in pairwise(runs):
        difference, shown = compare(program, first, second)
        if difference is not None:
            yield difference, shown
            return


def differs(program: Program, sides: Sequence) -> tuple[Difference | None, Program]:
    """How the program's runs on two frameworks differ."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return compare(program, *(run_in_scope(program, framework) for framework in sides))


def shrunk(found: Found, frameworks: Sequence, seconds: float = 10.0, mark: Mark | None = None) -> Found:
    """The difference with the smallest program that was found to show it."""
    sides = [framework for name in found.difference.sides for framework in frameworks if framework.name == name]
    wanted = found.difference.signature

    def shows(program: Program) -> bool:
        if mark is not None:
            mark(found.number, 0)
        difference, _ = differs(program, sides)
        return difference is not None and difference.signature == wanted

    program = shrink(found.program, shows, seconds) if shows(found.program) else found.program
    difference, shown = differs(program, sides)
    if difference is None:
        return found
    return replace(found, difference=difference, program=shown)
