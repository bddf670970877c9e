"""Calls of kernels, for what watches them: the arrays among the arguments, what they share, and a description."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.devices import DispatchKey
from corefw.dispatch.flags import unheard
from corefw.dispatch.op import Op
from corefw.dispatch.runtime import Runtime


def computes(op: Op, dispatch_key: DispatchKey, who: str) -> bool:
    """Whether what `who` offers for an op (see `Mode.wrap`) computes elements of arrays: views do not, nor does the
    device `meta`, and a body that is no kernel is given tensors."""
    return not (op.view or dispatch_key.device.type == "meta" or (who == "composite" and not op.gradients))


def silent(kernel: Callable) -> Callable:
    """`kernel`, to be called by code that is not remade by `unheard`."""

    def called(*arguments, **options):
        return kernel(*arguments, **options)

    return unheard(called)


def arrays_of(op: Op, arguments) -> Iterator[tuple[str, Any]]:
    """The arrays among a kernel's arguments with their names: "input", "tensors[1]"."""
    for p, value in zip(op.kernel_parameters, arguments, strict=False):
        if p.kind in ("tensors", "indices"):
            yield from ((f"{p.name}[{i}]", item) for i, item in enumerate(value) if item is not None)
        elif hasattr(value, "strides"):
            yield p.name, value


def changed_of(op: Op, arguments) -> Iterator[tuple[str, Any]]:
    """As `arrays_of`, of what the kernel changes in place because the op says so."""
    changed = {p.name for p in op.changed}
    return ((name, array) for name, array in arrays_of(op, arguments) if name.partition("[")[0] in changed)


def host_copy(runtime: Runtime, array) -> np.ndarray:
    """The content of an array of the device, or of the host, in memory of its own."""
    return np.array(array if isinstance(array, np.ndarray) else runtime.download(array))


def shares_memory(runtime: Runtime, first, second) -> bool:
    """Whether two arrays lie in one memory, which is so if the ranges overlap that reach from their first to their last
    bytes; False where a device has no addresses."""
    if type(first) is not type(second):
        return False
    one, other = reach(runtime, first), reach(runtime, second)
    return one is not None and other is not None and one[0] < other[1] and other[0] < one[1]


def reach(runtime: Runtime, array) -> tuple[int, int] | None:
    """The addresses at which an array's bytes begin and end; None if it has no bytes, or the device no addresses."""
    if not array.nbytes:
        return None
    try:
        address = runtime.address(array)
    except NotImplementedError:
        return None
    reaches = [(size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True)]
    return address + sum(r for r in reaches if r < 0), address + sum(r for r in reaches if r > 0) + array.dtype.itemsize


def described(op: Op, arguments) -> str:
    """A call in words: "softmax(input=float32[2, 3], dim=1)"."""
    names = [p.name for p in op.kernel_parameters]
    return f"{op.name}({', '.join(f'{n}={_in_words(v)}' for n, v in zip(names, arguments, strict=False))})"


def _in_words(value) -> str:
    if hasattr(value, "strides"):
        return f"{dtypes.of_numpy(value.dtype).name}{list(value.shape)}"
    if value.__class__ is list and any(hasattr(item, "strides") for item in value):
        shown = ", ".join(map(_in_words, value[:3]))
        return f"[{shown}, ... {len(value)} in all]" if len(value) > 3 else f"[{shown}]"
    return repr(value)
