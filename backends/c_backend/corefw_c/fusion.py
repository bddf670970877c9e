"""Fusions: programs of elementwise loops, which C runs one after the other over blocks that stay in the caches."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from math import prod

import numpy as np

from corefw import dtypes
from corefw.dispatch.fusion import Fusion, Part
from corefw.dispatch.rules import computed
from corefw.dtypes import dtype
from corefw.shapes import reduced
from corefw_c.arrays import empty
from corefw_c.elementwise import DTYPES, rows
from corefw_c.library import UNSUPPORTED, fail

_NUMBER = {d: i for i, d in enumerate(DTYPES)}
_NONE = len(DTYPES)  # NO_DTYPE in array.h
_CONVERTED = {dtypes.bool_, dtypes.float32, dtypes.float64}
_REALS = {dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}
_MOST_PLACES = 256
_LONG = 8  # the cost of an element that hides the time to fetch others
_SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e30, -1e30, 1e-40, 1e300, 88.7, -104.0, 700.0)


def maker(lib, level: str) -> Callable[[Fusion], Callable | None]:
    """What makes kernels of fusions over the library of a level: the same one for the same fusion."""
    made: dict[str, Callable | None] = {}

    def fuse(fusion: Fusion) -> Callable | None:
        if (key := fusion.key) not in made:
            written = program(lib, fusion)
            made[key] = None if written is None else _kernel(lib, level, fusion, written)
        return made[key]

    return fuse


@cache
def _loops(lib) -> dict:
    """The loops by name and element types of their operands, each with the type of its result."""
    return {(name, tuple(types[:-1])): (loop, types[-1]) for name, types, loop in rows(lib)}


def program(lib, fusion: Fusion) -> dict | None:
    """What fills a `struct fusion` of kernels.h; None of a fusion that the library's loops cannot run."""
    return _Program(fusion, _loops(lib)).written()


class _Program:
    """A fusion as a `struct fusion` of kernels.h."""

    def __init__(self, fusion: Fusion, loops: dict):
        self.fusion, self.loops = fusion, loops
        inputs = len(fusion.inputs)
        self.numbers: list[int] = []
        self.count = sum(len(part.numbers) for part in fusion.parts)
        self.places = [*range(inputs)]  # by value
        self.free: list[tuple[int, int]] = []  # blocks that hold nothing any more: (size of their elements, place)
        self.blocks = 0
        self.last = {value: n for n, part in enumerate(fusion.parts) for value in part.operands}
        self.wanted = {*fusion.outputs, *([] if fusion.reduction is None else [fusion.reduction.value])}

    def written(self) -> dict | None:
        """What fills the struct; None of a fusion that these loops cannot run."""
        fusion, held = self.fusion, self._held
        r = fusion.reduction
        if r is not None and (r.dtype not in _REALS or fusion.dtype_of(r.value) is not r.dtype):
            return None
        if any(d not in _NUMBER for d in fusion.inputs) or not self.wanted:
            return None
        steps, cost = [], 0
        for n, part in enumerate(fusion.parts):
            if (step := self._step(n, part)) is None:
                return None
            steps.append(step)
            cost += 1 if step["loop"] is None else step["loop"].cost
        values = range(len(fusion.inputs) + len(fusion.parts))
        program = {
            "inputs": len(fusion.inputs),
            "outputs": len(fusion.outputs),
            "numbers": self.count,
            "blocks": self.blocks,
            "steps": len(steps),
            "widest": max(held(value).itemsize for value in values),
            "cost": cost,
            "input_types": [_NUMBER[d] for d in fusion.inputs],
            "output_types": [_NUMBER[fusion.dtype_of(value)] for value in fusion.outputs],
            "output_places": [self.places[value] for value in fusion.outputs],
            "summed": -1 if r is None else self.places[r.value],
            "sum_type": _NONE if r is None else _NUMBER[r.dtype],
            "mean": r is not None and r.mean,
            "dims": 0 if r is None else sum(1 << d for d in r.dim),
            "number": self.numbers,
            "step": [{k: v for k, v in step.items() if v is not None} for step in steps],
        }
        fits = len(fusion.inputs) + self.count + self.blocks <= _MOST_PLACES
        return program if fits else None

    def _held(self, value: int) -> dtype:
        """The type in which a value is held between steps."""
        return computed(self.fusion.dtype_of(value))

    def _step(self, n: int, part: Part) -> dict | None:
        """One part as a `struct fused_step`."""
        value = len(self.fusion.inputs) + n
        types = [self._held(operand) for operand in part.operands]
        held = self._held(value)
        loop = None
        if part.expression == "cast":
            if not {types[0], held} <= _CONVERTED or held is dtypes.bool_:
                return None
            if self.fusion.dtype_of(part.operands[0]) is dtypes.float64 and part.dtype.itemsize == 2:
                return None  # it would be rounded twice
        else:
            loop, result = self.loops.get((part.expression, (*types, *types[:1] * len(part.numbers))), (None, None))
            if loop is None or result is not held:
                return None
        first = len(self.fusion.inputs) + len(self.numbers)
        self.numbers += [_bits(number, types[0]) for number in part.numbers]
        operands = [
            *(self.places[i] for i in part.operands),
            *range(first, len(self.fusion.inputs) + len(self.numbers)),
        ]
        self._place(n, part, held.itemsize)
        return {
            "loop": loop,
            "operands": operands,
            "result": self.places[value],
            "from": _NUMBER[types[0]],
            "to": _NUMBER[held],
            "rounded": _NONE if part.dtype is held else _NUMBER[part.dtype],
        }

    def _place(self, n: int, part: Part, size: int) -> None:
        """Find a block for the result of a part: one that an operand leaves, as loops may replace an input of elements
        as large as theirs, or another one that is free."""
        inputs = len(self.fusion.inputs)
        leaving = [
            (self._held(value).itemsize, self.places[value])
            for value in dict.fromkeys(part.operands)
            if value >= inputs and self.last[value] == n and value not in self.wanted
        ]
        value = inputs + n
        usable = [] if value in self.wanted else [p for p in leaving if p[0] == size] + self.free
        if usable:
            place = usable[0]
            self.places.append(place[1])
            self.free = [p for p in self.free if p is not place]
            leaving = [p for p in leaving if p is not place]
        else:
            self.places.append(inputs + self.count + self.blocks)
            self.blocks += 1
        self.free += leaving


