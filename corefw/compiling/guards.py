"""Guards: what surroundings held at a time, and whether they still do."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, count, zip_longest
from types import CellType
from typing import Any, NamedTuple

from corefw.devices import device
from corefw.dtypes import dtype
from corefw.tensor import AccumulateGrad, Tensor

PLAIN = (int, float, complex, bool, str, bytes, type(None), dtype, device)
_EXACT = frozenset({dict, list, set, deque, OrderedDict, defaultdict})  # which are false where they have no items
_END = object()


class Option(NamedTuple):
    """A number of an optimizer's group: the item with a key, or the one at a place in a tuple there, whose other items
    are `others`."""

    group: dict
    key: Any
    place: int | None = None
    others: tuple = ()

    def now(self) -> Option:
        """The same one, with the other items that there are now."""
        if self.place is None:
            return self
        items = self.group[self.key]
        return self._replace(others=(*items[: self.place], *items[self.place + 1 :]))

    def get(self) -> Any:
        """What is there."""
        value = self.group.get(self.key)
        return value if self.place is None else value[self.place]  # type: ignore[index]

    def put(self, value: Any) -> None:
        """Set it."""
        if self.place is not None:
            items = self.group[self.key]
            value = (*items[: self.place], value, *items[self.place + 1 :])
        self.group[self.key] = value


class Source(NamedTuple):
    """Something whose items count, in their order.

    Attributes: ``items`` gives them, as they are whenever one goes through it; ``keys`` gives what each is called;
    ``name`` that of the container, "" where the keys are names; ``container`` itself, None if it is none.
    """

    items: Iterable
    keys: Iterable
    name: Any
    container: Any = None


class Held:
    """What was there, of all that some sources and tensors lead to, when this was made.

    Args:
        sources: the containers and the like.
        tensors: (tensor, its name).

    Attributes:
        values: the items of each source.
        empty: the containers that have none.
        present: what gives those of the others, and one more at the end; ``items`` what it gave.
        leaves: (tensor, its array, its node, the hooks on that, whether it has no gradient) of those that may get one.
        others: (tensor, its array, its node).
    """

    def __init__(self, sources: Sequence[Source], tensors: Sequence[tuple[Tensor, Any]]):
        self._sources, self._tensors = sources, [(t, t.array, t.node, name) for t, name in tensors]
        self.values = [[*source.items] for source in sources]
        empty = [not v and s.container.__class__ in _EXACT for s, v in zip(sources, self.values)]
        self.empty = [source.container for source, is_empty in zip(sources, empty) if is_empty]
        self.present = *(source.items for source, is_empty in zip(sources, empty) if not is_empty), (_END,)
        self.items = [*chain.from_iterable(self.values), _END]
        self.leaves, self.others = [], []
        for tensor, array, node, _ in self._tensors:
            if node.__class__ is AccumulateGrad:
                self.leaves.append((tensor, array, node, node.hooks, tensor._grad is None))
            else:
                self.others.append((tensor, array, node))

    def equals(self) -> bool:
        """Whether the same is present as before, numbers by their values. Where it is, these objects count from now on:
        they were computed anew, and are likely to stay for some calls."""
        present = [*chain.from_iterable(self.present)]
        if len(present) != len(self.items) or not all(map(same, present, self.items)):
            return False
        self.items = present
        return True

    def difference(self) -> str:
        """The name of something that is another one now; "" if nothing is. Gradients may come and go."""
        for source, values in zip(self._sources, self.values):
            for key, now, before in zip_longest(source.keys, [*source.items], values, fillvalue=_END):
                if now is not before and not same(now, before):
                    return spelled((source.name, "[]", key)) if source.name else str(key)
                if now is _END:
                    break
        for tensor, array, node, name in self._tensors:
            if tensor.array is not array or tensor.node is not node:
                return f"the memory or history of {spelled(name)}"
        return ""

    def changed_numbers(self, groups: set[int]) -> list[Option]:
        """The items of dictionaries with these ids that are other numbers now; none if anything else has changed."""
        found = []
        for source, values in zip(self._sources, self.values):
            present, may_change = [*source.items], id(source.container) in groups
            if len(present) != len(values):
                return []
            for key, now, before in zip(source.keys, present, values):
                if now is before or same(now, before):
                    continue
                if not may_change or now.__class__ is not float or before.__class__ is not float:
                    return []
                found.append(Option(source.container, key))
        return found


def source_of(container: Any, name: Any) -> Source:
    """All items of a container."""
    if not isinstance(container, dict):
        return Source(container, count(), name, container)
    values: Callable = type(container).values
    if values not in (dict.values, OrderedDict.values):
        values = dict.values
    return Source(values(container), container, name, container)


class Some:
    """The items of a dictionary with some keys, and how many it has in all."""

    def __init__(self, container: dict, keys: Sequence[Any]):
        self._container, self._keys = container, keys

    def __iter__(self) -> Iterator:
        return iter([*map(self._container.get, self._keys), len(self._container)])


class Globals:
    """What some names mean in a module."""

    def __init__(self, namespace: dict, names: Sequence[str]):
        self._namespace, self._names = namespace, names

    def __iter__(self) -> Iterator:
        return map(self._namespace.get, self._names)


class Variables:
    """What variables hold that functions share."""

    def __init__(self, cells: Sequence[CellType]):
        self._cells = cells

    def __iter__(self) -> Iterator:
        try:
            return iter([cell.cell_contents for cell in self._cells])
        except ValueError:  # one has nothing yet
            return map(content, self._cells)


def content(cell: CellType) -> Any:
    """The value of a variable that functions share; None before it has one."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def same(first: Any, second: Any) -> bool:
    """Whether two values count as one: the same object, or equal numbers or strings of one class."""
    if first is second:
        return True
    kind = first.__class__
    return kind is second.__class__ and kind in PLAIN and bool(first == second) and repr(first) == repr(second)


def spelled(name: Any) -> str:
    """A name that was put together of parts: (what, "." or "[]", the attribute or key)."""
    if name.__class__ is not tuple:
        return str(name)
    owner, kind, key = name
    if kind == ".":
        return f"{spelled(owner)}.{key}"
    return f"{spelled(owner)}[{key!r}]" if key.__class__ in PLAIN else f"{spelled(owner)}[a {type(key).__name__}]"
