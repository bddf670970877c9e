"""Node: one step of a graph - an input, a call, an attribute or the output."""

from __future__ import annotations

import builtins
import inspect
import operator
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from corefw import dtypes
from corefw.fx.immutable_collections import immutable_dict, immutable_list
from corefw.sequences import alike

if TYPE_CHECKING:
    from corefw.fx.graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Argument = Any
Target = Callable[..., Any] | str
OPERATIONS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")
#: functions whose calls stay though nobody uses their results
_side_effects: set[Callable] = {setattr, operator.setitem, print}


def has_side_effect(fn: Callable) -> Callable:
    """Let calls of a function stay in graphs though their results are not used; the function itself comes back."""
    _side_effects.add(fn)
    return fn


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """An argument of a node with each node in it replaced by ``fn(node)``.

    Args:
        a: a node, a plain value, or lists, tuples, dicts and slices of them.
        fn: what stands for a node.
    """
    return map_aggregate(a, lambda leaf: fn(leaf) if isinstance(leaf, Node) else leaf)


def map_aggregate(a: Argument, fn: Callable[[Any], Argument]) -> Argument:
    """As `map_arg`, for every leaf; lists and dicts become those that cannot be changed.

    >>> map_aggregate([1, (2, slice(3))], lambda x: x and 10 * x)
    [10, (20, slice(None, 30, None))]
    """
    if isinstance(a, tuple):
        items = [map_aggregate(item, fn) for item in a]
        return alike(a, items) if hasattr(a, "_fields") else tuple(items)
    if isinstance(a, list):
        return immutable_list(map_aggregate(item, fn) for item in a)
    if isinstance(a, dict):
        return immutable_dict((key, map_aggregate(value, fn)) for key, value in a.items())
    if isinstance(a, slice):
        return slice(*(map_aggregate(part, fn) for part in (a.start, a.stop, a.step)))
    return fn(a)


def qualified_name(function: Callable) -> str:
    """The dotted name under which generated code finds a function; those of corefw under the name of the package that
    users import.

    >>> import corefw
    >>> qualified_name(corefw.relu), qualified_name(operator.add), qualified_name(len)
    ('torch.relu', '_operator.add', 'len')
    """
    name = getattr(function, "__qualname__", None) or function.__name__
    if getattr(builtins, name, None) is function:
        return name
    if isinstance(function, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"{function.__objclass__.__module__}.{function.__objclass__.__name__}.{function.__name__}"
    module = getattr(function, "__module__", None) or ""
    if module.partition(".")[0] == "corefw":
        published = vars(sys.modules["corefw"]).get(name) is function
        module = dtypes.MODULE + ("" if published else module.removeprefix("corefw"))
    return f"{module}.{name}"


def type_name(kind: Any) -> str:
    """A type as generated code shows it.

    >>> type_name(int), type_name(list[int])
    ('int', 'list[int]')
    """
    if isinstance(kind, type) and not isinstance(kind, types.GenericAlias):
        if kind.__module__ == "builtins":
            return kind.__qualname__
        return qualified_name(kind)
    if kind is ...:
        return "..."
    return kind.__name__ if isinstance(kind, types.FunctionType) else repr(kind)


def _shown(value: Any) -> str:
    """An argument in the text of a node."""
    if isinstance(value, Node):
        return f"%{value}"
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        items = ", ".join(map(_shown, value))
        return f"({items},)" if len(value) == 1 else f"({items})"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shown(item)}" for key, item in value.items()) + "}"
    return str(value)


