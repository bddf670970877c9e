"""Elementwise ops: those of the formulas in `corefw.dispatch.expressions`, and of a few more for dtypes and ops that
the shared table leaves out."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import ml_dtypes
import numpy as np

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw.dispatch.expressions import EXPRESSIONS, Expression
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
#: functions of complex numbers with real results
PARTS = {"abs": "abs(x)", "angle": "arg(x)"}


def _pointwise(cuda: Cuda, e: Expression, kind: str) -> dict[np.dtype, Callable]:
    """A function for each dtype of a class: arrays, numbers and ``out=`` to the result."""
    fault = cuda.device_asserts.kind(*FAULTS[e.name]) if "device_asserts" in e.formulas[kind] else 0
    types, numbers = ("T",) * e.tensors, len(e.inputs.split()) - e.tensors
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
    operands, numbers = ("X", "Y", "Z")[: e.tensors], len(e.inputs.split()) - e.tensors
    operand = {**HALVES, FLOAT32: "float32"}
    macros = {"T": HALVES, **dict.fromkeys(operands, operand)}
    formula = e.formulas["floating"]
    made = Pointwise(cuda, f"{e.name}_beside_numbers", operands, numbers, "double", "T", formula, macros)

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
    for (name, kind), e in _formulas().items():
        found.setdefault(name, {}).update(_pointwise(cuda, e, kind))
    for name, formula in PARTS.items():
        made = Pointwise(cuda, f"{name}_complex", ("T",), 0, "double", "T::value_type", formula, {"T": COMPLEX})
        for dtype in COMPLEX:
            found[name][dtype] = made.of((dtype,), _real(dtype))
    return found


def _formulas() -> dict[tuple[str, str], Expression]:
    """By name and class of dtypes the formula to use: of two the later one."""
    return {(e.name, kind): e for e in (*EXPRESSIONS, *FORMULAS) for kind in e.formulas}


def functions_beside_numbers(cuda: Cuda) -> dict[str, dict[np.dtype, Callable]]:
    """By name of the function and half type what computes it where an array may be one number in float32."""
    several = {name: e for (name, kind), e in _formulas().items() if kind == "floating" and e.tensors > 1}
    return {name: _beside_numbers(cuda, e) for name, e in several.items() if not e.test}


def _by_dtype(found: dict[str, dict[np.dtype, Callable]]) -> dict[np.dtype, dict[str, Callable]]:
    """Functions by dtype and name instead of by name and dtype."""
    tables: dict[np.dtype, dict[str, Callable]] = {}
    for name, by_dtype in found.items():
        for dtype, function in by_dtype.items():
            tables.setdefault(dtype, {})[name] = function
    return tables


@lru_cache(maxsize=256)
def _replacements(dtype: np.dtype, nan, posinf, neginf) -> tuple[float, ...]:
    """What NaN, inf and -inf become."""
    if dtype.kind in "biu":
        return 0.0, 0.0, 0.0
    info = ml_dtypes.finfo(_real(dtype) if dtype.kind == "c" else dtype)
    given = (nan, 0.0), (posinf, info.max), (neginf, info.min)
    return tuple(float(default if value is None else value) for value, default in given)


def _ops(table: dict[str, Callable]) -> dict[str, Callable]:
    """The ops that functions for one dtype compute, by name: most are the function itself."""
    cases = {"clamp_numbers", "cube", "gelu_tanh", "gelu_tanh_backward", "lerp_number", "logit_clamped", "rint"}
    cases |= {"round_to"}
    ops = {name: function for name, function in table.items() if name not in cases}

    def with_numbers(name, of):
        """The kernel of an op whose tensors are followed by numbers, from which `of` makes those of its formula."""
        function, tensors = table[name], next(e.tensors for e in EXPRESSIONS if e.name == name)

        def kernel(*arguments, out=None):
            return function(*arguments[:tensors], *of(*arguments[tensors:]), out=out)

        return kernel

    def hardtanh_bounds(least, greatest):
        if least > greatest:
            raise ValueError(f"hardtanh: min_val {least} cannot be greater than max_val {greatest}")
        return least, greatest

    def softshrink_limit(limit):
        if limit < 0:
            raise ValueError(f"lambda must be greater or equal to 0, but found to be {limit}.")
        return (limit,)

    def by_approximation(exact, tanh):
        def kernel(*arguments, out=None):
            *tensors, approximate = arguments
            if approximate not in ("none", "tanh"):
                raise ValueError(f"approximate argument must be either none or tanh, got {approximate!r}")
            return (tanh if approximate == "tanh" else exact)(*tensors, out=out)

        return kernel

    def clamp(input, min, max, out=None):
        if min is None and max is None:
            raise ValueError("no bound is given")
        if min is None:
            return table["minimum"](input, max, out=out)
        if max is None:
            return table["maximum"](input, min, out=out)
        return table["clamp"](input, min, max, out=out)

    def logit(input, eps, out=None):
        if eps is None or eps < 0:
            return table["logit"](input, out=out)
        return table["logit_clamped"](input, eps, 1 - eps, out=out)

    def nan_to_num(input, nan, posinf, neginf, out=None):
        return table["nan_to_num"](input, *_replacements(input.dtype, nan, posinf, neginf), out=out)

    def round(input, decimals, out=None):
        if decimals == 0:
            return table["rint"](input, out=out)
        if input.dtype.kind in "iu":
            raise RuntimeError(f"round: integers are rounded to decimals=0 only, got {decimals}")
        return table["round_to"](input, 10.0 ** abs(decimals), float(decimals < 0), out=out)

    if "maximum" in table:
        ops |= {"clamp": clamp, "clamp_min": table["maximum"], "clamp_max": table["minimum"]}
    if "rint" in table:
        ops["round"] = round
    if "nan_to_num" in table:
        ops["nan_to_num"] = nan_to_num
    if "gelu" in table:
        ops |= {
            "elu": with_numbers("elu", lambda alpha, scale, inner: (scale, alpha * scale, inner)),
            "elu_backward": with_numbers(
                "elu_backward", lambda alpha, scale, inner: (scale, alpha * scale * inner, inner)
            ),
            "gelu": by_approximation(table["gelu"], table["gelu_tanh"]),
            "gelu_backward": by_approximation(table["gelu_backward"], table["gelu_tanh_backward"]),
            "hardtanh": with_numbers("hardtanh", hardtanh_bounds),
            "logit": logit,
            "softshrink": with_numbers("softshrink", softshrink_limit),
        }
    return ops


def kernels(cuda: Cuda) -> list[Kernel]:
    """The family's kernels."""
    tables = _by_dtype(functions(cuda))
    numbers = {d: _ops({**tables[d], **table}) for d, table in _by_dtype(functions_beside_numbers(cuda)).items()}
    named = {d.numpy: frozenset({d}) for d in dtypes.ALL}
    return [
        Kernel(op, function, named[dtype], out=True, numbers=numbers.get(dtype, {}).get(op))
        for dtype, table in tables.items()
        for op, function in _ops(table).items()
    ]
