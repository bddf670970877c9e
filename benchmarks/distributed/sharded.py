"""The GPT of the benchmarks in parts (fully_shard) and whole (DistributedDataParallel), on two ranks.

    python -m benchmarks.distributed.sharded

prints for corefw over MPI, and PyTorch over gloo where it is installed, the median time of a step, the bytes of
parameters and of the optimizer's states that a rank holds after it, as a ratio to half of those of the whole model, and
the largest difference between the losses of the two forms in ten steps from the same start.
"""

from __future__ import annotations

import json
import sys

from benchmarks.distributed import ranks
from corefw.benchmarks.training import gpt_adamw

STEPS = 10


def held(step) -> int:
    """The bytes of the parameters and of the optimizer's states that this rank holds after a step."""
    tensors = list(step.model.parameters())
    for states in step.optimizer.state.values():
        tensors += [state for state in states.values() if hasattr(state, "nbytes")]
    return sum(getattr(tensor, "to_local", lambda tensor=tensor: tensor)().nbytes for tensor in tensors)


def measured(column: str, seconds: float) -> dict[str, float]:
    """What a column's two forms take, hold and compute."""
    torch = ranks.joined(column)
    dist, agree = torch.distributed, ranks.agreement(torch)
    fully_shard = __import__(f"{column}.distributed.fsdp", fromlist=["fully_shard"]).fully_shard

    def in_parts(model):
        for block in model.blocks:
            fully_shard(block)
        return fully_shard(model)

    found: dict[str, float] = {}
    losses = {}
    for form, joined in {"whole": torch.nn.parallel.DistributedDataParallel, "parts": in_parts}.items():

        def wrap(model, joined=joined):
            torch.manual_seed(1 + dist.get_rank())  # the same model on all ranks, and each its own texts
            return joined(model)

        torch.manual_seed(0)
        step = gpt_adamw(torch, wrap=wrap)
        losses[form] = [step() for _ in range(STEPS)]
        found[f"{form} s"] = ranks.median(step, dist.barrier, agree, seconds)
        found[f"{form} bytes"] = held(step)
    found["difference"] = max(abs(a - b) for a, b in zip(*losses.values()))
    rank = dist.get_rank()
    dist.destroy_process_group()
    return found if rank == 0 else {}


def main() -> None:
    """Run the columns and print the table."""
    print(f"{'column':>8}{'whole':>12}{'parts':>12}{'bytes: whole':>15}{'parts':>12}   parts / half   losses differ")
    for column in ranks.columns():
        found = ranks.run("benchmarks.distributed.sharded", column)
        print(
            f"{column:>8}{1e3 * found['whole s']:>9.2f} ms{1e3 * found['parts s']:>9.2f} ms{found['whole bytes']:>15}"
            f"{found['parts bytes']:>12}{2 * found['parts bytes'] / found['whole bytes']:>15.3f}"
            f"{found['difference']:>16.1e}",
            flush=True,
        )


if __name__ == "__main__":
    if len(sys.argv) > 1:
        result = measured(sys.argv[1], seconds=2.0)
        if result:
            print(json.dumps(result), flush=True)
    else:
        main()
