"""`corefw backends`."""

from __future__ import annotations

import argparse

import corefw
from corefw.commands.parsing import Commands
from corefw.dispatch.registry import registry


def add(commands: Commands) -> None:
    """Its parser."""
    commands.add("backends", backends, "list the installed backends, and why one cannot be used", "corefw backends")


def backends(arguments: argparse.Namespace) -> int:
    """List the installed backends, or why one cannot be used."""
    for backend in corefw.backends():
        print(backend)
        if backend.usable:
            print(f"    dtypes: {', '.join(backend.dtypes)}")
        for device, stored in backend.stored.items() if backend.usable else ():
            print(f"    {device} stores: {', '.join(stored)}")
        if errors := backend.max_ulp.values():
            print(f"    kernels with a declared error: {len(errors)}, up to {max(errors):g} units of the last place")
        if backend.varying:
            print(f"    not deterministic: {', '.join(backend.varying)}")
        if backend.varying_unless_asked:
            print(f"    deterministic if asked: {', '.join(backend.varying_unless_asked)}")
        if backend.dropped:
            print(f"    kernels dropped, of ops that corefw {corefw.__version__} lacks: {', '.join(backend.dropped)}")
    for kind in [*registry.runtimes]:
        registry.runtime(kind)  # raises what is wrong with the user's preferences for it
    return 0
