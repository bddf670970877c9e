"""The tape: a mode that writes down every call of a kernel while a function runs, to be made again."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Self

from corefw.devices import DispatchKey, device
from corefw.dispatch import constants
from corefw.dispatch.batching.arrays import LevelDevice
from corefw.dispatch.calls import shares_memory, silent
from corefw.dispatch.flags import unheard
from corefw.dispatch.listening import Listening
from corefw.dispatch.op import Op
from corefw.dispatch.plan import DEEDS, Call, Cell, Deed, Offset, Plan, Seed
from corefw.dispatch.random_generator import Generator
from corefw.dispatch.registry import dispatch_key_of, registry
from corefw.dispatch.resolution import shape_of
from corefw.dtypes import of_numpy
from corefw.graph.grad_mode import mode
from corefw.tracebacks import user_line


class Tape(Listening):
    """A with-block whose calls of kernels become those of `plan`.

    Arrays are known by identity. Those that no call made are held, unless `given` has told that they change from run
    to run. What the frontend does to arrays between ops is written down too.

    Attributes:
        refusal: why the calls cannot be made again without Python, with the user's line; "" if they can.
        constants: the held cells of arrays that Python made while the tape ran.
        generators: those that were drawn from, each with its state before: (generator, seed, offset).
        ran_backward: whether gradients were computed.
        noticing: is called when a kernel has been.
    """

    active: ClassVar[Tape | None] = None  # the one that is written on

    def __init__(self) -> None:
        super().__init__()
        self.plan = Plan()
        self.refusal = ""
        self.constants: set[Cell] = set()
        self.generators: list[tuple[Generator, int, int]] = []
        self.ran_backward = False
        self.noticing: Callable[[], None] | None = None
        self._originals: dict[Cell, Any] = {}
        self._known: dict[int, tuple[Callable[[], Any], Cell]] = {}

    @classmethod
    @contextmanager
    def nothing(cls) -> Iterator[None]:
        """A block in which no call is written down or replayed, though a tape is active: what is asked whether
        something is compiled says yes."""
        outer, cls.active = cls.active, Tape()
        try:
            yield
        finally:
            cls.active = outer

    # -- what runs are given and return -------------------------------------------------------------------------------
    def given(self, array: Any, name: str) -> Cell:
        """Tell that an array is another one in each run."""
        cell = self.cell(array)
        cell.kind, cell.name = "given", name
        self.plan.given.append(cell)
        return cell

    def returned(self, array: Any) -> int:
        """Have runs return an array; its place among what they return."""
        cell = self.cell(array)
        if cell not in self.plan.returned:
            self.plan.returned.append(cell)
        return self.plan.returned.index(cell)

    def knows(self, array: Any) -> Cell | None:
        """The cell of an array, if it has one."""
        known = self._known.get(id(array))
        return known[1] if known is not None and known[0]() is array else None

    def cell(self, array: Any) -> Cell:
        """The cell of an array; of one that is not known a held one."""
        return self.knows(array) or self._bind(array, Cell("held", array))

    def copied(self, constant: Cell) -> Cell:
        """A copy, made first in each run, in the place of an array that Python made and calls change or return."""
        key = next(call.dispatch_key for call in self.plan.calls if constant in call.cells())
        array = constant.array
        constant.array = self._originals.get(constant, array)
        copy = Cell("result", array)
        for call in self.plan.calls:
            call.replace(constant, copy)
        made = Call(DEEDS["clone"], key, key.runtime.clone, (constant,), (copy,), who=key.device.type)
        self.plan.calls.insert(0, made)
        self._known[id(array)] = self._known[id(array)][0], copy
        return copy

    def finished(self) -> Plan:
        """The plan, which from now on holds no arrays but those that are held."""
        for cell in self.plan.cells():
            if cell.kind != "held":
                cell.array = None
        self._known.clear()
        return self.plan

    def refuse(self, reason: str) -> None:
        """Note why nothing can be replayed; the first reason counts."""
        self.refusal = self.refusal or f"{reason} ({user_line()})"

    def _bind(self, array: Any, cell: Cell) -> Cell:
        found: Callable[[], Any]
        try:
            found = weakref.ref(array)
        except TypeError:
            found = lambda: array
        self._known[id(array)] = found, cell
        return cell

    # -- the mode -----------------------------------------------------------------------------------------------------
    def __enter__(self) -> Self:
        for kind, (_, runtime) in registry.runtimes.items():
            if kind == "meta":
                continue
            for name, deed in DEEDS.items():
                self._shadow(runtime, name, self._deed(kind, deed))
            for name in ("upload", "upload_soon", "constant"):
                self._shadow(runtime, name, self._made)
            for name in ("download", "item", "transfer"):
                self._shadow(runtime, name, self._read)
        self._generators = {name: getattr(Generator, name) for name in ("take", *_SEEDING)}
        Generator.take = self._taking(Generator.take)  # type: ignore[method-assign]
        for name in _SEEDING:
            setattr(Generator, name, self._seeding(getattr(Generator, name)))
        constants.forget()
        self._outer, Tape.active = Tape.active, self
        return super().__enter__()

    def __exit__(self, *exception: object) -> None:
        Tape.active = self._outer
        for name, method in self._generators.items():
            setattr(Generator, name, method)
        self._unshadow()
        constants.forget()
        super().__exit__(*exception)

    @property
    def _paused(self) -> bool:
        # a kernel that was found while the tape ran may keep a runtime's function as it was then
        return Tape.active is not self or super()._paused

    def wrap(self, op: Op, dispatch_key: DispatchKey, who: str, function: Callable) -> Callable:
        if who == "composite" or dispatch_key.device.type == "meta" or isinstance(dispatch_key.device, LevelDevice):
            return function  # what is inside is written down
        conversion = getattr(function, "conversion", None)
        if conversion is not None:  # conversions are calls like others
            wide = dispatch_key.with_dtype(conversion.compute)
            return conversion.around(self.wrap(op, wide, who, conversion.kernel))
        kernel, runtime = silent(function), dispatch_key.runtime

        def recorded(*arguments, **options):
            if self._paused:
                return kernel(*arguments, **options)
            watched = sys.getprofile()
            sys.setprofile(None)  # what a tape and kernels do is no part of the program
            try:
                return noted(arguments, options)
            finally:
                sys.setprofile(watched)

        def noted(arguments, options):
            self.ran_backward = self.ran_backward or mode.running
            if op.family == "collective":
                self.refuse(f"{op.name}: other processes take part, and the program waits for them")
            if not (op.view or op.update) and _depends_on_elements(op, arguments):
                self.refuse(f"{op.name}: the shape of its result depends on elements")
            call = Call(op, dispatch_key, function, self._given(arguments, runtime), who=who, where=user_line())
            out = options.get("out")
            if out is not None:
                call.out = self.cell(out)
            self._keep(call, runtime)
            return self._noted(call, runtime, arguments, self._computed(kernel, arguments, **options))

        return unheard(recorded)

    def _keep(self, call: Call, runtime: Any) -> None:
        """Keep the elements of what Python made, before a call changes them."""
        for cell in call.changed():
            if cell.memory in self.constants and cell.memory not in self._originals:
                self._originals[cell.memory] = self._computed(runtime.clone, (cell.memory.array,))

    def _given(self, arguments: tuple, runtime: Any) -> tuple:
        """Arguments with cells in place of arrays."""
        kind = runtime.array_type
        return tuple(
            self.cell(argument)
            if argument.__class__ is kind
            else argument.__class__([self.cell(item) if item.__class__ is kind else item for item in argument])
            if argument.__class__ in (list, tuple)
            else argument
            for argument in arguments
        )

    def _noted(self, call: Call, runtime: Any, arguments: tuple, result: Any) -> Any:
        """Add a call that returned `result`; gives this as arrays of the device."""
        if self.noticing is not None:
            self.noticing()
        if call.out is not None or result is None:
            self.plan.calls.append(call)
            return result
        call.several = isinstance(result, list | tuple)
        arrays = [
            array if array.__class__ is runtime.array_type else runtime.wrap(array)
            for array in (result if call.several else (result,))
        ]
        given = {id(a) for a in _flat(arguments)}
        if all(id(array) in given for array in arrays):
            return result  # an argument as it is: there is nothing to do in a run either
        call.results = tuple(self._result(call, runtime, array, arguments) for array in arrays)
        self.plan.calls.append(call)
        return arrays if call.several else arrays[0]

    def _result(self, call: Call, runtime: Any, array: Any, arguments: tuple) -> Cell:
        cell = self._bind(array, Cell("result", array))
        if call.op.view or getattr(array, "base", None) is not None:
            kind = runtime.array_type
            sharing = (a for a in _flat(arguments) if a.__class__ is kind and shares_memory(runtime, a, array))
            owner = next(sharing, None)
            if owner is None and call.op.view:  # of no elements
                owner = next(a for a in _flat(arguments) if a.__class__ is kind)
            cell.owner = None if owner is None else self.cell(owner).memory
        cell.array = None
        return cell

    # -- what the frontend does between ops ---------------------------------------------------------------------------
    def _deed(self, kind: str, deed: Deed) -> Callable:
        def done(runtime: Any, function: Callable, *arguments: Any, **options: Any) -> Any:
            if self._paused:
                return function(*arguments, **options)
            arguments += tuple(options.values())
            call = Call(deed, None, function, self._given(arguments, runtime), who=kind, where=user_line())  # type: ignore[arg-type]
            self._keep(call, runtime)
            result = self._computed(function, arguments)
            seen = result if result is not None else arguments[0]
            call.dispatch_key = dispatch_key_of(device(kind), of_numpy(seen.dtype))
            return self._noted(call, runtime, arguments, result)

        return done

    def _made(self, runtime: Any, function: Callable, *arguments: Any) -> Any:
        if self._paused:
            return function(*arguments)
        result = self._computed(function, arguments)
        if self.knows(result) is None:
            cell = self.cell(result)
            cell.name = "constant"
            self.constants.add(cell)
        return result

    def _computed(self, function: Callable, arguments: tuple, **options: Any) -> Any:
        """What a kernel or a runtime's function gives, whose own calls are its own matter."""
        self.computing = True
        try:
            return function(*arguments, **options)
        finally:
            self.computing = False

    def _read(self, runtime: Any, function: Callable, *arguments: Any) -> Any:
        if self._paused:
            return function(*arguments)
        self.refuse("elements of a tensor are read by Python")
        return self._computed(function, arguments)

    def _seeding(self, method: Callable) -> Callable:
        def seeding(generator: Generator, *arguments: Any) -> Any:
            if not self._paused:
                self.refuse("a generator of random numbers is seeded")
            return method(generator, *arguments)

        return seeding

    def _taking(self, take: Callable) -> Callable:
        def taking(generator: Generator, *arguments: Any) -> tuple[Any, Any]:
            if self._paused:
                return take(generator, *arguments)
            seed, offset = take(generator, *arguments)
            if not isinstance(seed, int):  # what a graph of launches reads at its replay
                self.refuse("random numbers are drawn while a graph is captured")
                return seed, offset
            found = next((i for i, (g, _, _) in enumerate(self.generators) if g is generator), len(self.generators))
            if found == len(self.generators):
                self.generators.append((generator, seed, offset))
                self.plan.generators += 1
            return Seed(seed, found), Offset(offset, found, self.generators[found][2])

        return taking


def _depends_on_elements(op: Op, arguments: tuple) -> bool:
    """Whether the shape of an op's result is not told by those of its arguments."""
    if op.shape is not None and not any(hasattr(a, "strides") and a.dtype.kind == "b" for a in _flat(arguments)):
        return False
    try:
        shape_of(op, arguments)
    except Exception:
        return True
    return False


#: the methods of generators that set a state
_SEEDING = ("manual_seed", "set_offset", "set_state")


def _flat(arguments: tuple) -> list:
    """Arguments, with the items of lists and tuples in their place."""
    return [item for a in arguments for item in (a if a.__class__ in (list, tuple) else (a,))]
