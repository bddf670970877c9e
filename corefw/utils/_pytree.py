"""Trees of Python containers under PyTorch's names: taken apart into leaves, mapped over, and put together."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

__all__ = [
    "GetAttrKey",
    "MappingKey",
    "PyTree",
    "SequenceKey",
    "TreeSpec",
    "key_get",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
]
PyTree = Any
Context = Any


@dataclass(frozen=True)
class _Node:
    """How a kind of container is taken apart, ``flatten(tree) -> (children, context)``, and built again."""

    flatten: Callable[[Any], tuple[list, Any]]
    unflatten: Callable[[Iterable, Any], Any]
    flatten_with_keys: Callable[[Any], tuple[list, Any]] | None = None

    @property
    def flatten_fn(self) -> Callable[[Any], tuple[list, Any]]:
        """`flatten` by PyTorch's name."""
        return self.flatten

    @property
    def unflatten_fn(self) -> Callable[[Iterable, Any], Any]:
        """`unflatten` by PyTorch's name."""
        return self.unflatten


@dataclass(frozen=True)
class SequenceKey:
    """A step of a path: the child at a position."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """That child."""
        return sequence[self.idx]


@dataclass(frozen=True)
class MappingKey:
    """A step of a path: the child under a key."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """That child."""
        return mapping[self.key]


@dataclass(frozen=True)
class GetAttrKey:
    """A step of a path: the child that is an attribute."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """That child."""
        return getattr(obj, self.name)


def _of_keys(kind: Callable[[Any], Any]) -> _Node:
    return _Node(lambda tree: (list(tree.values()), list(tree)), lambda children, keys: kind(zip(keys, children)))


_NODES: dict[type, _Node] = {
    dict: _of_keys(dict),
    OrderedDict: _of_keys(OrderedDict),
    defaultdict: _Node(
        lambda tree: (list(tree.values()), [tree.default_factory, list(tree)]),
        lambda children, context: defaultdict(context[0], zip(context[1], children)),
    ),
    list: _Node(lambda tree: (list(tree), None), lambda children, _: list(children)),
    tuple: _Node(lambda tree: (list(tree), None), lambda children, _: tuple(children)),
    deque: _Node(lambda tree: (list(tree), tree.maxlen), lambda children, length: deque(children, length)),
    namedtuple: _Node(lambda tree: (list(tree), type(tree)), lambda children, kind: kind(*children)),  # type: ignore[dict-item]
}


#: PyTorch's name of it, under which libraries ask which containers there are
SUPPORTED_NODES = _NODES


def register_pytree_node(
    cls: type,
    flatten_fn: Callable[[Any], tuple[list, Any]],
    unflatten_fn: Callable[[Iterable, Any], Any],
    *,
    flatten_with_keys_fn: Callable[[Any], tuple[list, Any]] | None = None,
    **names: Any,
) -> None:
    """Let `cls` be a container.

    Args:
        cls: the class; classes derived from it are leaves.
        flatten_fn: gives the children and what else `unflatten_fn` needs.
        unflatten_fn: ``unflatten_fn(children, context)`` builds the container again.
        flatten_with_keys_fn: as `flatten_fn`, with pairs (step of the path, child); without one, children have numbers.
        names: PyTorch's further arguments, which concern its own files.

    Raises:
        ValueError: it is one already.
    """
    if cls in _NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    _NODES[cls] = _Node(flatten_fn, unflatten_fn, flatten_with_keys_fn)


_register_pytree_node = register_pytree_node


def _kind(tree: Any) -> Any:
    """The key of a tree's node, None for a leaf."""
    kind = type(tree)
    if kind in _NODES:
        return kind
    return namedtuple if isinstance(tree, tuple) and hasattr(tree, "_fields") and kind.__bases__ == (tuple,) else None


def _get_node_type(tree: Any) -> Any:
    """The key of a tree in `SUPPORTED_NODES`, or the class of a leaf."""
    return _kind(tree) or type(tree)


@dataclass(frozen=True, eq=True)
class TreeSpec:
    """The structure of a tree: equal for trees that are alike but for their leaves; ``type`` is None for a leaf."""

    type: Any
    context: Any
    children_specs: tuple[TreeSpec, ...] = ()

    @property
    def num_leaves(self) -> int:
        """How many leaves."""
        return 1 if self.type is None else sum(spec.num_leaves for spec in self.children_specs)

    def is_leaf(self) -> bool:
        """Whether it is a leaf."""
        return self.type is None

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The tree of this structure with these leaves."""
        return tree_unflatten(leaves, self)


def LeafSpec() -> TreeSpec:
    """The structure of a leaf."""
    return TreeSpec(None, None)


def tree_flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list, TreeSpec]:
    """The leaves, in order, and the structure.

    Args:
        tree: nested dicts, lists, tuples, named tuples, deques and registered containers.
        is_leaf: says of a container that it is a leaf.

    >>> leaves, spec = tree_flatten({"a": 1, "b": (2, [3])})
    >>> leaves, tree_unflatten([10, 20, 30], spec)
    ([1, 2, 3], {'a': 10, 'b': (20, [30])})
    """
    leaves: list = []
    return leaves, _take(tree, leaves, is_leaf)


def _take(tree: Any, leaves: list, is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    kind = None if is_leaf is not None and is_leaf(tree) else _kind(tree)
    if kind is None:
        leaves.append(tree)
        return LeafSpec()
    children, context = _NODES[kind].flatten(tree)
    return TreeSpec(kind, context, tuple(_take(child, leaves, is_leaf) for child in children))


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of a structure with these leaves.

    Raises:
        ValueError: their number is not the structure's.
    """
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"tree_unflatten: {len(leaves)} leaves were given for a structure of {treespec.num_leaves}: {treespec}"
        )
    return _build(iter(leaves), treespec)


