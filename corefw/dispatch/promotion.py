"""Operands of different dispatch keys: their common dtype, and the call after conversion."""

from __future__ import annotations

from corefw import dtypes
from corefw.dispatch.batching.arrays import LevelDevice, OperandsChanged, joined
from corefw.dispatch.batching.tensors import admit, lifted_operand
from corefw.dispatch.flags import unheard
from corefw.dispatch.op import Op
from corefw.dispatch.registry import dispatch_key_of
from corefw.dispatch.resolution import check_accepted
from corefw.dispatch.rules import computed
from corefw.dispatch.sparse.keys import LayoutKey
from corefw.dispatch.tables import run_into
from corefw.dtypes import dtype
from corefw.errors import (
    DeviceError,
    DtypeError,
    ShapeError,
)
from corefw.tensor import Constant, Tensor
from corefw.tracebacks import warn


def result_type(*tensors) -> dtype:
    """The dtype of an arithmetic result: tensors with dimensions decide, then 0-d tensors, then Python numbers, each
    only by a higher category.

    >>> import corefw as torch
    >>> torch.result_type(torch.tensor([1, 2]), 1.0)
    torch.float32
    """
    dimensioned = zero_dim = number = None
    for tensor in tensors:
        if not isinstance(tensor, Tensor):
            d = dtypes.of_number(tensor)
            number = d if number is None else dtypes.promote_types(number, d)
        elif tensor.array.ndim:
            d = tensor.dispatch_key.dtype
            dimensioned = d if dimensioned is None else dtypes.promote_types(dimensioned, d)
        elif tensor.__class__ is Constant:
            d = tensor.dispatch_key.dtype
            number = d if number is None else dtypes.promote_types(number, d)
        else:
            d = tensor.dispatch_key.dtype
            zero_dim = d if zero_dim is None else dtypes.promote_types(zero_dim, d)
    found = dtypes.combine(dimensioned, dtypes.combine(zero_dim, number))
    assert found is not None
    return found


def _common_device(op: Op, tensors: list[Tensor]):
    """The device to compute on; a 0-d tensor of the CPU may stand beside tensors of any device."""
    devices = {t.dispatch_key.device for t in tensors}
    if len(devices) > 1:
        devices = {t.dispatch_key.device for t in tensors if t.array.ndim or t.dispatch_key.device.type != "cpu"}
    if len(devices) > 1:
        names = " and ".join(sorted(map(str, devices)))
        raise DeviceError(
            f"{op.name}: Expected all tensors to be on the same device, but found at least two devices, {names}! "
            "Move them with .to(device)."
        )
    return devices.pop()


def _bring(tensor: Tensor, dispatch_key):
    """The raw array of `tensor` at `dispatch_key`."""
    array = tensor.array
    if tensor.dispatch_key.device is not dispatch_key.device:
        array = dispatch_key.runtime.upload(tensor.dispatch_key.runtime.download(array), dispatch_key.device.index)
    return (
        array
        if tensor.dispatch_key.dtype is dispatch_key.dtype
        else dispatch_key.runtime.cast(array, dispatch_key.dtype)
    )


def _prepare(op: Op, values):
    """Common dispatch key, kernel arguments and table for operands of different places."""
    parameters = op.kernel_parameters
    operands: list[Tensor] = []
    others: list[Tensor] = []
    for p, value in zip(parameters, values, strict=False):
        if p.kind in ("tensor", "optional") and value is not None:
            operands.append(value)
        elif p.kind == "tensors":
            operands += value
        elif p.kind == "index" and value is not None:
            others.append(value)
    for tensor in operands:
        if tensor.dispatch_key.__class__ is LayoutKey:
            raise tensor.dispatch_key.kind.refusal(op.name)
        if isinstance(tensor.dispatch_key.device, LevelDevice):
            to = joined(t.dispatch_key for t in operands + others if t.__class__ is not Constant)
            if any(t.dispatch_key.device is not to for t in operands + others):
                return _prepare(op, [_lifted(value, to) for value in values])
    common_device = _common_device(op, operands + others)
    assert op.rule is not None
    if op.rule.promotes:
        common = result_type(*operands)
        if op.rule.strict:
            for tensor in operands:
                check_accepted(op, tensor.dispatch_key.dtype)
        check_accepted(op, common)
        if op.rule.agreeing:
            alike = [t.dispatch_key.dtype for t in operands if t.array.ndim or t is not operands[-1]]
            check_accepted(op, _check_agreement(op, alike))
        common = op.rule.compute(common)  # at once: a float result of integers takes -1 beside uint8 as it is
    elif op.rule.follows:
        common = operands[0].dispatch_key.dtype
        _warn_of_complex(common, operands)
    else:
        common = _check_agreement(op, [t.dispatch_key.dtype for t in operands if t.__class__ is not Constant])
    dispatch_key = dispatch_key_of(common_device, common)
    number_place, table = dispatch_key, op.table
    if op.rule.arithmetic and (wide := computed(common)) is not common and any(_is_weak(t, common) for t in operands):
        number_place, table = dispatch_key.with_dtype(wide), op.number_table
    arguments = [
        value
        if value is None
        else _bring(value, number_place if _is_weak(value, common) else dispatch_key)
        if p.kind in ("tensor", "optional")
        else [_bring(t, dispatch_key) for t in value]
        if p.kind == "tensors"
        else value.array
        if p.kind == "index"
        else [None if t is None else t.array for t in value]
        if p.kind == "indices"
        else value
        for p, value in zip(parameters, values, strict=False)
    ]
    return dispatch_key, arguments, table


