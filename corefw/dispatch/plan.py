"""Plans: the calls of kernels that a function makes, over numbered arrays, to be run again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from math import prod
from typing import Any, ClassVar, NamedTuple

from corefw import dtypes
from corefw.devices import DispatchKey
from corefw.dispatch.flops import FLOPS
from corefw.dispatch.op import Op


class Argument(NamedTuple):
    """What a deed calls one of its arguments."""

    name: str


@dataclass(frozen=True)
class Deed:
    """What the frontend asks of a runtime between ops, in the place of an op."""

    name: str
    kernel_parameters: tuple[Argument, ...]
    changed: tuple[Argument, ...] = ()
    view: bool = False


_ARRAY, _TARGET = Argument("array"), Argument("target")
DEEDS = {
    "empty": Deed("empty", (Argument("shape"), Argument("dtype"), Argument("index"))),
    "copy": Deed("copy", (_TARGET, _ARRAY), changed=(_TARGET,)),
    "clone": Deed("clone", (_ARRAY,)),
    "cast": Deed("cast", (_ARRAY, Argument("dtype"))),
    "as_strided": Deed("as_strided", (_ARRAY, *map(Argument, ("shape", "strides", "offset", "dtype"))), view=True),
}


@dataclass(eq=False)
class Cell:
    """One array object of a plan.

    Attributes:
        kind: "given" (another array in each run), "held" (the same array in each run: a parameter, a state, a
            constant) or "result" (of a call; it may be a view of memory that another cell owns).
        array: the raw array that was there while the plan was recorded; later that of a held one alone.
        shape, strides, dtype: of that array; strides in bytes.
        owner: of a view, the cell that owns the memory.
        name: where a given or held one comes from.
        version: of a held one that a tensor shows, the list that counts its changes; None if others may make some.
        number: its place among the cells of its plan.
    """

    kind: str
    array: Any
    name: str = ""
    owner: Cell | None = None
    version: list[int] | None = None
    number: int = -1
    shape: tuple = field(init=False)
    strides: tuple = field(init=False)
    dtype: Any = field(init=False)

    def __post_init__(self):
        self.shape, self.strides, self.dtype = tuple(self.array.shape), tuple(self.array.strides), self.array.dtype

    def __str__(self) -> str:
        return f"%{self.number}"

    @property
    def memory(self) -> Cell:
        """The cell that owns its memory."""
        return self if self.owner is None else self.owner

    @property
    def size(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """How many bytes its elements have."""
        return self.size * self.dtype.itemsize

    @property
    def type(self) -> str:
        """Its dtype and shape: "float32[2, 3]"."""
        return f"{dtypes.of_numpy(self.dtype).name}[{', '.join(map(str, self.shape))}]"


class Seed(int):
    """The seed of a stream of random numbers, among a call's arguments: in each run that of its generator then."""

    source: int  # which of the plan's generators

    def __new__(cls, value: int, source: int):
        made = int.__new__(cls, value)
        made.source = source
        return made


class Offset(Seed):
    """The number of a block of that stream, of which the distance to the first one of the run stays."""

    start: int  # the first one while the plan was recorded

    def __new__(cls, value: int, source: int, start: int):
        made = super().__new__(cls, value, source)
        made.start = start
        return made


class Rate(float):
    """A number among a call's arguments that is another in each run, such as a learning rate.

    Whatever Python computes with it would be written down as it is now, so that is noted: ``Rate.used``. Whether it is
    zero may be asked: ``Rate.asked`` has the sources of those of which it was.
    """

    source: int  # which of the plan's rates
    used: ClassVar[bool] = False
    asked: ClassVar[set[int]] = set()

    def __new__(cls, value: float, source: int):
        made = float.__new__(cls, value)
        made.source = source
        return made

    def __bool__(self) -> bool:
        Rate.asked.add(self.source)
        return float.__add__(self, 0.0) != 0.0


def _noted(name: str) -> Callable:
    compute = getattr(float, name)

    def noted(self: Rate, *others: Any) -> Any:
        Rate.used = True
        return compute(float.__add__(self, 0.0), *others)

    return noted


for _name in (
    *("__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__", "__pow__"),
    *("__rpow__", "__floordiv__", "__mod__", "__neg__", "__abs__", "__float__", "__int__", "__round__", "__str__"),
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__format__", "__trunc__"),
):
    setattr(Rate, _name, _noted(_name))


