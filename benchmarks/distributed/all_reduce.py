"""`all_reduce` of float32 on two ranks: corefw over MPI, MPI itself through mpi4py, and PyTorch over gloo.

    python -m benchmarks.distributed.all_reduce

prints the median time of each column per size, and corefw's as a ratio to the others'; PyTorch's column is there where
it is installed. All columns run one after another, in the same run.
"""

from __future__ import annotations

import json
import sys

from benchmarks.distributed import ranks

SIZES = {"4 KB": 1 << 10, "1 MB": 1 << 18, "64 MB": 1 << 24}  # elements


def through_dist(column: str) -> dict[str, float]:
    """Times of a module's `distributed.all_reduce`."""
    torch = ranks.joined(column)
    dist, agree, found = torch.distributed, ranks.agreement(torch), {}
    for name, size in SIZES.items():
        tensor = torch.zeros(size)
        found[name] = ranks.median(lambda tensor=tensor: dist.all_reduce(tensor), dist.barrier, agree)
    rank = dist.get_rank()
    dist.destroy_process_group()
    return found if rank == 0 else {}


def through_mpi() -> dict[str, float]:
    """Times of MPI's Allreduce."""
    import numpy as np
    from mpi4py import MPI

    comm, found = MPI.COMM_WORLD, {}
    for name, size in SIZES.items():
        array = np.zeros(size, np.float32)
        found[name] = ranks.median(
            lambda array=array: comm.Allreduce(MPI.IN_PLACE, array), comm.Barrier, lambda count: comm.bcast(count, 0)
        )
    return found if comm.rank == 0 else {}


def main() -> None:
    """Run all columns and print the table."""
    columns = ["corefw", "mpi4py", *ranks.columns()[1:]]
    found = {column: ranks.run("benchmarks.distributed.all_reduce", column) for column in columns}
    print(f"{'size':>8}" + "".join(f"{column:>12}" for column in columns) + "  corefw's time / the other's")
    for size in SIZES:
        times = [found[column][size] for column in columns]
        ratios = "  ".join(f"{times[0] / t:.2f} ({column})" for t, column in zip(times[1:], columns[1:]))
        print(f"{size:>8}" + "".join(f"{t * 1e6:>10.1f}µs" for t in times) + f"  {ratios}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        times = through_mpi() if sys.argv[1] == "mpi4py" else through_dist(sys.argv[1])
        if times:
            print(json.dumps(times), flush=True)
    else:
        main()
