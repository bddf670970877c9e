"""Elementwise CUDA functions, made from formulas: one for each way to walk over operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from corefw_cupy.compiler import Compiler
from corefw_cupy.launch import THREADS, Function
from corefw_cupy.layouts import inverse
from corefw_cupy.overlap import apart
from corefw_cupy.pointwise_source import WALKS, source
from corefw_cupy.walks import Plan, plan

MOST_KNOWN = 1 << 12  # shapes that a function remembers
BLOCK = (THREADS,)

SIZES = {False: "int32", True: "int64"}  # by whether offsets need 64 bits


class Pointwise:
    """One elementwise function of arrays, for all element types that it is compiled for.

    Args:
        compiler: what compiles it.
        name: of the function; unique.
        operands: the types of the arrays ("T", "bool", ...); X, Y and Z are such as T is computed in.
        numbers: how many numbers follow the arrays.
        number: their type.
        result: the type of the result.
        formula: of the variables x, y, z for arrays and s, t, u for numbers, as in `corefw.dispatch.expressions`.
        macros: what the types stand for, by the items of a key: see `launch.Function`.
        fault: the kind that the formula reports as ``kind`` (see device_asserts.py), or 0.
        computed: whether arrays and numbers are converted to the type of computation first.
    """

    def __init__(
        self, compiler: Compiler, name: str, operands: tuple[str, ...], numbers: int, number: str, result: str,
        formula: str, macros: Mapping[str, Mapping[Any, str]], fault: int = 0, computed: bool = True,
    ):  # fmt: skip
        self.compiler, self.empty = compiler, compiler.empty
        self.runs: dict[tuple, Callable] = {}
        self.fault = (compiler.device_asserts.address, fault) if fault else ()
        self.functions: dict[str, Function] = {}
        for walk in WALKS:
            function = f"{name}_{walk}"
            text = source(walk, function, operands, numbers, number, result, formula, bool(fault), computed)
            sizes: dict = {} if walk == "flat" else {"SIZE": SIZES}
            self.functions[walk] = compiler.generated(text, function, {**macros, **sizes})

    def __call__(self, key: tuple, dtype: np.dtype, arrays: Sequence, numbers: tuple = (), out=None):
        """The result of element type `dtype`, in `out` or new."""
        return self.of(key, dtype)(*arrays, numbers=numbers, out=out)

    def of(self, key: tuple, dtype: np.dtype) -> Callable:
        """What computes results of element type `dtype` from arrays of those in `key`, and numbers."""
        run = self.runs.get((key, dtype))
        if run is None:
            run = self.runs[key, dtype] = self._run(key, dtype)
        return run

    def _run(self, key: tuple, dtype: np.dtype) -> Callable:
        # By the arrays' shapes and strides what is done for them: a plan, what launches it, and how it says where
        # elements are. The host time of elementwise ops is spent here.
        known: dict[tuple, tuple[Plan, Callable, tuple]] = {}
        known_into: dict[tuple, tuple[Plan, Callable, tuple]] = {}
        empty, fault = self.empty, self.fault

        def run(*arrays, numbers=(), out=None):
            if out is None:
                where = tuple([(a.shape, a.strides) for a in arrays])
                walk, launch, geometry = known.get(where) or remember(known, where, arrays, None)
                out = empty(walk.shape, dtype) if walk.order is None else ordered(walk)
            else:
                for array in arrays:
                    if array is not out and array.data.mem.ptr == out.data.mem.ptr:
                        arrays = tuple(apart(arrays, out, self.compiler.clone))
                        break
                where = tuple([(a.shape, a.strides) for a in (*arrays, out)])
                walk, launch, geometry = known_into.get(where) or remember(known_into, where, arrays, where[-1])
            launch(walk.grid, BLOCK, (*arrays, out, *geometry, *numbers, *fault))
            return out

        def remember(table, where, arrays, out):
            sizes = (*(a.dtype.itemsize for a in arrays), dtype.itemsize)
            walk = plan(sizes, where[: len(arrays)], out)
            if walk.n == 0:
                launch: Callable = _nothing
            else:
                launch = self.functions[walk.walk][key if walk.layout is None else (*key, walk.wide)]
            geometry = (walk.n, walk.singles) if walk.layout is None else (walk.layout,)
            if len(table) == MOST_KNOWN:
                table.clear()
            found = table[where] = walk, launch, geometry
            return found

        def ordered(walk):
            """A new array in the memory order of the operands."""
            return empty(tuple([walk.shape[d] for d in walk.order]), dtype).transpose(inverse(walk.order))

        return run


def _nothing(grid, block, arguments) -> None:
    """The launch for results without elements."""
