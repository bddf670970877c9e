"""`corefw advise`."""

from __future__ import annotations

import argparse

import corefw
from corefw.autograd.profiler_events import FunctionEventAvg
from corefw.commands.parsing import Commands, UsageError
from corefw.dispatch.registry import registry
from corefw.dispatch.support import signature
from corefw.profiler import profile
from corefw.run import run as run_program

FALLBACK = "fallback to "  # how the profiler begins the name of who ran what the device has no kernel for


def add(commands: Commands) -> None:
    """Its parser."""
    command = commands.add(
        "advise",
        advise,
        "run a program on a device, and say which missing kernels cost it most",
        "corefw advise --device acme train.py --epochs 1",
    )
    command.add_argument("--device", required=True, help="where new tensors lie; what it lacks is computed on cpu")
    command.add_argument("script", help="the program, written for PyTorch or corefw")
    command.add_argument("arguments", nargs=argparse.REMAINDER, help="the program's own arguments")


class OnDevice(profile):
    """Times the kernels of one device type."""

    def __init__(self, device_type: str):
        super().__init__()
        self.device_type = device_type

    def wrap(self, op, dispatch_key, who, function):
        if op.view or dispatch_key.device.type != self.device_type:
            return function
        return super().wrap(op, dispatch_key, who, function)


def advise(arguments: argparse.Namespace) -> int:
    """Run a program, and rank the kernels that its device lacks by the time that was lost."""
    try:
        where = corefw.device(arguments.device)
        registry.runtime(where.type)
    except RuntimeError as error:
        raise UsageError(str(error)) from error
    registry.fallback = registry.fallback or "cpu"
    with OnDevice(where.type) as timed, where:
        status = run_program(arguments.script, arguments.arguments)
    _report(where.type, timed.key_averages())
    return status


def _report(device: str, ran: list[FunctionEventAvg]) -> None:
    """Which kernels were missing, what cost most first, and which compositions could be one kernel."""
    whole = sum(row.self_cpu_time_total for row in ran)
    print(f"{device}: {whole / 1000:.1f} ms in kernels of {sum(row.count for row in ran)} calls")
    for title, rows in (
        ("missing kernels, computed elsewhere and copied back", [r for r in ran if r.backend.startswith(FALLBACK)]),
        ("compositions, which one kernel could compute", [r for r in ran if r.backend == "composite"]),
    ):
        print(f"{title}: {'none' if not rows else ''}".rstrip())
        for row in sorted(rows, key=lambda row: -row.cpu_time_total):
            lost, share = row.cpu_time_total, 100 * row.cpu_time_total / whole
            print(
                f"  {lost / 1000:>9.2f} ms {share:>5.1f}% {row.count:>7} calls  {signature(registry.declared[row.key])}"
            )
