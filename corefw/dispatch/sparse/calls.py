"""What ops do that are given sparse tensors: what their rule for these says, or a refusal that names the op."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from corefw.dispatch.op import Op
from corefw.dispatch.out import tensors_in
from corefw.dispatch.sparse.keys import Kind, kinds
from corefw.dispatch.sparse.tensors import FromValues, SparseTensor, is_sparse
from corefw.errors import GradientError, LayoutError, ShapeError
from corefw.graph.grad_mode import mode
from corefw.layouts import layout
from corefw.tensor import Constant, Tensor

#: by the op's name, functions of its arguments in the order of its signature, of which some are sparse
_RULES: dict[str, Callable] = {}


def rule(*names: str) -> Callable[[Callable], Callable]:
    """Make a function what these ops are for sparse tensors. It is given all arguments of an op in the order of its
    signature."""

    def decorate(function: Callable) -> Callable:
        for name in names:
            _RULES[name] = function
        return function

    return decorate


def has_rule(name: str) -> bool:
    """Whether an op is defined for sparse tensors."""
    return name in _RULES


def refusal(name: str, values=(), why: str = "") -> LayoutError:
    """The error of an op that is given sparse tensors, and takes dense ones only."""
    layouts = {str(t.dispatch_key.layout) for t in tensors_in(values) if is_sparse(t)}
    of = f" (layout {', '.join(sorted(layouts))})" if layouts else ""
    return LayoutError(f"{name}: not implemented for sparse tensors{of}{why}: convert them by .to_dense() first")


def compute(op: Op, *values: Any) -> Any:
    """What an op is for these arguments, of which some are sparse."""
    if op.name not in _RULES:
        raise refusal(op.name, values)
    result = _RULES[op.name](*(value.number if value.__class__ is Constant else value for value in values))
    if isinstance(result, Tensor) and result.node.__class__ is FromValues:
        result.node.title = op.node_name
    return result


def compute_into(op: Op, *values: Any) -> Tensor:
    """As `compute`, for the in-place form of an op."""
    target = values[0]
    if op.name not in _RULES:
        raise refusal(f"{op.name}_", values)
    result = compute(op, *values)
    if is_sparse(target) != is_sparse(result) or tuple(result.array.shape) != tuple(target.array.shape):
        raise refusal(f"{op.name}_", values, ", whose result has another layout or shape than what it would replace")
    if not is_sparse(target):
        return target.copy_(result)
    return become(target, result, f"{op.name}_")


def become(target: Tensor, result: Tensor, name: str) -> Tensor:
    """Give a sparse tensor the entries of another one."""
    if target.array.shape != result.array.shape:
        raise ShapeError(f"{name}: shapes {list(target.array.shape)} and {list(result.array.shape)} differ")
    if target.requires_grad or (result.requires_grad and mode.recording):
        raise GradientError(f"{name}: a sparse tensor with gradients cannot be changed in place; use the function")
    if result.dispatch_key is not target.dispatch_key:
        result = result.to(target.dispatch_key.dtype)
    target.array = result.array
    target.version[0] += 1
    return target


def _body(op: Op, *values: Any, **keywords: Any) -> Any:
    """A composite given a sparse tensor first."""
    if op.name in _RULES:
        return compute(op, *values, *keywords.values())
    try:
        return op.body(*values, **keywords)
    except LayoutError as error:
        raise refusal(op.name, (*values, *keywords.values()), f" (it needs {error})") from None


class _Sparse(Kind):
    """Sparse tensors."""

    tensor_class = SparseTensor

    def compute(self, op: Op, *values: Any) -> Any:
        return compute(op, *values)

    def compute_into(self, op: Op, *values: Any) -> Tensor:
        return compute_into(op, *values)

    def entry(self, op: Op) -> tuple:
        if op.primitive or op.gradients:
            raise refusal(op.name)
        return None, partial(_body, op), None, False

    def refusal(self, name: str) -> LayoutError:
        return refusal(name)


kinds[layout] = _Sparse()
