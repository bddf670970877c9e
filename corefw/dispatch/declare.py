"""The decorators that turn a function into an op: its signature, docs and rules are the declaration."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Annotated, Any, get_args, get_origin

from corefw import return_types
from corefw.devices import DispatchKey
from corefw.dispatch import overriding
from corefw.dispatch.generation.compiling import RESERVED, build_functions, plain_function
from corefw.dispatch.names import public_names
from corefw.dispatch.op import REQUIRED, Op, Parameter
from corefw.dispatch.registry import ops, registry
from corefw.dispatch.rules import DtypeRule
from corefw.dispatch.tables import Table
from corefw.dtypes import MODULE, check_castable
from corefw.graph.inplace import become
from corefw.tensor import Tensor

# Annotations of op parameters, which carry the kind. A parameter without one is a tensor if it has no default,
# an optional tensor if its default is None; every other annotation is that of an attribute.
Index = Annotated[Any, "index"]  # a tensor of positions or a mask: no part in dtype promotion, and no gradient
Statistic = Index  # a tensor in a dtype of its own, such as sums of half types in float32; it may have a gradient
Tensors = Annotated[Sequence[Any], "tensors"]  # several tensors
Changed = Annotated[Sequence[Any], "tensors", "changed"]  # several tensors that an update changes in place
Counts = Annotated[Sequence[Any], "tensors", "counts"]  # numbers that it changes, a 0-d tensor for each of the first
Rate = Annotated[float, "rate"]  # a number of an update; a tensor if a graph that is replayed is to read it again
Indices = Annotated[Sequence[Any], "indices"]  # index tensors, None for a dimension taken whole
Dim = Annotated[int, "dim"]  # one dimension; kernels get it from 0 to ndim - 1
Dims = Annotated[Any, "dims"]  # dimensions, given as int or sequence; kernels get a sorted tuple, or None for all
GivenDims = Annotated[Any, "given_dims"]  # as Dims, but an empty sequence means no dimension
Sizes = Annotated[Any, "sizes"]  # a shape: int, sequence, or separate arguments to a method; kernels get a tuple


def _kind(annotation: str, scope: dict[str, Any]) -> tuple[str, str]:
    """The kind and the role that an annotation stands for, under whatever name a module has it."""
    first, *path = annotation.removesuffix(" | None").split(".")
    found = scope.get(first)
    for name in path:
        found = getattr(found, name, None)
    if found is DispatchKey:
        return "dispatch_key", ""
    if get_origin(found) is not Annotated:
        return "attribute", ""
    _, kind, *roles = get_args(found)
    return kind, roles[0] if roles else ""


class Declaration:
    """What a decorated function becomes: callable as the op, extended by its gradients."""

    __slots__ = ("op",)

    def __init__(self, op: Op):
        self.op = op

    def __call__(self, *args, **kwargs):
        return self.op.function(*args, **kwargs)

    def gradient(self, *names: str, saved_for: tuple[str, ...] = ()) -> Callable[[Callable], Callable]:
        """Declare the gradient of the inputs called `names`: the vector-Jacobian product that the function below
        computes.

        The formula's argument names say what is saved: ``grad`` (of the output; ``grad_<name>`` for one of several
        outputs, ``grads`` for all outputs of a view op), ``out`` or an output's name, an input, ``<input>_shape``, a
        static, ``needs`` (which of `names` are wanted). It returns one gradient, or a tuple for several names. Tensors
        are None unless the gradient of one of `saved_for` (by default, of `names`) is wanted.
        Broadcasting is undone, and the dtype restored, by the engine.
        """

        def decorate(formula: Callable) -> Callable:
            self.op.gradients[names] = formula
            self.op.saved_for[names] = saved_for or names
            return formula

        return decorate

    def gradients(self, **formulas: Callable) -> None:
        """Declare gradients in one line each: ``exp.gradients(input=lambda grad, out: grad * out)``."""
        for name, formula in formulas.items():
            vjp = f"{self.op.name}_vjp" if len(formulas) == 1 else f"{self.op.name}_vjp_{name}"
            formula.__code__ = formula.__code__.replace(co_name=vjp, co_qualname=vjp)  # what tracebacks show
            self.gradient(name)(formula)

    def shows_part(self) -> Declaration:
        """Declare that the op is a view that shows some elements, each once: its gradient is the output's at these, and
        zero elsewhere. The engine then adds it to a gradient that has come before, without the zeros."""
        self.op.shows_part = True
        return self

    def tangent(self, formula: Callable) -> Callable:
        """Declare how tangents go through the op, in forward-mode differentiation: the Jacobian-vector product.

        The formula's argument names say what it is given: ``tangent_<input>`` (None for an input that has none),
        ``out`` or an output's name, an input, ``<input>_shape``, a static. It returns the tangent of the result, or a
        tuple for several outputs. Most ops need none: see `corefw.autograd.duals.calls`.
        """
        self.op.tangent_formula = formula
        return formula

    def in_place(self, body: Callable) -> Callable:
        """Declare what the in-place form does with keyword options that kernels do not take; without, it copies the
        result of the body."""
        self.op.inplace_body = body
        return body

    def linear(self, *inputs: str) -> Declaration:
        """Declare that the op is linear in each of these inputs, the others fixed, so that it is applied to tangents as
        it is; "input src" in two of them together."""
        self.op.linear_in = tuple(tuple(names.split()) for names in inputs)
        return self

    def facts(self, *, holomorphic: bool = True, opaque: bool = False) -> Declaration:
        """Declare what forward-mode differentiation cannot see.

        Args:
            holomorphic: False for an elementwise op of complex elements that uses their conjugates.
            opaque: whether the body of a composite with gradients is made of what has none.
        """
        self.op.holomorphic, self.op.opaque = holomorphic, opaque
        return self

    def batching(self, rule: Callable) -> Callable:
        """Declare how `func.vmap` computes the op on all examples of a batch at once: by the function below, or one
        that several ops share, ``sum.batching(reduced)`` (`corefw/declarations/_shared/batching.py`).

        A rule is called with the op on the device below, the number of examples, and the kernel's arguments; tensors
        have the examples along their first dimension, or 1 that stands for all, and so has what it returns. Views,
        composites and elementwise ops need none.
        """
        self.op.batching = rule
        return rule

    def no_gradient(self, *names: str) -> Declaration:
        """Declare that no gradient flows to these inputs though the result depends on them."""
        self.op.zero_gradients += names
        return self


def put_functions() -> None:
    """Let the names of declarations, in their own modules, mean the ops' functions: what calls an op by such a name
    then goes without the frame of a declaration's call. To be called when all is declared."""
    for op in registry.declared.values():
        names = op.body.__globals__
        if names.get(op.body.__name__).__class__ is Declaration:
            names[op.body.__name__] = op.function


