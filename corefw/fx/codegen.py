"""The Python source of a graph: names that do not clash, and a function that does what the nodes say."""

from __future__ import annotations

import builtins
import keyword
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from corefw import devices, dtypes
from corefw.fx.node import Argument, Node, map_arg, qualified_name, type_name
from corefw.tensor import Tensor

if TYPE_CHECKING:
    pass

_REFLECTABLE = {
    "add": "{} + {}",
    "and_": "{} & {}",
    "div": "{} / {}",
    "floordiv": "{} // {}",
    "getitem": "{}[{}]",
    "lshift": "{} << {}",
    "matmul": "{} @ {}",
    "mod": "{} % {}",
    "mul": "{} * {}",
    "or_": "{} | {}",
    "pow": "{} ** {}",
    "rshift": "{} >> {}",
    "sub": "{} - {}",
    "truediv": "{} / {}",
    "xor": "{} ^ {}",
}
#: {function of the module operator: the expression that it computes}
MAGIC_METHODS = {
    **{"eq": "{} == {}", "ge": "{} >= {}", "gt": "{} > {}", "le": "{} <= {}", "lt": "{} < {}", "ne": "{} != {}"},
    **{"invert": "~{}", "neg": "-{}", "pos": "+{}"},
    **_REFLECTABLE,
}
REFLECTABLE = tuple(name for name in _REFLECTABLE if name not in ("div", "getitem"))
#: {function of the module operator: the statement that changes its first operand}
INPLACE_METHODS = {
    f"i{name.rstrip('_')}": f"{{}} {form.split()[1]}= {{}}"
    for name, form in _REFLECTABLE.items()
    if name not in ("div", "getitem")
}


@dataclass
class PythonCode:
    """Source and what it names: ``src`` the text, ``globals`` the objects by their names in it."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None = None


def _package() -> Any:
    return import_module("corefw")


#: names that generated code may use as they are: {name: (the line that imports it, the object)}
CUSTOM_BUILTINS: dict[str, tuple[str, Callable[[], Any]]] = {
    "inf": ("from math import inf", lambda: math.inf),
    "nan": ("from math import nan", lambda: math.nan),
    "NoneType": ("NoneType = type(None)", lambda: type(None)),
    "torch": ("import torch", _package),
    "device": ("from torch import device", lambda: devices.device),
    "pytree": ("import torch.utils._pytree as pytree", lambda: import_module("corefw.utils._pytree")),
}


@dataclass
class Namespace:
    """Names that are taken, each for one object."""

    _objects: dict[Any, str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)
    _counts: dict[str, int] = field(default_factory=dict)

    def create_name(self, candidate: str, obj: Any | None) -> str:
        """A name like `candidate` that nothing has yet, kept for `obj`.

        >>> names = Namespace()
        >>> [names.create_name(name, None) for name in ("add", "add", "sum", "0.conv", "add_1")]
        ['add', 'add_1', 'sum_1', '_0_conv', 'add_2']
        """
        if obj is not None and id(obj) in self._objects:
            return self._objects[id(obj)]
        candidate = re.sub("[^0-9a-zA-Z_]+", "_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        base, number = candidate, None
        if matched := re.fullmatch("(.*)_(\\d+)", candidate):
            base, number = matched[1], int(matched[2])
        if candidate in self._used:
            number = self._counts.get(base, 0)
        while candidate in self._used or self._is_illegal(candidate, obj):
            number = 1 if number is None else number + 1
            candidate = f"{base}_{number}"
        self._used.add(candidate)
        self._counts[base] = max(self._counts.get(base, 0), number or 0)
        if obj is not None:
            self._objects[id(obj)] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Keep a name that is taken for `obj`."""
        self._objects[id(obj)] = name

    @staticmethod
    def _is_illegal(name: str, obj: Any) -> bool:
        if keyword.iskeyword(name):
            return True
        if name in vars(builtins):
            return vars(builtins)[name] is not obj
        return name in CUSTOM_BUILTINS and CUSTOM_BUILTINS[name][1]() is not obj


