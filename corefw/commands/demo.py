"""`corefw demo`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from corefw.commands.parsing import Commands, count
from corefw.demo import EPOCHS
from corefw.demo import main as run_demo
from corefw.distributed.launching import launch


def add(commands: Commands) -> None:
    """Its parser."""
    command = commands.add(
        "demo",
        demo,
        "train on real handwritten digits with every installed backend",
        "corefw demo --epochs 3 --picture /tmp/curves.png",
        "corefw demo --ranks 2",
    )
    command.add_argument("--epochs", type=count(1), default=EPOCHS, help=f"passes over the digits (default: {EPOCHS})")
    command.add_argument("--seed", type=int, default=0, help="of weights, order and noise (default: 0)")
    command.add_argument("--picture", default="corefw-demo.png", help="where the curves are saved")
    command.add_argument(
        "--ranks", type=count(1), default=1, help="processes that train one network, beside one alone (default: 1)"
    )


def demo(arguments: argparse.Namespace) -> int:
    """Train on the digits with every backend, or in several processes."""
    picture = Path(arguments.picture).resolve()
    if picture.is_dir() or not os.access(picture.parent, os.W_OK):
        raise OSError(
            f"cannot write {picture}: " + ("it is a folder" if picture.is_dir() else "no such folder, or not yours")
        )
    if arguments.ranks > 1:
        program = ["-m", "corefw.demo", str(arguments.epochs), str(arguments.seed), str(picture)]
        return launch(arguments.ranks, program, prefixed=False)
    return run_demo(arguments.epochs, arguments.seed, arguments.picture)
