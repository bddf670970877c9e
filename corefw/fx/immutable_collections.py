"""Lists and dicts that cannot be changed: the arguments of nodes, whose changes a graph must see."""

from __future__ import annotations

from typing import Any, NoReturn

from corefw.utils._pytree import register_pytree_node

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self: Any, *arguments: Any, **named: Any) -> NoReturn:
    raise NotImplementedError(
        f"'{type(self).__name__}' object does not support mutation. If you are attempting to modify the kwargs or args "
        "of a torch.fx.Node object, instead create a new copy of it and assign the copy to the node: "
        "new_args = ...; node.args = new_args"
    )


class immutable_list(list):
    """A list that refuses changes.

    >>> immutable_list([1, 2]) == [1, 2]
    True
    """

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = pop = remove = _refuse
    reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> tuple:
        return immutable_list, (tuple(self),)


class immutable_dict(dict):
    """A dict that refuses changes."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> tuple:
        return immutable_dict, (list(self.items()),)


register_pytree_node(immutable_list, lambda tree: (list(tree), None), lambda leaves, _: immutable_list(leaves))
register_pytree_node(
    immutable_dict,
    lambda tree: (list(tree.values()), list(tree)),
    lambda leaves, keys: immutable_dict(zip(keys, leaves)),
)
