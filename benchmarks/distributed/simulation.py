"""Steps of training on any number of ranks, by arithmetic: layers' times, and what a network takes for a message.

A message of n bytes takes α + nβ. A step on p ranks has the computing of one rank, and the collectives that its
backward (or forward, for parameters in parts) begins, which the network does one after another while the rank computes.
What is left out: that ranks are not equally fast, that messages share links, and that processes share memory.

Source of the collectives' costs: Thakur, Rabenseifner and Gropp, "Optimization of collective communication operations
in MPICH", 2005.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from math import ceil, log2

MB = 1 << 20
DEFAULT = (MB, 25 * MB)  # the buckets of DistributedDataParallel


@dataclass(frozen=True)
class Layer:
    """A module with parameters of its own.

    Attributes: ``unit`` that it belongs to where the model lies in parts, "" for the whole model's; ``nbytes`` of its
    parameters; ``forward`` and ``backward`` the seconds until it is done, after the layer that comes before.
    """

    name: str
    unit: str
    nbytes: int
    forward: float
    backward: float


@dataclass(frozen=True)
class Profile:
    """A step of one process.

    Attributes: ``layers`` in the order of the forward; ``optimizer`` and ``other`` the seconds of its step and of all
    else; ``states`` the bytes that the optimizer keeps.
    """

    layers: Sequence[Layer]
    optimizer: float = 0.0
    other: float = 0.0
    states: int = 0

    @property
    def nbytes(self) -> int:
        """Of all parameters."""
        return sum(layer.nbytes for layer in self.layers)

    @property
    def seconds(self) -> float:
        """Of the step without collectives."""
        return sum(layer.forward + layer.backward for layer in self.layers) + self.optimizer + self.other

    def times(self, factor: float) -> Profile:
        """That of a slower machine."""
        layers = [
            replace(layer, forward=layer.forward * factor, backward=layer.backward * factor) for layer in self.layers
        ]
        return Profile(layers, self.optimizer * factor, self.other * factor, self.states)


@dataclass(frozen=True)
class Network:
    """What joins ranks.

    Attributes: ``alpha`` the seconds that a message takes beside its bytes; ``bandwidth`` in bytes per second; ``busy``
    the part of a collective's time that the processor of the rank spends on it.
    """

    name: str
    alpha: float
    bandwidth: float
    busy: float = 0.0

    @property
    def beta(self) -> float:
        """Seconds per byte."""
        return 1 / self.bandwidth


# -- collectives ------------------------------------------------------------------------------------------------------
def ring(n: int, p: int, network: Network) -> float:
    """all_reduce: each rank passes parts of n/p bytes on, 2(p - 1) times."""
    return 2 * (p - 1) * (network.alpha + n / p * network.beta)


def tree(n: int, p: int, network: Network) -> float:
    """all_reduce: all n bytes go up a binomial tree to one rank, and down again."""
    return 2 * ceil(log2(p)) * (network.alpha + n * network.beta)


def halving(n: int, p: int, network: Network) -> float:
    """all_reduce: parts are halved with farther and farther ranks, then doubled back."""
    return 2 * ceil(log2(p)) * network.alpha + 2 * (p - 1) / p * n * network.beta


ALL_REDUCE = {"ring": ring, "tree": tree, "halving": halving}


def all_reduce(n: int, p: int, network: Network) -> float:
    """By the quickest way."""
    return min(way(n, p, network) for way in ALL_REDUCE.values())


def gather(n: int, p: int, network: Network) -> float:
    """all_gather of n bytes together, or reduce_scatter: half of an `all_reduce` by ring or by halving."""
    return min(ring(n, p, network), halving(n, p, network)) / 2


# -- steps ------------------------------------------------------------------------------------------------------------
def replicated(
    profile: Profile, ranks: int, network: Network, sizes: Sequence[float] = DEFAULT,
    way: Callable[[int, int, Network], float] = all_reduce,
) -> float:  # fmt: skip
    """The seconds of a step with DistributedDataParallel.

    Args:
        profile: of one process.
        ranks: how many.
        network: that joins them.
        sizes: bytes of the buckets, the last one that of all others: a bucket is on its way when it has so many.
        way: the time of an all_reduce.
    """
    clock = sum(layer.forward for layer in profile.layers)
    free = 0.0  # when the network is
    held = bucket = 0
    for i, layer in enumerate(reversed(profile.layers), 1):
        clock += layer.backward
        held += layer.nbytes
        if held >= sizes[min(bucket, len(sizes) - 1)] or (held and i == len(profile.layers)):
            took = way(held, ranks, network)
            free = max(free, clock) + took
            clock += network.busy * took
            held, bucket = 0, bucket + 1
    return max(clock, free) + profile.optimizer + profile.other


def in_parts(profile: Profile, ranks: int, network: Network) -> float:
    """The seconds of a step with `fully_shard`, whose units are those of the layers and the whole model.

    While one unit computes the next one is gathered, in the forward and in the backward; averages of one unit are on
    their way while the next one computes, and end before those of another begin.
    """
    sizes: dict[str, int] = {}
    for layer in profile.layers:
        sizes[layer.unit] = sizes.get(layer.unit, 0) + layer.nbytes
    order = list(sizes)
    segments = [(unit, list(layers)) for unit, layers in groupby(profile.layers, lambda layer: layer.unit)]
    clock = free = reduced = 0.0
    there: dict[str, float] = {}  # when a unit is whole

    def begin(unit: str) -> None:
        nonlocal clock, free
        if unit not in there:
            took = gather(sizes[unit], ranks, network)
            there[unit] = free = max(free, clock) + took
            clock += network.busy * took

    def enter(unit: str, following: Sequence[str]) -> None:
        """A unit begins to compute: it is waited for, and the one that comes after it begins to be gathered."""
        nonlocal clock
        begin(unit)
        clock = max(clock, there[unit])
        for next_one in following:
            begin(next_one)

    begun: set[str] = set()
    for unit, layers in segments:
        if unit not in begun:
            begun.add(unit)
            enter(unit, order[len(begun) : len(begun) + 1])
        clock += sum(layer.forward for layer in layers)
        if unit:
            del there[unit]
    left = [unit for unit, _ in reversed(segments)]
    for unit, layers in reversed(segments):
        if unit in begun:
            begun.remove(unit)
            enter(unit, [order[order.index(unit) - 1]])  # of the whole model, which comes first, the last one
        clock += sum(layer.backward for layer in layers)
        left.remove(unit)
        if unit not in left:
            took = gather(sizes[unit], ranks, network)
            before, reduced = reduced, max(free, clock) + took
            free = reduced
            clock = max(clock + network.busy * took, before)
            del there[unit]
    return max(clock, free) + profile.optimizer / ranks + profile.other


def memory(profile: Profile, ranks: int) -> tuple[float, float]:
    """The bytes of a rank that are parameters, gradients, states, and what collectives need: replicated, and in parts.

    A replica has the gradients twice, once in its buckets; a rank with parts has at most two units whole, and what
    belongs to no unit.
    """
    own = 2 * profile.nbytes + profile.states
    units: dict[str, int] = {}
    for layer in profile.layers:
        units[layer.unit] = units.get(layer.unit, 0) + layer.nbytes
    whole = units.pop("", 0) + sum(sorted(units.values())[-2:])
    return own + profile.nbytes, own / ranks + whole


# -- advice -----------------------------------------------------------------------------------------------------------
def candidates(profile: Profile) -> list[int]:
    """Sizes of buckets to choose from, in bytes: powers of two from 64 KB until one holds all."""
    sizes = [MB >> 4]
    while sizes[-1] < profile.nbytes:
        sizes.append(2 * sizes[-1])
    return sizes


def best_bucket(profile: Profile, ranks: Sequence[int], network: Network) -> tuple[int, float]:
    """The size of buckets whose steps are, at the number of ranks where it is worst, the least slower than the best
    size there; and how many times slower. Of sizes that are equal within a thousandth, the largest."""
    steps = {size: [replicated(profile, p, network, (size,)) for p in ranks] for size in candidates(profile)}
    best = [min(times) for times in zip(*steps.values())]
    regret = {size: max(a / b for a, b in zip(times, best)) for size, times in steps.items()}
    chosen = max(size for size in regret if regret[size] <= min(regret.values()) * 1.001)
    return chosen, regret[chosen]