def _bits(number: float, d: dtype) -> int:
    """The bytes of a number of some type as those of a uint64."""
    return int.from_bytes(np.array(number, d.numpy).tobytes().ljust(8, b"\0"), sys.byteorder)


def _kernel(lib, level: str, fusion: Fusion, program: dict) -> Callable:
    """The kernel of a program: see `corefw.dispatch.fusion.Fusion`. Its attribute ``over`` gives the same one over
    another object with the library's functions, ``compiling`` is its `Compiling`."""
    handle = lib.fusion_new([program])
    if not handle:
        raise MemoryError("fused: the C kernel met not enough memory")
    r = fusion.reduction
    types = [fusion.dtype_of(value).numpy for value in fusion.outputs]
    sum_type = None if r is None else r.dtype.numpy
    compiling = Compiling(lib, level, fusion, program, handle)

    def over(lib):
        run = lib.fused_run

        def kernel(*inputs, out=None):
            shape = inputs[0].shape if len(inputs) == 1 else np.broadcast(*inputs).shape
            results = [empty(shape, dtype) for dtype in (types if out is None else types[:-1])]
            if out is not None:
                results.append(out)
            if r is not None:
                results.append(empty(reduced(shape, r.dim, r.keepdim), sum_type))
            if compiling.waits:
                compiling.consider(prod(shape))
            if status := run(handle, len(inputs) + len(results), [*map(id, inputs), *map(id, results)]):
                if status != UNSUPPORTED:
                    fail("fused", status)
                return apart(inputs, out, results)
            return tuple(results) if out is None else tuple([a for a in results if a is not out])

        def apart(inputs, out, results):
            """The same for arrays that are not aligned, or lie partly over `out`."""
            inputs = [a.copy("C") for a in inputs]
            targets = [np.empty(a.shape, a.dtype) if a is out else a for a in results]
            if status := run(handle, len(inputs) + len(targets), [*map(id, inputs), *map(id, targets)]):
                fail("fused", status)
            if out is None:
                return tuple(results)
            np.copyto(out, next(target for a, target in zip(results, targets) if a is out))
            return tuple([a for a in results if a is not out])

        return kernel

    made = over(lib)
    made.over, made.compiling = over, compiling
    made.alone = program["cost"] >= _LONG
    return made


class Compiling:
    """The compilation of one program, which begins when it is first used for many elements.

    Attributes:
        waits: whether it has not begun.
    """

    FEWEST = 1 << 14  # elements; of fewer the loops of the steps are as fast

    def __init__(self, lib, level: str, fusion: Fusion, program: dict, handle):
        self.waits = True
        self._made_of = lib, level, fusion, program, handle

    def consider(self, count: int) -> None:
        """Compile in another thread if the elements are many."""
        if count < self.FEWEST:
            return
        self.waits = False
        compiler = import_module("corefw_c.fusing.compiler")
        if compiler.command() is not None:
            compiler.soon(self.compile)

    def compile(self) -> bool:
        """Compile now, and use the function if there is one that gives the same bits; whether it is used."""
        self.waits = False
        lib, level, fusion, program, handle = self._made_of
        text = import_module("corefw_c.fusing.source").source(fusion, program)
        address = None if text is None else import_module("corefw_c.fusing.compiler").compiled(text, level)
        if address is None:
            return False
        samples = [_sample(d, seed) for seed, d in enumerate(fusion.inputs)]
        if not lib.fusion_agrees(handle, address, len(samples), [*map(id, samples)]):
            return False
        lib.fusion_compiled(handle, address)
        return True


def _sample(d: dtype, seed: int) -> np.ndarray:
    """Values of a dtype, in the type in which they are held, some of them special."""
    rng = np.random.default_rng(seed)
    if not d.is_floating_point:
        return rng.integers(0, 2, 1 << 13).astype(d.numpy)
    with np.errstate(all="ignore"):
        values = rng.normal(0, 1, 1 << 13) * np.exp(rng.normal(0, 2, 1 << 13))
        values[: len(_SPECIAL)] = rng.permutation(_SPECIAL)
        return values.astype(d.numpy).astype(computed(d).numpy)
