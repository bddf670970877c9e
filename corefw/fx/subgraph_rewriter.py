"""Replacing patterns in graphs: every place where a graph does what one function does gets to do what another does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from corefw.fx._symbolic_trace import symbolic_trace
from corefw.fx.graph import Graph
from corefw.fx.graph_module import GraphModule, copy_attribute
from corefw.fx.node import Argument, Node
from corefw.nn.modules.module import Module

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]


class Match(NamedTuple):
    """A place that was replaced: ``anchor`` its last node, ``nodes_map`` {node of the pattern: node there}."""

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass
class ReplacedPatterns:
    """A place that was replaced: as `Match`, with the nodes that stand there now."""

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node] = field(default_factory=list)


class _Matcher:
    """Tries to lay the nodes of a pattern over those of a graph, from the output backwards."""

    def __init__(self, pattern: Graph, owner: Module, used: set[Node]):
        self.pattern, self.owner, self.used = pattern, owner, used
        self.found: dict[Node, Any] = {}

    def lay(self, anchor: Node) -> bool:
        """Whether the pattern's last node can be `anchor`, and all that it uses, the rest."""
        outputs = [self.pattern.output_node().args[0]]
        result = outputs[0]
        if isinstance(result, (tuple, list)):
            if not result:
                return False
            result = result[-1]
        return isinstance(result, Node) and self.matches(result, anchor) and self.is_closed(anchor)

    def matches(self, wanted: Argument, there: Argument) -> bool:
        if isinstance(wanted, Node):
            return self.node_matches(wanted, there)
        if isinstance(wanted, (tuple, list)):
            return (
                isinstance(there, (tuple, list))
                and len(wanted) == len(there)
                and all(self.matches(a, b) for a, b in zip(wanted, there))
            )
        if isinstance(wanted, dict):
            return (
                isinstance(there, dict)
                and wanted.keys() == there.keys()
                and all(self.matches(value, there[key]) for key, value in wanted.items())
            )
        if isinstance(wanted, slice):
            parts = ("start", "stop", "step")
            return isinstance(there, slice) and all(
                self.matches(getattr(wanted, part), getattr(there, part)) for part in parts
            )
        return type(wanted) is type(there) and wanted == there

    def node_matches(self, wanted: Node, there: Argument) -> bool:
        if wanted in self.found:
            return self.found[wanted] is there or (wanted.op == "placeholder" and self.found[wanted] == there)
        if wanted.op == "placeholder":
            self.found[wanted] = there
            return True
        if not isinstance(there, Node) or there in self.used or not self.same_step(wanted, there):
            return False
        self.found[wanted] = there
        return self.matches(wanted.args, there.args) and self.matches(wanted.kwargs, there.kwargs)

    def same_step(self, wanted: Node, there: Node) -> bool:
        if wanted.op != there.op:
            return False
        if wanted.op == "call_module":
            pattern_owner = self.pattern.owning_module
            assert pattern_owner is not None
            ours = type(pattern_owner.get_submodule(str(wanted.target)))
            return wanted.target == there.target or ours is type(self.owner.get_submodule(str(there.target)))
        if wanted.op == "get_attr":
            return str(wanted.target).split(".")[-1] == str(there.target).split(".")[-1]
        return wanted.target == there.target

    def is_closed(self, anchor: Node) -> bool:
        """Whether nothing outside uses what is inside, but for the outputs."""
        outputs = set(self.outputs())
        inside = {there for wanted, there in self.found.items() if wanted.op != "placeholder"}
        return all(there in outputs or all(user in inside for user in there.users) for there in inside)

    def outputs(self) -> list[Node]:
        """The nodes that stand for the pattern's outputs."""
        result = self.pattern.output_node().args[0]
        wanted = result if isinstance(result, (tuple, list)) else [result]
        return [self.found[node] for node in wanted if node in self.found]


def _graph_of(pattern: Any) -> Graph:
    if isinstance(pattern, Graph):
        return pattern
    return pattern.graph if isinstance(pattern, GraphModule) else symbolic_trace(pattern).graph


