"""Elementwise CUDA functions, made from formulas, and how they walk over their operands.

A formula becomes two functions: a flat one for operands that lie in memory in the same order (a single element may
stand for a whole operand), which reads and writes 16 bytes at once, and one for operands of any strides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from corefw import shapes
from corefw_cupy.launch import THREADS, argument, blocks
from corefw_cupy.layouts import inverse, memory_order, merged
from corefw_cupy.overlap import apart

if TYPE_CHECKING:
    from corefw_cupy.cuda import Cuda

MAX_DIMS = 16  # as in elementwise.cuh
MAX_OPERANDS = 5
MOST_KNOWN = 1 << 12  # shapes that a function remembers
BLOCK = (THREADS,)

SIZES = {False: "int32", True: "int64"}  # by whether offsets need 64 bits

FUNCTIONS = """\
#include "elementwise.cuh"

__device__ inline {result} {name}_formula({values})
{{
    {body};
}}

extern "C" __global__ void {name}_flat({pointers}{result} *out, int64 n, int64 singles{numbers})
{{
    const int width = Width<{elements}{result}>::value;
    int64 first = ((int64)blockIdx.x * blockDim.x + threadIdx.x) * width;
    if (first >= n)
        return;
    bool whole = first + width <= n && aligned<width>(out){aligned};
    {result} results[width];
    {fetches}
    for (int k = 0; k < width; ++k)
        if (whole || first + k < n)
            results[k] = {name}_formula({fetched});
    deposit(out, first, n, whole, results);
}}

