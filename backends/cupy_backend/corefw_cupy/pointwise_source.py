"""The text of an elementwise CUDA function: a formula, and around it one of the walks of walks.py."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from string import Template

from corefw.dispatch.expressions import special_functions

FUNCTION = """\
#include "$file"
$special
__device__ inline $result ${name}_formula($values)
{
    $body;
}

extern "C" __global__ void $name($pointers$result *out, $geometry$parameters)
{
    const int width = Width<$elements$result>::value;
$walk}
"""

# In a walk, a line with ${v} is repeated for each array; $formula is the result of the elements xs[k], ys[k], zs[k].

FLAT = """\
    int64 first = ((int64)blockIdx.x * blockDim.x + threadIdx.x) * width;
    if (first >= n)
        return;
    bool whole = first + width <= n;
    ${t} ${v}s[width];
    fetch(${v}, first, n, singles & ${bit}, whole && aligned<width>(${v}), ${v}s);
    $result results[width];
    for (int k = 0; k < width; ++k)
        if (whole || first + k < n)
            results[k] = $formula;
    deposit(out, first, n, whole && aligned<width>(out), results);
"""

ROWS = """\
    int64 i = (int64)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= layout.n)
        return;
    SIZE at[1][$operands];
    locate(layout, i, 0, at);
    ${t} ${v}s[width];
    fetch(${v} + at[0][${k}], 0, width, layout.singles & ${bit}, aligned<width>(${v}), ${v}s);
    $result results[width];
    for (int k = 0; k < width; ++k)
        results[k] = $formula;
    deposit(out + at[0][$last], 0, width, aligned<width>(out), results);
"""

STRIDED = """\
    const int count = width < MOST_TOGETHER ? width : MOST_TOGETHER;
    int64 first = (int64)blockIdx.x * blockDim.x + threadIdx.x, step = (int64)gridDim.x * blockDim.x;
    SIZE at[count][$operands];
    locate(layout, first, step, at);
    ${t} ${v}s[count];
    for (int k = 0; k < count; ++k)
        if (first + k * step < layout.n) {
            ${v}s[k] = ${v}[at[k][${k}]];
        }
    for (int k = 0; k < count; ++k)
        if (first + k * step < layout.n)
            out[at[k][$last]] = $formula;
"""

TILED = """\
    const int side = Side<width>::value;
    TilePlace<side, $operands, SIZE> place(tiles);
    __shared__ Tile<${t}, side> ${v}_tile;
    auto work = [&](auto several) {
        const int count = decltype(several)::count;
        place.turn<count>(${k}, ${v}, ${v}_tile);
        __syncthreads();
        for_runs<side, count>(place.rows, place.columns, [&](int row, int column) {
            ${t} ${v}s[count];
            place.read(${k}, ${v}, ${v}_tile, row, column, ${v}s);
            $result results[count];
            for (int k = 0; k < count; ++k)
                results[k] = $formula;
            deposit(out + place.at($last, row, column), 0, count, true, results);
        });
    };
    bool packed = tiles.packed && aligned<width>(out);
    packed = packed && (tiles.across[${k}] == 0 || aligned<width>(${v}));
    if (packed)
        work(Several<width>());
    else
        work(Several<1>());
"""

#: by walk the file that it needs, the parameters that say where elements are, and its text
WALKS = {
    "flat": ("elementwise/elementwise.cuh", "int64 n, int64 singles", FLAT),
    "rows": ("elementwise/elementwise.cuh", "Layout<SIZE> layout", ROWS),
    "strided": ("elementwise/elementwise.cuh", "Layout<SIZE> layout", STRIDED),
    "tiled": ("data_movement/tiles.cuh", "Tiles<SIZE> tiles", TILED),
}


#: what declares the special functions, once where several sources are compiled together
_SPECIAL = Template("""\
#ifndef SPECIAL
#define SPECIAL __device__ inline
#define TABLE static __device__ const double
$functions
#endif
""")


@cache
def _special_functions() -> tuple[str, frozenset[str]]:
    """The text of the functions that formulas call besides CUDA's own, and their names."""
    text = special_functions()
    names = frozenset(re.findall(r"^SPECIAL \w+ (\w+)\(", text, re.MULTILINE))
    return _SPECIAL.substitute(functions=text), names


def special(text: str) -> str:
    """The text of the special functions, if a text calls any."""
    functions, names = _special_functions()
    return "" if names.isdisjoint(re.findall(r"\w+(?=\()", text)) else functions


@lru_cache
def _template(walk: str, operands: tuple[str, ...]) -> Template:
    """The text for arrays of these types, which the formula and the result are left to be inserted in."""
    file, geometry, lines = WALKS[walk]
    arrays = [{"t": t, "v": v, "k": k, "bit": 1 << k} for k, (t, v) in enumerate(zip(operands, "xyz"))]
    repeated = "".join(
        Template(line).safe_substitute(array)
        for line in lines.splitlines(keepends=True)
        for array in (arrays if "${v}" in line else ({},))
    )
    pointers = "".join(f"const {t} *{v}, " for t, v in zip(operands, "xyz"))
    elements = "".join(f"{t}, " for t in operands)
    texts = {"operands": len(operands) + 1, "last": len(operands), "pointers": pointers, "elements": elements}
    whole = Template(FUNCTION).safe_substitute(file=file, geometry=geometry, walk=repeated)
    return Template(Template(whole).safe_substitute(texts))


def source(
    walk: str, name: str, operands: tuple[str, ...], numbers: int, number: str, result: str, formula: str,
    device_asserts: bool, computed: bool,
) -> str:  # fmt: skip
    """The text of a function: see `pointwise_function.Pointwise`."""
    arrays, others = "xyz"[: len(operands)], "stu"[:numbers]
    *definitions, value = [part.strip() for part in re.sub(r"\bT\(", "A(", formula).split(";")]
    types = ["A" if t in ("T", "X", "Y", "Z") and computed else t for t in operands]
    declared = [f"{t} {v}" for t, v in zip(types, arrays)]
    declared += [f"{'A' if computed else number} {v}" for v in others]
    parameters = "".join(f", {number} {v}" for v in others)
    passed = [f"{v}s[k]" for v in arrays] + [f"A({v})" if computed else v for v in others]
    if device_asserts:
        declared += ["int64 *device_asserts", "int64 kind"]
        parameters += ", int64 *device_asserts, int64 kind"
        passed += ["device_asserts", "kind"]
    return _template(walk, operands).substitute(
        name=name,
        special=special(formula),
        result=result,
        values=", ".join(declared),
        body="; ".join([f"const A {definition}" for definition in definitions] + [f"return {value}"]),
        parameters=parameters,
        formula=f"{name}_formula({', '.join(passed)})",
    )
