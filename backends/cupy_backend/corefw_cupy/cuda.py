"""What kernels are built on: CuPy's arrays, our own functions, and copies by them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw_cupy import cublas_lt
from corefw_cupy.compiler import Compiler
from corefw_cupy.copying import Copying
from corefw_cupy.device_asserts import DeviceAsserts


class Cuda(Compiler):
    """The compiler, and what it makes first.

    Attributes: ``copying`` copies and conversions by our own functions; ``write_generator_state`` for random numbers in
    graphs.
    """

    def __init__(self, xp: Any, device_asserts: DeviceAsserts, empty: Callable | None = None):
        super().__init__(xp, device_asserts, empty)
        self.copying = Copying(self)
        self.clone = self.copying.clone
        self.write_generator_state = self.function("random/generator_state.cu", "write_generator_state")

    def cublas_lt(self) -> Any:
        """The functions of cublasLt, None where the library is missing."""
        return cublas_lt.load()

    def dense(self, array):
        """The array itself if its elements lie in row-major order without gaps, else a copy that does."""
        return array if array._c_contiguous else self.copying.dense(array)  # CuPy makes an object of flags, in 0.15 us

    def number(self, array) -> int:
        """The integer that an array of one element holds. Waits for it."""
        self.capturing.refuse("a result whose shape depends on elements", "they are not known before the replay")
        value = int(self.on_host(array).reshape(())[()])
        self.device_asserts.check()
        return value

    def on_host(self, array) -> Any:
        """A copy of an array as NumPy's. Waits for it."""
        return array.get()