def replace_pattern(
    gm: GraphModule, pattern: Callable | GraphModule, replacement: Callable | GraphModule
) -> list[Match]:
    """Let a graph do what `replacement` does wherever it does what `pattern` does.

    Args:
        gm: the module whose graph changes.
        pattern: a function or module; its inputs may stand for anything there.
        replacement: another with as many inputs and outputs.

    Returns:
        The places that were replaced, which do not overlap.

    >>> import corefw as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.neg(torch.relu(x)))
    >>> matches = torch.fx.replace_pattern(traced, lambda a: torch.neg(a), lambda a: a * -1)
    >>> len(matches), [node.name for node in traced.graph.nodes]
    (1, ['x', 'relu', 'mul', 'output'])
    """
    places = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(place.anchor, place.nodes_map) for place in places]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Callable | Graph | GraphModule,
    replacement: Callable | Graph | GraphModule | None = None,
    match_filters: list[Callable[[Any, Graph, Graph], bool]] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[Any, Graph, Graph], Graph] | None = None,
) -> list[ReplacedPatterns]:
    """As `replace_pattern`, for those places that all filters accept.

    Args:
        gm, pattern, replacement: see there.
        match_filters: functions of a place, the graph and the pattern's graph.
        ignore_literals: refused; numbers in the pattern must be those in the graph.
        replacement_callback: gives the replacement for a place instead.
    """
    if ignore_literals:
        raise NotImplementedError("replace_pattern: ignore_literals=True is not supported; trace a pattern per number")
    graph = gm.graph
    wanted, given = _graph_of(pattern), None if replacement is None else _graph_of(replacement)
    used: set[Node] = set()
    places: list[ReplacedPatterns] = []
    matchers = []
    for anchor in reversed(list(graph.nodes)):
        matcher = _Matcher(wanted, gm, used)
        if anchor.op in ("placeholder", "output") or not matcher.lay(anchor):
            continue
        place = ReplacedPatterns(anchor, matcher.found)
        if all(accepts(place, graph, wanted) for accepts in match_filters or ()):
            used.update(there for node, there in matcher.found.items() if node.op != "placeholder")
            places.append(place)
            matchers.append(matcher)
    stands: dict[Node, Any] = {}
    for place, matcher in zip(reversed(places), reversed(matchers)):
        new = replacement_callback(place, graph, wanted) if replacement_callback is not None else given
        if new is None:
            raise ValueError("replace_pattern_with_filters: give a replacement, or a replacement_callback")
        _replace(gm, matcher, place, new, stands)
    gm.recompile()
    return places[::-1]


def _replace(gm: GraphModule, matcher: _Matcher, place: ReplacedPatterns, new: Graph, stands: dict[Node, Any]) -> None:
    """Put copies of the replacement's nodes in the place of those that were found."""
    graph = gm.graph
    inputs = [node for node in matcher.pattern.nodes if node.op == "placeholder"]
    taken = [node for node in new.nodes if node.op == "placeholder"]
    if len(inputs) != len(taken):
        raise AssertionError(f"the pattern has {len(inputs)} inputs and the replacement {len(taken)}")
    values: dict[Node, Any] = {
        node: stands.get(matcher.found[wanted], matcher.found[wanted]) if isinstance(matcher.found.get(wanted), Node)
        else matcher.found.get(wanted)
        for node, wanted in zip(taken, inputs)
    }  # fmt: skip
    before = set(graph.nodes)
    anchor = min(matcher.outputs()) if len(matcher.outputs()) == 1 else max(matcher.outputs())
    with graph.inserting_before(anchor):
        result = graph.graph_copy(new, values)
    place.replacements = [node for node in graph.nodes if node not in before]
    if new.owning_module is not None:
        for node in place.replacements:
            if node.op in ("get_attr", "call_module") and not _has(gm, str(node.target)):
                copy_attribute(new.owning_module, gm, str(node.target))
    results = result if isinstance(result, (tuple, list)) else (result,)
    if len(results) != len(matcher.outputs()):
        raise AssertionError(f"the pattern has {len(matcher.outputs())} outputs and the replacement {len(results)}")
    for old, made in zip(matcher.outputs(), results):
        old.replace_all_uses_with(made)
        stands[old] = made
    for old in sorted((there for node, there in matcher.found.items() if node.op != "placeholder"), reverse=True):
        if not old.users:
            graph.erase_node(old)


def _has(module: Any, target: str) -> bool:
    for part in target.split("."):
        if not hasattr(module, part):
            return False
        module = getattr(module, part)
    return True
