"""Training steps of two ranks with DistributedDataParallel: corefw over MPI beside PyTorch over gloo.

    python -m benchmarks.distributed.steps [PROGRAM ...]

prints for each program the median times of a step, of the same step without averaging ("computing"; both ranks at once,
as in the step), and of an `all_reduce` of as many elements as there are gradients ("averaging"), and the step's as a
ratio to the larger of these two, which is what a step could take at best if they went on at the same time.
"""

from __future__ import annotations

import argparse
import json
import sys

from benchmarks.distributed import ranks
from corefw.benchmarks.training import TRAINING

PROGRAMS = ("seed_mlp_sgd", "gpt_adamw", "resnet18_sgd")
PARTS = ("step", "computing", "averaging")


def measured(column: str, program: str, seconds: float) -> dict[str, float]:
    """The times of a program's parts, on this rank."""
    torch = ranks.joined(column)
    dist, agree = torch.distributed, ranks.agreement(torch)
    torch.manual_seed(dist.get_rank())
    sizes = []

    def wrap(model):
        sizes.append(sum(p.numel() for p in model.parameters()))
        return torch.nn.parallel.DistributedDataParallel(model)

    calls = {"step": TRAINING[program](torch, wrap=wrap), "computing": TRAINING[program](torch)}
    gradients = torch.zeros(sizes[0])
    calls["averaging"] = lambda: dist.all_reduce(gradients)
    found = {part: ranks.median(calls[part], dist.barrier, agree, seconds) for part in PARTS}
    rank = dist.get_rank()
    dist.destroy_process_group()
    return found if rank == 0 else {}


def main() -> None:
    """Run all programs in all columns and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", default=PROGRAMS, metavar="PROGRAM", help="all by default")
    parser.add_argument("--seconds", type=float, default=2.0, help="how long each time is measured (default: 2)")
    options = parser.parse_args()
    print(f"{'program':>14}{'column':>10}" + "".join(f"{part:>13}" for part in PARTS) + "   step / larger   / torch's")
    for program in options.programs:
        found = {
            column: ranks.run("benchmarks.distributed.steps", column, program, str(options.seconds))
            for column in ranks.columns()
        }
        for column, times in found.items():
            line = f"{program:>14}{column:>10}" + "".join(f"{1e3 * times[part]:>10.3f} ms" for part in PARTS)
            line += f"{times['step'] / max(times['computing'], times['averaging']):>16.2f}"
            if "torch" in found and column != "torch":
                line += f"{times['step'] / found['torch']['step']:>12.2f}"
            print(line, flush=True)


if __name__ == "__main__":
    if len(sys.argv) == 4 and sys.argv[1] in ranks.ENGINES:
        times = measured(sys.argv[1], sys.argv[2], float(sys.argv[3]))
        if times:
            print(json.dumps(times), flush=True)
    else:
        main()
