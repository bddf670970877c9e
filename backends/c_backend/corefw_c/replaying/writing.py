"""Functions that are written for a plan, and the arrays that they make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from corefw.dispatch.flags import NAMELESS
from corefw.dispatch.plan import Call, Offset, Rate, Seed
from corefw_c.replaying.places import Place, address_of


class Writer:
    """A Python function that is being written."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[str, Any] = dict(NAMELESS)
        self._known: dict[int, str] = {}

    def name(self, value: Any) -> str:
        """The name of an object in the function."""
        if id(value) not in self._known:
            self._known[id(value)] = f"v{len(self._known)}"
            self._names[self._known[id(value)]] = value
        return self._known[id(value)]

    def function(self, head: str, *lines: str) -> Callable:
        """The function of these lines."""
        source = f"def {head}:\n" + "\n".join(f"    {line}" for line in lines)
        exec(compile(source, "<corefw plan>", "exec"), self._names)
        return self._names[head.partition("(")[0]]


def number(what: Seed | Rate) -> str:
    """How a number that is another one in each run is computed from what a run is given."""
    if what.__class__ is Rate:
        return f"rates[{what.source}]"
    drawn = f"draws[{what.source}]"
    return f"({drawn}[1] + {what - what.start}) % {1 << 64}" if isinstance(what, Offset) else f"{drawn}[0]"


class _Window:
    """Memory of another array, for NumPy to make an array of."""

    def __init__(self, source: np.ndarray, place: Place):
        self.base = source
        self.__array_interface__ = {
            "version": 3,
            "data": (address_of(source) + place.offset, not place.writable),
            "shape": place.shape,
            "strides": place.strides,
            "typestr": f"|V{place.dtype.itemsize}",
        }


def shown(source: np.ndarray, place: Place) -> np.ndarray:
    """A new array at a place in the memory of one."""
    return np.asarray(_Window(source, place)).view(place.dtype)


def as_before(value: Any, call: Call, place: Place) -> np.ndarray:
    """What a call of a kernel has returned, as an array that lies as that of the first run did."""
    runtime = call.dispatch_key.runtime
    array = value if value.__class__ is runtime.array_type else runtime.wrap(value)
    if array.shape != place.shape or array.dtype != place.dtype:
        raise RuntimeError(
            f"{call.op.name}: its result is {array.dtype}{list(array.shape)}, and was {place.dtype}{list(place.shape)} "
            "when the calls were written down"
        )
    flags = array.flags
    if array.strides == place.strides and flags.writeable == place.writable and flags.aligned:
        return array
    reach = sum((size - 1) * step for size, step in zip(place.shape, place.strides)) + place.dtype.itemsize
    made = np.ndarray(place.shape, place.dtype, np.empty(max(reach, array.nbytes), np.uint8), 0, place.strides)
    made[...] = array
    made.flags.writeable = place.writable
    return made
