"""Running a graph node by node: `Interpreter`, and `Transformer`, which makes another graph of it on the way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from corefw.fx import traceback
from corefw.fx._symbolic_trace import Tracer
from corefw.fx.graph import Graph
from corefw.fx.graph_module import GraphModule
from corefw.fx.node import Argument, Node, Target, map_aggregate, map_arg
from corefw.fx.proxy import Proxy
from corefw.nn.modules.module import Module

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph node by node; a subclass overrides what it wants done otherwise.

    Args:
        module: the module that holds what the graph names, a `GraphModule` by default with its own graph.
        garbage_collect_values: forget each value behind its last use.
        graph: another graph to run.

    >>> import corefw as torch
    >>> class Doubled(torch.fx.Interpreter):
    ...     def call_function(self, target, args, kwargs):
    ...         return 2 * super().call_function(target, args, kwargs)
    >>> Doubled(torch.fx.symbolic_trace(lambda x: torch.relu(x))).run(torch.ones(1))
    tensor([2.])
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None):
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = graph if graph is not None else module.graph
        self.env: dict[Node, Any] = {}
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """The output for given inputs.

        Args:
            args: the inputs, in the order of the placeholders.
            initial_env: {node: value} of nodes that need not run.
            enable_io_processing: let the graph's source generator take the inputs and give the output.
        """
        self.env = dict(initial_env) if initial_env is not None else {}
        self.args_iter = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        last = {argument: node for node in self.graph.nodes for argument in node.all_input_nodes}
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                error.add_note(f"While executing {node.format_node()}")
                raise
            if node.op == "output":
                result = self.env[node]
                return self.graph.process_outputs(result) if enable_io_processing else result
            if self.garbage_collect_values:
                for argument in node.all_input_nodes:
                    if last[argument] is node:
                        self.env.pop(argument, None)
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """As `run`, with the inputs in a list, which is emptied."""
        args, args_list[:] = list(args_list), []
        return self.run(*args)

    def run_node(self, n: Node) -> Any:
        """The value of a node, whose arguments have theirs."""
        with traceback.set_current_meta(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The next input, or its default; all inputs that are left for ``*args``.

        Raises:
            RuntimeError: there is neither.
        """
        if str(target).startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
            raise RuntimeError(
                f"Expected positional argument for parameter {target}, but one was not passed in!"
            ) from None

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The attribute of the module with a dotted name."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a function."""
        return target(*args, **kwargs)  # type: ignore[operator]

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a method of the first argument."""
        owner, *rest = args
        return getattr(owner, str(target))(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a submodule."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The value of the output."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module with a dotted name.

        Raises:
            RuntimeError: there is none.
        """
        found: Any = self.module
        for part in target.split("."):
            if not hasattr(found, part):
                raise RuntimeError(f"Node referenced nonexistent target {target}: there is no {part}")
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        """The arguments of a node with the values of the nodes in them."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """Arguments with the values of the nodes in them."""

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)


class Transformer(Interpreter):
    """Makes another graph of a graph: its methods get proxies, and what they do is recorded.

    Args:
        module: a `GraphModule`.

    >>> import corefw as torch
    >>> class Negated(torch.fx.Transformer):
    ...     def call_function(self, target, args, kwargs):
    ...         return torch.neg(super().call_function(target, args, kwargs))
    >>> changed = Negated(torch.fx.symbolic_trace(lambda x: torch.relu(x))).transform()
    >>> changed(torch.ones(1))
    tensor([-1.])
    """

    def __init__(self, module: GraphModule):
        super().__init__(module)
        self.new_graph = Graph()
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _TransformerTracer(self.new_graph, module)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """A proxy for the input."""
        return Proxy(self.new_graph.placeholder(str(target), default_value=args[0] if args else ...), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """A proxy for the attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A proxy for the module's result, or what it does where it is no leaf."""
        return self.tracer.call_module(self.fetch_attr(str(target)), self.fetch_attr(str(target)).forward, args, kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A proxy for the function's result."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The module of the other graph."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            kind = self.graph.output_node().type
            self.new_graph.output(map_aggregate(result, lambda leaf: getattr(leaf, "node", leaf)), kind)
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)


class _TransformerTracer(Tracer):
    """Records into the other graph, with every module a leaf."""

    def __init__(self, graph: Graph, root: Module):
        super().__init__()
        self.graph, self.root = graph, root

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True
