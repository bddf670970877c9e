"""Attaches to Tensor the methods that the op declarations give: ops, in-place forms, operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw.declarations.indexing import getitem, setitem, where_method
from corefw.dispatch.constants import operand
from corefw.dispatch.generation.compiling import operator_function
from corefw.dispatch.names import forms, tell_names
from corefw.dispatch.op import Op
from corefw.dispatch.overriding import functions
from corefw.dispatch.registry import registry
from corefw.tensor import Tensor


def _with_separate_sizes(function, position: int):
    """A method whose last argument, a shape or dimensions, may also come as separate arguments."""

    def only(self, *sizes, **keywords):
        if sizes and not keywords:
            return function(self, sizes)
        return function(self, *((sizes,) if sizes else ()), **keywords)

    def second(self, first, *sizes, **keywords):
        return function(self, first, *((sizes,) if sizes else ()), **keywords)

    method: Any = only if position == 1 else second
    method.__name__, method.__doc__, method.__wrapped__ = function.__name__, function.__doc__, function
    return method


def _method(op: Op, function):
    names = [p for p in op.parameters if not p.keyword_only]
    if names[-1].kind == "sizes" and len(names) in (2, 3):
        return _with_separate_sizes(function, len(names) - 1)
    return function


# Methods that no op gives: the condition of `where` comes first in the function only.
_OWN = {"__getitem__": getitem, "__setitem__": setitem, "where": where_method}
functions += _OWN.values()  # type: ignore[arg-type]


def attach_ops() -> None:
    """Make the ops that are public in Tensor its methods."""
    methods = {name: _method(op, function) for name, (op, function) in forms("Tensor").items()} | _OWN
    for name, function in methods.items():
        setattr(Tensor, name, function)
    tell_names("corefw", {f"Tensor.{name}": function for name, function in methods.items()})


_OPERATORS = {
    "abs": "abs",
    "add": "add",
    "and": "bitwise_and",
    "eq": "eq",
    "floordiv": "floor_divide",
    "ge": "ge",
    "gt": "gt",
    "invert": "bitwise_not",
    "le": "le",
    "lshift": "bitwise_left_shift",
    "lt": "lt",
    "matmul": "matmul",
    "mod": "remainder",
    "mul": "mul",
    "ne": "ne",
    "neg": "neg",
    "or": "bitwise_or",
    "pos": "positive",
    "pow": "pow",
    "rshift": "bitwise_right_shift",
    "sub": "sub",
    "truediv": "div",
    "xor": "bitwise_xor",
}
_REFLECTED = (
    "add",
    "and",
    "floordiv",
    "lshift",
    "matmul",
    "mod",
    "mul",
    "or",
    "pow",
    "rshift",
    "sub",
    "truediv",
    "xor",
)


def _reflected(function: Callable):
    def operator(self, other) -> Tensor:
        if not isinstance(other, Tensor):
            other = operand(other, self.dispatch_key)
        return function(other, self)

    return operator


def attach_operators() -> None:
    """Make Python's operators call the ops; the method is generated as the op's function is, with nothing between."""
    for symbol, name in _OPERATORS.items():
        op = registry.declared.get(name)
        if op is None:
            continue
        function = operator_function(op)
        setattr(Tensor, f"__{symbol}__", function)
        if symbol in _REFLECTED:
            setattr(Tensor, f"__r{symbol}__", _reflected(function))
            if op.inplace_function is not None:
                setattr(Tensor, f"__i{symbol}__", op.inplace_function)
    for old, new in {"__rdiv__": "__rtruediv__", "__idiv__": "__itruediv__"}.items():
        setattr(Tensor, old, Tensor.__dict__[new])  # Python 2's names, which PyTorch keeps
