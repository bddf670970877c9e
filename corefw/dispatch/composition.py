"""The ops that a composition is made of: those named in its body, and those that a call of it runs."""

from __future__ import annotations

import dis
import warnings
from collections.abc import Callable, Iterator
from types import FunctionType, ModuleType

from corefw.devices import DispatchKey, device
from corefw.dispatch.batching.tensors import batch_of, enter, leave
from corefw.dispatch.declare import Declaration
from corefw.dispatch.modes import Mode
from corefw.dispatch.op import Op
from corefw.dispatch.random_generator import Generator
from corefw.dispatch.registry import dispatch_key_of, registry
from corefw.dispatch.runtime import MetaArray
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor, wrap


# -- by name ----------------------------------------------------------------------------------------------------------
def named_ops(op: Op) -> list[Op]:
    """The ops that may have kernels, no views, which the body of `op` names, itself or through other compositions that
    no backend can replace; nearest first.

    Python's operators, which may as well work on numbers, are not looked for.

    >>> [one.name for one in named_ops(registry.declared["conv2d"])]
    ['convolution', 'constant_pad_nd', 'indexed_pad']
    """
    found, waiting = {op: False}, [*_named(op.body, set())]
    while waiting:
        one = waiting.pop(0)
        if one in found:
            continue
        found[one] = one.rule is not None and not one.view
        if one.rule is None:
            waiting += _named(one.body, set())
    return [one for one, kept in found.items() if kept]


def named_by(function: Callable) -> list[Op]:
    """The ops that a function names, such as the formula of a gradient."""
    return list(dict.fromkeys(_named(function, set())))


def _named(function: Callable, seen: set[Callable]) -> Iterator[Op]:
    """The ops that a function names, itself or in functions of its file that it calls."""
    seen.add(function)
    loaded: object = None
    for step in dis.get_instructions(function):
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            if step.argval in registry.declared and not isinstance(loaded, ModuleType):
                yield registry.declared[step.argval]
            loaded = None
        elif step.opname == "LOAD_GLOBAL":
            loaded = function.__globals__.get(step.argval)
            if isinstance(loaded, Declaration) or (isinstance(loaded, FunctionType) and hasattr(loaded, "op")):
                yield loaded.op
            elif isinstance(loaded, FunctionType) and "OP" in loaded.__globals__:  # generated for an op
                yield loaded.__globals__["OP"]
            elif isinstance(loaded, FunctionType) and loaded.__globals__ is function.__globals__ and loaded not in seen:
                yield from _named(loaded, seen)


# -- by rehearsal -----------------------------------------------------------------------------------------------------
class Rehearsal(Mode):
    """While it is on, notes the ops that run, but neither those inside of ops for which `whole` holds nor views.

    Attributes: ``met`` the ops with the dtypes in which they ran, in the order of their first run.
    """

    def __init__(self, whole: Callable[[Op, DispatchKey], bool]):
        self.whole = whole
        self.met: dict[tuple[Op, DispatchKey], None] = {}
        self._inside = 0

    def wrap(self, op, dispatch_key, who, function):
        if op.view or not self.whole(op, dispatch_key):
            return function

        def met(*arguments, **options):
            if not self._inside:
                self.met[op, dispatch_key] = None
            self._inside += 1
            try:
                return function(*arguments, **options)
            finally:
                self._inside -= 1

        return met


def rehearse(
    op: Op, whole: Callable[[Op, DispatchKey], bool], args, kwargs, where: device
) -> list[tuple[Op, DispatchKey]]:
    """The ops for which `whole` holds that a call of `op` would run, with their places on the device `where`; only
    shapes are computed. Whatever the body raises is raised: on shapes alone not every body runs."""

    def there(dispatch_key: DispatchKey) -> DispatchKey:
        return dispatch_key_of(where, dispatch_key.dtype) if dispatch_key.device.type == "meta" else dispatch_key

    rehearsal = Rehearsal(lambda one, dispatch_key: whole(one, there(dispatch_key)))
    others, registry.modes = registry.modes, []  # what the user counts or times is not this
    try:
        with rehearsal, device("meta"), no_recording(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            op.function(*map(_shape_only, args), **{name: _shape_only(value) for name, value in kwargs.items()})
    finally:
        registry.modes = others
    return list(dict.fromkeys((one, there(dispatch_key)) for one, dispatch_key in rehearsal.met))


def _shape_only(value):
    """An argument with tensors replaced by ones without memory; no generator, whose state would go on."""
    if (batch := batch_of(value)) is not None:
        return enter(_shape_only(leave(value.detach(), batch.depth)), batch.depth)
    if isinstance(value, Tensor):
        array, dispatch_key = value.array, value.dispatch_key
        offset = dispatch_key.runtime.storage_offset(array)
        return wrap(
            MetaArray(array.shape, array.dtype, array.strides, offset),
            dispatch_key_of(device("meta"), dispatch_key.dtype),
        )
    if value.__class__ in (list, tuple):
        return value.__class__(map(_shape_only, value))
    return None if isinstance(value, Generator) else value
