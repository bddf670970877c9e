"""`corefw explain`."""

from __future__ import annotations

import argparse

import corefw
from corefw.commands import parsing
from corefw.dispatch.registry import registry
from corefw.errors import did_you_mean


def add(commands: parsing.Commands) -> None:
    """Its parser."""
    command = commands.add(
        "explain",
        explain,
        "say which kernel an op would run, and why",
        "corefw explain softmax --dtype float16",
        "corefw explain conv2d --shape 1,3,8,8 --shape 4,3,3,3",
    )
    command.add_argument("op", help="its name, such as softmax, conv2d or linalg_inv")
    command.add_argument("--dtype", default="float32", help="of the tensors it is given (default: float32)")
    command.add_argument("--device", default="cpu", help="where they lie (default: cpu)")
    command.add_argument("--tensors", type=parsing.count(0), default=1, help="how many there are (default: 1)")
    command.add_argument(
        "--shape", type=parsing.shape, action="append", help="the shape of one, for each; for compositions"
    )


def explain(arguments: argparse.Namespace) -> int:
    """Say which kernel an op would run, and why."""
    dtype = parsing.dtype(arguments.dtype)
    try:
        device = corefw.device(arguments.device)
    except RuntimeError as error:
        raise parsing.UsageError(str(error)) from error
    if arguments.op.removesuffix("_") not in registry.declared and arguments.op not in registry.declared:
        raise parsing.UsageError(f"no op is called '{arguments.op}'{did_you_mean(arguments.op, registry.declared)}")
    shapes = arguments.shape or [(1,)] * arguments.tensors
    given = [corefw.zeros(shape, dtype=dtype, device=device) for shape in shapes]
    print(corefw.explain(arguments.op, *given))
    return 0
