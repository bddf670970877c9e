"""`corefw launch`."""

from __future__ import annotations

import argparse

from corefw.commands.parsing import Commands, count
from corefw.distributed.launching import launch as start


def add(commands: Commands) -> None:
    """Its parser."""
    command = commands.add(
        "launch",
        launch,
        "run a program in several processes that MPI joins, as torchrun does",
        "corefw launch -n 4 train.py --epochs 3",
        "corefw launch -n 16 --hosts node1,node2 --max-restarts 3 -m package.train",
    )
    command.add_argument(
        "-n", "--nproc-per-node", "--nproc_per_node", type=count(1), default=1, help="how many processes"
    )
    command.add_argument("--hosts", default="", help="where they run, separated by commas; here by default")
    command.add_argument("--max-restarts", type=count(0), default=0, help="how often all start again after a failure")
    command.add_argument("--plain", action="store_true", help="output without the rank before each line")
    command.add_argument("-m", dest="module", action="store_true", help="the target is a module, as of python -m")
    command.add_argument("target", help="a script, or with -m a module; torch and torchvision are corefw in it")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own arguments")


def launch(arguments: argparse.Namespace) -> int:
    """Run a program in several processes."""
    program = [*(["-m"] if arguments.module else []), arguments.target, *arguments.arguments]
    hosts = [host for host in arguments.hosts.split(",") if host]
    return start(arguments.nproc_per_node, program, hosts, arguments.max_restarts, not arguments.plain)
