"""Evidence that a check says something of a backend, and that each of its kernels was checked: the ledger of who
computed what."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from corefw import dtypes
from corefw.devices import device
from corefw.dispatch.modes import ledger
from corefw.dispatch.registry import registry
from corefw.testing.conform.items import Item
from corefw.testing.conform.outcomes import LONGEST_REASON, Outcome, Result
from corefw.testing.targets import Target

#: what computes without a kernel: strides, shapes, and bodies, whose own ops are counted for themselves
_NO_KERNEL = ("composite", "geometry", "meta")
#: the sections whose checks need not run a kernel: memory is the runtime's, and the frontend refuses most bad input
_WITHOUT_KERNELS = ("runtime", "bad input")


def missing_proof(item: Item, book: ledger) -> str:
    """Why what `item` did says nothing of its backend; "" if it does."""
    target = item.target
    there = _ran(target, book)
    claimed = _has_kernel(item)
    own = {who for op, who in there if op == item.op}
    # of an op that is recorded, a composite's body may run instead of its kernel
    ran = own if claimed and (own or item.section != "gradients") else {who for _, who in there}
    others = ", ".join(sorted(ran - {target.backend}))
    if target.backend in ran and (claimed or target != target.owner() or not others):
        return ""
    if others:
        return f"no kernel of '{target.backend}' ran: it was computed by {others}"
    if item.section in _WITHOUT_KERNELS or (item.op and not claimed):
        return ""
    return f"no kernel of '{target.backend}' ran" if book.counts else "the row has no sample of this kind"


def natively_ran(target: Target, book: ledger) -> tuple[str, ...]:
    """The ops that kernels of the target's backend computed on its device."""
    return tuple(sorted({op for op, who in _ran(target, book) if who == target.backend}))


def _ran(target: Target, book: ledger) -> list[tuple[str, str]]:
    """(op, backend) of all kernels that ran on the target's device."""
    return [
        (op, who)
        for op, key, who in book.counts
        if device(key.partition("/")[0]).type == target.device and who not in _NO_KERNEL
    ]


def _has_kernel(item: Item) -> bool:
    op = registry.declared.get(item.op)
    return op is not None and bool(item.dtype) and item.target.has_kernel(op, dtypes.of_name(item.dtype))


def claims(target: Target, results: Iterable[Result]) -> Iterator[Result]:
    """For every op that the backend has a kernel for, whether a check that passed proves that it computes it: one of
    this op, or any, where no check is about it. What needs a package that is not installed is not run."""
    mine = [result for result in results if result.target == str(target)]
    checked = {result.op for result in mine}
    passed = [result for result in mine if result.outcome is Outcome.PASS]
    proven = {op for result in passed for op in result.ran if op == result.op or op not in checked}
    left_out = {r.family: (r.outcome, r.reason) for r in mine if r.outcome is Outcome.NOT_RUN and not r.op}
    for op in target.claims():
        if op in proven:
            proof = Outcome.PASS, ""
        elif op not in checked and registry.declared[op].family in left_out:
            proof = left_out[registry.declared[op].family]
        else:
            proof = _unproven(target, [r for r in mine if r.op == op])
        yield Item("claims", op, "claimed", "", target, None, proof).result(*proof)


def _unproven(target: Target, found: list[Result]) -> tuple[Outcome, str]:
    """What is said of an op with a kernel of which these checks have not proven that it is right."""
    reasons = dict.fromkeys(f"{result.outcome}: {result.reason}" for result in found if result.reason)
    if found and all(result.outcome is Outcome.EXCLUDED for result in found):
        return Outcome.EXCLUDED, found[0].reason
    why = "; ".join(reasons) or "no check is about it, rows of your own (--cases) can be"
    return Outcome.UNPROVEN, f"no check that passed has run the kernel of '{target.backend}': {why}"[:LONGEST_REASON]
