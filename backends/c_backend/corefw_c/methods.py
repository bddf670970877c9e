"""Methods of tensors and generators, and functions, in C (source/direct/methods.c), before the frontend's own."""

import threading
from inspect import signature
from typing import Any

from corefw.devices import DispatchKey, default, device
from corefw.dispatch import overriding, random_generator
from corefw.dispatch.backend import Methods
from corefw.dispatch.batching.arrays import LevelDevice, levels
from corefw.dispatch.registry import ops
from corefw.dtypes import Default, dtype
from corefw.graph.grad_mode import mode
from corefw.shapes import Size
from corefw.tensor import AccumulateGrad, Tensor
from corefw.versions import inferring
from corefw_c.direct import python_function

_TENSOR = (
    *("numel", "nelement", "size", "stride", "is_contiguous", "contiguous", "data_ptr", "storage_offset"),
    *("uniform_", "normal_", "exponential_"),
    *("shape", "nbytes", "is_cpu", "is_cuda", "is_meta", "requires_grad", "is_leaf", "grad_fn", "grad"),
)
_SIZE = ("__getitem__",)
_FACTORIES = ("size_and_target", "new_tensor")
_GENERATOR = ("take", "draw", "fill", "permutation")
_KINDS = (
    *("uniform_at", "normal_at", "integers_at", "exponential_at", "cauchy_at", "log_normal_at", "geometric_at"),
    "permutation_at",
)


def _frontend() -> tuple:
    """What C is to know, in the order of its `struct frontend`."""
    kinds = {kind: _drawing(kind) for kind in _KINDS}
    copy = ops.copy.op.inplace_function
    return (
        *(Tensor, DispatchKey, random_generator.Generator, Size, AccumulateGrad),
        *(LevelDevice.made, inferring, overriding.dressed, levels),
        *(kinds, "uniform_at", "normal_at", "exponential_at", "permutation_at", copy),
        *(random_generator.defaults, mode, default, Default, type(threading.Lock()).locked),
        *("array", "_grad", "take", "recording", "device", "dtype", "empty", "running", ("out",)),
        *(device, dtype),
    )


def _drawing(kind: str) -> tuple:
    function = getattr(ops, kind)
    return function, function.op.table, function.op.inplace_table, random_generator.words_of(kind)


def _documentation(owner, own) -> bytes:
    """A text of which Python's `inspect` makes a signature, where defaults can be written in it, and a docstring."""
    head = ""
    if isinstance(owner, type) and callable(own):
        _, *parameters = signature(own).parameters.values()
        plain = [p.replace(annotation=p.empty) for p in parameters]
        if all(p.default is p.empty or p.default is None or p.default.__class__ in (int, float) for p in plain):
            head = f"{own.__name__}({', '.join(['$self', *map(str, plain)])})\n--\n\n"
    return f"{head}{own.__doc__}".encode()


def methods(lib) -> Methods:
    """{(class, or a module's name; name): what makes the one in C of the frontend's own}."""
    python_function(lib, "set_frontend")(_frontend())
    make = python_function(lib, "method_in_c")

    def maker(owner, name: str):
        return lambda own: make((owner, name.encode(), own, _documentation(owner, own)))

    owners: dict[Any, tuple[str, ...]] = {Tensor: _TENSOR, Size: _SIZE, random_generator.Generator: _GENERATOR}
    owners["corefw.declarations._shared.factories"] = _FACTORIES  # a module above the floors that backends import
    return {(owner, name): maker(owner, name) for owner, names in owners.items() for name in names}
