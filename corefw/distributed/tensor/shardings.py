"""Which dimensions of an op's arguments and results may be cut together: the notation of rules, and the choice of the
cheapest way.

A rule says it for a call in one line, as ``"...mk ...kn -> ...mn"`` for a product of matrices: a word for each tensor
argument and, behind the arrow, for each result. A letter is a dimension; where it stands again, the dimension is cut in
the same way. A letter without a place in the results is summed over: cut, it gives terms of a sum. ``...`` are
dimensions that broadcast, capitals and ``1`` dimensions that must be whole. The result is linear in each argument by
itself, but those behind a ``~``; ``+`` stands between terms, as in mathematics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from corefw.distributed.tensor.placements import WHOLE, Partial, Placement, Shard

Labels = tuple[Any, ...]  # for each dimension the letter, or its place among those that broadcast; None if it is whole


@dataclass(eq=False)
class Sharding:
    """What a rule says of a call.

    Attributes: ``operands, results`` the labels of dimensions; ``terms`` for each term of the result the arguments in
    which it is linear; ``shape`` of the results, where labels do not tell; ``resized`` the argument that is that shape;
    ``instead`` what is called with the parts in the place of the op; ``local`` for each label that needs it what is
    called where it is cut, with the tensors and all arguments.
    """

    operands: list[Labels] = field(default_factory=list)
    results: list[Labels] = field(default_factory=list)
    terms: list[list[int]] = field(default_factory=list)
    shape: tuple[int, ...] | None = None
    resized: int | None = None
    instead: Callable[..., Any] | None = None
    local: dict[Any, Callable[..., Any]] = field(default_factory=dict)


def _labels(word: str, ndim: int) -> Labels:
    head, dots, tail = word.partition("...")
    if dots:
        rest = ndim - len(head) - len(tail)
        found = [*head, *range(-rest, 0), *tail]
    else:
        found = list(word[len(word) - min(ndim, len(word)) :])
    return tuple(None if isinstance(one, str) and (one == "1" or one.isupper()) else one for one in found)


def parsed(rule: str, shapes: Sequence[Sequence[int] | None]) -> Sharding:
    """What a rule says of arguments of these shapes; None stands for one that is missing.

    >>> found = parsed("...mk ...kn -> ...mn", [(5, 2, 3), (3, 4)])
    >>> found.operands, found.results, found.terms
    ([(-1, 'm', 'k'), ('k', 'n')], [(-1, 'm', 'n')], [[0, 1]])
    """
    left, _, right = rule.partition("->")
    found, position = Sharding(terms=[[]]), 0
    for word in left.split():
        if word == "+":
            found.terms.append([])
            continue
        shape, position = shapes[position] if position < len(shapes) else None, position + 1
        if shape is None:
            found.operands.append(())
            continue
        if not word.startswith("~"):
            found.terms[-1].append(position - 1)
        found.operands.append(_labels(word.lstrip("~"), len(shape)))
    found.terms = [term for term in found.terms if term]
    sizes = sizes_of(found, shapes)
    found.operands = [
        tuple(None if shape[d] == 1 < sizes.get(label, 1) else label for d, label in enumerate(labels))  # type: ignore[index]
        for labels, shape in zip(found.operands, shapes)
    ]
    dots = max((-label for label in sizes if isinstance(label, int)), default=0)
    for word in right.split():
        found.results.append(_labels(word, len(word.replace("...", "")) + dots * ("..." in word)))
    return found


def sizes_of(sharding: Sharding, shapes: Sequence[Sequence[int] | None]) -> dict[Any, int]:
    """{label: the length of its dimension}."""
    found: dict[Any, int] = {}
    for labels, shape in zip(sharding.operands, shapes):
        for label, size in zip(labels, shape or ()):
            if label is not None:
                found[label] = size if found.get(label, 1) == 1 else found[label]
    return found


@dataclass
class Choice:
    """Where arguments must lie along a dimension of the mesh, and where results lie then; and the label that is cut,
    if one is."""

    operands: list[Placement]
    results: list[Placement]
    label: Any = None


def _choices(sharding: Sharding, now: Sequence[Placement], moving: Set[int]) -> Iterator[Choice]:
    """The ways to compute along one dimension of the mesh, on which the arguments lie `now`; those of `moving` want
    gradients."""
    count, outputs = len(now), len(sharding.results)
    yield Choice([WHOLE] * count, [WHOLE] * outputs)
    cut = {
        labels[p.dim]: None
        for labels, p in zip(sharding.operands, now)
        if isinstance(p, Shard) and labels[p.dim] is not None
    }
    for label in cut:
        operands: list[Placement] = [_cut(labels, label) for labels in sharding.operands]
        results = [_cut(labels, label) for labels in sharding.results]
        if not all(isinstance(p, Shard) for p in results):
            if any(isinstance(p, Shard) for p in results):
                continue
            linear = {i for term in sharding.terms for i in term}
            if any(isinstance(p, Shard) and i not in linear for i, p in enumerate(operands)):
                continue
            if not all(any(isinstance(operands[i], Shard) for i in term) for term in sharding.terms):
                continue  # a term that is not summed over would be added on each process
            results = [Partial() for _ in results]
        yield Choice(operands, results, label)
    for operation in dict.fromkeys(p.reduce_op for p in now if isinstance(p, Partial)):
        factors = [[i for i in term if now[i].is_partial(operation)] for term in sharding.terms]
        for chosen in product(*factors) if operation in ("sum", "avg") and factors else ():
            if not moving <= {*chosen}:  # gradients of gradients would be whole in part, terms in part
                continue
            terms: list[Placement] = [Partial(operation) if i in chosen else WHOLE for i in range(count)]
            yield Choice(terms, [Partial(operation)] * outputs)


def _cut(labels: Labels, label: Any) -> Placement:
    return Shard(labels.index(label)) if label in labels else WHOLE


def _cost(now: Placement, wanted: Placement, size: int, count: int) -> float:
    """About how many elements of an argument are moved to get it from one placement to another."""
    if now == wanted or now.is_replicate():
        return 0
    moved = size * (count - 1) / count
    if now.is_partial() and not wanted.is_shard():
        return 2 * moved
    return moved / count if now.is_shard() and wanted.is_shard() else moved


def cheapest(
    sharding: Sharding, now: Sequence[Placement], numels: Sequence[int], moving: Set[int], count: int,
    fits: Callable[[Any], bool],
) -> Choice:  # fmt: skip
    """The way that moves least along a dimension of the mesh with `count` processes; of equal ones that with the fewest
    changes. `fits` tells whether a label may be cut there."""

    def cost(choice: Choice) -> tuple[float, int]:
        moves = list(zip(now, choice.operands, numels))
        return sum(_cost(a, b, n, count) for a, b, n in moves), sum(a != b for a, b, _ in moves)

    return min((c for c in _choices(sharding, now, moving) if c.label is None or fits(c.label)), key=cost)
