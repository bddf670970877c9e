"""GraphModule: a module whose `forward` is the source of its graph."""

from __future__ import annotations

import copy
import linecache
from itertools import count
from typing import Any

from corefw.fx.graph import Graph, PythonCode
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor

__all__ = ["GraphModule"]
_numbers = count()


def _compiled(code: PythonCode, numbered: str) -> Any:
    """The function `forward` of a source, which tracebacks show."""
    file = f"<eval_with_key>.{numbered}"
    linecache.cache[file] = (len(code.src), None, code.src.splitlines(True), file)
    scope = dict(code.globals)
    exec(compile(code.src, file, "exec"), scope)
    return scope["forward"]


def copy_attribute(source: Module, to: Module, target: str) -> None:
    """Give a module the attribute of another one by its dotted name, with modules in between where there are none."""
    *prefix, name = target.split(".")
    for part in prefix:
        found, made = getattr(source, part), getattr(to, part, None)
        if made is found:
            return
        if made is None:
            made = Module()
            setattr(to, part, made)
        source, to = found, made
    assign_attribute(getattr(source, name), to, name, name not in source._non_persistent_buffers_set)


def assign_attribute(value: Any, to: Module, name: str, persistent: bool = True) -> None:
    """Give a module an attribute; a tensor that is no parameter becomes a buffer."""
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        to.register_buffer(name, value, persistent)
    else:
        setattr(to, name, value)


class GraphModule(Module):
    """A module that computes what a graph says.

    Args:
        root: the module whose submodules, parameters and buffers the graph names, or a dict of them by dotted names.
        graph: the graph; it is copied if it belongs to another module.
        class_name: what the class shall be called.

    Attributes: ``graph``; assign it, or call `recompile`, after changing it; ``code`` its source.

    >>> import corefw as torch
    >>> graph = torch.fx.symbolic_trace(lambda x: x + 1).graph
    >>> traced = torch.fx.GraphModule(torch.nn.Module(), graph)
    >>> for node in traced.graph.nodes:
    ...     if node.name == "add":
    ...         node.args = (node.args[0], 10)
    >>> traced.recompile().src.strip().splitlines()[1]
    '    add = x + 10;  x = None'
    >>> traced(torch.ones(1))
    tensor([11.])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        """Every object has a class of its own, which holds its `forward`."""
        base = next(kind for kind in cls.__mro__ if "_own_graph" not in vars(kind))
        return super().__new__(type("GraphModuleImpl", (base,), {"_own_graph": True, "__module__": cls.__module__}))

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        type(self).__name__ = class_name
        targets = [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = root.training
            for target in targets:
                copy_attribute(root, self, target)
        elif isinstance(root, dict):
            self._assign(root, targets)
        else:
            raise RuntimeError(f"Unsupported type {type(root)} passed for root!")
        self.graph = graph
        self._tracer_cls = graph._tracer_cls
        self.meta: dict[str, Any] = {}

    def _assign(self, root: dict[str, Any], targets: list[str]) -> None:
        for target in sorted(targets, key=lambda name: name.count(".")):
            if target not in root:
                raise RuntimeError(
                    f"Node referenced target {target} but that target was not provided in ``root``! "
                    f"There are {sorted(root)}"
                )
            *prefix, name = target.split(".")
            owner: Any = self
            for part in prefix:
                if not hasattr(owner, part):
                    setattr(owner, part, Module())
                owner = getattr(owner, part)
            assign_attribute(root[target], owner, name)

    @property
    def graph(self) -> Graph:
        """The graph; assigning another one compiles that."""
        return self.__dict__["_graph"]

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self.__dict__["_graph"] = copy.deepcopy(g) if g.owning_module is not None and g.owning_module is not self else g
        g = self.__dict__["_graph"]
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of the graph."""
        return self.__dict__["_code"]

    def recompile(self) -> PythonCode:
        """Make `forward` of the graph as it now is; the source comes back."""
        code = self.graph.python_code("self")
        self.__dict__["_code"] = code.src
        kind: Any = type(self)
        kind.forward = _compiled(code, str(next(_numbers)))
        return code

    # -- submodules ----------------------------------------------------------------------------------------------
    def add_submodule(self, target: str, m: Module) -> bool:
        """Add a submodule under a dotted name, with empty modules in between; False if an attribute is in the way."""
        *prefix, name = target.split(".")
        owner: Any = self
        for part in prefix:
            if not hasattr(owner, part):
                setattr(owner, part, Module())
            owner = getattr(owner, part)
            if not isinstance(owner, Module):
                return False
        owner.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Remove the submodule with a dotted name; False if there is none."""
        *prefix, name = target.split(".")
        try:
            owner = self.get_submodule(".".join(prefix))
        except AttributeError:
            return False
        if name not in owner._modules:
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Remove the submodules that no node names, nor anything inside of them."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            parts = str(node.target).split(".")
            used.update(".".join(parts[:i]) for i in range(1, len(parts) + 1))
            if node.op == "call_module":
                used.update(f"{node.target}.{name}" for name, _ in self.get_submodule(str(node.target)).named_modules())
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    # -- text and copies -------------------------------------------------------------------------------------------
    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The source as that of a class, printed too unless `print_output` is False; options are PyTorch's, without
        effect."""
        lines = [f"    {line}".rstrip() for line in self.code.strip("\n").splitlines()]
        text = f"class {type(self).__name__}(torch.nn.Module):\n" + "\n".join(lines).rstrip() + "\n"
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.code}\n# To see more debug info, please use `graph_module.print_readable()`"

    def __deepcopy__(self, memo: dict) -> GraphModule:
        kept = {name: copy.deepcopy(value, memo) for name, value in self.__dict__.items() if name not in _MADE}
        return _restored(_class_of(self), type(self).__name__, kept, copy.deepcopy(self.graph, memo))

    def __copy__(self) -> GraphModule:
        kept = {name: value for name, value in self.__dict__.items() if name not in _MADE}
        return _restored(_class_of(self), type(self).__name__, kept, copy.deepcopy(self.graph))

    def __reduce__(self) -> tuple:
        kept = {name: value for name, value in self.__dict__.items() if name not in _MADE}
        return _restored, (_class_of(self), type(self).__name__, kept, self.graph)


_MADE = ("_graph", "_code", "_tracer_cls")


def _class_of(module: GraphModule) -> type[GraphModule]:
    """The class that a graph module was made of, without the one that is its own."""
    return next(kind for kind in type(module).__mro__ if "_own_graph" not in vars(kind))


def _restored(kind: type[GraphModule], name: str, state: dict[str, Any], graph: Graph) -> GraphModule:
    """A graph module from its parts."""
    module = kind.__new__(kind)
    type(module).__name__ = name
    Module.__setstate__(module, state)
    module.graph = graph
    module._tracer_cls = graph._tracer_cls
    return module
