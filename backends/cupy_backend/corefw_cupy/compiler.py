"""What CUDA functions are made by, when first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from corefw_cupy.capturing import Capturing
from corefw_cupy.compilation import launcher
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


class Compiler:
    """CuPy, and the functions that were asked for, on one kind of device.

    Attributes: ``xp`` CuPy; ``empty(shape, dtype)`` a new array; ``clone`` copies an operand that a function would
    change while it is read, set once there are functions that copy; ``functions`` all that were asked for;
    ``capturing`` what this thread captures in a graph; ``device_asserts`` what kernels report.
    """

    clone: Callable

    def __init__(self, xp: Any, device_asserts: DeviceAsserts, empty: Callable | None = None):
        self.xp = xp
        self.empty = allocating(xp.ndarray) if empty is None else empty
        self.device_asserts = device_asserts
        self.capturing = Capturing()
        self.functions: list[Function] = []

    def function(self, file: str, name: str, **macros: Mapping[Any, str]) -> Function:
        """The function `name` of a file in source/, with the keys that each macro may have.

        A function is launched by ``function[key]((blocks,), (threads,), (arrays and numbers))``: integers arrive as
        ``long long``, floats as ``double``, arrays as pointers, and 0 stands for no array.
        """
        return self.generated(f'#include "{file}"', name, macros)

    def generated(self, source: str, name: str, macros: Mapping[str, Mapping[Any, str]]) -> Function:
        """The function `name` of a source that was made."""
        made = Function(self.compile, source, name, macros)
        self.functions.append(made)
        return made

    def compile(self, function: Function, definitions: dict[str, str]) -> Callable:
        """What launches a function."""
        launch = launcher(self.xp, text(function.source, definitions), function.name)
        return self.device_asserts.checked(launch, self.capturing) if self.device_asserts.blocking else launch
