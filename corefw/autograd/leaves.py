"""The leaves that a graph leads to, and when a backward comes to the end of each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from corefw.graph.views import node_of
from corefw.tensor import AccumulateGrad, Node, Tensor


def last_uses(results: Iterable[Tensor]) -> dict[AccumulateGrad, int]:
    """{leaf's node: the sequence of the oldest node that uses it} of all leaves that `results` depend on.

    A backward runs nodes from the newest to the oldest, so the gradient of a leaf is complete once that node has run.
    """
    stack = [node for node in map(node_of, results) if node is not None]
    seen: set[Node] = set(stack)
    found: dict[AccumulateGrad, int] = {}
    while stack:
        node = stack.pop()
        for following in node.inputs:
            if following is None:
                continue
            if following.__class__ is AccumulateGrad:
                found[following] = min(found.get(following, node.sequence), node.sequence)
            elif following not in seen:
                seen.add(following)
                stack.append(following)
    return found


def finish_early(leaves: Iterable[Tensor], uses: dict[AccumulateGrad, int], at_most: bool) -> None:
    """Let a backward add the gradient of each leaf up as soon as it is complete, instead of at its end.

    Args:
        leaves: tensors that require gradients.
        uses: what `last_uses` found.
        at_most: whether another graph that is still to run uses them too, so that the older end counts.
    """
    for i, leaf in enumerate(leaves):
        node: Any = leaf.node
        if node in uses:
            # Right after the last use, before whatever is older; no two nodes have the same place.
            place = uses[node] - (i + 1) / (1 << 20)
            node.sequence = min(node.sequence, place) if at_most else place
