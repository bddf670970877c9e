"""What nodes are called: as in PyTorch, where an op may have several names, one for each way to call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw.dispatch.generation.recording import Recording, argument_names
from corefw.dispatch.op import Op, node_name
from corefw.tensor import Constant, Node


def _where_saved(recording: Recording) -> dict[str, tuple[str, int]]:
    """{what a node saves: its kind, and where it is}; what can be changed is followed by its version."""
    found, place = {}, 0
    for name, kind in recording.saved_kinds():
        found[name] = kind, place
        place += 2 if kind in ("tensor", "tensors") else 1
    return found


def variant(op: Op, recording: Recording) -> Callable[[Node], type[Node]] | None:
    """What tells from a node of `op` the class that it is shown with; None if there is one name only.

    The names of the arguments of the declaration's `grad_name` say what it is given: an attribute; ``<input>_shape``,
    and ``shape``, the output's; a tensor's name for whether it was one: False for a number. What the node does not
    know, because no gradient needs it or it was freed, is None.
    """
    name_of = op.grad_name
    if not callable(name_of):
        return None
    wanted = argument_names(name_of)
    saved = _where_saved(recording)
    inputs = {p.name: i for i, p in enumerate(recording.differentiable)}
    for fact in wanted:
        if fact != "shape" and not {fact, fact.removesuffix("_shape")} & {*saved, *inputs}:
            raise TypeError(f"{op.name}: the name in the graph depends on {fact!r}, which a node does not have")
    classes: dict[str, type[Node]] = {}

    def known(node: Node, fact: str) -> Any:
        if fact == "shape":
            return node.shape
        source = inputs.get(fact.removesuffix("_shape"))
        before = None if source is None else node.inputs[source]
        if before is not None:
            return before.shape if fact.endswith("_shape") else True
        if fact not in saved or node.saved is None:
            return None
        kind, place = saved[fact]
        value = node.saved[place]
        return value if kind != "tensor" or value is None else value.__class__ is not Constant

    def choose(node: Node) -> type[Node]:
        name = node_name(name_of(*[known(node, fact) for fact in wanted]))
        if name not in classes:
            classes[name] = type(name, (op.node_class,), {"__slots__": (), "__module__": "corefw", "variant": None})
        return classes[name]

    return choose
