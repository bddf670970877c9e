"""Trees of Python containers: the arguments and results of functions, taken apart into leaves and put together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

#: what `flatten` says of a leaf
LEAF = "*"


def flatten(tree: Any) -> tuple[list, Any]:
    """The leaves of nested tuples, lists, named tuples and dictionaries, and their structure: equal for trees alike.

    >>> flatten({"a": 1, "b": (2, 3)})
    ([1, 2, 3], (<class 'dict'>, ('a', 'b'), ('*', (<class 'tuple'>, None, ('*', '*')))))
    """
    leaves: list = []
    return leaves, _structure(tree, leaves)


def _structure(tree: Any, leaves: list) -> Any:
    """The structure of a tree, whose leaves are added to `leaves`."""
    kind = type(tree)
    if isinstance(tree, dict):
        keys = tuple(tree)
        return kind, keys, tuple(_structure(tree[key], leaves) for key in keys)
    if kind in (tuple, list) or (isinstance(tree, tuple) and hasattr(tree, "_fields")):
        return kind, None, tuple(_structure(branch, leaves) for branch in tree)
    leaves.append(tree)
    return LEAF


def unflatten(leaves: Sequence, structure: Any) -> Any:
    """The tree of this structure with these leaves.

    >>> unflatten([1, 2, 3], flatten({"a": 0, "b": (0, 0)})[1])
    {'a': 1, 'b': (2, 3)}
    """
    return _build(iter(leaves), structure)


def _build(leaves: Iterator, structure: Any) -> Any:
    if structure == LEAF:
        return next(leaves)
    kind, keys, branches = structure
    built = [_build(leaves, branch) for branch in branches]
    if keys is not None:
        return kind(zip(keys, built))
    return kind(built) if kind in (tuple, list) else kind(*built)
