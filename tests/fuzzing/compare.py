"""Whether two runs of a program agree, and if not, where they first differ.

Small differences need a reason. A step that was given the same elements on both sides is computed again in double
precision, and again with its inputs moved by a rounding: what varies as much by that is as good a result. A step that
was given slightly different elements is judged as a program of its own, with one side's inputs for both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from tests.fuzzing import documented, no_reference, refusals
from tests.fuzzing.closeness import EPS, ULPS, identical, near, near_beside_the_largest, worst
from tests.fuzzing.programs import Leaf, Program, Step, references
from tests.fuzzing.reasons import POINTWISE, explained, part_of, single
from tests.fuzzing.runs import MISSING, Picture, Raised, Run, run_in_scope

_MOST_JUDGED = 200_000  # elements


@dataclass(frozen=True)
class Difference:
    """How two runs differ.

    Attributes: ``kind`` "values", "gradient", "final", "dtype", "shape", "requires_grad", "sharing", "version", "type",
    "raises", "class", "crash" or "hang"; ``sides`` the names of the frameworks; ``step`` the number of the entry;
    ``function`` what it calls; ``text`` for the reader.
    """

    kind: str
    sides: tuple[str, str]
    step: int
    function: str
    text: str
    what: str = ""  # who raised what

    @property
    def signature(self) -> tuple:
        """What two differences with one cause mostly have in common."""
        return self.kind, self.sides, self.what or self.function


class Amplified(Exception):
    """The runs went apart for a good reason: nothing more can be said of them."""


def compare(program: Program, first: Run, second: Run) -> tuple[Difference | None, Program]:
    """Where two runs first differ (None if they agree), and the program that shows it, often one of a single step."""
    sides = (first.framework.name, second.framework.name)
    comparison = _Comparison(program, first, second, sides)
    try:
        for number, entry in enumerate(program.entries):
            if isinstance(entry, Leaf):
                continue
            found = comparison.step(number, entry)
            if found is not None:
                return found
        return comparison.finals() or (None, program)
    except Amplified:
        return None, program


class _Comparison:
    def __init__(self, program: Program, first: Run, second: Run, sides: tuple[str, str]):
        self.program, self.first, self.second, self.sides = program, first, second, sides
        self._sides = first.framework, second.framework
        self._half_written: set[int] = set()  # memory that a failed step was to change
        self._resized: set[int] = set()  # tensors that it was to change, which may have been given room

    def difference(
        self, kind: str, number: int, text: str, what: str = "", late=False
    ) -> tuple[Difference, Program] | None:
        function = self._function(number)
        shown = self.program if late else self.program.upto(number)
        return Difference(kind, self.sides, number, function, text, what), shown

    def _function(self, number: int) -> str:
        """What to call an entry: its function, for gradients that whose gradient it is."""
        entry = self.program.entries[number]
        if isinstance(entry, Leaf):
            return "leaf"
        if entry.function == "operator.getitem":
            picked = self.program.entries[entry.arguments[0].number]
            several = isinstance(self.first.pictures[entry.arguments[0].number], tuple)
            return picked.function if several and isinstance(picked, Step) else entry.function
        if entry.function != "gradients":
            return entry.function
        outputs = list(references(replace(entry, arguments=entry.arguments[:1])))
        return "gradient of " + self._function(outputs[-1]) if outputs else entry.function

    def _differentiated(self, number: int) -> list[str]:
        """The functions whose results' gradients an entry asks for."""
        entry = self.program.entries[number]
        if isinstance(entry, Leaf) or entry.function != "gradients":
            return []
        outputs = references(replace(entry, arguments=entry.arguments[:1]))
        return [self._function(output) for output in outputs]

    def _passed(self, number: int) -> set[str]:
        """The functions of the steps that an entry depends on, and its own."""
        needed, functions = {number}, set()
        for n in range(number, -1, -1):
            entry = self.program.entries[n]
            if isinstance(entry, Step) and (n in needed or not needed.isdisjoint(documented.changed(entry))):
                needed |= set(references(entry))
                functions.add(entry.function)
        return functions

    def _without_reference(self, number: int, entry: Step) -> bool:
        """Whether it is a gradient that PyTorch computes wrongly."""
        steps = self.program.entries[: number + 1]
        return entry.function == "gradients" and no_reference.gradient(steps, self.first, self.sides)

    def step(self, number: int, entry: Step) -> tuple[Difference, Program] | None:
        a, b = self.first.pictures[number], self.second.pictures[number]
        if a is MISSING or b is MISSING:
            return None
        if no_reference.reshapes(entry, self.first, self.sides):
            raise Amplified
        if type(a) is Raised or type(b) is Raised:
            found = _raised(a, b, self.sides)
            known = refusals.refusal(entry, a, b, self.sides, self.first) or self._without_reference(number, entry)
            known = known or (refusals.of_changes(a) and documented.uncounted(self.program, self.sides))
            if found and not known:
                kind, text, what = found
                return self.difference(kind, number, text, what)
            if type(a) is not type(b):
                raise Amplified  # one side has a value that the other lacks
            self._half_written |= documented.half_written(entry, self.first)
            self._resized.update(documented.changed(entry))
            return None
        self._half_written |= documented.written_several_times(entry, self.first)
        return self.pictures(number, entry, a, b, entry.function)

    def pictures(self, number: int, entry: Step, a, b, where: str) -> tuple[Difference, Program] | None:
        """Compare what one step gave."""
        if isinstance(a, tuple) and isinstance(b, tuple):
            if len(a) != len(b):
                return self.difference("type", number, f"{len(a)} results, {len(b)}")
            for i, (x, y) in enumerate(zip(a, b)):
                if documented.open_result(entry, i):
                    continue
                found = self.pictures(number, entry, x, y, f"{where}[{i}]")
                if found:
                    return found
            return None
        if type(a) is not Picture or type(b) is not Picture:
            return self._others(number, entry, a, b)
        if entry.function == "operator.getitem":
            picked, part = entry.arguments
            if documented.open_result(self.program.entries[picked.number], part) and not identical(a, b):
                raise Amplified
        if (a.array.shape, a.dtype) != (b.array.shape, b.dtype) and no_reference.form(entry, self.first, self.sides):
            raise Amplified
        if a.array.shape != b.array.shape:
            return self.difference("shape", number, f"{where}: shape {a.array.shape}, {b.array.shape}")
        if a.dtype != b.dtype:
            return self.difference("dtype", number, f"{where}: {a.dtype}, {b.dtype}")
        steps = self.program.entries[: number + 1]
        if a.requires_grad != b.requires_grad and not documented.history(steps, self.first, self.sides):
            return self.difference(
                "requires_grad", number, f"{where}: requires_grad {a.requires_grad}, {b.requires_grad}"
            )
        wide = self.sides[1] == "torch" and a.array.itemsize >= 8
        units = ULPS * (8 if wide or documented.amplified(steps) else 1)
        if not near(a.array, b.array, a.dtype, units):
            return self.far(number, entry, a, b, where)
        return None

    def _others(self, number: int, entry: Step, a, b) -> tuple[Difference, Program] | None:
        """Compare results that are not both tensors."""
        if entry.function == "gradients" and (a is None or b is None):
            passed = self._passed(number)
            rough = documented.rough(passed, self.program.entries[:number], self.sides)
            if rough or self._without_reference(number, entry):
                return None
            rest = b if a is None else a
            if rest is None or not rest.array.any():
                return None  # no gradient, or one of zeros
            return self.difference("gradient", number, f"{a and a.array}, {b and b.array}")
        if type(a) is Picture or type(b) is Picture:
            return self.difference("type", number, f"{_shown(a)}, {_shown(b)}")
        same = a == b or (a != a and b != b)
        if not same and isinstance(a, int | float | complex) and isinstance(b, int | float | complex):
            same = abs(a - b) <= 1e-3 * max(abs(a), abs(b))
        return None if same else self.difference("values", number, f"{a!r}, {b!r}")

    # -- values that differ --------------------------------------------------------------------------------------
    def far(self, number: int, entry: Step, a: Picture, b: Picture, where: str) -> tuple[Difference, Program] | None:
        """A difference of values: is there a good reason?"""
        if a.array.size > _MOST_JUDGED:
            raise Amplified
        text = f"{where}: {worst(a.array, b.array, a.dtype)}"
        kind = "gradient" if entry.function == "gradients" else "values"
        if documented.open_values(entry, self.first, self.sides):
            raise Amplified
        if documented.meets(entry, self._half_written, self.first):
            raise Amplified
        steps = self.program.entries[: number + 1]
        if no_reference.values(steps[-1:], self.first, self.sides):
            raise Amplified
        if self._near_as_computed(number, entry, a, b):
            raise Amplified
        special = no_reference.special(entry, self.sides)
        if special and _near_but(no_reference.unsettled(a.array, b.array), a, b):
            raise Amplified
        if entry.function == "gradients":
            passed = self._passed(number)
            if documented.tied(passed) or documented.rough(passed, steps, self.sides):
                raise Amplified
            if self._without_reference(number, entry) or no_reference.degenerate(steps, self.first):
                raise Amplified
            if documented.amplified(steps) and near_beside_the_largest(a.array, b.array, a.dtype):
                raise Amplified
            odd = self._odd(number, a, b)
            a, b = (replace(side, array=np.where(odd, side.array.dtype.type(0), side.array)) for side in (a, b))
            if near(a.array, b.array, a.dtype):
                return None
            if explained(self.program.upto(number), number, self._sides, a, b, where, odd):
                raise Amplified
            return self.difference(kind, number, text)
        if entry.function.startswith("nn.functional.") and self.sides[1] == "torch":
            odd = self._odd(number, a, b)
            if _near_but(odd, a, b):
                raise Amplified
        alone = single(self.program, number, self.second.framework)
        if alone is None:
            return self.difference(kind, number, text)
        step = len(alone.entries) - 1
        runs = [run_in_scope(alone, side.framework) for side in (self.first, self.second)]
        x, y = (part_of(r.pictures[step], where, entry.function) for r in runs)
        if type(x) is Picture and type(y) is Picture and x.array.shape == y.array.shape:
            same_inputs = self._same_inputs(entry, number)
            if near(x.array, y.array, x.dtype) and (
                not same_inputs or explained(self.program.upto(number), number, self._sides, a, b, where)
            ):  # other inputs, or another function where gradients are recorded
                raise Amplified
            if not near(x.array, y.array, x.dtype):
                odd = special & no_reference.unsettled(x.array, y.array)
                if explained(alone, step, self._sides, x, y, where, odd):
                    raise Amplified
                text = f"{where}: {worst(x.array, y.array, x.dtype)}"
                return Difference(kind, self.sides, step, entry.function, text), alone
        return self.difference(kind, number, text)

    def _odd(self, number: int, a: Picture, b: Picture) -> np.ndarray:
        """The elements of a gradient that are not compared: what infinities and NaN that a layer met do to its
        gradients, nobody says."""
        functions = self._differentiated(number) or [self.program.entries[number].function]
        met = [p.array for p in self.first.pictures[:number] if type(p) is Picture and p.dtype in EPS]
        pointwise = all(documented.short(f) in POINTWISE for f in functions)
        pointwise = pointwise and not no_reference.steps_at_nan(self._passed(number), self.sides)
        if pointwise or all(np.isfinite(array).all() for array in met):
            return np.zeros(a.array.shape, np.bool_)
        if self.sides[1] == "torch":  # a mask there is a product with 0 here, or the other way round
            return np.ones(a.array.shape, np.bool_)
        return ~np.isfinite(a.array) | ~np.isfinite(b.array)

    def _near_as_computed(self, number: int, entry: Step, a: Picture, b: Picture) -> bool:
        """Whether what was written to out= of a wider dtype is near in that in which it was computed."""
        if "out" not in entry.keywords:
            return False
        plain = replace(entry, keywords={k: v for k, v in entry.keywords.items() if k != "out"})
        made = run_in_scope(self.program.replaced(number, plain).upto(number), self.first.framework).pictures[number]
        if type(made) is not Picture or made.dtype not in EPS:
            return False
        narrow = made.dtype if a.array.dtype.kind != "c" or made.dtype.startswith("complex") else "complex64"
        return EPS[narrow] > EPS.get(a.dtype, np.inf) and near(a.array, b.array, narrow)

    def _same_inputs(self, entry: Step, number: int) -> bool:
        before = [run_in_scope(self.program.upto(number - 1), side.framework) for side in (self.first, self.second)]
        pairs = [(before[0].finals[n], before[1].finals[n]) for n in references(entry)]
        return all(identical(a, b) for a, b in pairs)

    # -- how everything looks in the end ------------------------------------------------------------------------
    def finals(self) -> tuple[Difference, Program] | None:
        """Compare what later steps made of earlier results, and which of them share memory."""
        if documented.conjugate(self.program, self.sides):
            return None
        firsts, seconds = self.first.finals, self.second.finals
        open_memories = self._half_written | self._exchanged()
        for number, (a, b) in enumerate(zip(firsts, seconds)):
            if type(a) is not Picture or type(b) is not Picture:
                continue
            if a.array.shape != b.array.shape:
                if number in self._resized:
                    continue
                return self.difference(
                    "final", number, f"in the end: shape {a.array.shape}, {b.array.shape}", late=True
                )
            open_values = a.memory in open_memories
            if a.dtype == b.dtype and not open_values and not near(a.array, b.array, a.dtype, 1000 * ULPS):
                if self._moved(number) and not _rounded_inside(self, number):
                    return self.difference(
                        "final", number, f"in the end: {worst(a.array, b.array, a.dtype)}", late=True
                    )
                raise Amplified
            entries = self.program.entries
            if a.requires_grad != b.requires_grad and not documented.history(entries, self.first, self.sides):
                return self.difference(
                    "requires_grad",
                    number,
                    f"in the end: requires_grad {a.requires_grad}, {b.requires_grad}",
                    late=True,
                )
        return self._versions() or self._sharing()

    def _moved(self, number: int) -> bool:
        """Whether the tensor was near its counterpart when it was made."""
        a, b = self.first.pictures[number], self.second.pictures[number]
        return type(a) is Picture and type(b) is Picture and near(a.array, b.array, a.dtype)

    def _versions(self) -> tuple[Difference, Program] | None:
        if documented.uncounted(self.program, self.sides) or documented.relaid(self.program, self.sides):
            return None
        uncertain = self._exchanged() | self._half_written
        for number, (a, b) in enumerate(zip(self.first.finals, self.second.finals)):
            if type(a) is Picture and type(b) is Picture and a.memory not in uncertain:
                mine, yours = (
                    final.version - side.pictures[number].version for final, side in ((a, self.first), (b, self.second))
                )
                if bool(mine) != bool(yours):  # how often is a matter of how a change is made
                    return self.difference("version", number, f"changed {mine} and {yours} times", late=True)
        return None

    def _sharing(self) -> tuple[Difference, Program] | None:
        """Two results over one memory on one side only."""
        if documented.relaid(self.program, self.sides):
            return None
        exchanged = self._exchanged()
        pairs = [
            (number, a.memory, b.memory)
            for number, (a, b) in enumerate(zip(self.first.finals, self.second.finals))
            if type(a) is Picture and type(b) is Picture and a.array.size and a.memory not in exchanged
        ]
        for i, (number, mine, yours) in enumerate(pairs):
            for other, mine_too, yours_too in pairs[:i]:
                if (mine == mine_too) != (yours == yours_too):
                    shares = "shares" if mine == mine_too else "does not share"
                    return self.difference(
                        "sharing",
                        number,
                        f"{self.sides[0]}: {shares} memory with entry {other}, unlike {self.sides[1]}",
                        late=True,
                    )
        return None

    def _exchanged(self) -> set[int]:
        """The memory, before and after, of tensors that were resized: PyTorch may give them more of the same."""
        pairs = [
            (made, final)
            for made, final in zip(self.first.pictures, self.first.finals)
            if type(made) is Picture and type(final) is Picture and made.array.shape != final.array.shape
        ]
        return {picture.memory for pair in pairs for picture in pair if picture.memory}