def snake_case(name: str) -> str:
    """A class's name as that of a value.

    >>> snake_case("BatchNorm2d"), snake_case("relu_")
    ('batch_norm2d', 'relu_')
    """
    return re.sub("(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


class CodeGen:
    """Writes the source of a graph; a subclass may take the inputs, or give the outputs, in another form."""

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The line that begins the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars = ["self", *free_vars]
        return f"def forward({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args: Argument) -> str:
        """The statement that returns the output."""
        return f"return {_written(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the graph's inputs from the arguments of a call."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """What a call returns, from the graph's output."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """What else the source names: (name, object)."""
        return []

    def _gen_python_code(self, nodes: Sequence[Node], root_module: str, namespace: Namespace) -> PythonCode:
        return _Writer(self, nodes, root_module, namespace).write()


class _Writer:
    """The source of some nodes, line by line."""

    def __init__(self, codegen: CodeGen, nodes: Sequence[Node], root_module: str, namespace: Namespace):
        self.codegen, self.nodes, self.root, self.namespace = codegen, nodes, root_module, namespace
        self.parameters: list[str] = []
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.result = ""

    def write(self) -> PythonCode:
        """The function that does what the nodes say."""
        for name, (_, make) in CUSTOM_BUILTINS.items():
            self.name(name, make())
        for name, obj in self.codegen.additional_globals():
            self.name(name, obj)
        last = _last_uses(self.nodes)
        body, first = [], []
        for node in self.nodes:
            line = self.line(node)
            if node.op == "placeholder":
                first += [line] if line else []
                continue
            gone = last.get(node, [])
            if not node.users and node.op != "output":
                gone = [*gone, node]
            freed = f";  {' = '.join([*map(repr, gone), 'None'])}" if gone and node.op != "output" else ""
            body.append(line + freed)
        lines = [*first, *(body or ["pass"])]
        if body and self.nodes and self.nodes[-1].op == "output":
            lines.append("")
        code = "\n".join(f"    {line}" for line in lines)
        head = self.codegen.gen_fn_def(self.parameters, self.result)
        wraps = "\n".join(f'torch.fx.wrap("{name}")' for name in self.wrapped)
        return PythonCode(f"\n{wraps}\n\n{head}\n{code}" if wraps else f"\n\n\n{head}\n{code}", self.globals)

    def name(self, hint: str, obj: Any) -> str:
        """The name under which the source finds an object."""
        if _is_ours(obj) and obj is not devices.device:
            return qualified_name(obj)
        hint = hint.replace(".", "_")
        if self.globals.get(hint) is obj and hint in self.globals:
            return hint
        if hint in self.globals or hint not in CUSTOM_BUILTINS:
            hint = self.namespace.create_name(hint, obj)
        self.globals[hint] = obj
        return hint

    def annotation(self, kind: Any) -> str:
        if kind is None:
            return ""
        origin = getattr(kind, "__origin__", None)
        name = type_name(kind)
        if origin is None and isinstance(kind, type):
            return f" : {self.name(name, kind)}"
        self.name((name.partition("[")[0] or name).partition(".")[0], import_module("typing"))
        return f" : {name}"

    def call(self, args: tuple, kwargs: dict) -> str:
        written = [*map(self.value, args), *(f"{key} = {self.value(value)}" for key, value in kwargs.items())]
        return ", ".join(written)

    def value(self, argument: Any) -> str:
        return _written(argument, self.name)

    def line(self, node: Node) -> str:
        """The statement of a node."""
        kind = self.annotation(node.type)
        target: Any = node.target
        if node.op == "placeholder":
            default = f" = {self.value(node.args[0])}" if node.args else ""
            self.parameters.append(f"{target}{kind}{default}")
            plain = target.lstrip("*")
            return f"{node!r} = {plain}" if plain != repr(node) else ""
        if node.op == "output":
            if node.type is not None:
                self.result = f" -> {self.annotation(node.type).removeprefix(' : ')}"
            return self.codegen.generate_output(_Named(node.args[0], self.name))
        if node.op == "get_attr":
            return f"{node!r}{kind} = {_attribute(self.root, target)}"
        if node.op == "call_module":
            return f"{node!r}{kind} = {_attribute(self.root, target)}({self.call(node.args, node.kwargs)})"
        if node.op == "call_method":
            first = self.value(node.args[0])
            first = first if isinstance(node.args[0], Node) else f"({first})"
            return f"{node!r}{kind} = {first}.{target}({self.call(node.args[1:], node.kwargs)})"
        return self.call_function(node, target, kind)

    def call_function(self, node: Node, target: Any, kind: str) -> str:
        if target.__module__ == "_operator" and not node.kwargs:
            operands = [*map(self.value, node.args)]
            if target.__name__ in MAGIC_METHODS:
                return f"{node!r}{kind} = {MAGIC_METHODS[target.__name__].format(*operands)}"
            if target.__name__ in INPLACE_METHODS:
                statement = INPLACE_METHODS[target.__name__].format(*operands)
                return f"{statement};  {node!r}{kind} = {operands[0]}"
        name = qualified_name(target)
        shown = self.name(name, target)
        if shown == "getattr" and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            first = self.value(node.args[0])
            return f"{node!r}{kind} = {_attribute(first, node.args[1])}"
        if node.meta.get("is_wrapped"):
            self.wrapped[shown] = None
        return f"{node!r}{kind} = {shown}({self.call(node.args, node.kwargs)})"


class _Named:
    """An argument that writes itself with the names of one source."""

    def __init__(self, argument: Any, name: Callable[[str, Any], str]):
        self.argument, self.name = argument, name


def _attribute(base: str, target: str) -> str:
    """The expression of an attribute by its dotted name."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


def _is_ours(obj: Any) -> bool:
    """Whether generated code finds an object by its dotted name in the package."""
    module = getattr(obj, "__module__", None)
    if not isinstance(module, str) or module.partition(".")[0] not in ("corefw", dtypes.MODULE):
        return False
    found: Any = _package()
    try:
        for part in qualified_name(obj).split(".")[1:]:
            found = getattr(found, part)
    except AttributeError:
        return False
    return found is obj


def _written(argument: Any, name: Callable[[str, Any], str] | None = None) -> str:
    """The expression of an argument."""
    if isinstance(argument, _Named):
        return _written(argument.argument, argument.name)
    if isinstance(argument, tuple):
        items = [_written(item, name) for item in argument]
        if hasattr(argument, "_fields"):
            kind = type(argument)
            return f"{name(type_name(kind), kind) if name else kind.__name__}({', '.join(items)})"
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    if isinstance(argument, list):
        return f"[{', '.join(_written(item, name) for item in argument)}]"
    if isinstance(argument, dict):
        return "{" + ", ".join(f"{key!r}: {_written(item, name)}" for key, item in argument.items()) + "}"
    if isinstance(argument, slice):
        parts = ", ".join(_written(part, name) for part in (argument.start, argument.stop, argument.step))
        return f"slice({parts})"
    if name is not None and isinstance(argument, (type, *_functions)):
        return name(qualified_name(argument), argument)
    if name is not None and isinstance(argument, devices.device):
        name("device", devices.device)
    if isinstance(argument, Tensor):
        raise ValueError(f"a graph holds its tensors as attributes of its module, not as arguments: {argument!r}")
    return repr(argument)


_functions = (type(_package), type(len))


def _last_uses(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """{node: those whose results nobody needs behind it}."""
    seen: dict[Node, None] = {}
    found: dict[Node, list[Node]] = {}

    def use(argument: Node, user: Node) -> Node:
        if argument not in seen:
            seen[argument] = None
            found.setdefault(user, []).append(argument)
        return argument

    for node in reversed(nodes):
        map_arg(node.args, lambda argument, user=node: use(argument, user))  # type: ignore[misc]
        map_arg(node.kwargs, lambda argument, user=node: use(argument, user))  # type: ignore[misc]
    return found
