"""`rearrange`: the dimensions of a tensor by names."""

from __future__ import annotations

import re
from math import prod

from corefw.dispatch.declare import ops
from corefw.tensor import Tensor


class _Side:
    """One side of a pattern: for each dimension the names that are merged in it, "..." for all others."""

    def __init__(self, text: str, pattern: str):
        self.groups: list[list[str]] = []
        if not re.fullmatch(r"(\s*(\((\s*(\w+|\.\.\.))*\s*\)|\w+|\.\.\.))*\s*", text):
            raise ValueError(f"rearrange: {pattern!r}: expected names, '...', '1' and groups of them in parentheses")
        for token in re.findall(r"\([^)]*\)|\w+|\.\.\.", text):
            names = token.strip("()").split() if token[0] == "(" else [token]
            for name in names:
                if name not in ("...", "1") and not name.isidentifier():
                    raise ValueError(f"rearrange: {pattern!r}: {name!r} is no name, '...' or 1")
            self.groups.append([name for name in names if name != "1"])
        self.names = [name for group in self.groups for name in group]
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"rearrange: {pattern!r} names a dimension twice on one side")


def rearrange(tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int) -> Tensor:
    """A tensor with its dimensions permuted, split and merged as a pattern says, which names them.

    Args:
        tensor: any shape; several of one shape are stacked along a new first dimension.
        pattern: names of the dimensions before and after ``->``; those in parentheses are one dimension, split or
            merged; ``...`` stands for all others, ``1`` for a dimension of that size.
        axes_lengths: the sizes of names that are parts of a dimension; all parts but one must have one.

    Returns:
        The tensor of the right side, a view where its strides allow.

    Raises:
        ValueError: the pattern is none, or does not fit the shape.

    >>> import corefw as torch
    >>> torch.func.rearrange(torch.arange(6), "(h w) -> w h", h=2)
    tensor([[0, 3],
            [1, 4],
            [2, 5]])
    >>> torch.func.rearrange(torch.zeros(2, 3, 4), "b ... -> (...) b").shape
    torch.Size([12, 2])
    """
    one = tensor if isinstance(tensor, Tensor) else ops.stack(list(tensor))
    if pattern.count("->") != 1:
        raise ValueError(f"rearrange: {pattern!r}: expected one '->' between two sides")
    left, right = (_Side(text, pattern) for text in pattern.split("->"))
    if set(left.names) != set(right.names):
        only = sorted(set(left.names) ^ set(right.names))
        raise ValueError(f"rearrange: {pattern!r}: {', '.join(only)} stands on one side only")
    if any("..." in group and group != ["..."] for group in left.groups):
        raise ValueError(f"rearrange: {pattern!r}: '...' in a group of the left side has no sizes")
    if unknown := set(axes_lengths) - set(left.names):
        raise ValueError(f"rearrange: {pattern!r} has no {', '.join(sorted(unknown))}")
    sizes = _sizes(tuple(one.shape), left, pattern, axes_lengths)
    split = [size for name in left.names for size in sizes[name]]
    begins, at = {}, 0
    for name in left.names:
        begins[name], at = at, at + len(sizes[name])
    order = [begins[name] + i for name in right.names for i in range(len(sizes[name]))]
    merged = [
        size
        for group in right.groups
        for size in (sizes["..."] if group == ["..."] and _is_bare(pattern) else [_product(sizes, group)])
    ]
    return one.reshape(split).permute(order).reshape(merged)


def _is_bare(pattern: str) -> bool:
    """Whether the dots of the right side stand outside of parentheses."""
    return re.search(r"\(\s*\.\.\.\s*\)", pattern.split("->")[1]) is None


def _product(sizes: dict[str, list[int]], group: list[str]) -> int:
    return prod(size for name in group for size in sizes[name])


def _sizes(shape: tuple[int, ...], left: _Side, pattern: str, given: dict[str, int]) -> dict[str, list[int]]:
    """The size of each name, for the dots the sizes of all that they stand for."""
    others = len(shape) - len(left.groups) + (["..."] in left.groups)
    if others < 0 or (["..."] not in left.groups and others != 0):
        raise ValueError(f"rearrange: {pattern!r} does not fit a tensor of shape {list(shape)}")
    found: dict[str, list[int]] = {}
    at = 0
    for group in left.groups:
        if group == ["..."]:
            found["..."] = list(shape[at : at + others])
            at += others
            continue
        size = shape[at]
        open_ = [name for name in group if name not in given]
        known = prod(given[name] for name in group if name in given)
        if len(open_) > 1:
            raise ValueError(f"rearrange: {pattern!r}: the sizes of {', '.join(open_[1:])} are needed")
        if (size % known if open_ and known else size != known) or (open_ and not known):
            raise ValueError(f"rearrange: {pattern!r}: a dimension of size {size} is not made of {group} with {given}")
        for name in group:
            found[name] = [size // known if name in open_ else given[name]]
        at += 1
    return found