def _parameters(function: Callable) -> tuple[Parameter, ...]:
    code, annotations = function.__code__, function.__annotations__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = dict(zip(reversed(names[: code.co_argcount]), reversed(function.__defaults__ or ()), strict=False))
    defaults.update(function.__kwdefaults__ or {})
    found = []
    for i, name in enumerate(names):
        default = defaults.get(name, REQUIRED)
        annotation = annotations.get(name, "")
        kind, role = _kind(annotation, function.__globals__)
        if not annotation and default in (REQUIRED, None):
            kind = "tensor" if default is REQUIRED else "optional"
        elif name == "inplace":
            kind = "inplace"  # whether the in-place form runs instead, as in corefw.nn.functional
        found.append(Parameter(name, kind, default, annotation, i >= code.co_argcount, role))
    return tuple(found)


def _declare(function: Callable, rule: DtypeRule | None, shape: Callable | None, options: dict) -> Declaration:
    name = options.pop("name", function.__name__)
    result_name, public = options.pop("result_name", name), options.pop("public", None)
    op = Op(name, _parameters(function), function, rule, shape, **options)
    op.public = public_names(op, public)
    op.table, op.number_table = Table(op), Table(op, numbers=True)
    op.inplace_table = op.table.inplace
    taken = RESERVED & {p.name for p in op.parameters}
    if rule is not None and taken:
        raise ValueError(
            f"op {name!r}: the generated code has names of its own for {', '.join(sorted(taken))}; rename them"
        )
    if name in registry.declared:
        raise ValueError(
            f"op {name!r} is declared twice: in {registry.declared[name].body.__module__} and {function.__module__}"
        )
    if op.outputs:
        op.result_type = tuple if op.view else _result_type(result_name, op.outputs)
    if rule is None:
        op.function = plain_function(op) if op.takes_out or op.other_names else function
        if op.function is function:
            overriding.functions.append(function)  # type: ignore[arg-type]  # a plain def
        if op.inplace:
            op.inplace_function = _inplace_by_copy(op)
    else:
        build_functions(op)
        if op.view and op.inplace:
            op.inplace_function = _inplace_view(op)
    op.function.op = op  # type: ignore[attr-defined]
    for own in (name, *op.aliases):
        registry.declared[own] = op
        setattr(ops, own, op.function)
    return Declaration(op)


