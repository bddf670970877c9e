"""Ops that programs define in Python, under PyTorch's names: kernels by device, shapes without data, gradients.

>>> import corefw as torch
>>> @torch.library.custom_op("doctest::twice", mutates_args=())
... def twice(x: torch.Tensor) -> torch.Tensor:
...     return torch.tensor(2 * x.numpy())
>>> twice.register_autograd(lambda ctx, grad: 2 * grad)
>>> x = torch.ones(2, requires_grad=True)
>>> twice(x).sum().backward()
>>> x.grad, torch.ops.doctest.twice(torch.ones(1))
(tensor([2., 2.]), tensor([2.]))
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args, get_origin, get_type_hints

from corefw import _ops
from corefw.autograd.function import Function
from corefw.devices import device
from corefw.dtypes import dtype
from corefw.graph.grad_mode import mode, no_recording
from corefw.sequences import alike
from corefw.tensor import Tensor

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_kernel",
    "impl",
    "infer_schema",
    "register_autograd",
    "register_fake",
    "register_kernel",
]

_DEVICES = {"CPU": "cpu", "CUDA": "cuda", "Meta": "meta"}
#: dispatch keys of kernels that serve every device
_EVERY = ("", "CompositeExplicitAutograd", "CompositeImplicitAutograd", "BackendSelect")


def _signature_of(schema: str) -> inspect.Signature:
    """The parameters that a schema names.

    >>> str(_signature_of("(Tensor x, *, float scale=1.0, int[]? dims=None) -> Tensor"))
    '(x, *, scale=1.0, dims=None)'
    """
    text = schema[schema.index("(") + 1 :]
    parts, depth, start, position = [], 0, 0, 0
    for position, letter in enumerate(text):
        if letter in ",)" and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
            if letter == ")":
                break
        depth += letter in "([{"
        depth -= letter in ")]}"
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    found = []
    for part in filter(None, parts):
        if part == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
            continue
        declared, _, default = part.partition("=")
        name = declared.split()[-1]
        given = inspect.Parameter.empty if not default else _default(default.strip())
        found.append(inspect.Parameter(name, kind, default=given))
    return inspect.Signature(found)


def _default(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return {"true": True, "false": False}.get(text.lower(), text)


def _type_in_schema(kind: Any) -> str:
    """PyTorch's word for an annotated type."""
    names = {Tensor: "Tensor", int: "SymInt", float: "float", bool: "bool", str: "str", dtype: "ScalarType"}
    if kind in names:
        return names[kind]
    if kind is device:
        return "Device"
    options = get_args(kind)
    if type(None) in options and len(options) == 2:
        return f"{_type_in_schema(next(option for option in options if option is not type(None)))}?"
    if get_origin(kind) in (list, Sequence, tuple) and options:
        return f"{_type_in_schema(options[0])}[]"
    if set(options) <= {int, float, bool} and options:
        return "Scalar"
    raise ValueError(
        f"infer_schema(func): a parameter has unsupported type {kind}. The valid types are: Tensor, int, float, bool, "
        "str, torch.dtype, torch.device, sequences of these, and Optional of these"
    )


def infer_schema(
    prototype_function: Callable, /, *, mutates_args: Iterable[str] | str, op_name: str | None = None
) -> str:
    """The schema of an op, from the annotations of a function.

    Args:
        prototype_function: the function; every parameter must have a type.
        mutates_args: the names of the tensors that it changes, or "unknown".
        op_name: a name to begin with.

    Raises:
        ValueError: a type is missing, or is none that ops can have.

    >>> import corefw as torch
    >>> def f(x: torch.Tensor, n: int = 2) -> torch.Tensor: ...
    >>> infer_schema(f, mutates_args=())
    '(Tensor x, SymInt n=2) -> Tensor'
    """
    hints = get_type_hints(prototype_function)
    changed = [] if mutates_args == "unknown" else list(mutates_args)
    parts, starred = [], False
    for i, parameter in enumerate(inspect.signature(prototype_function).parameters.values()):
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            starred = True
            parts.append("*")
        if parameter.name not in hints:
            raise ValueError(
                f"infer_schema(func): Parameter {parameter.name} must have a type annotation. Got func with signature "
                f"{inspect.signature(prototype_function)})"
            )
        kind = _type_in_schema(hints[parameter.name])
        if parameter.name in changed:
            kind = kind.replace("Tensor", f"Tensor(a{i}!)", 1)
        default = parameter.default
        shown = f'"{default}"' if isinstance(default, str) else str(default)
        parts.append(f"{kind} {parameter.name}" + ("" if default is inspect.Parameter.empty else f"={shown}"))
    result = hints.get("return", type(None))
    if result is type(None):
        returned = "()"
    elif get_origin(result) is tuple:
        returned = f"({', '.join(map(_type_in_schema, get_args(result)))})"
    else:
        returned = _type_in_schema(result)
    return f"{op_name or ''}({', '.join(parts)}) -> {returned}"


