"""Two ranks of this machine, with one thread each, that measure together: how they are started, and their medians."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

from corefw.distributed.launching import free_port, launcher

#: {column: its engine}: corefw over MPI and, where it is installed, PyTorch over gloo
ENGINES = {"corefw": "mpi", "torch": "gloo"}
Call = Callable[[], object]


def columns() -> list[str]:
    """Those that can run here."""
    return [name for name in ENGINES if importlib.util.find_spec(name)]


def joined(column: str) -> Any:
    """The module of a column, its process joined to the other ones and computing with one thread."""
    module = importlib.import_module(column)
    module.set_num_threads(1)
    module.distributed.init_process_group(ENGINES[column])
    return module


def agreement(module: Any) -> Callable[[int], int]:
    """A function that gives all ranks the number of the first."""

    def agree(number: int) -> int:
        held = module.tensor([number])
        module.distributed.broadcast(held, 0)
        return int(held)

    return agree


def median(call: Call, meet: Call, agree: Callable[[int], int], seconds: float = 1.0) -> float:
    """The median time of a call that all ranks make together.

    Args:
        call: what is measured.
        meet: returns on all ranks at once; it is called before each.
        agree: gives all ranks the number of the first.
        seconds: how long to go on measuring.
    """
    for _ in range(3):
        call()
    start = time.perf_counter()
    call()
    count = agree(max(5, min(2000, int(seconds / max(time.perf_counter() - start, 1e-7)))))
    times = []
    for _ in range(count):
        meet()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def run(module: str, column: str, *arguments: str, ranks: int = 2) -> Any:
    """What rank 0 of a program prints in its last line, as JSON.

    Args:
        module: of this folder; it is run with the arguments.
        column: its first argument; "torch" is started without MPI.
        arguments: the others.
        ranks: how many processes.
    """
    each = [sys.executable, "-m", module, column, *arguments]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    if column != "torch":
        command = [launcher(), "-n", str(ranks), *each]
        return _last(subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True).stdout)
    started = [
        subprocess.Popen(
            each, env={**variables, "RANK": str(rank), "WORLD_SIZE": str(ranks)}, stdout=subprocess.PIPE, text=True
        )
        for rank in range(ranks)
    ]
    outputs = [process.communicate()[0] for process in started]
    return _last(outputs[0])


def _last(output: str) -> Any:
    return json.loads(output.strip().splitlines()[-1])
