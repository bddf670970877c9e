"""Elementwise ops: loops in C, which bring SIMD code, threads and half types, and NumPy's ufunc objects around them.

Arrays of types that a loop takes go to it at once, in C (source/elementwise/fast_path.c); what else there is, operands
to convert or that overlap, and results without dimensions, is the ufunc's. What the ops compute stands in
`corefw.dispatch.expressions`; where it has no formula for a type, some loops are those of NumPy's ufuncs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache, lru_cache
from math import copysign
from struct import pack

import _cffi_backend
import ml_dtypes
import numpy as np

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw.dispatch.expressions import ALIASES, CALLS, EXPRESSIONS, POWERS, Call
from corefw.dispatch.registry import registry
from corefw.errors import DtypeError
from corefw_c.arrays import FLOATS
from corefw_c.interface import numpy_function
from corefw_c.library import fail

#: dtypes by their numbers in array.h
DTYPES = (
    *(dtypes.bool_, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.uint32),
    *(dtypes.int64, dtypes.uint64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64),
    *(dtypes.complex64, dtypes.complex128),
)
_BFLOAT16, _FLOAT32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
_pointer, _int = ctypes.c_void_p, ctypes.c_int
#: ops that refuse integers to be divided by zero
_DIVISIONS = ("floor_divide", "fmod", "remainder", "trunc_divide")
#: by op the operands whose elements choose the function
_LOOKS_AT = {"pow": ("exponent",)}
_INTEGERS = "bBhHiIlLqQ"
#: ufuncs of NumPy's of whose loops we take some, by op: (the letters of their element types, the cost of an element)
_NUMPYS = (
    ("FD", 2, {"add": np.add, "sub": np.subtract, "mul": np.multiply, "square": np.square, "eq": np.equal}),
    ("FD", 2, {"ne": np.not_equal, "logical_and": np.logical_and, "logical_or": np.logical_or}),
    ("FD", 2, {"logical_xor": np.logical_xor, "logical_not": np.logical_not, "isnan": np.isnan}),
    ("FD", 2, {"isinf": np.isinf, "isfinite": np.isfinite, "abs": np.absolute}),
    ("FD", 6, {"div": np.true_divide, "reciprocal": np.reciprocal}),
    ("FD", 60, {"exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "log10": np.log10, "sqrt": np.sqrt}),
    ("FD", 60, {"sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan}),
    ("FD", 60, {"sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh}),
    ("FD", 60, {"atanh": np.arctanh}),
    (_INTEGERS, 60, {"gcd": np.gcd, "lcm": np.lcm}),
    (_INTEGERS, 8, {"floor_divide": np.floor_divide, "remainder": np.remainder, "fmod": np.fmod}),
    (_INTEGERS, 1, {"bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift}),
)
_kept: list = []  # what the ufuncs point to: they live as long as the process


_new_ufunc = numpy_function(
    *("_UFUNC_API", 1, ctypes.py_object, _pointer, _pointer, ctypes.c_char_p, _int, _int, _int, _int),
    *(ctypes.c_char_p, ctypes.c_char_p, _int),
)
_add_loop = numpy_function("_UFUNC_API", 2, _int, ctypes.py_object, _int, _pointer, _pointer, _pointer)


def _ufunc(name: str, function: int, loops: list[tuple[tuple[int, ...], int]]) -> np.ufunc:
    """A ufunc of loops given as (NumPy's type numbers of the operands, address of the loop)."""
    builtin = [loop for loop in loops if _BFLOAT16.num not in loop[0]]
    functions = (_pointer * len(builtin))(*[function] * len(builtin))
    data = (_pointer * len(builtin))(*[address for _, address in builtin])
    types = bytes(number for numbers, _ in builtin for number in numbers)
    operands = len(loops[0][0])
    _kept.append((functions, data, types, name.encode()))
    made = _new_ufunc(functions, data, types, len(builtin), operands - 1, 1, -1, _kept[-1][3], None, 0)
    for numbers, address in loops:
        if _BFLOAT16.num in numbers and _add_loop(made, _BFLOAT16.num, function, (_int * operands)(*numbers), address):
            raise ImportError(f"{name}: NumPy takes no loop for bfloat16")
    return made


def rows(lib) -> list[tuple[str, list, object]]:
    """All loops: (name of the function, element types, that of the result last; loop in C)."""
    ffi = _cffi_backend.FFI()
    found = []
    group = 0
    while loops := lib.elementwise_loops(group):
        group += 1
        i = 0
        while loops[i].op:
            types = [DTYPES[loops[i].types[j]] for j in (*range(loops[i].tensors + loops[i].numbers), 5)]
            found.append((ffi.string(loops[i].op).decode(), types, loops + i))
            i += 1
    return found


def numpy_rows(lib) -> list[tuple[str, list, object]]:
    """The loops of NumPy's ufuncs that run as ours do, as `rows` gives them."""
    found = []
    for kinds, cost, functions in _NUMPYS:
        for name, ufunc in functions.items():
            for place, types in enumerate(ufunc.types):
                alike = types[0] in kinds and types[: ufunc.nin] == types[0] * ufunc.nin
                if alike and (loop := lib.numpy_loop(id(ufunc), place, cost)):
                    found.append((name, [DTYPES[loop.types[i]] for i in (*range(ufunc.nin), 5)], loop))
    return found


def ufuncs(lib) -> dict[str, tuple[np.ufunc, list]]:
    """By name of the function its ufunc and its loops: (element types, of the result last; loop in C)."""
    ffi = _cffi_backend.FFI()

    def address(pointer) -> int:
        return int(ffi.cast("uintptr_t", pointer))

    run = address(ffi.addressof(lib.functions, "elementwise_run"))
    found: dict[str, dict] = {}
    for name, types, loop in rows(lib) + numpy_rows(lib):
        found.setdefault(name, {})[tuple(types[:-1])] = types, loop  # of two the later one
    made = {}
    for name, by_types in found.items():
        loops = list(by_types.values())
        numbered = [(tuple(t.numpy.num for t in types), address(loop)) for types, loop in loops]
        made[name] = _ufunc(name, run, numbered), loops
    return made


def _key(types: list[dtypes.dtype]) -> int:
    """The key of element types of inputs, as in a `struct typed_loop`."""
    key = 1
    for dtype in types:
        key = key << 4 | DTYPES.index(dtype)
    return key


def _with_fast_path(lib, ufunc: np.ufunc, loops: list) -> Callable:
    """What computes the same as the ufunc, by the loops where the operands are as one of these takes them."""
    ffi = _cffi_backend.FFI()
    address = int(ffi.cast("uintptr_t", ffi.addressof(lib.functions, "with_fast_path")))
    made = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(address)
    results = [types[-1].numpy for types, _ in loops]
    rows = [
        pack("QQQ", _key(types[:-1]), int(ffi.cast("uintptr_t", loop)), id(result))
        for (types, loop), result in zip(loops, results, strict=True)
    ]
    return made((ufunc, np.empty_like, b"".join(rows), results))


@cache
def _functions(lib) -> dict[str, tuple[Callable, list]]:
    """By name of the function what computes it, and its loops."""
    return {name: (_with_fast_path(lib, ufunc, loops), loops) for name, (ufunc, loops) in ufuncs(lib).items()}


def functions(lib) -> dict[str, tuple[Callable, frozenset[dtypes.dtype]]]:
    """By name of the function what computes it, and its element types."""
    noting = getattr(lib, "noting_elementwise", None)  # of a library that notes its calls
    made = {}
    for name, (function, loops) in _functions(lib.lib if noting else lib).items():
        if noting:
            by_types = {tuple(t.numpy for t in types[:-1]): (loop, types[-1].numpy) for types, loop in loops}
            function = noting(function, by_types)
        made[name] = function, frozenset(types[loop.tensors - 1] for types, loop in loops)
    return made


def _beside(dtype: np.dtype) -> np.dtype:
    """The dtype of numbers beside arrays of a dtype: that in which these are computed."""
    return _FLOAT32 if dtype.itemsize == 2 and dtype.kind not in "iu" else dtype


def _with_numbers(function: Callable, numbers_of: Callable, tensors: int) -> Callable:
    """The kernel of an op that gives a function some tensors and the numbers made from its other arguments."""

    def made(dtype, attributes):
        return tuple([np.array(number, _beside(dtype)) for number in numbers_of(dtype, *attributes)])

    @lru_cache(maxsize=4096)
    def known(dtype, attributes):
        """The numbers, and where there are zeros, which are keys equal to -0.0."""
        unsigned = [abs(value) if value == 0 else value for value in attributes]
        return made(dtype, unsigned), [i for i, value in enumerate(attributes) if value == 0]

    def numbers_beside(dtype, attributes):
        numbers, zeros = known(dtype, attributes)
        for i in zeros:
            if copysign(1, attributes[i]) < 0:
                return made(dtype, attributes)
        return numbers

    def unary(input, *attributes, out=None):
        numbers = numbers_beside(input.dtype, attributes)
        return function(input, *numbers) if out is None else function(input, *numbers, out=out)

    def binary(input, other, *attributes, out=None):
        numbers = numbers_beside(input.dtype, attributes)
        return function(input, other, *numbers) if out is None else function(input, other, *numbers, out=out)

    def of_several(*arguments, out=None):
        operands = arguments[:tensors] + numbers_beside(arguments[0].dtype, arguments[tensors:])
        return function(*operands) if out is None else function(*operands, out=out)

    return {1: unary, 2: binary}.get(tensors, of_several)


def _without_numbers(functions: dict, kernel: Callable, tensors: int) -> Callable:
    """The kernel of an op with one attribute, for some values of which a function takes the tensors alone."""
    function_of = functions.get

    def unary(input, attribute, out=None):
        if (function := function_of(attribute)) is None:
            return kernel(input, attribute, out=out)
        return function(input) if out is None else function(input, out=out)

    def of_several(*arguments, out=None):
        if (function := function_of(arguments[-1])) is None:
            return kernel(*arguments, out=out)
        return function(*arguments[:-1]) if out is None else function(*arguments[:-1], out=out)

    return unary if tensors == 1 else of_several


def _calls(table: dict[str, Callable]) -> dict[str, tuple[Callable, str]]:
    """By op that gives numbers its kernel, and the function that has its dtypes."""
    made = {}
    tensors = {e.name: e.tensors for e in EXPRESSIONS}
    as_given = {e.name: Call(e.name, lambda dtype, *numbers: numbers) for e in EXPRESSIONS if e.numbers}
    for op, call in {**as_given, **CALLS}.items():
        name = call.expression
        kernel = _with_numbers(table[name], call.numbers, tensors[name])
        if call.plain:
            kernel = _without_numbers({v: table[plain] for v, plain in call.plain.items()}, kernel, tensors[name])
        made[op] = kernel, name
    return made


def _by_operands(table: dict[str, Callable]) -> dict[str, Callable]:
    """The kernels of ops that choose a function by their tensors."""

    def clamp(input, min, max, out=None):
        if min is None:
            return table["minimum"](input, max, out=out)
        if max is None:
            return table["maximum"](input, min, out=out)
        return table["clamp" if min.ndim or max.ndim else "clamp_numbers"](input, min, max, out=out)

    def lerp(input, end, weight, out=None):
        return table["lerp" if weight.ndim else "lerp_number"](input, end, weight, out=out)

    powers = {exponent: table[name] for exponent, name in POWERS.items()}

    def pow(input, exponent, out=None):
        number = exponent.ndim == 0 and (input.ndim or input.dtype is exponent.dtype)  # not beside a half exponent
        if number and (quick := powers.get(exponent.item())) is not None:
            return quick(input, out=out)
        return table["pow"](input, exponent, out=out)

    return {"clamp": clamp, "lerp": lerp, "pow": pow}


def _dividing(function: Callable, is_zero: Callable) -> Callable:
    """The kernel of a division of integers, which refuses zeros."""

    def divide(input, other, out=None):
        if input.size and is_zero(other).any():
            raise RuntimeError("ZeroDivisionError")
        return function(input, other, out=out)

    return divide


def _parts(table: dict[str, Callable], convert: Callable) -> Kernel:
    """The kernel of the function with two results."""

    def frexp(input):
        names = "frexp_mantissa", "frexp_exponent"
        mantissa, exponent = (table[name](input, out=np.empty_like(input)) for name in names)
        integers = np.empty_like(exponent, np.int32)
        if status := convert(id(exponent), id(integers)):
            fail("frexp", status)
        return mantissa, integers

    return Kernel("frexp", frexp, FLOATS)


def _choosing(choose: Callable) -> list[Kernel]:
    """The kernels of the function that takes each element from one of two arrays, of every dtype."""

    def as_mask(mask, op):
        if mask.dtype != np.bool_:
            raise DtypeError(f"{op}: expected a boolean mask, but got one with dtype {mask.dtype}")
        return mask

    def where(condition, input, other, out=None):
        return choose(as_mask(condition, "where"), input, other, out=out)

    def masked_fill(input, mask, value, out=None):
        if value.ndim:
            raise ValueError("the value has dimensions")
        return choose(as_mask(mask, "masked_fill"), value, input, out=out)

    return [Kernel("choose", where, out=True), Kernel("masked_fill", masked_fill, out=True)]


def kernels(lib):
    """The family's kernels."""
    loops = functions(lib)
    table = {name: function for name, (function, _) in loops.items()}
    # by op its function, and what has its dtypes
    named = {name: name for _, _, functions in _NUMPYS for name in functions} | {e.name: e.name for e in EXPRESSIONS}
    made = {op: (table[name], name) for op, name in (named | ALIASES).items()}
    made |= _calls(table) | {op: (function, op) for op, function in _by_operands(table).items()}

    def taken(op, name):
        return loops[name][1] & FLOATS if op in _DIVISIONS else loops[name][1]

    return [
        *_choosing(table["choose"]),
        _parts(table, lib.copy),
        *(
            Kernel(op, function, taken(op, name), out=True, numbers=function, looks_at=_LOOKS_AT.get(op, ()))
            for op, (function, name) in made.items()
            if op in registry.declared  # else a case of one
        ),
        *(
            Kernel(op, _dividing(table[op], table["logical_not"]), loops[op][1] - FLOATS, out=True, looks_at=("other",))
            for op in _DIVISIONS
        ),
    ]
