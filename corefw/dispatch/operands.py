"""What the hot path leaves aside: operands of different dtypes, ``out=``, and the explanation of failures."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NoReturn

import numpy as np

from corefw import dtypes
from corefw.devices import DispatchKey, device
from corefw.dispatch.constants import operand, operand_of
from corefw.dispatch.flags import unheard
from corefw.dispatch.op import Op, Parameter
from corefw.dispatch.registry import dispatch_key_of
from corefw.dispatch.resolution import check_accepted, shape_of
from corefw.dispatch.rules import computed
from corefw.dtypes import dtype
from corefw.errors import (
    CorefwError,
    DeviceError,
    DtypeError,
    GradientError,
    OutOfMemoryError,
    PositionError,
    ShapeError,
    read_only,
)
from corefw.graph.grad_mode import mode
from corefw.graph.inplace import check_memory, check_overlap
from corefw.shapes import check_storage
from corefw.tensor import Constant, Tensor, wrap


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


# -- operands of different dispatch keys ------------------------------------------------------------------------------
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
        elif p.kind == "index":
            others.append(value)
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
            warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=5)


@unheard
def _run(kernel, arguments):
    return kernel(*arguments)


def mixed(op: Op, *values):
    """Run `op` on tensors of different dtypes (or a 0-d CPU tensor beside another device's)."""
    dispatch_key, arguments, table = _prepare(op, values)
    kernel, result, array_type, _ = table[dispatch_key]
    return _run(kernel, arguments), result, array_type


def mixed_into(op: Op, *values) -> None:
    """Run `op` on tensors of different dtypes and leave the result in the first one's memory."""
    target = values[0]
    dispatch_key, arguments, table = _prepare(op, values)
    kernel, result, array_type, _ = table[dispatch_key]
    if result.device is not target.dispatch_key.device:
        raise DeviceError(
            f"{op.name}_: cannot write a result on {result.device} into a tensor on {target.dispatch_key.device}"
        )
    dtypes.check_castable(result.dtype, target.dispatch_key.dtype)
    if dispatch_key is target.dispatch_key:
        table.inplace[dispatch_key](target.array, *arguments)
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


# -- out= -------------------------------------------------------------------------------------------------------------
def refuse_read_only(name: str, *targets: Tensor) -> None:
    """Raise ReadOnlyError if the memory of one of the tensors is read-only."""
    if not all(t.dispatch_key.runtime.is_writable(t.array) for t in targets):
        raise read_only(name)


def tensors_in(values) -> Iterator[Tensor]:
    """The tensors among `values` and in lists among them."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_in(value)


def _is_constant(op: Op) -> bool:
    """Whether the op's results have no gradient, whatever it is given: positions and truths."""
    return op.rule is not None and all(result(dtypes.float32).category < dtypes.FLOATING for result in op.rule.results)


def write_out(op: Op, out, *values, **options):
    """Run `op` and write its result into `out`, which is resized if its shape differs."""
    several = isinstance(out, tuple | list)  # max and its like give one result or two
    outs = out if several else (out,)
    for tensor in outs:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type(tensor).__name__}")
    operands = [*tensors_in((*values, *options.values()))]
    if mode.recording and (
        any(t.requires_grad for t in outs) or (any(t.requires_grad for t in operands) and not _is_constant(op))
    ):
        raise GradientError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments "
            "requires grad."
        )
    result = op.function(*values, **options)
    results = result if several else (result,)
    for tensor, value in zip(outs, results, strict=True):
        if tensor.array.shape != value.array.shape:
            continue  # it is given other memory
        if several:  # before one of them is written to
            refuse_read_only(op.name, tensor)
        for other in operands:
            if other.version is tensor.version and other is not tensor:  # one memory has one version
                check_overlap(tensor, other)
    for tensor, value in zip(outs, results, strict=True):
        store(op.name, tensor, value)
    return getattr(type(result), "_make", tuple)(outs) if several else out


def store(name: str, out: Tensor, value: Tensor) -> None:
    """Copy `value` into `out`, resizing it with PyTorch's warning if it has elements and another shape."""
    if out.dispatch_key.device is not value.dispatch_key.device:
        raise DeviceError(
            f"{name}: Expected out tensor to have device {value.dispatch_key.device}, but got "
            f"{out.dispatch_key.device} instead"
        )
    dtypes.check_castable(value.dispatch_key.dtype, out.dispatch_key.dtype)
    runtime = out.dispatch_key.runtime
    if out.array.shape == value.array.shape:
        check_memory(out)
    else:
        if out.array.nbytes:
            warnings.warn(
                f"An output with one or more elements was resized since it had shape {list(out.array.shape)}, which "
                "does not "
                f"match the required output shape {list(value.array.shape)}. This behavior is deprecated; resize it "
                "to zero "
                "elements with t.resize_(0) to reuse it.",
                UserWarning,
                stacklevel=4,
            )
        out.array = runtime.empty(value.array.shape, out.dispatch_key.dtype, out.dispatch_key.device.index)
        if out.view_info is not None:  # no view any more: neither memory nor history are the base's
            out.node = out.view_info = None
            out.version = [*out.version]
    try:
        runtime.copy(out.array, value.array)
    except ValueError:
        refuse_read_only(name, out)
        raise
    out.version[0] += 1


# -- failures ---------------------------------------------------------------------------------------------------------
def _is_number(value) -> bool:
    return isinstance(value, int | float | complex)


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
            or (value is None and p.kind == "optional")
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


def _keywords(op: Op, values) -> tuple[list, dict]:
    positional = [v for p, v in zip(op.parameters, values, strict=True) if not p.keyword_only]
    return positional, {p.name: v for p, v in zip(op.parameters, values, strict=True) if p.keyword_only}


def slow_path(op: Op, error: Exception, *values):
    """Called when the hot path failed: turn numbers into tensors and run again, or raise an error that explains."""
    converted = None if isinstance(error, CorefwError) else _convert(op, values)
    if converted is not None:
        positional, keywords = _keywords(op, converted)
        return op.function(*positional, **keywords)
    raise_explained(op, error, values, op.name)


def slow_path_operator(op: Op, error: Exception, *values):
    """As `slow_path`, for a Python operator: an operand that is neither a tensor, a number nor an array may know
    better."""
    operands = (value for p, value in zip(op.parameters, values) if p.kind == "tensor")
    if any(not isinstance(value, Tensor | int | float | complex | np.generic | np.ndarray) for value in operands):
        return NotImplemented
    return slow_path(op, error, *values)


def slow_path_body(op: Op, error: AttributeError, *values):
    """As `slow_path`, for a composite's body; an error that is not about the kind of the arguments passes."""
    converted = _convert(op, values)
    if converted is None:
        raise error
    positional, keywords = _keywords(op, converted)
    return op.function(*positional, **keywords)


def slow_path_into(op: Op, error: Exception, *values):
    """As `slow_path`, for the in-place form."""
    converted = None if isinstance(error, CorefwError) else _convert(op, values)
    if converted is not None:
        positional, keywords = _keywords(op, converted)
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
        v if isinstance(v, DispatchKey) else v.dispatch_key for v in values if isinstance(v, DispatchKey | Tensor)
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
    if isinstance(error, CorefwError):
        return error
    tensors = [v for v in values if isinstance(v, Tensor)]
    for p, value in zip(op.parameters, values, strict=True):
        if p.kind == "tensors":
            if not isinstance(value, list | tuple):
                return TypeError(f"{name}(): argument '{p.name}' must be tuple of Tensors, not {type(value).__name__}")
            if not value:
                return ValueError(f"{name}(): expected a non-empty list of Tensors")
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
