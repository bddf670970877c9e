"""Elementwise ops: those of the formulas in `corefw.dispatch.expressions`, and of a few more for dtypes and ops that
the shared table leaves out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw.dispatch.expressions import ALIASES, CALLS, EXPRESSIONS, Call, Expression
from corefw.dispatch.registry import registry
from corefw_cupy.cuda import Cuda
from corefw_cupy.formulas import FAULTS, FORMULAS
from corefw_cupy.launch import BOOL, COMPLEX, FLOATS, HALVES, REALS, SIGNED, UNSIGNED
from corefw_cupy.pointwise_function import Pointwise

#: by class of dtypes what T stands for
ELEMENTS = {
    "floating": FLOATS,
    "real": REALS,
    "half": HALVES,
    "signed": SIGNED,
    "unsigned": UNSIGNED,
    "wrapping": {
        **UNSIGNED,
        **dict(zip(SIGNED, UNSIGNED.values(), strict=True)),
    },
    "bool": dict.fromkeys(BOOL, "uint8"),
    "complex": COMPLEX,
}
#: by class of dtypes the type of the numbers beside arrays, in CUDA and in Python
NUMBERS: dict[str, tuple[str, type]] = {
    **dict.fromkeys(ELEMENTS, ("int64", int)),
    **dict.fromkeys(("floating", "real", "half"), ("double", float)),
    "complex": ("Complex<double>", complex),
}


def _real(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of complex numbers."""
    return np.dtype(f"f{dtype.itemsize // 2}")


FLOAT32 = np.dtype(np.float32)
_tensors = {e.name: e.tensors for e in EXPRESSIONS}
#: functions of complex numbers with real results
PARTS = {"abs": "abs(x)", "angle": "arg(x)"}


def _pointwise(cuda: Cuda, e: Expression, kind: str) -> dict[np.dtype, Callable]:
    """A function for each dtype of a class: arrays, numbers and ``out=`` to the result."""
    fault = cuda.device_asserts.kind(*FAULTS[e.name]) if "device_asserts" in e.formulas[kind] else 0
    types, numbers = ("T",) * e.tensors, e.numbers
    result, (number, converted), formula = "bool" if e.test else "T", NUMBERS[kind], e.formulas[kind]
    macros = {"T": ELEMENTS[kind]}
    made = Pointwise(cuda, f"{e.name}_{kind}", types, numbers, number, result, formula, macros, fault)

    def function(dtype):
        run, tensors = made.of((dtype,), np.dtype(bool) if e.test else dtype), e.tensors

        def kernel(*arguments, out=None):
            return run(*arguments[:tensors], numbers=tuple(map(converted, arguments[tensors:])), out=out)

        return kernel if numbers else run

    return {dtype: function(dtype) for dtype in ELEMENTS[kind]}


def _beside_numbers(cuda: Cuda, e: Expression) -> dict[np.dtype, Callable]:
    """A function for each half type of which any array may be one number in float32 instead."""
    operands = ("X", "Y", "Z")[: e.tensors]
    operand = {**HALVES, FLOAT32: "float32"}
    macros = {"T": HALVES, **dict.fromkeys(operands, operand)}
    formula = e.formulas["floating"]
    made = Pointwise(cuda, f"{e.name}_beside_numbers", operands, e.numbers, "double", "T", formula, macros)

    def function(dtype):
        tensors = e.tensors

        def kernel(*arguments, out=None):
            arrays = arguments[:tensors]
            run = made.of((dtype, *[a.dtype for a in arrays]), dtype)
            return run(*arrays, numbers=tuple(map(float, arguments[tensors:])), out=out)

        return kernel

    return {dtype: function(dtype) for dtype in HALVES}


def functions(cuda: Cuda) -> dict[str, dict[np.dtype, Callable]]:
    """By name of the function and dtype what computes it."""
    found: dict[str, dict[np.dtype, Callable]] = {}
    for (name, kind), e in formulas().items():
        found.setdefault(name, {}).update(_pointwise(cuda, e, kind))
    for name, formula in PARTS.items():
        made = Pointwise(cuda, f"{name}_complex", ("T",), 0, "double", "T::value_type", formula, {"T": COMPLEX})
        for dtype in COMPLEX:
            found[name][dtype] = made.of((dtype,), _real(dtype))
    return found


def formulas() -> dict[tuple[str, str], Expression]:
    """By name and class of dtypes the formula to use: of two the later one."""
    return {(e.name, kind): e for e in (*EXPRESSIONS, *FORMULAS) for kind in e.formulas}


def functions_beside_numbers(cuda: Cuda) -> dict[str, dict[np.dtype, Callable]]:
    """By name of the function and half type what computes it where an array may be one number in float32."""
    several = {name: e for (name, kind), e in formulas().items() if kind == "floating" and e.tensors > 1}
    return {name: _beside_numbers(cuda, e) for name, e in several.items() if not e.test}


def _by_dtype(found: dict[str, dict[np.dtype, Callable]]) -> dict[np.dtype, dict[str, Callable]]:
    """Functions by dtype and name instead of by name and dtype."""
    tables: dict[np.dtype, dict[str, Callable]] = {}
    for name, by_dtype in found.items():
        for dtype, function in by_dtype.items():
            tables.setdefault(dtype, {})[name] = function
    return tables


def _calling(call: Call, dtype: np.dtype, table: dict[str, Callable]) -> Callable:
    """The kernel of an op that gives a formula its tensors and the numbers made from its other arguments."""
    tensors = _tensors[call.expression]
    plain = {value: table[name] for value, name in call.plain.items()}

    def kernel(*arguments, out=None):
        if plain and (function := plain.get(arguments[-1])) is not None:
            return function(*arguments[:tensors], out=out)
        numbers = call.numbers(dtype, *arguments[tensors:])
        return table[call.expression](*arguments[:tensors], *numbers, out=out)

    return kernel


def _ops(dtype: np.dtype, table: dict[str, Callable]) -> dict[str, Callable]:
    """The ops that functions for one dtype compute, by name: most are the function itself."""
    ops = {name: function for name, function in table.items() if name in registry.declared}  # else a case of one
    ops |= {op: table[name] for op, name in ALIASES.items() if name in table}
    for op, call in CALLS.items():
        if {call.expression, *call.plain.values()} & table.keys():
            ops[op] = _calling(call, dtype, table)

    def clamp(input, min, max, out=None):
        if min is None:
            return table["minimum"](input, max, out=out)
        if max is None:
            return table["maximum"](input, min, out=out)
        return table["clamp"](input, min, max, out=out)

    def pow(input, exponent, out=None):
        return table["pow" if exponent.ndim else "pow_number"](input, exponent, out=out)

    if "clamp" in table:
        ops["clamp"] = clamp
    if "pow_number" in table:
        ops["pow"] = pow
    return ops


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    beside_numbers = _by_dtype(functions_beside_numbers(cuda))
    named = {d.numpy: frozenset({d}) for d in dtypes.ALL}
    made = []
    for dtype, table in _by_dtype(functions(cuda)).items():
        numbers = _ops(dtype, {**table, **beside_numbers[dtype]}) if dtype in beside_numbers else {}
        ops = _ops(dtype, table)
        made += [Kernel(op, f, named[dtype], out=True, numbers=numbers.get(op)) for op, f in ops.items()]
    return made
