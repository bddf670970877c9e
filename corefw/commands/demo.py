"""`corefw demo`."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from corefw.commands.parsing import Commands, count
from corefw.demo import EPOCHS
from corefw.demo import main as run_demo


def add(commands: Commands) -> None:
    """Its parser."""
    command = commands.add(
        "demo",
        demo,
        "train on real handwritten digits with every installed backend",
        "corefw demo --epochs 3 --picture /tmp/curves.png",
    )
    command.add_argument("--epochs", type=count(1), default=EPOCHS, help=f"passes over the digits (default: {EPOCHS})")
    command.add_argument("--seed", type=int, default=0, help="of weights, order and noise (default: 0)")
    command.add_argument("--picture", default="corefw-demo.png", help="where the curves are saved")


def demo(arguments: argparse.Namespace) -> int:
    """Train on the digits with every backend."""
    picture = Path(arguments.picture).resolve()
    if picture.is_dir() or not os.access(picture.parent, os.W_OK):
        raise OSError(
            f"cannot write {picture}: " + ("it is a folder" if picture.is_dir() else "no such folder, or not yours")
        )
    return run_demo(arguments.epochs, arguments.seed, arguments.picture)
