"""The argument ``out=``: the ordinary call, and a copy into the given tensors."""

from __future__ import annotations

from corefw import dtypes
from corefw.dispatch.batching.arrays import BatchedDevice, shared
from corefw.dispatch.op import Op
from corefw.dispatch.rules import accumulate
from corefw.errors import (
    DeviceError,
    GradientError,
    read_only,
)
from corefw.graph.grad_mode import mode
from corefw.graph.inplace import check_memory, check_overlap
from corefw.tensor import Tensor
from corefw.tracebacks import warn


def refuse_read_only(name: str, *targets: Tensor) -> None:
    """Raise ReadOnlyError if the memory of one of the tensors is read-only."""
    if not all(t.dispatch_key.runtime.is_writable(t.array) for t in targets):
        raise read_only(name)


def tensors_in(values) -> list[Tensor]:
    """The tensors among `values` and in lists among them."""
    found = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):  # a union would be made anew at each call
            found += tensors_in(value)
    return found


def _any_requires_grad(tensors) -> bool:
    for tensor in tensors:  # noqa: SIM110, a generator would cost more than the loop
        if tensor.requires_grad:
            return True
    return False


def _is_constant(op: Op) -> bool:
    """Whether the op's results have no gradient, whatever it is given: positions and truths."""
    return op.rule is not None and all(result(dtypes.float32).category < dtypes.FLOATING for result in op.rule.results)


def accumulates(op: Op) -> bool:
    """Whether the op sums or multiplies in the dtype it is asked for."""
    return "dtype" in op.rewrites and op.rule is not None and op.rule.results == accumulate.results


def _gives_bools(op: Op) -> bool:
    """Whether the op's result is true or false, be it held in bool or in uint8."""
    return op.rule is not None and op.rule.results[0](dtypes.float32) is dtypes.bool_


def write_out(op: Op, out, *values, **options):
    """Run `op` and write its result into `out`, which is resized if its shape differs. Sums and products are computed
    in the dtype of `out`, unless they are asked for another one."""
    several = isinstance(out, (tuple, list))  # max and its like give one result or two
    outs = out if several else (out,)
    for tensor in outs:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type(tensor).__name__}")
    operands = tensors_in((*values, *options.values()))
    if mode.recording and (_any_requires_grad(outs) or (_any_requires_grad(operands) and not _is_constant(op))):
        raise GradientError(
            f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of the "
            "arguments requires grad."
        )
    if accumulates(op) and options.get("dtype") is None:
        options["dtype"] = outs[0].dispatch_key.dtype
    result = op.function(*values, **options)
    if several != isinstance(result, (tuple, list)):
        raise TypeError(f"{op.name}(): argument 'out' must be {'Tensor, not tuple' if several else 'tuple of Tensors'}")
    if outs[0].dispatch_key.dtype is dtypes.bool_ and _gives_bools(op):
        result = result.to(dtypes.bool_)
    if not several:
        _check_overlaps(out, result, operands)
        store(op.name, out, result)
        return out
    for tensor, value in zip(outs, result, strict=True):
        if tensor.array.shape == value.array.shape:
            refuse_read_only(op.name, tensor)  # before one of them is written to
        _check_overlaps(tensor, value, operands)
    for tensor, value in zip(outs, result, strict=True):
        store(op.name, tensor, value)
    return getattr(type(result), "_make", tuple)(outs)


def _check_overlaps(out: Tensor, value: Tensor, operands: list[Tensor]) -> None:
    """Refuse an `out` that shares some of its memory with an operand, unless it will be given other memory."""
    for other in operands:
        if other.version is out.version and other is not out and out.array.shape == value.array.shape:
            check_overlap(out, other)  # (one memory has one version)


def store(name: str, out: Tensor, value: Tensor) -> None:
    """Copy `value` into `out`, resizing it with PyTorch's warning if it has elements and another shape."""
    if out.dispatch_key.device is not value.dispatch_key.device:
        if value.dispatch_key.device.__class__ is BatchedDevice:
            raise shared(f"{name} with out=")
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
            warn(
                f"An output with one or more elements was resized since it had shape {list(out.array.shape)}, which "
                f"does not match the required output shape {list(value.array.shape)}. This behavior is deprecated; "
                "resize it to zero elements with t.resize_(0) to reuse it."
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
