"""Fusions: one CUDA function for several elementwise ops, made when a recording is."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from math import prod
from typing import Any

from corefw import dtypes, shapes
from corefw.dispatch.fusion import Fusion
from corefw.dispatch.rules import computed
from corefw_cupy.compiler import Compiler
from corefw_cupy.elementwise import formulas
from corefw_cupy.formulas import FAULTS
from corefw_cupy.fused_source import WALKS, source
from corefw_cupy.launch import REALS, THREADS, argument, blocks
from corefw_cupy.overlap import apart
from corefw_cupy.pointwise_function import MOST_KNOWN, SIZES
from corefw_cupy.walks import PACK, strided

_REALS = (dtypes.float32, dtypes.float64)


def maker(compiler: Compiler) -> Callable[[Fusion], Callable | None]:
    """What makes kernels of fusions: the same one for the same fusion."""
    made: dict[str, Callable | None] = {}

    def fuse(fusion: Fusion) -> Callable | None:
        if (key := fusion.key) not in made:
            made[key] = FusedFunction(compiler, fusion) if _offered(fusion) else None
        return made[key]

    return fuse


def _real(fusion: Fusion) -> set[dtypes.dtype]:
    """What the values of a fusion, but masks, are computed in."""
    return {computed(d) for d in (*fusion.inputs, *(p.dtype for p in fusion.parts)) if d is not dtypes.bool_}


def _offered(fusion: Fusion) -> bool:
    """Whether there is a kernel: all parts compute in one type, by formulas for it that report nothing, and nothing is
    summed."""
    known = formulas()

    def has_formula(expression: str) -> bool:
        return expression in ("cast", "choose") or ((expression, "floating") in known and expression not in FAULTS)

    return (
        fusion.reduction is None
        and len(real := _real(fusion)) == 1
        and real <= {*_REALS}
        and all(has_formula(part.expression) for part in fusion.parts)
        and not any(
            part.expression == "cast" and dtypes.bool_ in (part.dtype, fusion.dtype_of(part.operands[0]))
            for part in fusion.parts
        )
        and not any(
            fusion.dtype_of(operand) is dtypes.bool_
            for part in fusion.parts
            for operand in part.operands[part.expression == "choose" :]
        )
    )


class FusedFunction:
    """The kernel of a fusion: see `corefw.dispatch.fusion.Fusion`."""

    def __init__(self, compiler: Compiler, fusion: Fusion):
        self.compiler, self.fusion = compiler, fusion
        (self.real,) = (d.numpy for d in _real(fusion))
        self.types = [fusion.dtype_of(value).numpy for value in fusion.outputs]
        self.numbers = tuple([float(number) for part in fusion.parts for number in part.numbers])
        self.width = PACK // max(d.itemsize for d in (*fusion.inputs, *map(fusion.dtype_of, fusion.outputs)))
        known = formulas()
        expressions = [known.get((part.expression, "floating")) for part in fusion.parts]
        self.functions = {}
        for walk in WALKS:
            name = f"fused_{walk}_{sha256(fusion.key.encode()).hexdigest()[:16]}"
            sizes: dict = {} if walk == "flat" else {"SIZE": SIZES}
            text = source(fusion, expressions, walk, name)
            self.functions[walk] = compiler.generated(text, name, {"T": REALS, **sizes})
        self._known: dict[tuple, tuple[Callable, tuple, tuple]] = {}

    def __call__(self, *inputs: Any, out: Any = None) -> tuple:
        shape = shapes.broadcast(*(a.shape for a in inputs))
        outputs = [self.compiler.empty(shape, d) for d in (self.types if out is None else self.types[:-1])]
        if out is not None:
            inputs = tuple(apart(inputs, out, self.compiler.clone))
            outputs.append(out)
        if prod(shape):
            where = tuple([(a.shape, a.strides) for a in (*inputs, *outputs[-1:])])
            launch, grid, geometry = self._known.get(where) or self._remember(where, inputs, outputs)
            launch(grid, (THREADS,), (*inputs, *outputs, *geometry, *self.numbers))
        return tuple(outputs if out is None else outputs[:-1])

    def _remember(self, where: tuple, inputs: tuple, outputs: list) -> tuple[Callable, tuple, tuple]:
        """What launches for arrays that lie so, the grid, and the arguments that say where elements are."""
        shape, n = outputs[-1].shape, outputs[-1].size
        found: tuple[Callable, tuple, tuple]
        if all(a._c_contiguous for a in (*inputs, *outputs)) and all(a.shape == shape or a.size == 1 for a in inputs):
            singles = sum(1 << k for k, a in enumerate(inputs) if a.size == 1 and n != 1)
            found = self.functions["flat"][self.real], blocks(-(-n // self.width)), (n, singles)
        else:
            layout, wide = strided(shape, [(a.shape, a.strides, a.dtype.itemsize) for a in (*inputs, *outputs)])
            found = self.functions["strided"][self.real, wide], blocks(n), (argument(layout),)
        if len(self._known) == MOST_KNOWN:
            self._known.clear()
        self._known[where] = found
        return found
