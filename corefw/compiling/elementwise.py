"""Calls read as expressions: what of a plan can be a part of a fusion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from corefw import dtypes
from corefw.dispatch.expressions import ALIASES, CALLS, EXPRESSIONS, POWERS
from corefw.dispatch.plan import Call, Cell, Rate
from corefw.dtypes import dtype
from corefw.shapes import contiguous_strides

_TENSORS = {e.name: e.tensors for e in EXPRESSIONS}
_NUMBERS = {e.name: e.numbers for e in EXPRESSIONS}
_SUMS = ("sum", "mean")


@dataclass(frozen=True)
class Reading:
    """A call as a formula: see `corefw.dispatch.fusion.Part`, with cells as operands. Of a sum or mean, `dim` says over
    which dimensions."""

    expression: str
    operands: tuple[Cell, ...]
    numbers: tuple[float, ...] = ()
    dim: tuple[int, ...] | None = None
    keepdim: bool = False


def reading(call: Call) -> Reading | None:
    """What a call computes, if it is an elementwise function of arrays in row-major order, or a sum of such."""
    target = call.out or (call.results[0] if len(call.results) == 1 and not call.several else None)
    if any(isinstance(argument, Rate) for argument in call.arguments):  # to look at it would be noted
        return None
    found = None if target is None else _sum(call) if call.op.name in _SUMS else _elementwise(call, target)
    if target is None or found is None or not all(map(lies_in_rows, found.operands)):
        return None
    if found.dim is None and (not is_row_major(target) or _joint_shape(found.operands) != target.shape):
        return None
    return found


def is_row_major(cell: Cell) -> bool:
    """Whether its elements lie one after the other, in row-major order."""
    item = cell.dtype.itemsize
    expected = contiguous_strides(cell.shape)
    return all(n == 1 or s == item * e for n, s, e in zip(cell.shape, cell.strides, expected, strict=True))


def lies_in_rows(cell: Cell) -> bool:
    """Whether neighbours in its last dimension are neighbours in memory, or one element."""
    last = next((s for n, s in zip(reversed(cell.shape), reversed(cell.strides), strict=True) if n != 1), 0)
    return last in (0, cell.dtype.itemsize)


def is_constant(cell: Cell) -> bool:
    """Whether it is an array that Python made while the plan was recorded."""
    return cell.kind == "held" and cell.name == "constant"


def dtype_of(cell: Cell) -> dtype:
    """Its dtype as corefw names it."""
    return dtypes.of_numpy(cell.dtype)


def _joint_shape(operands: tuple[Cell, ...]) -> tuple:
    return np.broadcast_shapes(*(cell.shape for cell in operands))


def _elementwise(call: Call, target: Cell) -> Reading | None:
    name, arguments = call.op.name, call.arguments
    if name == "cast":
        return _cast(arguments[0], target)
    if name == "choose":
        return _choice(*arguments)
    if name == "masked_fill":
        input, mask, value = arguments
        return _choice(mask, value, input)
    if name == "clamp":
        bounds = [bound for bound in arguments[1:] if bound is not None]
        expression = "clamp" if len(bounds) == 2 else "maximum" if arguments[2] is None else "minimum"
        return _of(expression, (arguments[0], *bounds))
    if name == "pow":
        return _power(*arguments)
    expression = ALIASES.get(name, name)
    if name in CALLS:
        made = CALLS[name]
        tensors = _TENSORS[made.expression]
        attributes = arguments[tensors:]
        if len(attributes) == 1 and (plain := made.plain.get(attributes[0])) is not None:
            return _of(plain, arguments[:tensors])
        return _of(made.expression, arguments[:tensors], made.numbers(arguments[0].dtype, *attributes))
    if expression not in _TENSORS:
        return None
    tensors = _TENSORS[expression]
    return _of(expression, arguments[:tensors], arguments[tensors:])


def _of(expression: str, operands: tuple, numbers: tuple = ()) -> Reading | None:
    if len(numbers) != _NUMBERS[expression] or not _are_cells(operands):
        return None
    if not all(number.__class__ in (float, int, bool) for number in numbers):
        return None
    return Reading(expression, operands, tuple(map(float, numbers)))


def _are_cells(operands: tuple) -> bool:
    return bool(operands) and all(operand.__class__ is Cell for operand in operands)


def _choice(mask: Cell, input: Cell, other: Cell) -> Reading | None:
    if not _are_cells((mask, input, other)) or mask.dtype != np.bool_ or input.dtype != other.dtype:
        return None
    return Reading("choose", (mask, input, other))


def _power(base: Cell, exponent: Cell) -> Reading | None:
    """As kernels compute powers: by simpler functions where one number is the exponent of all elements."""
    if not _are_cells((base, exponent)):
        return None
    if exponent.shape:
        return _of("pow", (base, exponent))
    if not is_constant(exponent) or not (base.shape or base.dtype is exponent.dtype):
        return None
    quick = POWERS.get(exponent.array.item())
    return _of("pow", (base, exponent)) if quick is None else _of(quick, (base,))


def _cast(input: Cell, target: Cell) -> Reading | None:
    """Conversions that are rounded once, whoever computes them."""
    given, wanted = dtype_of(input), dtype_of(target)
    if not wanted.is_floating_point or not (given.is_floating_point or given is dtypes.bool_):
        return None
    if given is dtypes.float64 and wanted.itemsize == 2:
        return None
    return Reading("cast", (input,))


def _sum(call: Call) -> Reading | None:
    input, dim = call.arguments[:2]
    keepdim = len(call.arguments) > 2 and bool(call.arguments[2])
    if call.out is not None or not dtype_of(input).is_floating_point:
        return None
    ndim = len(input.shape)
    dims = tuple(range(ndim)) if not dim else tuple(sorted(dim))
    kept = [d for d in range(ndim) if d not in dims]
    if kept and kept != list(range(kept[0], kept[-1] + 1)):
        return None
    return Reading(call.op.name, (input,), dim=dims, keepdim=keepdim)
