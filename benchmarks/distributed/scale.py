"""How steps of training scale from 2 to 4096 ranks: a simulation from times measured on this machine.

    python -m benchmarks.distributed.scale [PROGRAM ...] [--no-check]

measures the layers of a program in one process, then prints for each network what the averaging of all gradients takes
by ring, by tree and by halving, the step with DistributedDataParallel and its buckets, its efficiency (the step of one
process over it, in percent), the size of buckets that is best there, the step in parts (`fully_shard`), and the
megabytes that a rank holds; then the size of buckets to choose for all numbers of ranks. First it checks itself: the
steps that 2 and 4 processes of this machine take, beside those that it computes with this machine's own α and β.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from dataclasses import asdict

import numpy as np

from benchmarks.distributed import ranks
from benchmarks.distributed.simulation import (
    ALL_REDUCE,
    MB,
    Layer,
    Network,
    Profile,
    best_bucket,
    halving,
    in_parts,
    memory,
    replicated,
)
from corefw.benchmarks.training import TRAINING

PROGRAMS = ("gpt_adamw", "resnet18_sgd")
#: What a message takes on networks of these kinds, in round figures: α with MPI between two hosts, and the link's rate.
NETWORKS = (
    Network("Ethernet, 10 Gbit/s", 30e-6, 1.25e9),
    Network("Ethernet, 100 Gbit/s", 5e-6, 12.5e9),
    Network("InfiniBand, 400 Gbit/s", 2e-6, 50e9),
)
COUNTS = [2**i for i in range(1, 13)]
STEPS = 12
SIZES = [1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22]  # elements whose all_reduce is measured


# -- measuring -------------------------------------------------------------------------------------------------------
def alone(torch, program: str):
    """A program's step with DistributedDataParallel in a group of one: nothing is averaged, but all else is done."""
    own, _ = torch.distributed.new_subgroups(1)
    parallel = torch.nn.parallel.DistributedDataParallel
    return TRAINING[program](torch, wrap=lambda model: parallel(model, process_group=own))


def profile_of(torch, program: str) -> Profile:
    """The layers of a program's step in one process."""
    step = alone(torch, program)
    model = step.model.module
    owners = {name: module for name, module in model.named_modules() if module._parameters}
    took = medians(step, owners)
    blocks = blocks_of(torch, model)
    layers = [
        Layer(
            name,
            next((block for block in blocks if f"{name}.".startswith(f"{block}.")), ""),
            sum(p.nbytes for p in owners[name].parameters(recurse=False)),
            seconds,
            took["backward", name],
        )
        for (kind, name), seconds in took.items()
        if kind == "forward"
    ]
    states = [t for held in step.optimizer.state.values() for t in held.values() if hasattr(t, "nbytes")]
    return Profile(layers, took["step", "optimizer"], took["step", "rest"], sum(t.nbytes for t in states))


def medians(step, owners: dict) -> dict[tuple[str, str], float]:
    """The seconds that the parts of a step take, in the order in which they end, each after what ended before it:
    ("forward", layer), ("backward", layer), ("step", "optimizer") and ("step", "rest")."""
    ends: list[tuple[tuple[str, str], float]] = []

    def end_of(*part):
        return lambda *_: ends.append((part, time.perf_counter()))

    for name, module in owners.items():
        module.register_forward_hook(end_of("forward", name))
        for parameter in module.parameters(recurse=False):
            parameter.register_post_accumulate_grad_hook(end_of("backward", name))
    step.optimizer.register_step_pre_hook(end_of("step", "rest"))
    step.optimizer.register_step_post_hook(end_of("step", "optimizer"))
    found: dict[tuple[str, str], list[float]] = {}
    for i in range(STEPS + 2):
        ends.clear()
        before = time.perf_counter()
        step()
        end_of("step", "rest")()
        spent: dict[tuple[str, str], float] = {}
        for part, at in ends:
            spent[part] = spent.get(part, 0.0) + at - before
            before = at
        for part, seconds in spent.items() if i >= 2 else ():
            found.setdefault(part, []).append(seconds)
    return {part: statistics.median(times) for part, times in found.items()}


def blocks_of(torch, model) -> dict:
    """{name: module} of the members of the lists that a model has: the units of a model in parts."""
    lists = {name: child for name, child in model.named_children() if isinstance(child, torch.nn.Sequential)}
    found = {f"{name}.{i}": block for name, child in lists.items() for i, block in enumerate(child)}
    return {name: block for name, block in found.items() if next(block.parameters(), None) is not None}


