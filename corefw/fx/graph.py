"""Graph: the steps of a computation in order, as nodes that can be added, moved, replaced and removed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from corefw.fx.codegen import CodeGen, Namespace, PythonCode, snake_case
from corefw.fx.node import Argument, Node, Target, map_aggregate, map_arg
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor

if TYPE_CHECKING:
    from corefw.fx.graph_module import GraphModule

__all__ = ["CodeGen", "Graph", "PythonCode"]


class _Nodes:
    """The nodes of a graph in order, or in reverse."""

    def __init__(self, graph: Graph, direction: str = "_next"):
        self.graph, self.direction = graph, direction

    def __len__(self) -> int:
        return self.graph._length

    def __iter__(self) -> Iterator[Node]:
        root = self.graph._root
        node = getattr(root, self.direction)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, self.direction)

    def __reversed__(self) -> _Nodes:
        return _Nodes(self.graph, "_prev" if self.direction == "_next" else "_next")


class Graph:
    """The steps of a computation: nodes in an order in which each uses earlier ones only.

    Args:
        owning_module: the `GraphModule` that it is the graph of.
        tracer_cls: the class of the tracer that made it.

    >>> import corefw as torch
    >>> graph = torch.fx.Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(torch.relu, (x,)))
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        return relu
    >>> graph.lint()
    """

    def __init__(
        self, owning_module: GraphModule | None = None, tracer_cls: type | None = None, tracer_extras: Any = None
    ):
        self._root = Node(self, "", "root", "", (), {})
        self._length = 0
        self._insert: Callable[[Node], None] = self._root.prepend
        self._graph_namespace = Namespace()
        self._positions: dict[Node, int] | None = None
        self.owning_module = owning_module
        self._tracer_cls, self._tracer_extras = tracer_cls, tracer_extras
        self._codegen = CodeGen()

    @property
    def nodes(self) -> _Nodes:
        """The nodes, in order; ``reversed(graph.nodes)`` gives them from the last."""
        return _Nodes(self)

    def _changed(self) -> None:
        self._positions = None

    def _position(self, node: Node) -> int:
        if self._positions is None:
            self._positions = {node: i for i, node in enumerate(self.nodes)}
        return self._positions[node]

    def output_node(self) -> Node:
        """The node of the output."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of an operation, in order.

        Args:
            op: one of the operations of `Node`.
            target: the target that they must have, if given.
            sort: PyTorch's; they are in order anyway.
        """
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    # -- adding nodes ------------------------------------------------------------------------------------------------
    def create_node(
        self, op: str, target: Target, args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None, name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a node at the place where nodes are inserted, by default the end.

        Args:
            op, target, args, kwargs: as the attributes of `Node`.
            name: what its name should be like.
            type_expr: the type of its result, for the source.
        """
        candidate = name if name is not None else self._target_to_str(target)
        args, kwargs = args or (), kwargs or {}
        node = Node(self, self._graph_namespace.create_name(candidate, None), op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(node.name, node)
        self._insert(node)
        self._length += 1
        return node

    def _target_to_str(self, target: Target) -> str:
        if isinstance(target, str):
            return snake_case(target.strip("_") if target.startswith("__") and target.endswith("__") else target)
        return snake_case(target.__name__)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """Add an input called `name`, with a default value if one is given."""
        return self.create_node(
            "placeholder", name, () if default_value is ... else (default_value,), type_expr=type_expr
        )

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """Add the reading of a module's attribute by its dotted name."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self, module_name: str, args: tuple[Argument, ...] | None = None, kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a call of the submodule with this dotted name."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self, method_name: str, args: tuple[Argument, ...] | None = None, kwargs: dict[str, Argument] | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None, type_expr: Any = None, name: str | None = None,
    ) -> Node:  # fmt: skip
        """Add a call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name=name, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """Add the output: a node, or tuples, lists and dicts with nodes."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda node: node) -> Node:
        """Add a copy of another graph's node.

        Args:
            node: that node.
            arg_transform: gives this graph's node for one of the arguments.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        copied = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        copied.meta = dict(node.meta)
        return copied

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Add copies of all nodes of another graph, but the output.

        Args:
            g: the other graph.
            val_map: {node of `g`: node of this graph}, which gets the copies; nodes in it already are not copied.
            return_output_node: give the other graph's output node too.

        Returns:
            What stands for the output of `g`, None if it has none.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                found = map_arg(node.args[0], val_map.__getitem__)
                return (found, node) if return_output_node else found
            val_map[node] = self.node_copy(node, val_map.__getitem__)
        return None

    def inserting_before(self, n: Node | None = None) -> Any:
        """Add nodes before `n`, or at the beginning, inside of a ``with`` block or from now on."""
        return _InsertPoint(self, (n if n is not None else self._root.next).prepend, n)

    def inserting_after(self, n: Node | None = None) -> Any:
        """Add nodes behind `n`, or at the end, inside of a ``with`` block or from now on."""
        return _InsertPoint(self, (n if n is not None else self._root.prev).append, n)

    # -- removing nodes ------------------------------------------------------------------------------------------
    def erase_node(self, to_erase: Node) -> None:
        """Remove a node that nobody uses.

        Raises:
            RuntimeError: others use its result, or it is of another graph.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        to_erase.args, to_erase.kwargs = (), {}
        to_erase._take_out()
        to_erase._erased = True
        self._length -= 1
        self._changed()

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Remove the nodes whose results are not used; whether there were any.

        Args:
            is_impure_node: says which stay for their side effects; by default `Node.is_impure`. Functions that change
                a tensor in place are not known to do so.
        """
        self.lint()
        stays = is_impure_node or Node.is_impure
        before = self._length
        for node in reversed(self.nodes):
            if not node.users and not stays(node):
                self.erase_node(node)
        return self._length < before

    # -- text and source ---------------------------------------------------------------------------------------------
    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(str(node.format_node()) for node in self.nodes)])

    def print_tabular(self) -> None:
        """Print the nodes as a table; needs the package `tabulate`."""
        try:
            from tabulate import tabulate  # type: ignore[import-untyped]
        except ImportError:
            raise ImportError("Graph.print_tabular needs the package tabulate: pip install tabulate") from None
        rows = [[node.op, node.name, node.target, node.args, node.kwargs] for node in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def python_code(self, root_module: str, **options: Any) -> PythonCode:
        """The source of a function that computes what the nodes say.

        Args:
            root_module: the name that the module with the attributes has in it, usually "self".
            options: PyTorch's further arguments, which concern comments in the source; without effect.
        """
        names = Namespace()
        for node in self.nodes:
            names._used.add(node.name)
            names.associate_name_with_obj(node.name, node)
        return self._codegen._gen_python_code(list(self.nodes), root_module, names)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let another object write the source."""
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """The inputs' values from the arguments of a call."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What a call returns from the value of the output."""
        return self._codegen.process_outputs(out)

    # -- checking and copying --------------------------------------------------------------------------------------
    def lint(self) -> None:
        """See that the graph is sound: order, owners and names of nodes, and that targets exist in the module.

        Raises:
            RuntimeError: it is not; the message names the node.
        """
        seen: set[Node] = set()
        names: set[str] = set()
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node.name}' does not belong to this Graph!")
            for argument in node.all_input_nodes:
                if argument.graph is not self:
                    raise RuntimeError(
                        f"Argument '{argument.name}' of Node '{node.name}' does not belong to this Graph, but was used "
                        "as an argument! If you are copying nodes from another graph, make sure to use "
                        "``arg_transform`` on node_copy() to remap values"
                    )
                if argument not in seen:
                    raise RuntimeError(
                        f"Argument '{argument.name}' of Node '{node.name}' was used before it has been defined! Please "
                        f"check that Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in names:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node)
            names.add(node.name)
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._check_target(node)

    def _check_target(self, node: Node) -> None:
        found: Any = self.owning_module
        for part in str(node.target).split("."):
            if not hasattr(found, part):
                raise RuntimeError(
                    f"Node {node} target {node.target} references nonexistent attribute {part} of "
                    f"{type(found).__name__}"
                )
            found = getattr(found, part)
        if node.op == "call_module" and not isinstance(found, Module):
            raise RuntimeError(f"Node {node} target {node.target} does not reference an nn.Module")
        if node.op == "get_attr" and not isinstance(found, (Module, Parameter, Tensor)):
            raise RuntimeError(
                f"Node {node} target {node.target} does not reference an nn.Module, nn.Parameter, or buffer"
            )

    def __deepcopy__(self, memo: dict | None = None) -> Graph:
        copied = Graph(tracer_cls=self._tracer_cls)
        copied._codegen = self._codegen
        found = copied.graph_copy(self, val_map={}, return_output_node=True)
        if found is not None:
            value, node = found
            copied.output(value, type_expr=node.type).meta = dict(node.meta)
        return copied

    def __reduce__(self) -> tuple:
        """Nodes as rows, in which other nodes stand by their numbers: a chain of nodes is not followed in depth."""
        position = {node: _Reference(i) for i, node in enumerate(self.nodes)}

        def row(node: Node) -> tuple:
            args, kwargs = map_arg(node.args, position.__getitem__), map_arg(node.kwargs, position.__getitem__)
            target = node.target
            if not isinstance(target, str) and getattr(target, "__module__", "") == "_operator":
                target = getattr(operator, target.__name__)
            return node.op, target, args, kwargs, node.name, node.type

        return _graph_of_rows, ([row(node) for node in self.nodes], self._codegen)


class _Reference(int):
    """The number of a node in the rows of a graph."""


def _graph_of_rows(rows: list[tuple], codegen: CodeGen) -> Graph:
    graph = Graph()
    made: list[Node] = []

    def node_of(leaf: Any) -> Any:
        return made[leaf] if isinstance(leaf, _Reference) else leaf

    for op, target, args, kwargs, name, kind in rows:
        made.append(
            graph.create_node(op, target, map_aggregate(args, node_of), map_aggregate(kwargs, node_of), name, kind)
        )
    graph._codegen = codegen
    return graph


class _InsertPoint:
    """Where nodes are inserted, until the ``with`` block ends if there is one."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None], node: Node | None):
        if node is not None and node.graph is not graph:
            raise AssertionError("Node to insert before is not in graph.")
        self.graph, self.before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: Any) -> None:
        self.graph._insert = self.before
