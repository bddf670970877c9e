"""`corefw run`."""

from __future__ import annotations

import argparse

from corefw.commands.parsing import Commands
from corefw.random import use
from corefw.run import run as run_program


def add(commands: Commands) -> None:
    """Its parser."""
    command = commands.add(
        "run",
        run,
        "run a program written for PyTorch: torch and torchvision are corefw",
        "corefw run train.py --epochs 3",
        "corefw run -m package.train",
        "corefw run --pytorch-random tutorial.py",
    )
    command.add_argument(
        "--pytorch-random",
        action="store_true",
        help="draw PyTorch's random numbers on the CPU (corefw.random.use), so that a seed gives what PyTorch prints",
    )
    command.add_argument("-m", dest="module", action="store_true", help="the target is a module, as of python -m")
    command.add_argument("target", help="a script, or with -m a module")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own arguments")


def run(arguments: argparse.Namespace) -> int:
    """Run a program written for PyTorch, on corefw."""
    if arguments.pytorch_random:
        use("mt19937")
    return run_program(arguments.target, arguments.arguments, arguments.module)
