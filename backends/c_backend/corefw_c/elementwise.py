"""Elementwise ops: NumPy's own ufunc objects around loops in C.

NumPy then does what it does best, broadcasting, strides, ``out=`` and overlapping operands, at the price of its own
ufuncs; the loops bring SIMD code, threads and half types. Large operands that broadcast or are strided, which NumPy
copies piece by piece in one thread, go to a parallel walk of our own. What the ops compute stands in
`corefw.dispatch.expressions`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import lru_cache

import _cffi_backend
import ml_dtypes
import numpy as np

from corefw import dtypes
from corefw.dispatch.backend import Kernel
from corefw.dispatch.expressions import EXPRESSIONS
from corefw.errors import DtypeError
from corefw_c.interface import numpy_function

#: dtypes by their numbers in array.h
_DTYPES = (
    *(dtypes.bool_, dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32, dtypes.uint32),
    *(dtypes.int64, dtypes.uint64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64),
    *(dtypes.complex64, dtypes.complex128),
)
_BFLOAT16, _FLOAT32 = np.dtype(ml_dtypes.bfloat16), np.dtype(np.float32)
_pointer, _int = ctypes.c_void_p, ctypes.c_int
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


def ufuncs(lib) -> dict[str, tuple[np.ufunc, list]]:
    """By name of the function its ufunc and its loops: (element types, of the result last; loop in C)."""
    ffi = _cffi_backend.FFI()

    def address(pointer) -> int:
        return int(ffi.cast("uintptr_t", pointer))

    run = address(ffi.addressof(lib, "elementwise_run"))
    found: dict[str, list] = {}
    group = 0
    while rows := lib.elementwise_loops(group):
        group += 1
        i = 0
        while rows[i].op:
            types = [_DTYPES[rows[i].types[j]] for j in (*range(rows[i].tensors + rows[i].numbers), 5)]
            found.setdefault(ffi.string(rows[i].op).decode(), []).append((types, rows + i))
            i += 1
    made = {}
    for name, loops in found.items():
        numbered = [(tuple(t.numpy.num for t in types), address(loop)) for types, loop in loops]
        made[name] = _ufunc(name, run, numbered), loops
    return made


def _broadcasting(lib, ufunc: np.ufunc, loops: list) -> Callable:
    """What computes the same as the ufunc, in parallel, where the operands are as one of the loops takes them."""
    by_dtypes = {tuple(t.numpy for t in types[:-1]): (loop, types[-1].numpy) for types, loop in loops}
    no_loop = None, None
    loop_of, broadcast, empty, empty_like = by_dtypes.get, np.broadcast, np.empty, np.empty_like
    run = lib.elementwise_broadcast

    def kernel(*inputs, out=None):
        loop, dtype = loop_of(tuple([a.dtype for a in inputs]), no_loop)
        if loop is None:
            return ufunc(*inputs, out=out)
        result = out
        if result is None:
            shape = broadcast(*inputs).shape
            for a in inputs:
                if a.shape == shape and 0 not in a.strides:
                    result = empty_like(a, dtype)
                    break
            else:
                result = empty(shape, dtype)
        if run(loop, len(inputs), [id(a) for a in inputs], id(result)):
            return ufunc(*inputs, out=out)
        return result

    return kernel


def functions(lib) -> dict[str, tuple[Callable, frozenset[dtypes.dtype]]]:
    """By name of the function what computes it, a ufunc or what uses one for most operands, and its element types."""
    ffi = _cffi_backend.FFI()
    address = int(ffi.cast("uintptr_t", ffi.addressof(lib, "with_fast_path")))
    with_fast_path = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(address)
    made = {}
    for name, (ufunc, loops) in ufuncs(lib).items():
        function = with_fast_path((ufunc, _broadcasting(lib, ufunc, loops))) if ufunc.nin > 1 else ufunc
        made[name] = function, frozenset(types[loop.tensors - 1] for types, loop in loops)
    return made


@lru_cache(maxsize=4096)
def _number(value: float, dtype: np.dtype) -> np.ndarray:
    """A number as a ufunc takes it fastest."""
    return np.array(value, dtype)


def _beside(dtype: np.dtype) -> np.dtype:
    """The dtype of numbers beside arrays of a dtype: that in which these are computed."""
    return _FLOAT32 if dtype.itemsize == 2 and dtype.kind not in "iu" else dtype


@lru_cache(maxsize=256)
def _replacements(dtype: np.dtype, nan, posinf, neginf) -> list[np.ndarray]:
    """What NaN, inf and -inf become."""
    info = ml_dtypes.finfo(dtype)
    values = (nan, 0), (posinf, info.max), (neginf, info.min)
    return [np.array(default if value is None else value, _beside(dtype)) for value, default in values]


def kernels(lib):
    """The family's kernels."""
    loops = functions(lib)
    table = {name: function for name, (function, _) in loops.items()}

    def with_numbers(name, of=lambda *numbers: numbers):
        """The kernel of an op whose tensors are followed by numbers, from which `of` makes those of its expression."""
        function, tensors = table[name], next(e.tensors for e in EXPRESSIONS if e.name == name)

        @lru_cache(maxsize=4096)
        def arrays(dtype, numbers):
            return tuple([_number(value, _beside(dtype)) for value in of(*numbers)])

        def kernel(*arguments, out=None):
            operands = arguments[:tensors] + arrays(arguments[0].dtype, arguments[tensors:])
            return function(*operands) if out is None else function(*operands, out=out)

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
        def kernel(*arguments):
            *tensors, approximate = arguments
            if approximate not in ("none", "tanh"):
                raise ValueError(f"approximate argument must be either none or tanh, got {approximate!r}")
            return (tanh if approximate == "tanh" else exact)(*tensors)

        return kernel

    def clamp(input, min, max, out=None):
        if min is None and max is None:
            raise ValueError("no bound is given")
        if min is None:
            return table["minimum"](input, max, out=out)
        if max is None:
            return table["maximum"](input, min, out=out)
        return table["clamp" if min.ndim or max.ndim else "clamp_numbers"](input, min, max, out=out)

    def lerp(input, end, weight, out=None):
        return table["lerp" if weight.ndim else "lerp_number"](input, end, weight, out=out)

    def logit(input, eps, out=None):
        if eps is None or eps < 0:
            return table["logit"](input, out=out)
        dtype = _beside(input.dtype)
        return table["logit_clamped"](input, _number(eps, dtype), _number(1 - eps, dtype), out=out)

    def nan_to_num(input, nan, posinf, neginf, out=None):
        return table["nan_to_num"](input, *_replacements(input.dtype, nan, posinf, neginf), out=out)

    powers = {2.0: table["square"], 0.5: table["sqrt"], -1.0: table["reciprocal"], 3.0: table["cube"]}

    def pow(input, exponent, out=None):
        number = exponent.ndim == 0 and (input.ndim or input.dtype is exponent.dtype)  # not beside a half exponent
        if number and (quick := powers.get(exponent.item())) is not None:
            return quick(input, out=out)
        return table["pow"](input, exponent, out=out)

    def round(input, decimals, out=None):
        if decimals == 0:
            return table["rint"](input, out=out)
        scale = _number(10.0 ** abs(decimals), _beside(input.dtype))
        first, last = (table["mul"], table["div"]) if decimals > 0 else (table["div"], table["mul"])
        result = first(input, scale, out=out)
        return last(table["rint"](result), scale, out=out)

    def as_mask(mask, op):
        if mask.dtype != np.bool_:
            raise DtypeError(f"{op}: expected a boolean mask, but got one with dtype {mask.dtype}")
        return mask

    def choose(condition, input, other, out=None):
        return table["choose"](as_mask(condition, "where"), input, other, out=out)

    def masked_fill(input, mask, value, out=None):
        if value.ndim:
            raise ValueError("the value has dimensions")
        return table["choose"](as_mask(mask, "masked_fill"), value, input, out=out)

    shims = {
        "addcdiv": with_numbers("addcdiv"),
        "addcmul": with_numbers("addcmul"),
        "choose": choose,
        "clamp": clamp,
        "elu": with_numbers("elu", lambda alpha, scale, inner: (scale, alpha * scale, inner)),
        "elu_backward": with_numbers("elu_backward", lambda alpha, scale, inner: (scale, alpha * scale * inner, inner)),
        "gelu": by_approximation(table["gelu"], table["gelu_tanh"]),
        "gelu_backward": by_approximation(table["gelu_backward"], table["gelu_tanh_backward"]),
        "hardshrink": with_numbers("hardshrink"),
        "hardtanh": with_numbers("hardtanh", hardtanh_bounds),
        "leaky_relu": with_numbers("leaky_relu"),
        "leaky_relu_backward": with_numbers("leaky_relu_backward"),
        "lerp": lerp,
        "logit": logit,
        "masked_fill": masked_fill,
        "nan_to_num": nan_to_num,
        "pow": pow,
        "round": round,
        "softplus": with_numbers("softplus"),
        "softshrink": with_numbers("softshrink", softshrink_limit),
        "threshold": with_numbers("threshold"),
    }
    from_loops = {"clamp_min": "maximum", "clamp_max": "minimum", "round": "rint", "masked_fill": "choose"}
    cases = ("clamp_numbers", "cube", "gelu_tanh", "gelu_tanh_backward", "lerp_number", "logit_clamped", "rint")
    names = [*(name for name in table if name not in cases), *from_loops]
    made = []
    for name in names:
        loop = from_loops.get(name, name)
        function = shims.get(name, table[loop])
        made.append(Kernel(name, function, loops[loop][1], out=True, numbers=None if loop == "choose" else function))
    return made
