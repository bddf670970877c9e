"""The device "emulated": the CuPy backend over host memory and compiled C++."""

from collections import defaultdict
from functools import cache

import cupy
import numpy as np
import pytest

from corefw.dispatch.registry import registry
from corefw_cupy import backend, unusable
from corefw_cupy.cuda import Cuda
from corefw_cupy.device_asserts import DeviceAsserts
from corefw_cupy.launch import text
from corefw_cupy.runtime import CupyRuntime
from tests.emulation import compiler, cublas_lt, driver, memory, queue
from tests.emulation.namespace import namespace

if compiler.COMPILER is None:
    pytest.skip("the CUDA sources run with a C++ compiler only", allow_module_level=True)


TOGETHER = 16  # elementwise functions that are compiled at once: a few cost little more than one


class EmulatedCuda(Cuda):
    """Functions compiled as C++; elementwise ones with their neighbours of the same types, to save time."""

    def __init__(self, *arguments):
        self._elementwise = defaultdict(dict)  # the sources (keys of a dict, which keeps their order), by kind
        super().__init__(*arguments)

    def generated(self, source, name, macros):
        if "__global__" in source:
            self._elementwise[_kind(name, macros)][source] = None
        return super().generated(source, name, macros)

    def compile(self, function, definitions):
        definitions = {macro: text for macro, text in definitions.items() if (macro, text) != ("SIZE", "int32")}
        elementwise = "__global__" in function.source  # and not in a file
        sources = self._neighbours(function) if elementwise else [function.source]
        loaded = self._library(text("\n".join(sources), definitions))
        launch = compiler.launcher(loaded, function.name)
        return self.device_asserts.checked(launch, self.capturing) if self.device_asserts.blocking else launch

    def _neighbours(self, function):
        sources = [*self._elementwise[_kind(function.name, function.macros)]]
        first = sources.index(function.source) // TOGETHER * TOGETHER
        return sources[first : first + TOGETHER]

    def cublas_lt(self):
        return cublas_lt.library

    def on_host(self, array):
        driver.State.log.append(("device to host", array.nbytes))
        return memory.host(array)

    @cache  # noqa: B019 (there is one, for the life of the process)
    def _library(self, source):
        return compiler.library(source)


def _kind(name: str, macros) -> tuple:
    """What functions that are compiled together have in common: their walk and types."""
    return name.rpartition("_")[2], frozenset((macro, id(texts)) for macro, texts in macros.items() if macro != "SIZE")


class EmulatedRuntime(CupyRuntime):
    """The first of the driver's devices, as a device type of its own."""

    device_type = "emulated"
    dlpack_type = None

    def device_count(self):
        return 1


@cache
def cuda() -> EmulatedCuda:
    """The functions of the emulated device."""
    if unusable() is not None:  # CuPy's own methods allocate too, and there is no other memory
        cupy.cuda.set_allocator(memory.allocate)
    asserts = DeviceAsserts(np.zeros(4, np.int64), queue.drain, blocking=not queue.DEFERRED)
    return EmulatedCuda(namespace(), asserts, memory.empty)


def install() -> None:
    """Register the device, once per process."""
    if "emulated" not in registry.backends:
        registry.add_backend(backend(cuda(), EmulatedRuntime(cuda()), name="emulated"))
