"""Symbolic tracing: a module or function runs once on proxies, and what it does becomes a graph."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import operator
import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from types import CodeType, FunctionType, ModuleType
from typing import Any

from corefw.assertions import _assert
from corefw.dispatch.overriding import asking
from corefw.fx.graph import Graph
from corefw.fx.graph_module import GraphModule
from corefw.fx.node import Argument, Node, Target
from corefw.fx.proxy import Proxy, TracerBase, find_proxy
from corefw.nn.modules.container import Sequential
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor

__all__ = ["PH", "ProxyableClassMeta", "Tracer", "is_fx_tracing", "symbolic_trace", "wrap"]

_VARIABLE = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS
#: (globals of a module, name): functions that are recorded, not followed
_wrapped: dict[tuple[int, str], dict[str, Any]] = {}
_tracing = 0


class PH:
    """What stands in concrete arguments for a value that stays an input."""

    def __repr__(self) -> str:
        return "PH"


PH = PH()  # type: ignore[assignment,misc]


class ProxyableClassMeta(type):
    """A class whose objects may be made from proxies: making one is recorded as a call of the class."""

    def __init__(cls, name: str, bases: tuple, attributes: dict):
        super().__init__(name, bases, attributes)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is not None and _tracing:
            return proxy.tracer.create_proxy("call_function", cls, args, kwargs)
        return super().__call__(*args, **kwargs)


def is_fx_tracing() -> bool:
    """Whether a program is being recorded."""
    return _tracing > 0


def is_fx_symbolic_tracing() -> bool:
    """Whether a program is being recorded."""
    return _tracing > 0


def wrap(fn_or_name: str | Callable) -> Any:
    """Let calls of a function be recorded, rather than what it does; said at the top of a module.

    Args:
        fn_or_name: the function, as a decorator, or the name under which the module has it, a builtin's perhaps.

    Returns:
        The argument.

    Raises:
        RuntimeError: it is neither.
        NotImplementedError: it is not called at the top of a module.

    >>> import corefw as torch
    >>> _ = torch.fx.wrap("len")
    >>> print(torch.fx.symbolic_trace(lambda x: x / len(x)).code.strip())
    torch.fx.wrap("len")
    <BLANKLINE>
    def forward(self, x):
        len_1 = len(x)
        truediv = x / len_1;  x = len_1 = None
        return truediv
    """
    if callable(fn_or_name):
        name = fn_or_name.__name__
    elif isinstance(fn_or_name, str):
        name = fn_or_name
    else:
        raise RuntimeError("Unsupported type for global function! Must be either a callable or string name")
    frame = sys._getframe(1)
    if frame.f_code.co_name != "<module>":
        raise NotImplementedError("wrap must be called at the top level of a module")
    _wrapped[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def _recording(function: Callable) -> Callable:
    """A function that records calls of `function` with proxies."""

    @functools.wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        proxy = find_proxy(args, kwargs)
        if proxy is None:
            return function(*args, **kwargs)
        made = proxy.tracer.create_proxy("call_function", function, args, kwargs)
        made.node.meta["is_wrapped"] = True
        return made

    wrapped.recorded = True  # type: ignore[attr-defined]
    return wrapped


_MISSING = object()


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """`value` in the place of an attribute, or of an entry of a dict."""
    is_dict = isinstance(owner, dict)
    before = owner.get(name, _MISSING) if is_dict else vars(owner).get(name, _MISSING)
    owner.__setitem__(name, value) if is_dict else setattr(owner, name, value)
    try:
        yield
    finally:
        if before is not _MISSING:
            owner.__setitem__(name, before) if is_dict else setattr(owner, name, before)
        elif is_dict:
            owner.pop(name, None)
        else:
            delattr(owner, name)


class Tracer(TracerBase):
    """Records what a module or function does with its inputs as a graph.

    Methods may be overridden, `is_leaf_module` above all: it says which modules are called as a whole.

    Args:
        autowrap_modules: modules whose functions are recorded when they are given proxies.
        autowrap_functions: further functions, by which the program's globals are searched.
        param_shapes_constant: take the shapes of parameters as numbers.

    >>> import corefw as torch
    >>> class Followed(torch.fx.Tracer):
    ...     def is_leaf_module(self, m, qualname):
    ...         return False
    >>> [node.name for node in Followed().trace(torch.nn.Sequential(torch.nn.ReLU())).nodes]
    ['input_1', 'relu', 'output']
    """

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable, ...] = (),
        param_shapes_constant: bool = False,
    ):
        self._autowrap_search = list(autowrap_modules)
        self._autowrap_functions = {
            id(value)
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        } | {id(function) for function in autowrap_functions}
        self.param_shapes_constant = param_shapes_constant
        self.traced_func_name = "forward"
        self.root: Module = Module()
        self.module_stack: OrderedDict[str, tuple[str, Any]] = OrderedDict()
        self._paths: dict[Module, str] = {}
        self._attributes: dict[int, str] = {}
        self._constants: dict[int, str] = {}

    # -- what may be overridden --------------------------------------------------------------------------------
    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether calls of a module are recorded as such: those of `nn`, except for `Sequential`.

        Args:
            m: the module.
            module_qualified_name: its path from the root.
        """
        return m.__module__.startswith(("corefw.nn", "torch.nn")) and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The dotted name of a submodule of the root.

        Raises:
            NameError: it is none.
        """
        if mod not in self._paths:
            self._paths = {
                module: name for name, module in reversed(list(self.root.named_modules(remove_duplicate=False)))
            }
        if mod not in self._paths:
            raise NameError("module is not installed as a submodule")
        return self._paths[mod]

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of calling a module: a node of its own, or what its `forward` gives.

        Args:
            m: the module.
            forward: calls it.
            args, kwargs: the arguments.
        """
        path = self.path_of_module(m)
        key = path if path not in self.module_stack else f"{path}@{len(self.module_stack)}"
        self.module_stack[key] = (path, type(m))
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            del self.module_stack[key]

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What a module's attribute gives: a proxy for a parameter, else the value.

        Args:
            attr: its name.
            attr_val: the value.
            parameter_proxy_cache: {path: proxy} of the parameters that were read already.
        """
        if not isinstance(attr_val, Parameter):
            return attr_val
        for name, parameter in self.root.named_parameters():
            if parameter is attr_val:
                if name not in parameter_proxy_cache:
                    parameter_proxy_cache[name] = self._parameter_proxy(name, parameter)
                return parameter_proxy_cache[name]
        return attr_val

    def _parameter_proxy(self, name: str, parameter: Parameter) -> Proxy:
        if not self.param_shapes_constant:
            return self.create_proxy("get_attr", name, (), {})
        return self.create_proxy(
            "get_attr", name, (), {}, proxy_factory_fn=lambda node: ParameterProxy(self, node, name, parameter)
        )

    def create_node(
        self, kind: str, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Argument],
        name: str | None = None, type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """Add a node that notes in which modules it was made."""
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        if self.module_stack:
            node.meta["nn_module_stack"] = self.module_stack.copy()
        return node

    def create_arg(self, a: Any) -> Argument:
        """What stands in the graph for a value: parameters, buffers and modules are read from the root, and other
        tensors become attributes of it."""
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._path_of_tensor(a), (), {})
        if isinstance(a, Module):
            return self.create_node("get_attr", self.path_of_module(a), (), {})
        return super().create_arg(a)

    def _path_of_tensor(self, tensor: Tensor) -> str:
        path = self._attributes.get(id(tensor))
        if path is not None:
            return path
        if isinstance(tensor, Parameter):
            for name, parameter in self.root.named_parameters():
                if parameter is tensor:
                    return name
            raise NameError("parameter is not a member of this module")
        path = next(f"_tensor_constant{i}" for i in count() if not hasattr(self.root, f"_tensor_constant{i}"))
        self._attributes[id(tensor)] = path
        setattr(self.root, path, tensor)
        return path

    # -- tracing ---------------------------------------------------------------------------------------------------
    def trace(self, root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> Graph:
        """The graph of a module or function.

        Args:
            root: what is recorded.
            concrete_args: {name: value} of arguments that keep this value; the recorded graph asserts that it is given.

        Raises:
            TraceError: what it does depends on values, as ``if x.sum() > 0`` does.
        """
        global _tracing
        if isinstance(root, Module):
            self.root, function = root, getattr(type(root), self.traced_func_name)
        else:
            self.root, function = Module(), root
        self._paths = {}
        self.graph = Graph(tracer_cls=type(self))
        self._attributes = self._tensor_attributes()
        function, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        _tracing += 1
        try:
            with asking(), self._followed(function):
                result = self.create_arg(function(*args))
        finally:
            _tracing -= 1
        kind = getattr(function, "__annotations__", {}).get("return")
        self.create_node("output", "output", (result,), {}, type_expr=kind)
        return self.graph

    def _tensor_attributes(self) -> dict[int, str]:
        """{tensor's identity: path} of the buffers and plain tensors that modules hold."""
        found: dict[int, str] = {}
        for prefix, module in self.root.named_modules():
            for name, value in vars(module).items():
                if isinstance(value, Tensor) and not isinstance(value, Parameter):
                    found.setdefault(id(value), f"{prefix}.{name}" if prefix else name)
        return found

    @contextmanager
    def _followed(self, function: Callable) -> Iterator[None]:
        """Modules and functions that record calls with proxies, while a program runs."""
        original, plain_getattribute = Module.__call__, Module.__getattribute__
        cache: dict[str, Any] = {}

        @functools.wraps(original)
        def call(module: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return original(module, *args, **kwargs)

            return self.call_module(module, forward, args, kwargs)

        def getattribute(module: Module, name: str) -> Any:
            value = plain_getattribute(module, name)
            return self.getattr(name, value, cache) if isinstance(value, (Parameter, Tensor)) else value

        def records(value: Any) -> bool:
            return id(value) in self._autowrap_functions and not hasattr(value, "recorded")

        with ExitStack() as stack:
            stack.enter_context(_replaced(Module, "__call__", call))
            stack.enter_context(_replaced(Module, "__getattribute__", getattribute))
            for (_, name), scope in list(_wrapped.items()):
                wrapped = scope.get(name, getattr(builtins, name, None))
                if wrapped is not None and not hasattr(wrapped, "recorded"):
                    stack.enter_context(_replaced(scope, name, _recording(wrapped)))
            for scope in [getattr(function, "__globals__", {}), *map(vars, self._autowrap_search)]:
                for name, value in list(scope.items()):
                    if not name.startswith("_") and callable(value) and records(value):
                        stack.enter_context(_replaced(scope, name, _recording(value)))
            yield

    def create_args_for_root(
        self, root_fn: Callable, is_module: bool, concrete_args: dict[str, Any] | None = None
    ) -> tuple[Callable, list[Any]]:
        """The inputs of the graph, from the signature of a function: (what is called, its arguments).

        Args:
            root_fn: the function.
            is_module: whether its first argument is the root.
            concrete_args: see `trace`.
        """
        analysed = inspect.unwrap(root_fn)
        code: CodeType = analysed.__code__
        names, concrete = list(code.co_varnames), dict(concrete_args or {})
        total = code.co_argcount + code.co_kwonlyargcount
        args: list[Any] = [self.root] if is_module else []
        parameters = inspect.signature(analysed).parameters
        annotations = getattr(analysed, "__annotations__", {})

        def placeholder(name: str, target: str) -> Any:
            default = parameters[name].default if name in parameters else inspect.Parameter.empty
            given = () if default is inspect.Parameter.empty else (default,)
            if target in concrete and concrete[target] is not PH:
                return self._specialized(name, target, concrete[target])
            return self.create_proxy("placeholder", target, given, {}, type_expr=annotations.get(name))

        args += [placeholder(name, name) for name in names[len(args) : total]]
        if not code.co_kwonlyargcount and not code.co_flags & _VARIABLE:
            return root_fn, args
        position = total
        for flag, stars in ((inspect.CO_VARARGS, "*"), (inspect.CO_VARKEYWORDS, "**")):
            if code.co_flags & flag:
                args.append(placeholder(names[position], stars + names[position]))
                position += 1
        return _all_positional(analysed, len(args)), args

    def _specialized(self, name: str, target: str, value: Any) -> Any:
        """The value that an argument keeps, whose input stays to be checked."""
        proxy = self.create_proxy("placeholder", target, (value,), {}, name=name)
        message = f"{name} has been specialized to have value {value} but got another value"
        if isinstance(value, (bool, int, float, str)):
            self.create_proxy("call_function", _assert, (operator.eq(proxy, value), message), {})
        elif value is None:
            self.create_proxy("call_function", _assert_is_none, (proxy, message), {})
        return value


class ParameterProxy(Proxy):
    """A parameter whose shape is known."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Parameter):
        super().__init__(node, tracer)
        self.__dict__["param"], self.__dict__["name"] = param, name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.__dict__['name']})"

    @property
    def shape(self) -> Any:
        """The parameter's shape."""
        return self.__dict__["param"].shape

    def size(self, *dim: int) -> Any:
        """The parameter's shape, or its size along a dimension."""
        return self.__dict__["param"].size(*dim)

    def dim(self) -> int:
        """The number of dimensions."""
        return self.__dict__["param"].dim()

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self.__dict__["param"].ndim

    def numel(self) -> int:
        """The number of elements."""
        return self.__dict__["param"].numel()


def _assert_is_none(value: Any, message: str) -> None:
    assert value is None, message


def _all_positional(function: Callable, count: int) -> FunctionType:
    """A function that takes all its arguments by position: those behind stars too, each as one value."""
    plain: Any = function
    code = plain.__code__
    code = code.replace(
        co_flags=code.co_flags & ~_VARIABLE, co_argcount=count, co_posonlyargcount=0, co_kwonlyargcount=0
    )
    return FunctionType(code, plain.__globals__, plain.__name__, plain.__defaults__, plain.__closure__)


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: dict[str, Any] | None = None) -> GraphModule:
    """A module that does what another one, or a function, does, as a graph that can be read and changed.

    Args:
        root: what is recorded. What it does must not depend on the values of its inputs.
        concrete_args: {name: value} of arguments that keep this value.

    Returns:
        The module; ``.graph`` is the graph, ``.code`` its source.

    Raises:
        TraceError: it does depend on them.

    >>> import corefw as torch
    >>> traced = torch.fx.symbolic_trace(lambda x: torch.relu(x) * 2)
    >>> traced(torch.tensor([-1.0, 1.0]))
    tensor([0., 2.])
    >>> print(traced.code.strip())
    def forward(self, x):
        relu = torch.relu(x);  x = None
        mul = relu * 2;  relu = None
        return mul
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)
