"""The command ``scripts/fuzz``: random programs on the backends and on PyTorch, until the time is up."""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, cycle, pairwise
from pathlib import Path

import corefw
from corefw.testing import oracle_available
from tests.fuzzing.batches import Batch, Found, differs, grown
from tests.fuzzing.generators import FAMILIES
from tests.fuzzing.programs import from_json, to_json
from tests.fuzzing.runs import Corefw, PyTorch
from tests.fuzzing.sanitize import run_sanitized
from tests.fuzzing.source import source
from tests.fuzzing.workers import UNSEEN, Worker, fatal, ready

CORPUS = Path(__file__).resolve().parent / "corpus"
_BATCH = 40
_MOST_FATAL = 10
_WEIGHTS = Counter({"layers": 3, "views": 2})  # of the families that find most; 1 for the others


def frameworks(against: str) -> list:
    """What programs run on: the reference, the C backend where it is, PyTorch where it can be imported."""
    names = {backend.name for backend in corefw.backends() if backend.usable and "cpu" in backend.devices}
    found: list = [Corefw(name) for name in ("numpy", "c") if name in names]
    return found + [PyTorch()] if against == "torch" else found


def _batches(families: Sequence[str], programs: int | None) -> Iterator[tuple[str, range]]:
    """Which programs to run: the families in turn."""
    turns = [family for family in families for _ in range(_WEIGHTS[family] or 1)]
    starts = {family: count(0, _BATCH) for family in families}
    given = 0
    for family in cycle(turns):
        if programs is not None and given >= programs:
            return
        first = next(starts[family])
        size = _BATCH if programs is None else min(_BATCH, programs - given)
        given += size
        yield family, range(first, first + size)


class Session:
    """A run of the fuzzer.

    Attributes: ``programs`` and ``steps`` per family, ``found`` the differences by signature, ``times`` how often each
    was seen. Every difference is written to the folder ``save`` as soon as it is shrunk.
    """

    def __init__(
        self, sides: Sequence, seed: int, families: Sequence[str], limited: bool = True, save: Path | None = None
    ):
        self.sides, self.seed, self.families, self.limited, self.save = sides, seed, families, limited, save
        self.programs: Counter[str] = Counter()
        self.steps: Counter[str] = Counter()
        self.found: dict[tuple, Found] = {}
        self.times: Counter[tuple] = Counter()
        self.fatal = self.faults = 0
        self._unshrunk: list[Found] = []

    def run(self, seconds: float, programs: int | None = None, jobs: int = 1) -> None:
        """Run batches until time is up or so many programs have run, then shrink what was found."""
        end = time.monotonic() + seconds
        batches = _batches(self.families, programs)
        workers = [Worker(self.sides, self.seed, self.limited) for _ in range(jobs)]
        try:
            while self._hand_out(workers, batches, end):
                for worker in ready(workers, 1.0):
                    self._take(worker)
                for worker in workers:
                    if worker.late():
                        self._replace(worker)
        finally:
            for worker in workers:
                worker.close()

    def _hand_out(self, workers: Sequence[Worker], batches: Iterator, end: float) -> bool:
        """Give every idle worker something to do; False when nothing is left and nobody works."""
        for worker in workers:
            if worker.task:
                continue
            if self._unshrunk:
                worker.give("shrink", self._unshrunk.pop())
            elif time.monotonic() < end and self.fatal < _MOST_FATAL:
                batch = next(batches, None)
                if batch is not None:
                    worker.give("batch", *batch)
        return any(worker.task for worker in workers)

    def _take(self, worker: Worker) -> None:
        try:
            answer = worker.answer()
        except (EOFError, ConnectionResetError, MemoryError):  # its memory is limited
            self._replace(worker)
            return
        except Exception as error:  # a fault of the fuzzer itself: it is told, and the batch is left out
            print(f"The fuzzer failed in {worker.task[:1]} {worker.replace()[0]}: {type(error).__name__}: {error}")
            worker.task = ()
            self.faults += 1
            return
        if isinstance(answer, Batch):
            self.programs[answer.family] += answer.programs
            self.steps[answer.family] += answer.steps
            for found in answer.found:
                if not self.times[found.difference.signature]:
                    self._unshrunk.append(found)
                self.times[found.difference.signature] += 1
        else:
            self._keep(answer)

    def _keep(self, found: Found) -> None:
        """A difference and its program, also as a file, which may become one of the corpus."""
        d = found.difference
        if d.signature in self.found:
            return
        self.found[d.signature] = found
        if self.save is None:
            return
        name = f"{d.function.removeprefix('nn.functional.')} {d.kind} {len(self.found)}"
        about = f"{d.kind} of {d.function}, {d.sides[0]} and {d.sides[1]}: {d.text}"
        self.save.mkdir(parents=True, exist_ok=True)
        path = self.save / (re.sub(r"\W+", "_", name).strip("_") + ".json")
        path.write_text(to_json(found.program, about=about[:300]))

    def _replace(self, worker: Worker) -> None:
        """A worker's process died or hangs: name the program, and go on behind it."""
        task = worker.task
        number, position, kind = worker.replace()
        worker.task = ()
        if task[0] == "shrink":  # a smaller program ends the process: what is known is the larger one
            self._keep(task[1])
            return
        family, numbers = task[1], task[2]
        found = fatal(family, self.seed, number, position, kind, self.sides, self.limited)
        if found.difference.sides[0] == "torch":
            print(f"PyTorch: {found.difference.kind} of {found.difference.function} in {family}:{number}")
        else:
            self.fatal += found.difference.text != UNSEEN
            self.times[found.difference.signature] += 1
            self._keep(found)
        rest = [n for n in numbers if n != number]
        if rest:
            worker.give("batch", family, rest)


