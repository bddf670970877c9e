"""`corefw completion`."""

from __future__ import annotations

import argparse

from corefw.commands.parsing import Commands

SHELLS = ("bash", "zsh", "tcsh")


def add(commands: Commands) -> None:
    """Its parser."""
    parser = commands.add(
        "completion", completion, "print what completes corefw's commands in a shell", "corefw completion bash",
    )  # fmt: skip
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(whole=commands.parser)


def completion(arguments: argparse.Namespace) -> int:
    """Print the completion of a shell."""
    try:
        import shtab
    except ImportError:
        raise ImportError("the package shtab is not installed, which writes completions: pip install shtab") from None
    print(shtab.complete(arguments.whole, shell=arguments.shell))
    return 0
