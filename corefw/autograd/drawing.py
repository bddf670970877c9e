"""A picture of the recorded graph, as text in the DOT language."""

from __future__ import annotations

from collections.abc import Mapping

from corefw.graph.views import node_of
from corefw.tensor import AccumulateGrad, Node, Output, Tensor


def dot(*outputs: Tensor, names: Mapping[str, Tensor] | None = None) -> str:
    """The computations that gave `outputs`, as a DOT graph: ``dot -Tsvg`` or the package graphviz draws it.

    Args:
        outputs: tensors with a history.
        names: names of leaves, e.g. ``dict(model.named_parameters())``.

    >>> import corefw as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> print(torch.autograd.graph.dot((x * 2).sum(), names={"x": x}))
    digraph {
      rankdir=BT
      n0 [label="SumBackward0\\n()"]
      n1 [label="MulBackward0\\n(2,)"]
      n1 -> n0
      n2 [label="x\\n(2,)" shape=box]
      n2 -> n1
    }
    """
    of_leaf = {node_of(tensor): name for name, tensor in (names or {}).items()}
    numbers: dict[Node, int] = {}
    lines: list[str] = []

    def number(node: Node) -> int:
        if node not in numbers:
            numbers[node] = len(numbers)
            lines.append(f"  n{numbers[node]} [{_label(node, of_leaf)}]")
        return numbers[node]

    roots = [_source(node) for node in map(node_of, outputs) if node is not None]
    stack = list(dict.fromkeys(roots))
    for root in stack:
        number(root)
    seen: set[Node] = set()
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        for source in (_source(n) for n in node.inputs if n is not None):
            line = f"  n{number(source)} -> n{numbers[node]}"
            lines.append(line)
            stack.append(source)
    return "\n".join(["digraph {", "  rankdir=BT", *lines, "}"])


def _source(node: Node) -> Node:
    """The node that computes: an output of several stands for its op."""
    return node.inputs[0] if isinstance(node, Output) else node


def _label(node: Node, of_leaf: Mapping[Node | None, str]) -> str:
    shape = "" if node.shape is None else rf"\n{tuple(node.shape)}"
    if isinstance(node, AccumulateGrad):
        return f'label="{of_leaf.get(node, "leaf")}{shape}" shape=box'
    return f'label="{node.name()}{shape}"'
