"""The text of the CUDA function of a fusion: a function for each part, and one that walks over the elements."""

from __future__ import annotations

import re
from string import Template
from typing import NamedTuple

from corefw import dtypes
from corefw.dispatch.expressions import Expression
from corefw.dispatch.fusion import Fusion
from corefw_cupy.pointwise_source import special

FUNCTION = Template("""\
#define MAX_OPERANDS $operands
#include "elementwise/elementwise.cuh"
$special
$parts
extern "C" __global__ void $name($pointers$geometry$numbers)
{
$begin$reads$results    for (int k = 0; k < width; ++k)
        if ($inside) {
$computed        }
$writes}
""")


class Walk(NamedTuple):
    """Parts of the text: what says where elements are, the thread's place, and how it reads and writes one array."""

    geometry: str
    begin: str
    inside: str
    read: str
    write: str


WALKS = {
    "flat": Walk(
        "int64 n, int64 singles",
        "    const int width = Width<$types>::value;\n"
        "    int64 first = ((int64)blockIdx.x * blockDim.x + threadIdx.x) * width;\n"
        "    if (first >= n)\n"
        "        return;\n"
        "    bool whole = first + width <= n;\n",
        "whole || first + k < n",
        "fetch($v, first, n, singles & $bit, whole && aligned<width>($v), ${v}s);",
        "deposit($v, first, n, whole && aligned<width>($v), ${v}s);",
    ),
    "strided": Walk(
        "Layout<SIZE> layout",
        "    const int width = 1;\n"
        "    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;\n"
        "    if (i >= layout.n)\n"
        "        return;\n"
        "    SIZE at[1][MAX_OPERANDS];\n"
        "    locate(layout, i, 0, at);\n",
        "true",
        "${v}s[0] = $v[at[0][$k]];",
        "$v[at[0][$k]] = ${v}s[0];",
    ),
}


def source(fusion: Fusion, expressions: list[Expression | None], walk: str, name: str) -> str:
    """The text of a function that takes the inputs, the outputs, where they are, and the numbers of all parts.

    Args:
        expressions: of each part; None of a choice or a cast, which have no formula.
    """
    how = WALKS[walk]
    inputs = len(fusion.inputs)
    arrays = [(f"x{k}", d.name) for k, d in enumerate(fusion.inputs)]
    arrays += [(f"y{k}", fusion.dtype_of(value).name) for k, value in enumerate(fusion.outputs)]
    texts = [{"v": v, "t": t, "k": k, "bit": 1 << k} for k, (v, t) in enumerate(arrays)]
    functions, lines, count = [], [], 0
    lines += [f"const {_held(d)} v{k} = x{k}s[k];" for k, d in enumerate(fusion.inputs)]
    for value, (part, expression) in enumerate(zip(fusion.parts, expressions, strict=True), inputs):
        given = [f"v{operand}" for operand in part.operands]
        if part.expression == "choose":
            computed = f"{given[0]} ? {given[1]} : {given[2]}"
        elif expression is None:
            computed = given[0]
        else:
            functions.append(_function(f"{name}_{value}", expression))
            given += [f"A(n{count + i})" for i in range(len(part.numbers))]
            computed = f"{name}_{value}({', '.join(given)})"
        count += len(part.numbers)
        rounded = f"{part.dtype.name}({computed})" if part.dtype.itemsize == 2 else computed
        lines.append(f"const {_held(part.dtype)} v{value} = {rounded};")
    lines += [f"y{k}s[k] = v{value};" for k, value in enumerate(fusion.outputs)]
    formulas = "\n".join(functions)
    return FUNCTION.substitute(
        operands=len(arrays),
        special=special(formulas),
        parts=formulas,
        name=name,
        pointers="".join(f"{'const ' if v[0] == 'x' else ''}{t} *{v}, " for v, t in arrays),
        geometry=how.geometry,
        numbers="".join(f", double n{i}" for i in range(count)),
        begin=Template(how.begin).substitute(types=", ".join(t for _, t in arrays)),
        reads="".join(Template(f"    $t ${{v}}s[width];\n    {how.read}\n").substitute(a) for a in texts[:inputs]),
        results="".join(Template("    $t ${v}s[width];\n").substitute(a) for a in texts[inputs:]),
        inside=how.inside,
        computed="".join(f"            {line}\n" for line in lines),
        writes="".join(Template(f"    {how.write}\n").substitute(a) for a in texts[inputs:]),
    )


def _held(dtype: dtypes.dtype) -> str:
    """The type of a value between parts."""
    return "bool" if dtype is dtypes.bool_ else "A"


def _function(name: str, expression: Expression) -> str:
    """The function of a formula."""
    *definitions, value = [part.strip() for part in re.sub(r"\bT\(", "A(", expression.formulas["floating"]).split(";")]
    parameters = ", ".join(f"A {variable}" for variable in expression.inputs.split())
    body = "; ".join([f"const A {definition}" for definition in definitions] + [f"return {value}"])
    return f"__device__ inline {'bool' if expression.test else 'A'} {name}({parameters})\n{{\n    {body};\n}}\n"
