"""One process of several that `corefw launch` started: ``python -m corefw.distributed.launched [-m] target ...``."""

from __future__ import annotations

import io
import os
import signal
import sys

from corefw.distributed.groups import world
from corefw.distributed.rendezvous import LOCAL_RANK, LOCAL_SIZE, NODE_RANK, RANK, SIZE, number, told
from corefw.run import run


def tell(environment: dict[str, str] | os._Environ[str] = os.environ) -> None:
    """Set the variables that programs written for torchrun read, from those of the launcher."""
    found = {
        "RANK": number(RANK, environment),
        "WORLD_SIZE": number(SIZE, environment),
        "LOCAL_RANK": number(LOCAL_RANK, environment),
        "LOCAL_WORLD_SIZE": number(LOCAL_SIZE, environment),
        "GROUP_RANK": number(NODE_RANK, environment) or 0,
    }
    environment.update({name: str(value) for name, value in found.items() if value is not None})


def main(arguments: list[str]) -> int:
    """Run the program; where it fails, the other processes end too, since they may wait for this one."""
    tell()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Whole lines, before each of which the launcher puts the rank.
            stream.reconfigure(line_buffering=True, write_through=False)
    module = arguments[0] == "-m"
    target, *rest = arguments[module:]
    status: object = 1
    try:
        status = run(target, rest, module)
    except SystemExit as done:
        status = done.code
        if isinstance(status, str):
            print(status, file=sys.stderr)
            status = 1
    status = status if isinstance(status, int) else int(status is not None)
    if status and (world.default is not None or not world.was_joined):
        sys.stdout.flush()
        sys.stderr.flush()
        if world.default is not None:
            world.default.any_communicator().abort()
        elif (told()[1] or 1) > 1:
            # Launchers end the others of a process that a signal ends, not of one that exits before it is joined.
            os.kill(os.getpid(), signal.SIGTERM)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