def _report(session: Session, seconds: float) -> None:
    """Print every difference with its program, then the summary."""
    for position, found in enumerate(session.found.values(), 1):
        d, times = found.difference, session.times[found.difference.signature]
        print(f"\n== {position}. {d.kind}, {d.sides[0]} and {d.sides[1]}, {d.function}: {times} programs")
        print(f"   {found.family}:{found.number}  {d.text}"[:400])
        print(source(found.program), end="")
    print(f"\n{'family':<12} {'programs':>9} {'steps':>8} {'differences':>12}")
    for family in session.families:
        differences = sum(found.family == family for found in session.found.values())
        print(f"{family:<12} {session.programs[family]:>9} {session.steps[family]:>8} {differences:>12}")
    names = " and ".join(side.name for side in session.sides)
    total = sum(session.programs.values())
    print(
        f"{total} programs on {names} with seed {session.seed}: {len(session.found)} differences, {seconds:.0f} seconds"
    )


def _one(sides: Sequence, seed: int, text: str) -> int:
    """Print one program, by family:number or from a file, and how its runs differ."""
    if ":" in text:
        family, number = text.split(":")
        with sides[0].scope:
            program = grown(family, seed, int(number), sides[0], trace=True).program()
    else:
        program = from_json(Path(text).read_text())[0]
    print(source(program))
    status = 0
    for pair in pairwise(sides):
        difference, _ = differs(program, pair)
        print(f"{pair[0].name} and {pair[1].name}: {difference or 'agree'}")
        status |= difference is not None
    return int(status)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 1 if a difference was found, 2 if no program ran."""
    parser = argparse.ArgumentParser(prog="scripts/fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long (60)")
    parser.add_argument("--programs", type=int, help="at most so many programs")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same programs (0)")
    choices = ("torch", "numpy")
    parser.add_argument("--against", choices=choices, help="PyTorch too, or the backends alone (torch where it is)")
    parser.add_argument("--jobs", type=int, default=1, help="processes (1)")
    parser.add_argument("--only", help=f"families, with commas: {', '.join(FAMILIES)}")
    parser.add_argument("--save", type=Path, help="a folder to write every difference's program to")
    parser.add_argument("--program", help="print and compare one program: family:number, or a file")
    parser.add_argument("--no-limit", action="store_true", help="no limit of memory, as sanitizers need it")
    parser.add_argument("--sanitize", action="store_true", help="on C kernels built with sanitizers; needs gcc's")
    options = parser.parse_args(arguments)
    if options.sanitize:
        given = sys.argv[1:] if arguments is None else arguments
        return run_sanitized([a for a in given if a != "--sanitize"])
    families = options.only.split(",") if options.only else list(FAMILIES)
    unknown = set(families) - set(FAMILIES)
    if unknown:
        parser.error(f"no family is called {', '.join(sorted(unknown))}; there are {', '.join(FAMILIES)}")
    sides = frameworks(options.against or ("torch" if oracle_available() else "numpy"))
    if len(sides) < 2:
        print("nothing to compare with: neither the C backend nor PyTorch is installed")
        return 2
    if options.program:
        return _one(sides, options.seed, options.program)
    start = time.monotonic()
    session = Session(sides, options.seed, families, not options.no_limit, options.save)
    session.run(options.seconds, options.programs, options.jobs)
    _report(session, time.monotonic() - start)
    if not sum(session.programs.values()):
        return 2
    return 1 if session.found or session.faults else 0


if __name__ == "__main__":
    sys.exit(main())
