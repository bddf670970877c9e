"""What runs when the fast path raised: the conversion of arguments, or the error that explains the failure."""

from __future__ import annotations

from typing import NoReturn

import numpy as np

from corefw import dtypes
from corefw.devices import DispatchKey, device
from corefw.dispatch.batching.arrays import LevelDevice, OperandsChanged, shared
from corefw.dispatch.batching.tensors import become_current, current, is_batched, together
from corefw.dispatch.constants import operand, operand_of
from corefw.dispatch.op import REQUIRED, Op, Parameter
from corefw.dispatch.out import refuse_read_only, tensors_in
from corefw.dispatch.overriding import ask_types, overriding_types
from corefw.dispatch.promotion import _common_device, check_same_shape
from corefw.dispatch.registry import dispatch_key_of
from corefw.dispatch.resolution import shape_of
from corefw.dispatch.sparse.keys import kind_in
from corefw.errors import (
    CaptureError,
    CorefwError,
    DeviceError,
    LayoutError,
    OutOfMemoryError,
    PositionError,
    ShapeError,
)
from corefw.shapes import check_storage
from corefw.tensor import Tensor, wrap


def _is_number(value) -> bool:
    return isinstance(value, (int, float, complex))


def _convert(op: Op, values: tuple) -> list | None:
    """The arguments with numbers and NumPy arrays turned into tensors, or None if there was nothing to turn."""
    tensors = [(p.kind == "index", v) for p, v in zip(op.parameters, values, strict=True) if isinstance(v, Tensor)]
    # a mask says least about the numbers beside it
    reference = min(tensors, key=lambda t: t[0])[1] if tensors else None
    changed = list(values)
    found = False
    for i, (p, value) in enumerate(zip(op.parameters, values, strict=True)):
        if (
            p.kind not in ("tensor", "optional", "index")
            or isinstance(value, Tensor)
            or (value is None and p.may_be_none)
        ):
            continue
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, np.ndarray):
            dispatch_key = dispatch_key_of(
                reference.dispatch_key.device if reference is not None else device("cpu"), dtypes.of_numpy(value.dtype)
            )
            changed[i] = wrap(dispatch_key.runtime.upload(value, dispatch_key.device.index), dispatch_key)
        elif _is_number(value) and reference is not None:
            make = operand_of(op.rule) if i else operand  # a base is no exponent
            changed[i] = make(value, reference.dispatch_key)
        else:
            raise TypeError(
                f"{op.name}(): argument '{p.name}' (position {i + 1}) must be Tensor, not {type(value).__name__}"
            )
        found = True
    return changed if found else None


def _check_given(op: Op, values) -> None:
    """See that arguments that may be given under other names were given at all."""
    for p, value in zip(op.parameters, values, strict=True):
        if value is REQUIRED:
            raise TypeError(f"{op.name}() missing 1 required positional argument: '{p.name}'")


def call_of(op: Op, values) -> tuple[list, dict]:
    """All arguments of an op as its function takes them: by position and by name."""
    positional = [v for p, v in zip(op.parameters, values, strict=True) if not p.keyword_only]
    return positional, {p.name: v for p, v in zip(op.parameters, values, strict=True) if p.keyword_only}


def slow_path(op: Op, error: Exception, *values):
    """Called when the hot path failed: turn numbers into tensors and run again, compute what tensors that are no arrays
    give, or raise an error that explains."""
    if error.__class__ in (LayoutError, TypeError) and (kind := kind_in(values)) is not None:
        return kind.compute(op, *values)
    if error.__class__ is AttributeError and (kinds := overriding_types(values, {})):
        positional, keywords = call_of(op, values)
        return ask_types(op.function, kinds, tuple(positional), keywords)
    if LevelDevice.made and (leveled := current(values) or together(values)) is not None:
        positional, keywords = call_of(op, leveled)
        return op.function(*positional, **keywords)
    _check_given(op, values)
    converted = None if isinstance(error, CorefwError) else _convert(op, values)
    if converted is not None:
        positional, keywords = call_of(op, converted)
        return op.function(*positional, **keywords)
    raise_explained(op, error, values, op.name)


def slow_path_operator(op: Op, error: Exception, *values):
    """As `slow_path`, for a Python operator: an operand that is neither a tensor, a number nor an array may know
    better."""
    operands = (value for p, value in zip(op.parameters, values) if p.kind == "tensor")
    if any(not isinstance(value, (Tensor, int, float, complex, np.generic, np.ndarray)) for value in operands):
        return NotImplemented
    return slow_path(op, error, *values)


def slow_path_body(op: Op, error: AttributeError, *values):
    """As `slow_path`, for a composite's body; an error that is not about the kind of the arguments passes."""
    converted = _convert(op, values)
    if converted is None:
        raise error
    positional, keywords = call_of(op, converted)
    return op.function(*positional, **keywords)