@dataclass(eq=False)
class Call:
    """One call of a kernel.

    Attributes:
        kernel: the function of raw arrays that ran.
        arguments: as it was given them, with cells in place of arrays, also within lists and tuples.
        results: what it returned. Without any it changed its arguments in place.
        several: whether it returned a tuple or list.
        out: the cell that was given as ``out=``.
        who: the backend whose kernel it is, or another word of `Mode.wrap`.
        where: the line of the user's program.
        parts: of one in the place of several, these.
    """

    op: Op | Deed
    dispatch_key: DispatchKey
    kernel: Callable
    arguments: tuple
    results: tuple[Cell, ...] = ()
    several: bool = False
    out: Cell | None = None
    who: str = ""
    where: str = ""
    parts: tuple[Call, ...] = ()

    def cells(self) -> list[Cell]:
        """The cells that it reads or writes to, without its results."""
        found = cells_in(self.arguments)
        if self.out is not None:
            found.append(self.out)
        return found

    def replace(self, cell: Cell, other: Cell) -> None:
        """Put another cell in the place of one among what it is given."""

        def put(argument: Any) -> Any:
            if argument.__class__ in (list, tuple):
                return argument.__class__(map(put, argument))
            return other if argument is cell else argument

        self.arguments = tuple(map(put, self.arguments))
        self.out = put(self.out)
        for result in self.results:
            if result.owner is cell:
                result.owner = other

    def changed(self) -> Iterator[Cell]:
        """The cells that it writes to, of those that it is given."""
        if self.out is not None:
            yield self.out
        op: Any = self.op
        if op.changed:
            changed = {p.name for p in op.changed}
            named = zip(op.kernel_parameters, self.arguments, strict=False)
            yield from cells_in(tuple(argument for p, argument in named if p.name in changed))

    def __str__(self) -> str:
        names = [p.name for p in self.op.kernel_parameters]
        shown = [_shown(name, argument) for name, argument in zip(names, self.arguments, strict=False)]
        if self.out is not None:
            shown.append(f"out={self.out}")
        results = ", ".join(map(str, self.results))
        types = ", ".join(cell.type for cell in self.results or self.changed())
        where = f"  # {self.where}" if self.where else ""
        return f"{results + ' = ' if results else ''}{self.op.name}({', '.join(shown)}): {types}; {self.who}{where}"


def cells_in(arguments: tuple) -> list[Cell]:
    """The cells among arguments, also within lists and tuples."""
    found = []
    for argument in arguments:
        kind = argument.__class__
        if kind is Cell:
            found.append(argument)
        elif kind is list or kind is tuple:
            found += [item for item in argument if item.__class__ is Cell]
    return found


def _shown(name: str, argument: Any) -> str:
    if argument.__class__ is Cell:
        return str(argument)
    if argument.__class__ in (list, tuple) and any(item.__class__ is Cell for item in argument):
        return f"[{', '.join(map(str, argument))}]"
    return f"{name}={argument!r}"


class MemoryUse(NamedTuple):
    """Bytes that a plan's runs take.

    Attributes:
        kept: in which all intermediate results lie, from the first run on; 0 if each is an array of its own.
        held: of constants, and of results that are computed before a run.
        returned: what each run gives to the caller.
        before: the most that was in use at once when the calls were made one after the other.
    """

    kept: int
    held: int
    returned: int
    before: int

    @property
    def peak(self) -> int:
        """The most that is in use at once."""
        return self.kept + self.held + self.returned

    def __str__(self) -> str:
        kept, held, returned, before = (f"{n / 1000:,.1f} kB" for n in self)
        return f"{kept} kept, {held} held, {returned} returned; without a plan {before}"


class Profile(list):
    """Pairs (call, the seconds that it takes), in the order in which they run; printed, a line for each."""

    def __str__(self) -> str:
        total = sum(seconds for _, seconds in self)
        return "\n".join(f"{1e6 * s:>10,.1f} us {100 * s / total:>5.1f} %  {call}" for call, s in self)


