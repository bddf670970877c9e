"""What a model computes on the way: its nodes by name, and a model that gives chosen ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from corefw.fx import Graph, GraphModule, Node, Tracer
from corefw.nn.modules.module import Module

__all__ = ["create_feature_extractor", "get_graph_node_names"]
Names = Sequence[str] | Mapping[str, str]


class NodePathTracer(Tracer):
    """Names nodes by the module in which they are made: "layer1.0.conv1", "layer1.0.add", "layer1.0.relu_1".

    Args:
        leaf_modules: classes whose modules are nodes of their own too.
        autowrap_functions: functions that are nodes of their own.
        options: as of `corefw.fx.Tracer`.
    """

    def __init__(self, *, leaf_modules: Sequence[type] = (), **options: Any):
        super().__init__(**options)
        self.leaf_modules = tuple(leaf_modules)
        self.paths: dict[Node, str] = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether calls of a module are nodes."""
        return isinstance(m, self.leaf_modules) or super().is_leaf_module(m, module_qualified_name)

    def create_node(self, kind: str, target: Any, *args: Any, **options: Any) -> Node:
        """Add a node and name it."""
        node = super().create_node(kind, target, *args, **options)
        module = next(reversed(self.module_stack.values()))[0] if self.module_stack else ""
        name = module if kind == "call_module" else f"{module}.{node.name}".lstrip(".")
        base, _, last = name.rpartition("_")
        name = (
            base if base and last.isdecimal() else name
        )  # the numbers of the graph, and those of modules like "conv_1"
        taken, number = set(self.paths.values()), 0
        while name in taken:
            number += 1
            name = f"{name.removesuffix(f'_{number - 1}') if number > 1 else name}_{number}"
        self.paths[node] = name
        return node


def _traced(
    model: Module, training: bool, tracer_kwargs: Mapping[str, Any] | None, concrete_args: Any
) -> tuple[Graph, dict[str, Node]]:
    """The graph of a model in a mode, and its nodes by their names."""
    before = [(module, module.training) for module in model.modules()]
    model.train(training)
    try:
        tracer = NodePathTracer(**dict(tracer_kwargs or {}))
        graph = tracer.trace(model, concrete_args)
    finally:
        for module, mode in before:
            module.training = mode
    return graph, {tracer.paths[node]: node for node in graph.nodes if node.op != "output"}


def get_graph_node_names(
    model: Module, tracer_kwargs: Mapping[str, Any] | None = None, suppress_diff_warning: bool = False,
    concrete_args: Mapping[str, Any] | None = None,
) -> tuple[list[str], list[str]]:  # fmt: skip
    """The names of a model's nodes, in training and in evaluation, in the order in which they are computed.

    Args:
        model: the model.
        tracer_kwargs: options of the tracer, such as ``leaf_modules``.
        suppress_diff_warning: torchvision's; nothing warns here.
        concrete_args: {name: value} of arguments that keep a value.

    >>> import corefw as torch
    >>> from corefw.vision.models.feature_extraction import get_graph_node_names
    >>> get_graph_node_names(torch.nn.Sequential(torch.nn.Linear(2, 1), torch.nn.ReLU()))[1]
    ['input', '0', '1']
    """
    train, evaluation = (list(_traced(model, mode, tracer_kwargs, concrete_args)[1]) for mode in (True, False))
    return train, evaluation


class DualGraphModule(GraphModule):
    """A model with a graph for training and another for evaluation, which `train` and `eval` choose between."""

    def __init__(self, root: Module, train_graph: Graph, eval_graph: Graph, class_name: str = "GraphModule"):
        super().__init__(root, train_graph, class_name)
        other = GraphModule(root, eval_graph)
        for name, module in other.named_modules():
            if name and not _has(self, name):
                self.add_submodule(name, module)
        self.__dict__["train_graph"], self.__dict__["eval_graph"] = train_graph, eval_graph
        self.train(root.training)

    def train(self, mode: bool = True) -> Any:
        """Choose the graph of the mode."""
        self.graph = self.__dict__["train_graph" if mode else "eval_graph"]
        return super().train(mode)


def _has(module: Module, name: str) -> bool:
    try:
        module.get_submodule(name)
    except AttributeError:
        return False
    return True


def _wanted(names: Names | None) -> dict[str, str]:
    """{node: key of the result}."""
    if names is None:
        return {}
    return dict(names) if isinstance(names, Mapping) else {name: name for name in names}


def _giving(graph: Graph, nodes: dict[str, Node], wanted: dict[str, str], model: str) -> Graph:
    """A graph whose output is a dict of the wanted nodes, and that computes nothing else."""
    results: OrderedDict[str, Node] = OrderedDict()
    for name, key in wanted.items():
        inside = [path for path in nodes if path == name or path.startswith(f"{name}.")]
        if not inside:
            raise ValueError(
                f"node: '{name}' is not present in model {model}. Hint: use `get_graph_node_names` to make sure the "
                "`return_nodes` you specified are present. It may even be that you need to specify "
                "`train_return_nodes` and `eval_return_nodes` separately."
            )
        results[key] = nodes[name] if name in nodes else nodes[inside[-1]]
    last = graph.output_node()
    last.args = ({key: results[key] for key in results},)
    last.type = None
    graph.eliminate_dead_code(lambda node: node.op in ("placeholder", "output"))
    return graph


def create_feature_extractor(
    model: Module, return_nodes: Names | None = None, train_return_nodes: Names | None = None,
    eval_return_nodes: Names | None = None, tracer_kwargs: Mapping[str, Any] | None = None,
    suppress_diff_warning: bool = False, concrete_args: Mapping[str, Any] | None = None,
) -> GraphModule:  # fmt: skip
    """A model that gives what another one computes at chosen nodes, as a dict, and computes nothing else.

    Args:
        model: the model, whose parameters are shared.
        return_nodes: names of nodes, or of modules whose last node is meant, as a list or as {name: key in the dict}.
        train_return_nodes, eval_return_nodes: those for training and for evaluation, instead.
        tracer_kwargs, suppress_diff_warning, concrete_args: as of `get_graph_node_names`.

    Raises:
        ValueError: there is no such node, or nodes are given for one mode only.

    >>> import corefw as torch
    >>> from corefw.vision.models.feature_extraction import create_feature_extractor
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    >>> create_feature_extractor(model, {"1": "hidden"})(torch.ones(2))["hidden"].shape
    torch.Size([3])
    """
    if (train_return_nodes is None) != (eval_return_nodes is None):
        raise ValueError(
            "If any of `train_return_nodes` and `eval_return_nodes` are specified, then both should be specified"
        )
    if (return_nodes is None) == (train_return_nodes is None):
        raise ValueError("specify `return_nodes`, or both `train_return_nodes` and `eval_return_nodes`")
    title = type(model).__name__
    graphs = []
    for mode, names in ((True, train_return_nodes), (False, eval_return_nodes)):
        graph, nodes = _traced(model, mode, tracer_kwargs, concrete_args)
        graphs.append(_giving(graph, nodes, _wanted(names if return_nodes is None else return_nodes), title))
    module = DualGraphModule(model, graphs[0], graphs[1], title)
    _drop_unused(module, graphs)
    return module


def _drop_unused(module: DualGraphModule, graphs: list[Graph]) -> None:
    """Remove what neither graph uses."""
    used = {str(node.target) for graph in graphs for node in graph.nodes if node.op in ("call_module", "get_attr")}
    for name, _ in list(module.named_modules()):
        inside = any(
            target == name or target.startswith(f"{name}.") or name.startswith(f"{target}.") for target in used
        )
        if name and not inside:
            module.delete_submodule(name)