def slow_path_into(op: Op, error: Exception, *values):
    """As `slow_path`, for the in-place form."""
    if error.__class__ is LayoutError and (kind := kind_in(values)) is not None:
        return kind.compute_into(op, *values)
    if LevelDevice.made:
        leveled = current(values)
        if leveled is not None:
            become_current(values[0])
        if leveled is not None or error.__class__ is OperandsChanged:
            positional, keywords = call_of(op, [values[0], *(leveled or values)[1:]])
            return op.inplace_function(*positional, **keywords)
        if not is_batched(values[0]) and any(map(is_batched, tensors_in(values))):
            raise shared(op.name + "_")
    _check_given(op, values)
    converted = None if isinstance(error, CorefwError) else _convert(op, values)
    if converted is not None:
        positional, keywords = call_of(op, converted)
        assert op.inplace_function is not None
        return op.inplace_function(*positional, **keywords)
    refuse_read_only(op.name + "_", *(v for v in values[:1] if isinstance(v, Tensor)))
    if not isinstance(error, CorefwError) and op.shape is not None:
        try:
            result = shape_of(op, _raw(op, values))
        except Exception:
            pass  # explained below
        else:
            check_same_shape(result, values[0].array.shape)
    raise_explained(op, error, values, op.name + "_")


def _raw(op: Op, values) -> list:
    """Kernel arguments from the arguments of a call."""
    by_name = {p.name: v for p, v in zip(op.parameters, values, strict=True)}

    def raw(p: Parameter):
        value = by_name[p.name]
        if isinstance(value, Tensor):
            return value.array
        if p.kind in ("tensors", "indices"):
            return [t.array if isinstance(t, Tensor) else t for t in value]
        return value

    return [raw(p) for p in op.kernel_parameters]


def _check_results(shapes, values) -> None:
    """Refuse results too large to count: one shape or several, as a shape rule gives them."""
    dispatch_keys = [
        v if isinstance(v, DispatchKey) else v.dispatch_key for v in values if isinstance(v, (DispatchKey, Tensor))
    ]
    for shape in shapes if shapes and isinstance(shapes[0], tuple) else [shapes]:
        check_storage(shape, max((dispatch_key.dtype.itemsize for dispatch_key in dispatch_keys), default=1))


def explain_geometry(op: Op, values) -> None:
    """Run a view op's arithmetic on strides, which says what is wrong with the arguments."""
    array, *attributes = values
    op.body((tuple(array.shape), tuple(s // array.dtype.itemsize for s in array.strides), 0), *attributes)


def raise_explained(op: Op, error: Exception, values, name: str) -> NoReturn:
    """Raise what explains the failure of a kernel."""
    explained = explain_failure(op, error, values, name)
    if explained is error:
        raise
    raise explained.with_traceback(None)


def explain_failure(op: Op, error: Exception, values, name: str) -> Exception:
    """The error to raise for a kernel's failure: of PyTorch's type, naming the op, what came and what was wanted."""
    if isinstance(error, CaptureError):
        return CaptureError(f"{name}: {error}")
    if isinstance(error, CorefwError):
        return error
    tensors = [v for v in values if isinstance(v, Tensor)]
    for p, value in zip(op.parameters, values, strict=True):
        if p.kind == "tensors":
            if not isinstance(value, (list, tuple)):
                return TypeError(f"{name}(): argument '{p.name}' must be tuple of Tensors, not {type(value).__name__}")
            if not value and not (op.update and p is not op.parameters[0]):  # an optimizer may lack a state
                return ShapeError(f"{name}(): expected a non-empty list of Tensors")
            for i, item in enumerate(value):
                if not isinstance(item, Tensor):
                    return TypeError(
                        f"{name}(): expected Tensor as element {i} in argument '{p.name}', but got "
                        f"{type(item).__name__}"
                    )
            tensors += value
    if len({t.dispatch_key.device for t in tensors}) > 1:
        try:
            _common_device(op, tensors)
        except DeviceError as disagreement:
            return disagreement
    if op.shape is not None and op.rule is not None:
        try:
            _check_results(shape_of(op, _raw(op, values)), values)
        except CorefwError as wrong:
            return wrong
        except Exception:
            pass  # the rule itself could not digest the arguments; say what the kernel said
    if op.view:
        try:
            explain_geometry(op, _raw(op, values))
        except CorefwError as wrong:
            return wrong
        except Exception:
            pass
    shapes_text = ", ".join(f"{t.dispatch_key.dtype.name}{list(t.array.shape)}" for t in tensors)
    # NumPy's word, PyTorch's word
    said = str(error).replace(" axis ", " dimension ") if isinstance(error, IndexError) else error
    text = f"{name}({shapes_text}): {said}"
    if isinstance(error, MemoryError) or "array is too big" in text:  # which NumPy calls a ValueError
        return OutOfMemoryError(text)
    if isinstance(error, IndexError):
        return PositionError(text)
    if isinstance(error, ValueError):
        return ShapeError(text)
    if isinstance(error, RuntimeError):
        return error
    unexplained = (
        TypeError(text)
        if isinstance(error, TypeError)
        else CorefwRuntimeError(f"{name}({shapes_text}): {type(error).__name__}: {error}")
    )
    unexplained.add_note("COREFW_FULL_TRACEBACK=1 shows where in the kernel.")
    return unexplained


class CorefwRuntimeError(CorefwError, RuntimeError):
    """A kernel failed for a reason that none of the more telling errors names."""