def _build(leaves: Any, spec: TreeSpec) -> Any:
    if spec.type is None:
        return next(leaves)
    return _NODES[spec.type].unflatten([_build(leaves, child) for child in spec.children_specs], spec.context)


def tree_leaves(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list:
    """The leaves, in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> Iterable[Any]:
    """The leaves, one after the other."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> TreeSpec:
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def _alike(trees: tuple, spec: TreeSpec, is_leaf: Callable[[Any], bool] | None) -> list[list]:
    """The leaves of further trees, each of the same structure."""
    found = [tree_flatten(tree, is_leaf) for tree in trees]
    for _, other in found:
        if other != spec:
            raise ValueError(f"tree_map: the trees have different structures, {spec} and {other}")
    return [leaves for leaves, _ in found]


def tree_map(func: Callable, tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree of ``func(leaf, *leaves of the others)``.

    >>> tree_map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"a": 10, "b": [20]})
    {'a': 11, 'b': [22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return _build(map(func, leaves, *_alike(rests, spec, is_leaf)), spec)


def tree_map_(func: Callable, tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """Call `func` for each leaf, as `tree_map` does, and give the tree itself."""
    tree_map(func, tree, *rests, is_leaf=is_leaf)
    return tree


def tree_map_only(kind: Any, func: Callable | None = None, tree: Any = None, **options: Any) -> Any:
    """`tree_map` of the leaves of a type, or of which a predicate is true; the others stay.

    Args:
        kind: a type, a tuple of types, or a function that says whether a leaf is meant.
        func: what to call; without one, a decorator of functions comes back.
        tree: the tree.
        options: as of `tree_map`.
    """
    chosen = kind if callable(kind) and not isinstance(kind, type) else lambda leaf: isinstance(leaf, kind)

    def only(function: Callable) -> Callable:
        return lambda leaf: function(leaf) if chosen(leaf) else leaf

    return only if func is None else tree_map(only(func), tree, **options)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether `pred` holds of all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> bool:
    """Whether `pred` holds of any leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


# -- paths -----------------------------------------------------------------------------------------------------------
def _dict_flatten(tree: dict) -> tuple[list, list]:
    return _NODES[dict].flatten(tree)


def _dict_unflatten(values: Iterable[Any], context: list) -> dict:
    return _NODES[dict].unflatten(values, context)


def _dict_flatten_with_keys(tree: dict) -> tuple[list, list]:
    values, keys = _dict_flatten(tree)
    return [(MappingKey(key), value) for key, value in zip(keys, values)], keys


def _steps(tree: Any, kind: Any) -> list:
    """The children of a container with their steps."""
    node = _NODES[kind]
    if node.flatten_with_keys is not None:
        return node.flatten_with_keys(tree)[0]
    children = node.flatten(tree)[0]
    if isinstance(tree, dict):
        return list(zip(map(MappingKey, tree), children))
    if kind is namedtuple:
        return list(zip(map(GetAttrKey, tree._fields), children))
    return list(zip(map(SequenceKey, range(len(children))), children))


def _paths(tree: Any, path: tuple, is_leaf: Callable[[Any], bool] | None) -> Iterator[tuple[tuple, Any]]:
    kind = None if is_leaf is not None and is_leaf(tree) else _kind(tree)
    if kind is None:
        yield path, tree
        return
    for step, child in _steps(tree, kind):
        yield from _paths(child, (*path, step), is_leaf)


def tree_leaves_with_path(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> list[tuple[tuple, Any]]:
    """The leaves, each with the steps that lead to it.

    >>> [(keystr(path), leaf) for path, leaf in tree_leaves_with_path({"a": [1, 2]})]
    [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_paths(tree, (), is_leaf))


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[[Any], bool] | None = None
) -> tuple[list[tuple[tuple, Any]], TreeSpec]:
    """As `tree_leaves_with_path`, and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable, tree: Any, *rests: Any, is_leaf: Callable[[Any], bool] | None = None) -> Any:
    """The tree of ``func(path, leaf, *leaves of the others)``."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = zip(*found) if found else ((), ())
    return _build(map(func, paths, leaves, *_alike(rests, spec, is_leaf)), spec)


def key_get(obj: Any, kp: tuple) -> Any:
    """What a path leads to."""
    for step in kp:
        obj = step.get(obj)
    return obj


def keystr(kp: tuple) -> str:
    """A path as Python would write it."""
    return "".join(map(str, kp))
