"""Evidence that a check says something of a backend: the ledger of who computed what."""

from __future__ import annotations

from corefw.devices import device
from corefw.dispatch.modes import ledger
from corefw.dispatch.registry import registry
from corefw.testing.conform.items import Item

#: what computes without a kernel: strides, shapes, and bodies, whose own ops are counted for themselves
_NO_KERNEL = ("composite", "geometry", "meta")
#: the sections whose checks need not run a kernel: memory is the runtime's, and the frontend refuses most bad input
_WITHOUT_KERNELS = ("runtime", "bad input")


def missing_proof(item: Item, book: ledger) -> str:
    """Why what `item` did says nothing of its backend; "" if it does."""
    target = item.target
    there = [
        (op, who)
        for op, key, who in book.counts
        if device(key.partition("/")[0]).type == target.device and who not in _NO_KERNEL
    ]
    claimed = _has_kernel(item)
    ran = {who for op, who in there if not claimed or op == item.op}
    others = ", ".join(sorted(ran - {target.backend}))
    if target.backend in ran and (claimed or target != target.owner() or not others):
        return ""
    if others:
        return f"no kernel of '{target.backend}' ran: it was computed by {others}"
    if item.section in _WITHOUT_KERNELS or (item.op and not claimed):
        return ""
    return f"no kernel of '{target.backend}' ran" if book.counts else "the row has no sample of this kind"


def _has_kernel(item: Item) -> bool:
    offers = registry.kernels.get((item.op, item.target.device), ())
    return any(backend.name == item.target.backend for backend, _ in offers)