class Node:
    """One step of a `Graph`; made by the graph's methods, not by hand.

    Attributes: ``name`` unique in the graph; ``op`` one of "placeholder", "get_attr", "call_function", "call_module",
    "call_method" and "output"; ``target`` what is called or read, a function or a name; ``args, kwargs`` its
    arguments, in which other nodes stand for their results; ``users`` the nodes that use this one's result; ``type``
    the annotated type or None; ``meta`` a dict for notes; ``graph``, ``prev``, ``next`` where it stands.

    >>> import corefw as torch
    >>> graph = torch.fx.symbolic_trace(lambda x: x.relu() + 1).graph
    >>> [(node.name, node.op, node.args) for node in graph.nodes][1:3]
    [('relu', 'call_method', (x,)), ('add', 'call_function', (relu, 1))]
    >>> isinstance(graph.output_node(), torch.fx.Node)
    True
    """

    def __init__(
        self, graph: Graph, name: str, op: str, target: Target, args: tuple[Argument, ...],
        kwargs: dict[str, Argument], return_type: Any = None,
    ):  # fmt: skip
        if op not in OPERATIONS:
            raise AssertionError(f"Node: op {op!r} is none of {', '.join(OPERATIONS)}")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a Callable "
                    "is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a str is expected"
            )
        self.graph, self.name, self.op, self.target = graph, name, op, target
        self._input_nodes: dict[Node, None] = {}
        self.users: dict[Node, None] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = immutable_dict()
        self._set_arguments(args, kwargs)
        self.type = return_type
        self._prev = self._next = self
        self._erased = False
        self.meta: dict[str, Any] = {}

    # -- where it stands -------------------------------------------------------------------------------------------
    @property
    def next(self) -> Node:
        """The node behind it; the graph's root behind the last one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before it."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move node `x` before this one, in the same graph."""
        if x.graph is not self.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if x is not self:
            x._take_out()
            before = self._prev
            before._next, x._prev = x, before
            x._next, self._prev = self, x
            self.graph._changed()

    def append(self, x: Node) -> None:
        """Move node `x` behind this one."""
        self._next.prepend(x)

    def _take_out(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def __lt__(self, other: Node) -> bool:
        return self.graph._position(self) < self.graph._position(other)

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or other < self

    # -- its arguments ------------------------------------------------------------------------------------------
    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments; assigning new ones updates the users of the nodes in them."""
        return self._args

    @args.setter
    def args(self, a: tuple[Argument, ...]) -> None:
        self._set_arguments(a, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The arguments by name; assigning new ones updates the users of the nodes in them."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, k: dict[str, Argument]) -> None:
        self._set_arguments(self._args, k)

    def _set_arguments(self, args: Sequence[Argument], kwargs: Mapping[str, Argument]) -> None:
        for node in self._input_nodes:
            node.users.pop(self, None)
        self._input_nodes = {}

        def use(node: Node) -> Node:
            self._input_nodes[node] = None
            node.users[self] = None
            return node

        self._args, self._kwargs = map_arg(tuple(args), use), map_arg(dict(kwargs), use)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace the positional argument at `idx`."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument before that at `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace the argument called `key`."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Use the result of `new_input` wherever that of `old_input` is an argument."""

        def other(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set_arguments(map_arg(self.args, other), map_arg(self.kwargs, other))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let all users of this node use another one.

        Args:
            replace_with: the other node.
            delete_user_cb: says which users are to change.
            propagate_meta: give `replace_with`, which must have no notes, those of this node.

        Returns:
            The users that were changed.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError("replace_all_uses_with: propagate_meta wants a node without notes")
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    # -- what it is ----------------------------------------------------------------------------------------------
    @property
    def stack_trace(self) -> str | None:
        """Where the program made it, if the tracer kept that."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it must stay though nobody uses its result: inputs and the output, changes in place of containers,
        and modules that are told apart by an attribute `_is_impure`."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effects or getattr(self.target, "__name__", "").endswith("_assert")
        if self.op == "call_module" and self.graph.owning_module is not None:
            return getattr(self.graph.owning_module.get_submodule(str(self.target)), "_is_impure", False)
        return False

    def normalized_arguments(
        self, root: Any, arg_types: Any = None, kwarg_types: Any = None, normalize_to_only_use_kwargs: bool = False
    ) -> tuple[tuple, dict[str, Any]] | None:
        """The arguments with the defaults filled in, by the signature of what is called: (args, kwargs).

        Args:
            root: the module in which a called module is found.
            arg_types, kwarg_types: PyTorch's hints to choose between overloads; without effect.
            normalize_to_only_use_kwargs: give every argument a name.

        Returns:
            None for other nodes than calls of functions and modules, and where there is no signature.
        """
        if self.op not in ("call_function", "call_module"):
            return None
        called: Any = self.target if self.op == "call_function" else root.get_submodule(self.target).forward
        try:
            bound = inspect.signature(called).bind(*self.args, **self.kwargs)
        except (TypeError, ValueError):
            return None
        bound.apply_defaults()
        return ((), dict(bound.arguments)) if normalize_to_only_use_kwargs else (bound.args, bound.kwargs)

    def _pretty_print_target(self, target: object) -> str:
        if isinstance(target, str):
            return target
        name = qualified_name(target)  # type: ignore[arg-type]
        return f"builtins.{name}" if "." not in name else name.replace("_operator.", "operator.")

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """The node as a line of the text of its graph.

        Args:
            placeholder_names: where given, a list to which an input's name and type are added.
            maybe_return_typename: where given, a list whose one element becomes the type of the output.
            include_tensor_metadata: PyTorch's; without effect.
        """
        kind = "" if self.type is None else f"{type_name(self.type)} "
        uses = f"[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(f"{self.target} : {kind.strip()}" if kind else str(self.target))
                return None
            default = f"(default={self.args[0]})" if self.args else ""
            return f"%{self.name} : {kind}{uses}[target={self.target}]{default}"
        if self.op == "get_attr":
            return f"%{self.name} : {kind}{uses}[target={self._pretty_print_target(self.target)}]"
        if self.op == "output":
            if self.type is not None and maybe_return_typename:
                maybe_return_typename[0] = f" -> {kind.strip()}"
            return f"return {self.args[0]}"
        return (
            f"%{self.name} : {kind}{uses}[target={self._pretty_print_target(self.target)}](args = {_shown(self.args)}, "
            f"kwargs = {_shown(self.kwargs)})"
        )

    def __repr__(self) -> str:
        return self.name