@dataclass(eq=False)
class Plan:
    """A straight line of calls.

    Attributes:
        given: the cells that each run is given arrays for, in order.
        calls: in the order in which they run.
        returned: the cells whose arrays a run returns, in order: their memory is the caller's.
        generators: how many generators of random numbers it draws from.
        hoisted: what is done before a run, if the tensors that it reads have changed since; its results are held.
        before: the bytes that its calls needed before passes made it better (see `most_in_use`).
        releases: by number of a call what is done before it (of their count: at the end), so that memory of others is
            there for results.
        run: what makes its runs, once that is there.

    A run is given a list of arrays, per generator a pair (seed, offset), and the rates; it returns a list of arrays.
    What it changes of given and held arrays it changes in place.
    """

    given: list[Cell] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    returned: list[Cell] = field(default_factory=list)
    generators: int = 0
    hoisted: Plan | None = None
    before: int = 0
    releases: dict[int, Callable[[], None]] = field(default_factory=dict)
    run: Any = None

    def cells(self) -> list[Cell]:
        """All cells: given ones, then held ones and results in the order of the calls; numbered."""
        found = dict.fromkeys(self.given)
        for call in self.calls:
            found.update(dict.fromkeys(call.cells()))
            found.update(dict.fromkeys(call.results))
        found.update(dict.fromkeys(self.returned))
        for number, cell in enumerate(found):
            cell.number = number
        return list(found)

    def last_uses(self) -> dict[Cell, int]:
        """By result that is not returned the last call that reads or writes to it; its own one if none does. Memory
        that a view shows may be needed for longer."""
        last: dict[Cell, int] = {}
        for i, call in enumerate(self.calls):
            last.update(dict.fromkeys((*call.cells(), *call.results), i))
        for cell in [cell for cell in last if cell.kind != "result"] + self.returned:
            last.pop(cell, None)
        return last

    def flops(self) -> int:
        """The additions and multiplications of its products and convolutions."""
        parts = [part for call in self.calls for part in call.parts or (call,)]
        counted = [call for call in parts if call.op.name in FLOPS]
        return sum(FLOPS[call.op.name](call.results[0], *call.arguments) for call in counted)

    def bytes(self) -> int:
        """What its calls read and write, as if each went to memory; views do neither."""
        computing = [call for call in self.calls if not call.op.view]
        return sum(cell.bytes for call in computing for cell in {*call.cells(), *call.results})

    def most_in_use(self) -> int:
        """The most bytes of results that are in use at once if each is let go after its last use, and those that are
        returned are not."""
        spans: dict[Cell, list[int]] = {}
        for i, call in enumerate(self.calls):
            for memory in {cell.memory for cell in (*call.cells(), *call.results)}:
                spans.setdefault(memory, [i, i])[1] = i
        changes = [0] * (len(self.calls) + 1)
        returned = {cell.memory for cell in self.returned}
        for memory, (first, last) in spans.items():
            if memory.kind == "result":
                changes[first] += memory.bytes
                changes[len(self.calls) if memory in returned else last + 1] -= memory.bytes
        return max(accumulate(changes))

    def memory(self) -> MemoryUse:
        """The bytes that its runs take, and those that its calls took before it was recorded.

        >>> import corefw as torch
        >>> double = torch.compile(lambda x: (x * 2).exp() @ x)
        >>> for _ in range(3):
        ...     y = double(torch.ones(50, 50))
        >>> memory = double.programs[0].memory()
        >>> memory.returned, memory.before
        (10000, 20000)
        """
        own = {c.memory for call in self.calls for c in call.cells() if c.name in ("constant", "hoisted")}
        returned = sum(c.bytes for c in {c.memory for c in self.returned} if c.kind == "result")
        return MemoryUse(getattr(self.run, "bytes_kept", 0), sum(c.bytes for c in own), returned, self.before)

    def profile(self, function: Callable[[], Any], runs: int = 10) -> Profile:
        """The seconds that each call takes, while a function is called so often whose calls this plan runs.

        RuntimeError if what runs the plan measures nothing, or has not run yet.
        """
        measure = getattr(self.run, "measure", None)
        if measure is None:
            raise RuntimeError("profile: what runs this plan does not measure its calls")
        times = [0.0] * len(self.calls)
        measure(times)
        try:
            for _ in range(runs):
                function()
        finally:
            measure(None)
        if not any(times):
            raise RuntimeError("profile: the plan was not run; call what is compiled, and have it recorded before")
        return Profile([(call, seconds / runs) for call, seconds in zip(self.calls, times) if seconds])

    def dot(self) -> str:
        """Its calls and what they give each other, as a graph in the DOT language."""
        self.cells()
        makers = {cell: i for i, call in enumerate(self.calls) for cell in call.results}
        lines = []
        for i, call in enumerate(self.calls):
            shown = ", ".join(cell.type for cell in call.results or call.changed())
            lines.append(f'  n{i} [label="{call.op.name}\\n{shown}"]')
            for cell in dict.fromkeys(call.cells()):
                source = makers.get(cell)
                if source is None:
                    lines.append(f'  c{cell.number} [label="{cell.name or cell.kind}\\n{cell.type}" shape=box]')
                lines.append(f"  {f'c{cell.number}' if source is None else f'n{source}'} -> n{i}")
        return "\n".join(["digraph {", *dict.fromkeys(lines), "}"])

    def __str__(self) -> str:
        hoisted = [] if self.hoisted is None else self.hoisted.calls
        cells = Plan(self.given, [*hoisted, *self.calls], self.returned).cells()
        made = {cell for call in hoisted for cell in call.results}
        shown = [f"{c} = {c.kind} {c.name}: {c.type}" for c in cells if c.kind != "result" and c not in made]
        returned = ", ".join(map(str, self.returned))
        lines = [*shown, *(f"{call}, hoisted" for call in hoisted), *map(str, self.calls), f"return {returned}"]
        return "\n".join(lines).rstrip()
