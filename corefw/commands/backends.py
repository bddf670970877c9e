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
        if backend.dropped:
            print(f"    kernels dropped, of ops that corefw {corefw.__version__} lacks: {', '.join(backend.dropped)}")
    for kind in [*registry.runtimes]:
        registry.runtime(kind)  # raises what is wrong with the user's preferences for it
    return 0
