"""CUDA functions: where their sources are, what their macros stand for, and the geometry of their launches."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ctypes import addressof, c_uint64
from functools import cache, lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.errors import DtypeError

FOLDER = Path(__file__).parent / "source"
INCLUDE = re.compile(r'^#include "(.+)"$', re.MULTILINE)
THREADS = 256  # in a block, unless a kernel says otherwise


def _types(*members: dtypes.dtype) -> dict[Any, str]:
    """NumPy's dtypes and the names of their types in CUDA sources (types.cuh)."""
    return {member.numpy: member.name for member in members}


#: what a macro of a source may stand for: {key that a kernel is looked up with: text in the source}
REALS = _types(dtypes.float32, dtypes.float64)
HALVES = _types(dtypes.float16, dtypes.bfloat16)
FLOATS = {**REALS, **HALVES}
#: by dtype of the elements that of their statistics
STATISTIC = {dtype: dtype if dtype.itemsize > 2 else dtypes.float32.numpy for dtype in FLOATS}
SIGNED = _types(dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
UNSIGNED = _types(dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64)
INTEGERS = {**SIGNED, **UNSIGNED}
BOOL = _types(dtypes.bool_)
NUMBERS = {**FLOATS, **INTEGERS}
COMPLEX = {dtypes.complex64.numpy: "Complex<float>", dtypes.complex128.numpy: "Complex<double>"}
BITS = {size: f"bits{8 * size}" for size in (1, 2, 4, 8, 16)}


def offered(keys: Mapping[Any, str]) -> frozenset[dtypes.dtype]:
    """The dtypes that such keys stand for, as a `Kernel` declares them."""
    return frozenset(d for d in dtypes.ALL if d.numpy in keys or (d.itemsize in keys and keys is BITS))


@cache
def _complete(source: str) -> str:
    """A source with the files that it includes, each once."""
    seen: set[str] = set()

    def included(found: re.Match) -> str:
        file = found[1]
        if file in seen:
            return ""
        seen.add(file)
        return INCLUDE.sub(included, (FOLDER / file).read_text(encoding="utf-8"))

    return INCLUDE.sub(included, source)


def text(source: str, definitions: Mapping[str, str]) -> str:
    """What is compiled: the macros, which compiler options would define in CUDA's own headers too, and the source."""
    return "".join(f"#define {macro} {value}\n" for macro, value in definitions.items()) + _complete(source)


class Function(dict):
    """A CUDA function: {key: what launches it for this key}, filled when first looked up.

    The key has one item for each macro (a single one stands alone): the element type, its size, or a constant.
    """

    def __init__(
        self,
        compile: Callable[[Function, dict[str, str]], Callable],
        source: str,
        name: str,
        macros: Mapping[str, Mapping[Any, str]],
    ):
        self.compile, self.source, self.name, self.macros = compile, source, name, macros

    def __missing__(self, key):
        keys = key if isinstance(key, tuple) else (key,)
        for part, (macro, texts) in zip(keys, self.macros.items(), strict=True):
            if part not in texts:
                names = ", ".join(texts.values())
                raise DtypeError(f"CUDA function {self.name}: there is none for {macro} = {part}, only for {names}")
        made = self[key] = self.compile(self, self.definitions(keys))
        return made

    def definitions(self, keys: tuple) -> dict[str, str]:
        """What the macros stand for."""
        return {macro: texts[part] for part, (macro, texts) in zip(keys, self.macros.items(), strict=True)}

    def variants(self) -> list[dict[str, str]]:
        """All definitions that the function may be compiled with."""
        return [self.definitions(keys) for keys in product(*self.macros.values())]


@cache
def _struct_class() -> type:
    from cupy.cuda.function import CPointer

    class Struct(CPointer):
        """The address of a struct in host memory, which it keeps."""

        memory: Any  # set by `_kept`: a constructor of Python's costs 0.3 us

    return Struct


def _kept(address: int, memory: Any) -> Any:
    struct = _struct_class()(address)
    struct.memory = memory
    return struct


def argument(struct: np.ndarray) -> Any:
    """A struct as an argument of launches, which copy it; an array would be asked for its address at each of them."""
    return _kept(struct.ctypes.data, struct)


@lru_cache(maxsize=1 << 10)
def pointers(addresses: tuple[int, ...], most: int) -> Any:
    """The struct of `most` pointers, of which these are the first, as an argument of launches; a program's loop gives
    the same addresses again and again."""
    memory = (c_uint64 * most)(*addresses)
    return _kept(addressof(memory), memory)


def blocks(n: int, threads: int = THREADS) -> tuple[int]:
    """The grid of as many blocks as `n` threads need, at least one."""
    return (max(1, -(-n // threads)),)
