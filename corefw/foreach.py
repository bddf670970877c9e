"""Functions of lists of tensors, under the private names that optimizers written for PyTorch call: element by element.

>>> import corefw as torch
>>> tensors = [torch.ones(2), torch.zeros(1)]
>>> torch._foreach_add_(tensors, 2)
>>> torch._foreach_mul(tensors, [10, 100])
[tensor([30., 30.]), tensor([200.])]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor

__all__: list[str] = []
_UNARY = (
    "abs",
    "ceil",
    "cos",
    "exp",
    "expm1",
    "floor",
    "log",
    "neg",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
)
_MORE = ("sin", "sqrt", "tanh", "trunc", "zero", "add", "sub", "mul", "div", "maximum", "minimum", "clamp_min")
_LAST = ("clamp_max", "pow", "lerp", "addcmul", "addcdiv", "copy")
#: options of the single function; other names are those of operands, in their order
_OPTIONS = ("alpha", "value", "non_blocking")
_METHODS = {"maximum": "clamp_min", "minimum": "clamp_max"}


def _each(name: str, inplace: bool) -> Callable:
    """The function of lists that calls a method of each tensor."""

    def single(tensor: Tensor, operands: list, options: dict) -> Tensor:
        if name in ("addcmul", "addcdiv") and len(operands) == 3:
            options = {"value": operands[2]}
            operands = operands[:2]
        method = name if name not in _METHODS or isinstance(operands[0], Tensor) else _METHODS[name]
        if name in ("maximum", "minimum") and inplace:
            method = _METHODS[name]
        return getattr(tensor, f"{method}_" if inplace else method)(*operands, **options)

    def function(self: Sequence[Tensor], *operands: Any, **named: Any) -> list[Tensor] | None:
        options = {key: named.pop(key) for key in _OPTIONS if key in named}
        operands = (*operands, *named.values())
        for operand in operands:
            if isinstance(operand, (list, tuple)) and len(operand) != len(self):
                raise RuntimeError(
                    f"_foreach_{name}: Tensor lists must have the same number of tensors, got {len(self)} and "
                    f"{len(operand)}"
                )
        results = []
        for i, tensor in enumerate(self):
            chosen = [operand[i] if isinstance(operand, (list, tuple)) else operand for operand in operands]
            results.append(single(tensor, chosen, options))
        return None if inplace else results

    function.__name__ = function.__qualname__ = f"_foreach_{name}{'_' if inplace else ''}"
    function.__doc__ = f"`Tensor.{name}` of each tensor{', in place' if inplace else ''}; other lists go along."
    return function


for _name in (*_UNARY, *_MORE, *_LAST):
    if _name not in ("zero", "copy"):
        globals()[f"_foreach_{_name}"] = _each(_name, False)
    globals()[f"_foreach_{_name}_"] = _each(_name, True)


def _foreach_norm(self: Sequence[Tensor], ord: float = 2, dtype: Any = None) -> list[Tensor]:
    """The norm of each tensor."""
    return [tensor.norm(ord, dtype=dtype) for tensor in self]


def _foreach_max(self: Sequence[Tensor]) -> list[Tensor]:
    """The largest element of each tensor."""
    return [tensor.max() for tensor in self]


def _foreach_copy(self: Sequence[Tensor], src: Sequence[Tensor], non_blocking: bool = False) -> list[Tensor]:
    """Copies of `src` with the dtypes and devices of `self`."""
    with no_recording():
        return [source.to(tensor, copy=True) for tensor, source in zip(self, src)]
