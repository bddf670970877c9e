"""All scenarios on this rank of an MPI job; rank 0 prints the name of each that all ranks passed."""

from __future__ import annotations

import sys
import traceback
from datetime import timedelta

import corefw.distributed as dist
from tests.ranks import (
    checkpoints,
    collectives,
    data_parallel,
    faults,
    going_on,
    hooks,
    joining,
    mesh,
    mesh_ops,
    names,
    sharded,
    sharded_models,
    sharded_optimizers,
    tensor_parallel,
)

FAMILIES = {
    "checkpoints": checkpoints,
    "collectives": collectives,
    "data_parallel": data_parallel,
    "faults": faults,
    "going_on": going_on,
    "hooks": hooks,
    "joining": joining,
    "mesh": mesh,
    "mesh_ops": mesh_ops,
    "names": names,
    "sharded": sharded,
    "sharded_models": sharded_models,
    "sharded_optimizers": sharded_optimizers,
    "tensor_parallel": tensor_parallel,
}


#: the families that one job of MPI runs; faults come last, since they leave collectives unfinished
JOBS = (
    ("collectives", "going_on", "mesh", "mesh_ops", "tensor_parallel"),
    ("data_parallel", "hooks", "joining", "faults"),
    ("sharded", "sharded_models", "sharded_optimizers", "checkpoints", "names"),
)


def main(*families: str) -> int:
    """Run the scenarios of some families."""
    dist.init_process_group("mpi", timeout=timedelta(seconds=60))
    rank, size = dist.get_rank(), dist.get_world_size()
    for scenario in (scenario for family in families for scenario in FAMILIES[family].SCENARIOS):
        try:
            scenario(rank, size)
        except BaseException:
            print(f"rank {rank}, {scenario.__name__}:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
            dist.group.WORLD.any_communicator().abort()
        dist.barrier()
        if rank == 0:
            print(f"passed {scenario.__name__}", flush=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