extern "C" __global__ void {name}_strided({pointers}{result} *out, Layout<SIZE> layout{numbers})
{{
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= layout.n)
        return;
    SIZE at[{operands}];
    locate(layout, i, at);
    out[at[{last}]] = {name}_formula({located});
}}
"""


@dataclass(frozen=True)
class Plan:
    """How operands of certain shapes and strides are walked over."""

    shape: tuple[int, ...]  # of the result
    order: tuple[int, ...] | None  # memory order of a new result, if not row-major
    n: int
    singles: int  # of a flat walk: the bits of operands that have a single element
    layout: Any  # of a strided walk: the struct Layout; None for a flat one
    wide: bool  # whether offsets need 64 bits
    grid: tuple[int]  # of the launch


@lru_cache(maxsize=1 << 14)
def plan(sizes: tuple[int, ...], operands: tuple, out: tuple | None) -> Plan:
    """The plan for inputs given as (shape, strides in bytes), and the given output.

    Args:
        sizes: bytes of an element of each input, and of the output.
        operands: (shape, strides) of each input.
        out: (shape, strides) of the output, or None if it is to be allocated.
    """
    shape = shapes.broadcast(*(s for s, _ in operands)) if operands or out is None else out[0]
    if out is not None and out[0] != shape:
        raise ValueError(f"out has shape {out[0]}, but the result has {shape}")
    n = prod(shape)
    if n == 0:
        return Plan(shape, None, 0, 0, None, False, (1,))
    walked = (*operands, *([] if out is None else [out]))
    orders = [memory_order(s, t, size) if s == shape else None for (s, t), size in zip(walked, sizes)]
    singles = sum(1 << k for k, (s, _) in enumerate(operands) if prod(s) == 1 and n != 1)
    same = {o for k, o in enumerate(orders) if not singles >> k & 1}
    if len(same) <= 1 and None not in same:
        order = same.pop() if same else tuple(range(len(shape)))
        packs = -(-n // min(16 // size for size in sizes))  # what a thread reads and writes at once
        row_major = order == tuple(range(len(shape)))
        return Plan(shape, None if row_major or out is not None else order, n, singles, None, False, blocks(packs))
    made = out or (shape, tuple(sizes[-1] * step for step in shapes.contiguous_strides(shape)))
    strides = []
    for (s, t), size in zip((*operands, made), sizes):
        lead = len(shape) - len(s)
        strides.append([0] * lead + [step // size if m != 1 else 0 for step, m in zip(t, s)])
    kept, steps = merged(list(shape), strides)
    if len(kept) > MAX_DIMS:
        raise ValueError(f"operands of {len(kept)} dimensions that cannot be joined; at most {MAX_DIMS} are walked")
    reach = max(n, *(sum(abs(step) * (m - 1) for step, m in zip(own, kept)) for own in steps))
    wide = reach >= 1 << 31
    offset = "i8" if wide else "i4"
    fields = [("n", "i8"), ("dims", "i8"), ("sizes", offset, MAX_DIMS), ("strides", offset, (MAX_OPERANDS, MAX_DIMS))]
    layout = np.zeros(1, np.dtype(fields))
    layout["n"], layout["dims"] = n, len(kept)
    layout["sizes"][0, : len(kept)] = kept
    for k, own in enumerate(steps):
        layout["strides"][0, k, : len(kept)] = own
    return Plan(shape, None, n, 0, argument(layout), wide, blocks(n))


class Pointwise:
    """One elementwise function of arrays, for all element types that it is compiled for.

    Args:
        cuda: what compiles it.
        name: of the function; unique.
        operands: the types of the arrays ("T", "bool", ...); X, Y and Z are such as T is computed in.
        numbers: how many numbers follow the arrays.
        number: their type.
        result: the type of the result.
        formula: of the variables x, y, z for arrays and s, t, u for numbers, as in `corefw.dispatch.expressions`.
        macros: what the types stand for, by the items of a key: see `launch.Function`.
        fault: the kind that the formula reports as ``kind`` (see faults.py), or 0.
        computed: whether arrays and numbers are converted to the type of computation first.
    """

    def __init__(
        self,
        cuda: Cuda,
        name: str,
        operands: tuple[str, ...],
        numbers: int,
        number: str,
        result: str,
        formula: str,
        macros: Mapping[str, Mapping[Any, str]],
        fault: int = 0,
        computed: bool = True,
    ):
        self.cuda, self.empty = cuda, cuda.empty
        self.runs: dict[tuple, Callable] = {}
        self.fault = (cuda.faults.address, fault) if fault else ()
        source = _source(name, operands, numbers, number, result, formula, bool(fault), computed)
        self.flat = cuda.generated(source, f"{name}_flat", macros)
        self.strided = cuda.generated(source, f"{name}_strided", {**macros, "SIZE": SIZES})

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
                        arrays = tuple(apart(arrays, out, self.cuda.copying.clone))
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
                launch = self.flat[key] if walk.layout is None else self.strided[(*key, walk.wide)]
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


def _source(name, operands, numbers, number, result, formula, faults, computed) -> str:
    """The text of both functions of a formula."""
    arrays, others = "xyz"[: len(operands)], "stu"[:numbers]
    *definitions, value = [part.strip() for part in re.sub(r"\bT\(", "A(", formula).split(";")]
    types = ["A" if t in ("T", "X", "Y", "Z") and computed else t for t in operands]
    declared = [f"{t} {v}" for t, v in zip(types, arrays)]
    declared += [f"{'A' if computed else number} {v}" for v in others]
    parameters = "".join(f", {number} {v}" for v in others)
    passed = [f"A({v})" if computed else v for v in others]
    if faults:
        declared += ["int64 *faults", "int64 kind"]
        parameters += ", int64 *faults, int64 kind"
        passed += ["faults", "kind"]
    return FUNCTIONS.format(
        name=name,
        result=result,
        values=", ".join(declared),
        body="; ".join([f"const A {definition}" for definition in definitions] + [f"return {value}"]),
        pointers="".join(f"const {t} *{v}, " for t, v in zip(operands, arrays)),
        numbers=parameters,
        elements="".join(f"{t}, " for t in operands),
        aligned="".join(f" && (singles & {1 << k} || aligned<width>({v}))" for k, v in enumerate(arrays)),
        fetches="\n    ".join(
            f"{t} {v}s[width];\n    fetch({v}, first, n, singles & {1 << k}, whole, {v}s);"
            for k, (t, v) in enumerate(zip(operands, arrays))
        ),
        fetched=", ".join([f"{v}s[k]" for v in arrays] + passed),
        operands=len(operands) + 1,
        last=len(operands),
        located=", ".join([f"{v}[at[{k}]]" for k, v in enumerate(arrays)] + passed),
    )