class CustomOpDef:
    """An op defined in Python: call it as a function.

    Args:
        namespace, name: what it is called.
        schema: its arguments and results.
        fn: the kernel for every device, if there is one.
    """

    def __init__(self, namespace: str, name: str, schema: str, fn: Callable | None = None, tags: Any = None):
        self._namespace, self._name, self._schema, self._init_fn = namespace, name, schema, fn
        self._qualname = f"{namespace}::{name}"
        self._kernels: dict[str, Callable] = {}
        self._backward: Callable | None = None
        self._setup_context: Callable | None = None
        self._autograd: Callable | None = None
        self._signature = _signature_of(schema)
        self._function: type[Function] | None = None
        self.__name__, self.__module__ = name, f"torch.ops.{namespace}"
        self.__qualname__ = name

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._qualname})>"

    # -- what it does ----------------------------------------------------------------------------------------------
    def register_kernel(self, device_types: str | Sequence[str] | None, fn: Callable | None = None, /) -> Any:
        """Compute the op by a function on tensors of some devices; also a decorator.

        Args:
            device_types: "cpu", "cuda", several of them, or None for all.
            fn: the function.
        """

        def register(function: Callable) -> Callable:
            kinds = [device_types] if isinstance(device_types, str) or device_types is None else device_types
            for kind in kinds:
                self._kernels[kind or ""] = function
            return function

        return register if fn is None else register(fn)

    def register_fake(self, fn: Callable, /) -> Callable:
        """Give the op's results for tensors on the device "meta", which have no data; also a decorator."""
        self._kernels["meta"] = fn
        return fn

    def register_autograd(self, backward: Callable, /, *, setup_context: Callable | None = None) -> None:
        """Give the op gradients.

        Args:
            backward: ``backward(ctx, *grads)`` gives the gradients of all inputs.
            setup_context: ``setup_context(ctx, inputs, output)`` keeps what it needs; tensors by
                ``ctx.save_for_backward``.
        """
        self._backward, self._setup_context, self._function = backward, setup_context, None

    def register_vmap(self, func: Callable | None = None, /) -> None:
        """Refused: `vmap` of such an op runs example by example.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("CustomOpDef.register_vmap: rules for vmap are not taken; call the op on the batch")

    # -- calls -----------------------------------------------------------------------------------------------------
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = self._signature.bind(*args, **kwargs)
        bound.apply_defaults()
        tensors = [*_tensors(bound.arguments.values())]
        if self._autograd is not None:
            return self._autograd(*bound.args, **bound.kwargs)
        if not (mode.recording and any(tensor.requires_grad for tensor in tensors)):
            return self._compute(*bound.args, **bound.kwargs)
        if self._backward is None and "CompositeImplicitAutograd" in self._kernels:
            return self._kernels["CompositeImplicitAutograd"](*bound.args, **bound.kwargs)
        names = [p.name for p in self._signature.parameters.values() if p.kind is inspect.Parameter.KEYWORD_ONLY]
        return self._recorded(len(names))(*bound.args, *(bound.kwargs[name] for name in names))

    def _compute(self, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = _detached(args), {name: _detached(value) for name, value in kwargs.items()}
        kinds = [tensor.device.type for tensor in _tensors((*args, *kwargs.values()))]
        kind = "meta" if "meta" in kinds else next(iter(kinds), "")
        choices = (kind, *_EVERY) if kind != "meta" else (kind, "CompositeImplicitAutograd")
        for choice in choices:
            if choice in self._kernels:
                with no_recording():
                    return self._kernels[choice](*args, **kwargs)
        if kind != "meta" and self._init_fn is not None:
            with no_recording():
                return self._init_fn(*args, **kwargs)
        register = "register_fake" if kind == "meta" else "register_kernel"
        raise NotImplementedError(
            f"{self._qualname}: there is no kernel for {kind or 'any device'}; there are "
            f"{', '.join(self._kernels) or 'none'}. Give it one by {register}"
        )

    def _recorded(self, keywords: int) -> Callable:
        """The op as a function with a gradient."""
        if self._function is None:
            self._function = type(f"{self._name}Function", (Function,), _methods(self, keywords))
        return self._function.apply


def _methods(op: CustomOpDef, keywords: int) -> dict[str, Any]:
    """The methods of the `Function` that computes an op and its gradient."""
    names = [p.name for p in op._signature.parameters.values()]

    def forward(ctx: Any, *args: Any) -> Any:
        positional, named = (
            args[: len(args) - keywords],
            dict(zip(names[len(args) - keywords :], args[len(args) - keywords :])),
        )
        output = op._compute(*positional, **named)
        if op._setup_context is not None:
            options = {"keyword_only_inputs": named} if keywords else {}
            op._setup_context(ctx=ctx, inputs=positional, output=output, **options)
        return tuple(output) if isinstance(output, list) else output

    def backward(ctx: Any, *grads: Any) -> Any:
        if op._backward is None:
            raise RuntimeError(
                f"Trying to backward through {op._qualname}.default but no autograd formula was registered. If you "
                "wish to backward through this operator, please use register_autograd()"
            )
        found = op._backward(ctx, *grads)
        return (*(found if isinstance(found, tuple) else (found,)), *(None,) * keywords)

    return {"forward": staticmethod(forward), "backward": staticmethod(backward)}


def _tensors(values: Iterable[Any]) -> Iterable[Tensor]:
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _detached(value: Any) -> Any:
    """What a kernel gets of an argument: tensors without their history, which it may hand to other libraries."""
    if isinstance(value, (list, tuple)):
        return alike(value, map(_detached, value))
    return value.detach() if isinstance(value, Tensor) and value.requires_grad else value


def _find(op: str | CustomOpDef | Any) -> CustomOpDef:
    """The definition that a name, or the op itself, means."""
    if isinstance(op, CustomOpDef):
        return op
    name = op if isinstance(op, str) else op._qualname if hasattr(op, "_qualname") else op._qualified_op_name
    name = name.removesuffix(".default")
    if name not in _ops.defined:
        raise RuntimeError(f"operator {name} does not exist; library.define or library.custom_op defines it first")
    return _ops.defined[name]


def _declare(op: CustomOpDef) -> CustomOpDef:
    _ops.defined[op._qualname] = op
    _ops.forget(op._qualname)
    return op


def custom_op(
    name: str, fn: Callable | None = None, /, *, mutates_args: Iterable[str] | str,
    device_types: str | Sequence[str] | None = None, schema: str | None = None, tags: Any = None,
) -> Any:  # fmt: skip
    """Define an op that a Python function computes; also a decorator.

    Args:
        name: "namespace::name".
        fn: the function, whose annotations say what it takes.
        mutates_args: the names of the arguments that it changes.
        device_types: the devices on whose tensors it works; all by default.
        schema: what it takes and gives, instead of the annotations.
        tags: PyTorch's; without effect.

    Returns:
        The op.

    Raises:
        ValueError: the name has no namespace, or a type is missing.
    """

    def define_op(function: Callable) -> CustomOpDef:
        namespace, colons, short = name.partition("::")
        if not colons:
            raise ValueError(f"custom_op: {name!r} should be of the form 'namespace::name'")
        given = schema if schema is not None else infer_schema(function, mutates_args=mutates_args)
        op = CustomOpDef(namespace, short, given, function if device_types is None else None, tags)
        op.__doc__ = function.__doc__
        if device_types is not None:
            op.register_kernel(device_types, function)
        return _declare(op)

    return define_op if fn is None else define_op(fn)


def define(qualname: str, schema: str, *, lib: Library | None = None, tags: Any = ()) -> None:
    """Define an op by its schema; `impl` gives it kernels.

    Args:
        qualname: "namespace::name".
        schema: such as "(Tensor x, int n=2) -> Tensor".
        lib: a library whose namespace it is to be in.
        tags: PyTorch's; without effect.
    """
    namespace, colons, short = qualname.partition("::")
    if not colons:
        if lib is None:
            raise ValueError(f"define: {qualname!r} should be of the form 'namespace::name'")
        namespace, short = lib.ns, qualname
    _declare(CustomOpDef(namespace, short, schema))


def impl(qualname: str, types: str | Sequence[str], func: Callable | None = None, *, lib: Any = None) -> Any:
    """Compute an op by a function; also a decorator.

    Args:
        qualname: "namespace::name".
        types: devices ("cpu"), PyTorch's dispatch keys ("CPU", "CompositeImplicitAutograd"), or "default" for all.
        func: the function.
        lib: PyTorch's; without effect.
    """

    def register(function: Callable) -> Callable:
        op = _find(qualname)
        for kind in [types] if isinstance(types, str) else types:
            if kind in ("Autograd", "AutogradCPU", "AutogradCUDA"):
                op._autograd = function
            else:
                op._kernels[_DEVICES.get(kind, "" if kind == "default" else kind)] = function
        return function

    return register if func is None else register(func)


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Any = None) -> Any:
    """As `CustomOpDef.register_kernel`, for an op or its name."""
    return _find(op).register_kernel(device_types, func)


def register_fake(op: Any, func: Callable | None = None, /, *, lib: Any = None, **options: Any) -> Any:
    """As `CustomOpDef.register_fake`, for an op or its name; also a decorator."""
    return _find(op).register_fake if func is None else _find(op).register_fake(func)


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Any = None
) -> None:
    """As `CustomOpDef.register_autograd`, for an op or its name."""
    _find(op).register_autograd(backward, setup_context=setup_context)


def get_kernel(op: Any, dispatch_key: str) -> Callable:
    """The function that computes an op with a dispatch key.

    Raises:
        RuntimeError: there is none.
    """
    kernels = _find(op)._kernels
    key = _DEVICES.get(dispatch_key, dispatch_key)
    if key not in kernels:
        raise RuntimeError(f"get_kernel: {_find(op)._qualname} has no kernel for {dispatch_key}")
    return kernels[key]


def fallthrough_kernel(*args: Any) -> None:
    """PyTorch's mark of a kernel that leaves the work to the next one; it cannot be called.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


class Library:
    """A namespace of ops, to define some in ("DEF", "FRAGMENT") or to give kernels to ("IMPL").

    Args:
        ns: its name.
        kind: which of them.
        dispatch_key: the key of all kernels, unless `impl` names another.

    >>> import corefw as torch
    >>> library = torch.library.Library("doctest", "FRAGMENT")
    >>> _ = library.define("thrice(Tensor x) -> Tensor")
    >>> library.impl("thrice", lambda x: 3 * x, "CompositeImplicitAutograd")
    >>> torch.ops.doctest.thrice(torch.ones(1))
    tensor([3.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Unsupported kind: {kind}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Define an op by its name and schema; the name comes back."""
        name = schema.partition("(")[0].strip()
        define(f"{self.ns}::{name}", schema)
        return name

    def impl(
        self, op_name: Any, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False, **options: Any
    ) -> None:
        """Compute an op of the namespace by a function, for tensors that PyTorch's dispatch key means."""
        name = op_name if isinstance(op_name, str) else op_name.__name__.partition(".")[0]
        impl(f"{self.ns}::{name.rpartition('::')[2]}", dispatch_key or self.dispatch_key, fn)
