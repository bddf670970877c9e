"""The reference of a shadow execution: what one backend computes, whatever backends the program uses."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.devices import DispatchKey, device
from corefw.dispatch.calls import arrays_of, silent
from corefw.dispatch.op import Op
from corefw.dispatch.preferences import usable_backend
from corefw.dispatch.registry import dispatch_key_of
from corefw.dispatch.resolution import decide, function_of
from corefw.dispatch.rules import computed
from corefw.dtypes import dtype

#: the dtype in which rounding no longer matters
_WIDE: dict[dtype, dtype] = {
    dtypes.float16: dtypes.float64,
    dtypes.bfloat16: dtypes.float64,
    dtypes.float32: dtypes.float64,
    dtypes.complex64: dtypes.complex128,
}


class Reference:
    """A backend that says what is right. While it computes in a thread, `active` holds there, and the ops inside of
    bodies of composites are its own too."""

    def __init__(self, name: str):
        self.backend = usable_backend(name, "shadow: ")
        self.name = name
        self._thread = threading.local()
        self._kernels: dict[tuple[Op, DispatchKey, bool], Callable] = {}

    @property
    def active(self) -> bool:
        return getattr(self._thread, "active", False)

    def place(self, dispatch_key: DispatchKey) -> DispatchKey:
        """Where it computes what lies at `dispatch_key`: there, if it serves this device."""
        if dispatch_key.device.type in self.backend.devices:
            return dispatch_key
        return dispatch_key_of(device(self.backend.devices[0]), dispatch_key.dtype)

    def arguments(self, arguments, dispatch_key: DispatchKey, copied: bool) -> list:
        """A kernel's arguments where the reference computes; those of its own device are the same unless `copied`."""
        here, place = dispatch_key.runtime, self.place(dispatch_key)

        def there(value):
            if value.__class__ in (list, tuple):
                return value.__class__(map(there, value))
            if value.__class__ is here.array_type:
                if place is not dispatch_key:
                    return place.runtime.upload(np.array(here.download(value)), place.device.index)
                return here.clone(value) if copied else value
            return value.copy() if copied and isinstance(value, np.ndarray) else value

        return [there(value) for value in arguments]

    def call(self, op: Op, place: DispatchKey, arguments) -> Any:
        """The op's result for arrays that lie at `place`."""
        before, self._thread.active = self.active, True
        try:
            return self._kernel(op, place, arguments)(*arguments)
        finally:
            self._thread.active = before

    def into(self, op: Op, place: DispatchKey, arguments, out=None) -> Any:
        """As `call`, of an op inside of another one: with `out` the result is left there."""
        result = self.call(op, place, arguments)
        if out is None:
            return result
        place.runtime.copy(out, result if result.__class__ is place.runtime.array_type else place.runtime.wrap(result))
        return out

    def widely(self, op: Op, place: DispatchKey, arguments) -> Any:
        """The op's result for the same numbers in double precision; None where there is none."""
        wide = _WIDE.get(place.dtype)
        tied = any(p.kind == "dispatch_key" or p.name in ("dtype", "seed") for p in op.parameters)
        if wide is None or tied or not op.rule.accepts(wide):
            return None

        def widened(value):
            if value.__class__ is list:
                return [widened(item) for item in value]
            if value.__class__ is not place.runtime.array_type:
                return value
            d = _WIDE.get(dtypes.of_numpy(value.dtype))
            return value if d is None else place.runtime.cast(value, d)

        return self.call(op, place.with_dtype(wide), [widened(value) for value in arguments])

    def _kernel(self, op: Op, place: DispatchKey, arguments) -> Callable:
        wide = computed(place.dtype)
        numbers = op.rule.arithmetic and wide is not place.dtype
        numbers = numbers and any(not a.shape and a.dtype == wide.numpy for _, a in arrays_of(op, arguments))
        found = self._kernels.get((op, place, numbers))
        if found is None:
            found = self._kernels[op, place, numbers] = silent(function_of(decide(op, place, (self.name,)), numbers)[0])
        return found
