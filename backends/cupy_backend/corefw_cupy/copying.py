"""Copies, conversions and fills of arrays of any strides: what the runtime and all families need."""

from __future__ import annotations

import numpy as np

from corefw_cupy.compiler import Compiler
from corefw_cupy.launch import BITS, BOOL, COMPLEX, NUMBERS
from corefw_cupy.pointwise_function import Pointwise

_EVERY = {**NUMBERS, **BOOL, **COMPLEX}


class Copying:
    """Functions over arrays of one device, compiled by `compiler`."""

    def __init__(self, compiler: Compiler):
        def moving(name, operands, numbers, formula, macros):
            result = "R" if "R" in macros else "T"
            return Pointwise(compiler, name, operands, numbers, "int64", result, formula, macros, computed=False)

        self.empty, self.broadcast_to = compiler.empty, compiler.xp.broadcast_to
        self._move = moving("move", ("T",), 0, "x", {"T": BITS})
        self._choose = moving("choose", ("bool", "T", "T"), 0, "x ? y : z", {"T": BITS})
        self._convert = moving("convert", ("T",), 0, "converted<R>(x)", {"T": _EVERY, "R": _EVERY})
        self._constant = moving("constant", (), 2, "from_bits<T>(s, t)", {"T": BITS})

    def copy(self, target, source) -> None:
        """Write `source`, broadcast and converted, into `target`."""
        while source.ndim > target.ndim and source.shape[0] == 1:
            source = source[0]
        if source.shape != target.shape:
            source = self.broadcast_to(source, target.shape)
        if target.dtype == source.dtype:
            self._move((target.dtype.itemsize,), target.dtype, (source,), (), target)
        else:
            self._convert((source.dtype, target.dtype), target.dtype, (source,), (), target)

    def dense(self, array):
        """A copy in row-major order."""
        result = self.empty(array.shape, array.dtype)
        self.copy(result, array)
        return result

    def clone(self, array):
        """A copy, in the same memory order where the elements lie without gaps."""
        return self._move((array.dtype.itemsize,), array.dtype, (array,))

    def cast(self, array, dtype: np.dtype):
        """A copy converted to another dtype."""
        return self._convert((array.dtype, dtype), dtype, (array,))

    def choose(self, condition, input, other, out=None):
        """Elements of `input` where the mask is set, of `other` elsewhere."""
        return self._choose((input.dtype.itemsize,), input.dtype, (condition, input, other), (), out)

    def fill(self, array, value) -> None:
        """Write one number everywhere."""
        bits = np.zeros(2, np.int64)
        bits.view(array.dtype)[0] = value
        self._constant((array.dtype.itemsize,), array.dtype, (), tuple(bits.tolist()), array)

    def full(self, shape, value, dtype: np.dtype):
        """A new array of one number."""
        result = self.empty(shape, dtype)
        self.fill(result, value)
        return result
