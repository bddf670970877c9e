"""What kernels are built on: CuPy's arrays, and CUDA functions compiled when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from corefw_cupy import cublas_lt
from corefw_cupy.capturing import Capturing
from corefw_cupy.compilation import launcher
from corefw_cupy.copying import Copying
from corefw_cupy.device_asserts import DeviceAsserts
from corefw_cupy.launch import Function, text


def allocating(array_type: type) -> Callable:
    """What makes new arrays of a shape and a dtype: the type's own constructor is in Python, and takes 0.4 us more."""
    plain: Any = array_type.__base__
    if not hasattr(plain, "_init"):  # in another CuPy
        return array_type
    new, fill_in = plain.__new__, plain._init

    def empty(shape, dtype):
        array = new(array_type)
        fill_in(array, shape, dtype)
        return array

    return empty


class Cuda:
    """CuPy and our functions, on one kind of device.

    Attributes: ``xp`` CuPy; ``empty(shape, dtype)`` a new array; ``functions`` all
    functions that were asked for; ``capturing`` what this thread captures in a graph; ``device_asserts`` what kernels
    report; ``copying`` copies and conversions by our own functions; ``write_generator_state`` for random numbers in
    graphs.
    """

    def __init__(self, xp: Any, device_asserts: DeviceAsserts, empty: Callable | None = None):
        self.xp = xp
        self.empty = allocating(xp.ndarray) if empty is None else empty
        self.device_asserts = device_asserts
        self.capturing = Capturing()
        self.functions: list[Function] = []
        self.copying = Copying(self)
        self.write_generator_state = self.function("random/generator_state.cu", "write_generator_state")

    def function(self, file: str, name: str, **macros: Mapping[Any, str]) -> Function:
        """The function `name` of a file in source/, with the keys that each macro may have.

        A function is launched by ``function[key]((blocks,), (threads,), (arrays and numbers))``: integers arrive as
        ``long long``, floats as ``double``, arrays as pointers, and 0 stands for no array.
        """
        return self.generated(f'#include "{file}"', name, macros)

    def generated(self, source: str, name: str, macros: Mapping[str, Mapping[Any, str]]) -> Function:
        """The function `name` of a source that was made."""
        made = Function(self, source, name, macros)
        self.functions.append(made)
        return made

    def compile(self, function: Function, definitions: dict[str, str]) -> Callable:
        """What launches a function."""
        launch = launcher(self.xp, text(function.source, definitions), function.name)
        return self.device_asserts.checked(launch, self.capturing) if self.device_asserts.blocking else launch

    def cublas_lt(self) -> Any:
        """The functions of cublasLt, None where the library is missing."""
        return cublas_lt.load()

    def dense(self, array):
        """The array itself if its elements lie in row-major order without gaps, else a copy that does."""
        return array if array._c_contiguous else self.copying.dense(array)  # CuPy makes an object of flags, in 0.15 us

    def number(self, array) -> int:
        """The integer that an array of one element holds. Waits for it."""
        self.capturing.refuse("a result whose shape depends on elements", "they are not known before the replay")
        value = int(array.get().reshape(())[()])
        self.device_asserts.check()
        return value
