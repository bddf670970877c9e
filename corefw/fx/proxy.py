"""Proxies: values that stand for the results of nodes, and record what is done with them as further nodes."""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

from corefw import dtypes
from corefw.devices import device
from corefw.dispatch.overriding import begin_asking, end_asking, operators
from corefw.fx.codegen import MAGIC_METHODS, REFLECTABLE
from corefw.fx.graph import Graph
from corefw.fx.node import Argument, Node, Target, map_aggregate
from corefw.layouts import layout, memory_format
from corefw.sequences import alike
from corefw.tensor import Tensor

__all__ = ["Attribute", "GraphAppendingTracer", "Proxy", "TraceError", "TracerBase"]

#: what stands in a graph as it is
BASE_TYPES = (
    str,
    int,
    float,
    bool,
    complex,
    dtypes.dtype,
    Tensor,
    device,
    memory_format,
    layout,
    type(None),
    type(...),
)


class TraceError(ValueError):
    """What a program does cannot be recorded."""


class TracerBase:
    """Makes nodes of a graph and proxies for them; `Tracer` is the one that follows modules."""

    graph: Graph
    record_stack_traces = False
    trace_asserts = False

    def create_node(
        self, kind: str, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Argument],
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a node to the graph; a tracer may note something on it."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """The value that stands for a node's result."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any], name: str | None = None,
        type_expr: Any = None, proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:  # fmt: skip
        """Add a node from what the program passed, and give the value that stands for it."""
        arguments, named = self.create_arg(tuple(args)), self.create_arg(dict(kwargs))
        node = self.create_node(kind, target, arguments, named, name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """What stands in the graph for a value of the program.

        Raises:
            NotImplementedError: nothing does.
        """
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, (tuple, list)):
            items = [self.create_arg(item) for item in a]
            return alike(a, items) if isinstance(a, tuple) else items
        if isinstance(a, dict):
            return self._create_dict(a)
        if isinstance(a, slice):
            return slice(self.create_arg(a.start), self.create_arg(a.stop), self.create_arg(a.step))
        if isinstance(a, range):
            return range(*(self.create_arg(part) for part in (a.start, a.stop, a.step)))
        if isinstance(a, BASE_TYPES) or callable(a):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _create_dict(self, a: dict) -> dict:
        made = {}
        for key, value in a.items():
            name = self.create_arg(key)
            if find_proxy(key) is not None:
                raise RuntimeError(f"Keys for dictionaries used as an argument cannot contain a Node. Got key: {name}")
            made[name] = self.create_arg(value)
        return made

    def to_bool(self, obj: Proxy) -> bool:
        """Whether a value counts as true, which is not known while the program is recorded.

        Raises:
            TraceError: always; a tracer may answer instead.
        """
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Proxy) -> Iterator:
        """The elements of a value, whose number is not known.

        Raises:
            TraceError: always; a tracer may answer instead.
        """
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """The keys of a value: a further proxy, for ``**value``."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Adds what is done with proxies to a graph that is there already."""

    def __init__(self, graph: Graph):
        self.graph = graph


class Proxy:
    """A value that stands for the result of a node: what a program does with it becomes nodes of the graph.

    While one lives, the functions of corefw look for proxies among their arguments.

    Args:
        node: the node.
        tracer: what makes further nodes; by default they are added to the node's graph.

    >>> import corefw as torch
    >>> graph = torch.fx.Graph()
    >>> x = torch.fx.Proxy(graph.placeholder("x"))
    >>> _ = graph.output((torch.relu(x) + 1).node)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %relu : [num_users=1] = call_function[target=torch.relu](args = (%x,), kwargs = {})
        %add : [num_users=1] = call_function[target=operator.add](args = (%relu, 1), kwargs = {})
        return add
    """

    node: Node
    tracer: TracerBase

    def __init__(self, node: Node, tracer: TracerBase | None = None):
        state = self.__dict__
        state["tracer"] = GraphAppendingTracer(node.graph) if tracer is None else tracer
        state["node"] = node
        begin_asking()
        state["_asks"] = True

    def __del__(self) -> None:
        if self.__dict__.pop("_asks", False):
            end_asking()

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)

    def __deepcopy__(self, memo: dict) -> Proxy:
        return Proxy(self.node, self.tracer)

    def __getstate__(self) -> dict:
        return self.__dict__

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator:
        frame = sys._getframe(1)
        count = _unpacked(frame)
        return self.tracer.iter(self) if count is None else iter([operator.getitem(self, i) for i in range(count)])

    def __abs__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            raise NotImplementedError("Proxy: assertions are not recorded; leave trace_asserts False")
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """The keys, for ``**value``."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    def __contains__(self, item: Any) -> bool:
        raise TraceError("Proxy: whether a value contains another is not known while the program is recorded")

    @classmethod
    def __torch_function__(
        cls, orig_method: Callable, types: tuple, args: tuple | None = None, kwargs: dict | None = None
    ) -> Any:
        """Record a call of one of corefw's functions."""
        args, kwargs = args or (), kwargs or {}
        if orig_method in operators and not isinstance(args[0], Proxy):
            return NotImplemented  # Python asks the proxy for its reflected operator
        tracer = next(tracer for tracer in _tracers((args, kwargs)))
        kind, _, name = orig_method.__qualname__.rpartition(".")
        if kind == "Tensor":
            return tracer.create_proxy("call_method", name, args, kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


class Attribute(Proxy):
    """An attribute of a value; if it is called, a method of it."""

    def __init__(self, root: Proxy, attr: str):
        state = self.__dict__
        state["root"], state["attr"], state["tracer"] = root, attr, root.tracer
        begin_asking()
        state["_asks"] = True

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The reading of the attribute, which is recorded when it is first used as a value."""
        if "_node" not in self.__dict__:
            self.__dict__["_node"] = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self.__dict__["_node"]

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


def find_proxy(*values: Any) -> Proxy | None:
    """The first proxy in nested arguments, None if there is none."""
    found: list[Proxy] = []

    def look(leaf: Any) -> Any:
        if isinstance(leaf, Proxy):
            found.append(leaf)
        return leaf

    map_aggregate(list(values), look)
    return found[0] if found else None


def _tracers(values: tuple) -> Iterator[TracerBase]:
    proxy = find_proxy(*values)
    if proxy is not None:
        yield proxy.tracer


def _unpacked(frame: FrameType) -> int | None:
    """How many names the caller unpacks a value into, None if it does something else with it."""
    for instruction in dis.get_instructions(frame.f_code):
        if instruction.offset == frame.f_lasti:
            return instruction.argval if instruction.opname == "UNPACK_SEQUENCE" else None
    return None


def _record(name: str) -> Callable:
    target = getattr(operator, name)

    def method(*args: Any, **kwargs: Any) -> Proxy:
        return args[0].tracer.create_proxy("call_function", target, args, kwargs)

    method.__name__ = name
    return method


def _record_reflected(name: str) -> Callable:
    target = getattr(operator, name)

    def method(self: Proxy, other: Any) -> Proxy:
        return self.tracer.create_proxy("call_function", target, (other, self), {})

    method.__name__ = name
    return method


for _name in MAGIC_METHODS:
    if hasattr(operator, _name):
        setattr(Proxy, f"__{_name.strip('_')}__", _record(_name))
for _name in REFLECTABLE:
    setattr(Proxy, f"__r{_name.strip('_')}__", _record_reflected(_name))