def _result_type(name: str, outputs: tuple[str, ...]) -> type:
    """The named tuple of an op's several outputs, printed as PyTorch's."""
    result = namedtuple(name, outputs, module=return_types.__name__)  # type: ignore[misc]

    def show(self) -> str:
        values = ",\n".join(f"{output}={value!r}" for output, value in zip(outputs, self))
        return f"{MODULE}.return_types.{name}(\n{values})"

    result.__repr__ = show  # type: ignore[method-assign]
    setattr(return_types, name, result)
    return result


def _inplace_view(op: Op):
    def inplace(input, *arguments, **options):
        return become(input, op.function(input, *arguments, **options))

    inplace.__name__ = inplace.__qualname__ = op.name + "_"
    inplace.__doc__ = f"In-place form of `{op.name}`: the tensor itself is seen otherwise; no element moves."
    inplace.__wrapped__ = op.body  # type: ignore[attr-defined]
    return inplace


def _inplace_by_copy(op: Op):
    def inplace(input, *arguments, **options):
        operands = (input, *arguments, *options.values())
        recorded = any(isinstance(value, Tensor) and value.requires_grad for value in operands)
        before = input.clone() if recorded else input  # what the gradients need of it must not change
        result = op.function(before, *arguments, **options)
        check_castable(result.dispatch_key.dtype, input.dispatch_key.dtype)
        return input.copy_(result)

    inplace.__name__ = inplace.__qualname__ = op.name + "_"
    inplace.__doc__ = f"In-place form of `{op.name}`."
    return inplace


def primitive(*, dtype: DtypeRule, shape: Callable | None, **options) -> Callable[[Callable], Declaration]:
    """Declare an op that backends compute; the function's body is empty (or says what the keyword options named in
    `rewrites` mean).

    Args:
        dtype: the dtype rule.
        shape: from the arguments, tensors given as their shapes, to the result's shape (a tuple of shapes for several
            outputs); raises ShapeError. None if the shape depends on the data.
        outputs: names of the outputs if there are several.
        result_name: the name of their named tuple, where it is not the op's.
        rewrites: keyword options that kernels do not take: where they differ from their default the body runs.
        inplace, out: whether the op has an in-place form, an ``out=`` argument.
        overlapping: operands that the in-place form leaves unchecked, because one value alone is written: the first
            may show an element several times, the others may be elements of it.
        public: where users find it: namespaces in which it has its name, such as "nn.functional", and full names,
            "special.expit"; "Tensor" means a method. "" for an op that only other ops use. Without it: what
            `corefw.dispatch.names.public_names` says.
        aliases: further names.
        grad_name: PyTorch's name of the node without "Backward0", where it is not the op's; with a digit at its end,
            such as "Sum1", it is that of a further form of the op. Where PyTorch has several names a function of what
            the node knows (`corefw.dispatch.generation.naming`), that is called when someone asks.
        other_names: whether a composite without rule and `out` takes other names of arguments, NumPy's among them, as
            all others do, at the cost of a frame.
    """
    return lambda function: _declare(function, dtype, shape, {"primitive": True, **options})


def composite(
    *, dtype: DtypeRule | None = None, shape: Callable | None = None, **options
) -> Callable[[Callable], Declaration]:
    """Declare an op whose body states it in other ops; with `dtype`, backends may register kernels for it.

    Options as for `primitive`.
    """
    return lambda function: _declare(function, dtype, shape, options)


def view(*, dtype: DtypeRule, **options) -> Callable[[Callable], Declaration]:
    """Declare an op whose result shares memory with its input.

    The function maps the input's geometry - (shape, strides, offset) in elements - and the attributes to the result's
    (a list of geometries with ``outputs``); devices derive their kernels from it.
    """
    return lambda function: _declare(function, dtype, None, {"view": True, **options})


def update(*, dtype: DtypeRule, **options) -> Callable[[Callable], Declaration]:
    """Declare a primitive that changes lists of tensors in place, those annotated as `Changed` or `Counts`, and returns
    nothing: the step of an optimizer. It has no gradient.

    The first list tells where the op runs, once for each dispatch key that its tensors have. The other lists of tensors
    have their shapes and dtypes. Its signature is the record that optimizers and backends read
    (`corefw.dispatch.records`): parameters, gradients, states, counts, numbers, truths.

    Args:
        dtype: the dtype rule.
        where: {a list: the attribute without which it is empty}.
        public: as for `primitive`.
    """
    return lambda function: _declare(function, dtype, None, {"primitive": True, "update": True, **options})


__all__ = ["Declaration", "composite", "ops", "primitive", "update", "view"]