def _rounded_inside(comparison: _Comparison, number: int) -> bool:
    """Whether a tensor's later contents came from steps whose results had gone apart a little."""
    for a, b in zip(comparison.first.pictures, comparison.second.pictures):
        if type(a) is Picture and type(b) is Picture and not identical(a, b):
            return True
    return False


def _near_but(odd: np.ndarray, a: Picture, b: Picture) -> bool:
    """Whether two results are near but for some elements."""
    return near(*(np.where(odd, side.array.dtype.type(0), side.array) for side in (a, b)), a.dtype)


def _shown(value) -> str:
    return f"tensor {value.array!r}" if type(value) is Picture else repr(value)


# -- refusals ---------------------------------------------------------------------------------------------------------
def _raised(a, b, sides: tuple[str, str]) -> tuple[str, str, str] | None:
    """What is wrong about what was raised, if anything is."""
    if type(a) is Raised and type(b) is Raised:
        first, second = a.error, b.error
        if isinstance(first, type(second)) or refusals.classes(first, second):
            return None
        names = type(first).__name__, type(second).__name__
        return "class", f"{names[0]} ({first}), {names[1]} ({second})", _gist(first) + " / " + _gist(second)
    side, error = (sides[0], a.error) if type(a) is Raised else (sides[1], b.error)
    return "raises", f"{side} alone raises {type(error).__name__}: {error}", f"{side} {_gist(error)}"


def _gist(error: Exception) -> str:
    """An error's type and text without what depends on the arguments."""
    text = re.sub(r"'[^']*'|\[[^\]]*\]|\([^)]*\)|torch\.|c10::\w+|[^a-zA-Z ]", "", str(error).split("\n")[0])
    return f"{type(error).__name__} {' '.join(text.split()[:9])}"