def measured(program: str) -> dict:
    """On this rank: where it is alone, the layers; else the all_reduce of several sizes, and steps of all at once."""
    torch = ranks.joined("corefw")
    dist, agree = torch.distributed, ranks.agreement(torch)
    torch.manual_seed(dist.get_rank())
    if dist.get_world_size() == 1:
        return asdict(profile_of(torch, program))
    parallel = torch.nn.parallel.DistributedDataParallel
    steps = {
        "computing": alone(torch, program),
        "replicated": TRAINING[program](torch, wrap=parallel),
        "parts": TRAINING[program](torch, wrap=lambda model: sharded(torch, model)),
    }
    found: dict = {name: ranks.median(step, dist.barrier, agree, 1.5) for name, step in steps.items()}
    found["all_reduce"] = []
    for size in SIZES:
        tensor = torch.zeros(size)
        found["all_reduce"].append(ranks.median(lambda t=tensor: dist.all_reduce(t), dist.barrier, agree, 0.3))
    rank = dist.get_rank()
    dist.destroy_process_group()
    return found if rank == 0 else {}


def sharded(torch, model):
    """A model in parts."""
    for block in blocks_of(torch, model).values():
        torch.distributed.fsdp.fully_shard(block)
    return torch.distributed.fsdp.fully_shard(model)


def fitted(times: list[float], count: int) -> Network:
    """The network of this machine: α and β with which all_reduce by halving takes these times, the relative errors
    least. The processor does all work of a message in shared memory."""
    units = Network("α", 1.0, np.inf), Network("β", 0.0, 1.0)
    rows = np.array([[halving(4 * n, count, unit) / took for unit in units] for n, took in zip(SIZES, times)])
    alpha, beta = np.maximum(np.linalg.lstsq(rows, np.ones(len(times)), rcond=None)[0], 1e-12)
    return Network(f"{count} processes of this machine", float(alpha), float(1 / beta), busy=1.0)


# -- tables ----------------------------------------------------------------------------------------------------------
def read(found: dict) -> Profile:
    """A profile that a rank printed."""
    layers = [Layer(**layer) for layer in found.pop("layers")]
    return Profile(layers, **found)


def check(program: str, profile: Profile) -> None:
    """Print the steps of 2 and 4 processes of this machine beside those that one process's layers tell, slowed down as
    processes that only compute slow each other."""
    print(f"\n{program} on this machine, {len(os.sched_getaffinity(0))} cores:")
    print("   ranks         α          1/β   slowed     form        measured     computed   computed / measured")
    for count in (2, 4):
        found = ranks.run("benchmarks.distributed.scale", "corefw", program, ranks=count)
        network, slowed = fitted(found["all_reduce"], count), found["computing"] / profile.seconds
        for form, step in {"replicated": replicated, "parts": in_parts}.items():
            computed = step(profile.times(slowed), count, network)
            print(
                f"{count:>8}{1e6 * network.alpha:>7.1f} µs{network.bandwidth / 1e9:>8.2f} GB/s{slowed:>9.2f}"
                f"     {form:<10}{1e3 * found[form]:>8.2f} ms{1e3 * computed:>10.2f} ms{computed / found[form]:>14.2f}"
            )


def table(program: str, profile: Profile, network: Network) -> None:
    """Print the steps of 2 to 4096 ranks."""
    print(
        f"\n{program}: {1e3 * profile.seconds:.1f} ms in one process, {profile.nbytes / MB:.1f} MB of gradients; "
        f"{network.name}, α {1e6 * network.alpha:g} µs, 1/β {network.bandwidth / 1e9:g} GB/s"
    )
    print("          averaging alone, ms            replicated                in parts          MB of a rank")
    print("ranks    ring    tree  halving    step, ms      %   best bucket    step, ms      %    whole   parts")
    for count in COUNTS:
        whole, parts = replicated(profile, count, network), in_parts(profile, count, network)
        size, _ = best_bucket(profile, [count], network)
        held = memory(profile, count)
        print(
            f"{count:>5}"
            + "".join(f"{1e3 * way(profile.nbytes, count, network):>8.2f}" for way in ALL_REDUCE.values())
            + f" {1e3 * whole:>12.2f}{100 * profile.seconds / whole:>7.1f}{size / MB:>11g} MB"
            + f"{1e3 * parts:>12.2f}{100 * profile.seconds / parts:>7.1f}{held[0] / MB:>9.1f}{held[1] / MB:>8.1f}"
        )
    size, regret = best_bucket(profile, COUNTS, network)
    print(f"bucket_cap_mb={size / MB:g}: nowhere more than {100 * (regret - 1):.1f} % slower than the best there")


def main() -> None:
    """Measure, check and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", default=PROGRAMS, metavar="PROGRAM", help="all by default")
    parser.add_argument("--no-check", action="store_true", help="without the steps of several processes")
    options = parser.parse_args()
    for program in options.programs:
        profile = read(ranks.run("benchmarks.distributed.scale", "corefw", program, ranks=1))
        if not options.no_check:
            check(program, profile)
        for network in NETWORKS:
            table(program, profile, network)


if __name__ == "__main__":
    if sys.argv[1:2] == ["corefw"]:
        result = measured(sys.argv[2])
        if result:
            print(json.dumps(result), flush=True)
    else:
        main()
