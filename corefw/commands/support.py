"""`corefw support`."""

from __future__ import annotations

import argparse

from corefw.commands.parsing import Commands, UsageError
from corefw.dispatch import support as supported
from corefw.dispatch.preferences import usable_backend
from corefw.dispatch.registry import registry
from corefw.errors import did_you_mean

SHOWN = 6  # compositions that a missing kernel would unlock, by name


def add(commands: Commands) -> None:
    """Its parser."""
    command = commands.add(
        "support",
        support,
        "say which kernels a backend has and lacks, and how a kernel is called",
        "corefw support numpy",
        "corefw support numpy --op matmul --op adam_step",
    )
    command.add_argument("name", help="of the backend")
    command.add_argument("--op", action="append", default=[], help="tell of this op only, with its signature")


def support(arguments: argparse.Namespace) -> int:
    """Say what a backend has kernels for, and what it lacks."""
    backend = usable_backend(arguments.name)
    for op in arguments.op:
        if op not in registry.declared or registry.declared[op].rule is None:
            known = [one.name for one in supported.kernel_ops()]
            raise UsageError(f"no op that may have a kernel is called '{op}'{did_you_mean(op, known)}")
    for device in backend.devices:
        found = supported.support(backend.name, device)
        if arguments.op:
            for name in arguments.op:
                _print_op(registry.declared[name].name, found)
        else:
            _print_all(found)
    return 0


def _print_op(op: str, found: supported.Support) -> None:
    """One op: whether there is a kernel, how it is called, what belongs to it."""
    has = "has a kernel" if op in found.present else "lacks a kernel"
    print(f"{found.backend} on {found.device} {has}: {supported.signature(registry.declared[op])}")
    if together := supported.companions().get(op):
        print(f"    its gradient runs {', '.join(together)}")
    if users := supported.unlocked().get(op):
        print(f"    {_unlocks(users)}")


def _unlocks(users: tuple[str, ...]) -> str:
    more = f" and {len(users) - SHOWN} more" if len(users) > SHOWN else ""
    return f"unlocks {', '.join(users[:SHOWN])}{more}"


def _print_all(found: supported.Support) -> None:
    """All that is there, and all that is missing, what unlocks most first."""
    primitives = [op for op in supported.kernel_ops() if op.primitive]
    has, composed = (
        len(primitives) - len(found.primitives),
        len(found.present) - (len(primitives) - len(found.primitives)),
    )
    print(
        f"{found.backend} on {found.device}: {has} of {len(primitives)} primitives, and {composed} compositions with "
        "kernels of their own"
    )
    print(f"  present: {', '.join(found.present) or 'none'}")
    if found.incomplete:
        print("  belongs together, and is missing:")
        for op, missing in found.incomplete.items():
            print(f"    {op} has a kernel; its gradient runs {', '.join(missing)}")
    users = supported.unlocked()
    print("  primitives missing, what unlocks most first:" if found.primitives else "  primitives missing: none")
    for op in sorted(found.primitives, key=lambda op: (-len(users.get(op, ())), op)):
        print(f"    {supported.signature(registry.declared[op])}")
        if op in users:
            print(f"        {_unlocks(users[op])}")
    print(f"  compositions that run in other ops: {', '.join(found.composites) or 'none'}")
