"""Updates, ops that change lists of tensors in place: their calls beside the fast path."""

from __future__ import annotations

from typing import Any

from corefw.devices import DispatchKey
from corefw.dispatch.op import Op
from corefw.dispatch.out import refuse_read_only
from corefw.tensor import Tensor


def by_dispatch_key(op: Op, *values) -> None:
    """Run `op` once for each dispatch key of its first list's tensors, unless one of the lists is read-only."""
    first = values[0]
    for p, value in zip(op.parameters, values):
        if p.role:
            refuse_read_only(op.name, *value)
    for dispatch_key in dict.fromkeys(t.dispatch_key for t in first):
        chosen = [i for i, t in enumerate(first) if t.dispatch_key is dispatch_key]
        given = (
            [value[i] for i in chosen if value]
            if p.kind == "tensors"
            else value.to(first[chosen[0]])
            if p.kind == "index"
            else value
            for p, value in zip(op.parameters, values, strict=True)
        )
        op.function(*given)


def as_rate(value: Any, dispatch_key: DispatchKey) -> Any:
    """A number as kernels take it: a float or, of a tensor that lies where graphs are replayed, its array."""
    if not isinstance(value, Tensor) or value.dispatch_key.device is not dispatch_key.device:
        return value if isinstance(value, float) else float(value)
    return value.array if dispatch_key.runtime.has_graphs else float(value)
