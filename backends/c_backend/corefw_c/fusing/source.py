"""A fusion as a function in C: one loop over the elements, over the formulas of which the kernels are made."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from corefw import dtypes
from corefw.dispatch.expressions import EXPRESSIONS, statements
from corefw.dispatch.fusion import Fusion, Part
from corefw.dispatch.rules import computed
from corefw.dtypes import dtype

SOURCE = Path(__file__).parent.parent / "source"
#: the files that the text includes
HEADERS = ("bits.h", "halves.h", "mathematics.h", "mathematics_f32.h", "mathematics_f64.h")
#: functions of mathematics.h that hold for some arguments only, for which kernels look
LIMITED = {"sin", "cos", "tan", "fmod"}
_TYPES = {dtypes.float32: "float", dtypes.float64: "double", dtypes.bool_: "uint8_t"}
_HALVES = {
    dtypes.float16: "float_of_float16(float16_bits({}))",
    dtypes.bfloat16: "float_of_bfloat16(bfloat16_bits({}))",
}
_FORMULAS = {(e.name, kind): (e, formula) for e in EXPRESSIONS for kind, formula in e.formulas.items()}

_HEAD = """\
#include "core/halves.h"
#include "core/mathematics.h"
#if defined(__clang__)
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
/* Elements go by in strips, before each of which the processor is told what is needed soon: loops that compute for long
 * see too little of the way ahead to ask for it themselves. */
enum { STRIP = 64, LINE = 64, AHEAD = 2048 }; /* elements, bytes, bytes */
#define FETCH(x) \\
    for (size_t at = 0; at < STRIP * sizeof *x; at += LINE) __builtin_prefetch((const char *)(x + begin) + AHEAD + at)
/* A product is rounded before the next op adds to it, as it is when each op stores its results: compilers, which do not
 * know that nothing is 0, cannot make one instruction of both. */
static volatile uint32_t nothing;
#define rounded_float(x) from_bits_f32(bits_f32(x) ^ zero)
#define rounded_double(x) from_bits_f64(bits_f64(x) ^ zero)
"""
#: functions that do not end in a product
_EXACT = {"ceil", "copysign", "fabs", "floor", "rint", "sqrt", "trunc"}


@cache
def _functions() -> set[str]:
    """The functions of mathematics.h that hold for all arguments."""
    text = (SOURCE / "core" / "mathematics.h").read_text(encoding="utf-8")
    return set(re.findall(r"#define ([a-z]\w*)\(", text)) - LIMITED


def source(fusion: Fusion, program: dict) -> str | None:
    """The text that defines ``fused(n, places)`` for a program; None where a loop of its own is better for a part."""
    first, values = len(fusion.inputs), len(fusion.inputs) + len(fusion.parts)
    held = [computed(fusion.dtype_of(value)) for value in range(values)]
    if not _TYPES.keys() >= set(held):
        return None
    functions: dict[str, str] = {}
    lines = [f"{_TYPES[held[i]]} v{i} = x{i}[i];" for i in range(first)]
    for n, (part, step) in enumerate(zip(fusion.parts, program["step"], strict=True), first):
        if (computation := _computed(part, step, held, first, functions)) is None:
            return None
        if part.dtype in _HALVES:
            computation = _HALVES[part.dtype].format(computation)
        lines.append(f"{_TYPES[held[n]]} v{n} = {computation};")
    stored = {value: program["output_places"][k] for k, value in enumerate(fusion.outputs)}
    if fusion.reduction is not None and fusion.reduction.value >= first:
        stored[fusion.reduction.value] = program["summed"]
    lines += [f"y{value}[i] = v{value};" for value in stored]
    pointers = [f"const {_TYPES[held[i]]} *x{i} = (const void *)places[{i}];" for i in range(first)]
    pointers += [f"{_TYPES[held[v]]} *y{v} = (void *)places[{place}];" for v, place in stored.items()]
    pointers += [
        f"const {_TYPES[d]} s{place} = *(const {_TYPES[d]} *)places[{place}];"
        for place, d in _numbers(fusion, program, held)
    ]
    body = ["    const uint32_t zero = nothing;", "    (void)zero;", *("    " + line for line in pointers)]
    body += ["    for (intptr_t begin = 0, end; begin < n; begin = end) {"]
    body += ["        end = n - begin < STRIP ? n : begin + STRIP;", *(f"        FETCH(x{i});" for i in range(first))]
    body += ["        INDEPENDENT for (intptr_t i = begin; i < end; i++) {", *("            " + line for line in lines)]
    body += ["        }", "    }"]
    head = '__attribute__((visibility("default"))) void fused(intptr_t n, char *const *places) {'
    return "\n".join([_HEAD + "".join(functions.values()), head, *body, "}\n"])


def _numbers(fusion: Fusion, program: dict, held: list[dtype]) -> list[tuple[int, dtype]]:
    """The places of numbers, and the types in which they are held."""
    return [
        (place, held[part.operands[0]])
        for part, step in zip(fusion.parts, program["step"], strict=True)
        for place in step["operands"][len(part.operands) :]
    ]


def _computed(part: Part, step: dict, held: list[dtype], first: int, functions: dict[str, str]) -> str | None:
    """One part as an expression in C; the function that it calls is added to `functions`."""
    operands = [f"v{i}" for i in part.operands]
    if part.expression == "cast":
        masks = held[part.operands[0]] is dtypes.bool_
        return f"{operands[0]} != 0" if masks else f"({_TYPES[computed(part.dtype)]}){operands[0]}"
    if part.expression == "choose":
        return "{} ? {} : {}".format(*operands)
    d = held[part.operands[0]]
    kind = "bool" if d is dtypes.bool_ else "floating"
    if (part.expression, kind) not in _FORMULAS:
        return None
    expression, formula = _FORMULAS[part.expression, kind]
    called = set(re.findall(r"\b([a-z]\w*)\(", formula))
    if not called <= _functions():
        return None
    element, result = _TYPES[d], _TYPES[computed(part.dtype)]
    name = f"{part.expression}_{element}"
    parameters = ", ".join(f"{element} {variable}" for variable in expression.inputs.split())
    functions[name] = (
        f"static inline __attribute__((always_inline)) {result} {name}({parameters}) "
        f"{{ {statements(formula, element)}; }}\n"
    )
    numbers = [f"s{place}" for place in step["operands"][len(operands) :]]
    call = f"{name}({', '.join(operands + numbers)})"
    rounds = part.dtype.is_floating_point and ("*" in formula or called > _EXACT & called)
    return f"rounded_{result}({call})" if rounds else call
