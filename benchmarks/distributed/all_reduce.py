"""`all_reduce` of float32 on two ranks: corefw over MPI, MPI itself through mpi4py, and PyTorch over gloo.

    python -m benchmarks.distributed.all_reduce

prints the median time of each column per size, and corefw's as a ratio to the others'; PyTorch's column is there where
it is installed. All columns run one after another, in the same run.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from corefw.distributed.launching import free_port, launcher

SIZES = {"4 KB": 1 << 10, "1 MB": 1 << 18, "64 MB": 1 << 24}  # elements
SECONDS = 1.0  # for a size


def median(call: Callable[[], object], meet: Callable[[], object]) -> float:
    """The median time of a call that all ranks make together."""
    for _ in range(3):
        call()
    start = time.perf_counter()
    call()
    count = max(5, min(2000, int(SECONDS / max(time.perf_counter() - start, 1e-7))))
    count = agreed(count)
    times = []
    for _ in range(count):
        meet()
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


agreed: Callable[[int], int] = int  # the number of calls that all ranks make


def through_corefw() -> dict[str, float]:
    """Times of `corefw.distributed.all_reduce`."""
    import corefw as torch
    import corefw.distributed as dist

    dist.init_process_group("mpi")
    return _measured(torch, dist)


def through_torch() -> dict[str, float]:
    """Times of `torch.distributed.all_reduce` over gloo."""
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    return _measured(torch, dist)


def _measured(torch, dist) -> dict[str, float]:
    def agree(count: int) -> int:
        number = torch.tensor([count])
        dist.broadcast(number, 0)
        return int(number)

    globals()["agreed"] = agree
    found = {}
    for name, size in SIZES.items():
        tensor = torch.zeros(size)
        found[name] = median(lambda tensor=tensor: dist.all_reduce(tensor), dist.barrier)
    rank = dist.get_rank()
    dist.destroy_process_group()
    return found if rank == 0 else {}


def through_mpi() -> dict[str, float]:
    """Times of MPI's Allreduce."""
    import numpy as np
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    globals()["agreed"] = lambda count: comm.bcast(count, 0)
    found = {}
    for name, size in SIZES.items():
        array = np.zeros(size, np.float32)
        found[name] = median(lambda array=array: comm.Allreduce(MPI.IN_PLACE, array), comm.Barrier)
    return found if comm.rank == 0 else {}


COLUMNS = {"corefw": through_corefw, "mpi4py": through_mpi, "torch": through_torch}


def run(column: str) -> dict[str, float]:
    """A column's times, by two processes."""
    each = [sys.executable, "-m", "benchmarks.distributed.all_reduce", column]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    if column == "torch":
        ranks = [
            subprocess.Popen(
                each, env={**variables, "RANK": str(rank), "WORLD_SIZE": "2"}, stdout=subprocess.PIPE, text=True
            )
            for rank in (0, 1)
        ]
        out, _ = (rank.communicate()[0] for rank in ranks)
    else:
        out = subprocess.run(
            [launcher(), "-n", "2", *each], env=variables, stdout=subprocess.PIPE, text=True, check=True
        ).stdout
    return json.loads(out.strip().splitlines()[-1])


def main() -> None:
    """Run all columns and print the table."""
    columns = [name for name in COLUMNS if name != "torch" or importlib.util.find_spec("torch")]
    found = {column: run(column) for column in columns}
    print(f"{'size':>8}" + "".join(f"{column:>12}" for column in columns) + "  corefw's time / the other's")
    for size in SIZES:
        times = [found[column][size] for column in columns]
        ratios = "  ".join(f"{times[0] / t:.2f} ({column})" for t, column in zip(times[1:], columns[1:]))
        print(f"{size:>8}" + "".join(f"{t * 1e6:>10.1f}µs" for t in times) + f"  {ratios}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        times = COLUMNS[sys.argv[1]]()
        if times:
            print(json.dumps(times), flush=True)
    else:
        main()