#: by op, dispatch keys and whether the first is the number: the common dispatch key and table of a tensor and a number
_beside_numbers: dict[tuple, tuple] = {}


def _prepared(op: Op, values):
    """What `_prepare` gives. It is kept of a tensor beside a number, neither of which is to be converted: so half types
    stand beside numbers in float32."""
    if len(values) != 2 or Constant not in (values[0].__class__, values[1].__class__):
        return _prepare(op, values)
    first, second = values
    if not (isinstance(first, Tensor) and isinstance(second, Tensor)):
        return _prepare(op, values)
    key = op, first.dispatch_key, second.dispatch_key, first.__class__ is Constant
    if (kept := _beside_numbers.get(key)) is not None:
        return kept[0], [first.array, second.array], kept[1]
    dispatch_key, arguments, table = _prepare(op, values)
    unchanged = arguments[0] is first.array and arguments[1] is second.array
    if unchanged and not isinstance(dispatch_key.device, LevelDevice):
        _beside_numbers[key] = dispatch_key, table
    return dispatch_key, arguments, table


def _lifted(value, to):
    """An operand, or several, as ones of the batch `to`."""
    if isinstance(value, Tensor):
        return lifted_operand(value, to)
    return [_lifted(one, to) for one in value] if value.__class__ in (list, tuple) else value


def _is_weak(tensor: Tensor, common: dtype) -> bool:
    """Whether an operand is one element of another dtype, which has had no part in the choice of the common one."""
    return not tensor.array.ndim and tensor.dispatch_key.dtype is not common


def _check_agreement(op: Op, found: list[dtype]) -> dtype:
    """The dtype of all tensors; refused if there are several."""
    distinct = list(dict.fromkeys(found))
    if len(distinct) > 1:
        raise DtypeError(
            f"{op.name}: expected all tensors to have the same dtype, but got: "
            f"{' != '.join(d.title for d in distinct)}. Convert them with .to(dtype)."
        )
    return distinct[0]


def _warn_of_complex(common: dtype, operands: list[Tensor]) -> None:
    """Warn of a complex tensor where real elements are wanted."""
    if common.is_complex:
        return
    for tensor in operands:
        if tensor.dispatch_key.dtype.is_complex:
            warn("Casting complex values to real discards the imaginary part")


@unheard
def _run(kernel, arguments):
    return kernel(*arguments)


def mixed(op: Op, *values):
    """Run `op` on tensors of different dtypes (or a 0-d CPU tensor beside another device's)."""
    dispatch_key, arguments, table = _prepared(op, values)
    kernel, result, array_type, _ = table[dispatch_key]
    return _run(kernel, arguments), result, array_type


def mixed_into(op: Op, *values) -> None:
    """Run `op` on tensors of different dtypes and leave the result in the first one's memory."""
    target = values[0]
    dispatch_key, arguments, table = _prepared(op, values)
    kernel, result, array_type, _ = table[dispatch_key]
    if result.device is not target.dispatch_key.device:
        if isinstance(result.device, LevelDevice):
            admit(target, result.device, op.name + "_")
            raise OperandsChanged(f"{op.name}_: the tensor that is changed belongs to another level now")
        raise DeviceError(
            f"{op.name}_: cannot write a result on {result.device} into a tensor on {target.dispatch_key.device}"
        )
    dtypes.check_castable(result.dtype, target.dispatch_key.dtype)
    if dispatch_key is target.dispatch_key:
        run_into(table.inplace[dispatch_key], arguments, target.array)
        return
    value = _run(kernel, arguments)
    if value.__class__ is not array_type:
        value = dispatch_key.runtime.wrap(value)
    check_same_shape(value.shape, target.array.shape)
    dispatch_key.runtime.copy(target.array, value)


def check_same_shape(result, target) -> None:
    """Refuse to leave a result in memory of another shape."""
    if tuple(result) != tuple(target):
        raise ShapeError(f"output with shape {list(target)} doesn't match the broadcast shape {list(result)}")


def unpacked(tensors: tuple) -> tuple:
    """Tensors given separately or as one sequence."""
    return tuple(tensors[0]) if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors
