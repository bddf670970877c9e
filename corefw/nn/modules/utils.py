"""Numbers for each dimension, by the names under which libraries import what layers do with theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

__all__ = ["consume_prefix_in_state_dict_if_present"]


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple]:
    """What makes a tuple of an argument: of a sequence its elements, of a number `n` times itself.

    >>> _ntuple(2)(3), _ntuple(2)([1, 2])
    ((3, 3), (1, 2))
    """

    def parse(x: Any) -> tuple:
        return tuple(x) if isinstance(x, Iterable) else tuple(repeat(x, n))

    parse.__name__ = name
    return parse


_single, _pair, _triple = _ntuple(1, "_single"), _ntuple(2, "_pair"), _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: tuple, n: int) -> tuple:
    """The elements from the last to the first, each `n` times: the padding of `nn.functional.pad`.

    >>> _reverse_repeat_tuple((1, 2), 2)
    (2, 2, 1, 1)
    """
    return tuple(x for x in reversed(t) for _ in range(n))


def _list_with_default(out_size: list, defaults: list[int]) -> list[int]:
    """Sizes in which None stands for the last of the defaults.

    >>> _list_with_default([None, 3], [7, 5, 6])
    [5, 3]
    """
    if isinstance(out_size, int | tuple):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    last = defaults[-len(out_size) :]
    return [default if size is None else size for size, default in zip(out_size, last)]


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Take a prefix, such as that of a wrapper around a model, away from the names of a state dict, in place.

    >>> state = {"module.weight": 1, "bias": 2}
    >>> consume_prefix_in_state_dict_if_present(state, "module.")
    >>> state
    {'weight': 1, 'bias': 2}
    """
    states = [state_dict, *filter(None, [getattr(state_dict, "_metadata", None)])]
    for names in states:
        kept = {
            name.removeprefix(prefix) if name.startswith(prefix) else "" if name == prefix[:-1] else name: value
            for name, value in names.items()
        }
        names.clear()
        names.update(kept)
