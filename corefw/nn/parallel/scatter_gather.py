"""Arguments are divided among devices, results are joined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from corefw import dtypes
from corefw.devices import device
from corefw.dispatch.declare import ops
from corefw.dispatch.registry import dispatch_key_of
from corefw.sequences import alike
from corefw.tensor import Tensor


def as_device(where: int | str | device) -> device:
    """A device with its number; a number alone is one of cuda. ValueError for the CPU, which is one device only."""
    found = device("cuda", where) if isinstance(where, int) else device(where)
    if found.type == "cpu":
        raise ValueError("Expected a non cpu device, but got: cpu")
    return dispatch_key_of(found, dtypes.float32).device


def scatter(inputs: Any, target_gpus: Sequence[int | str | device], dim: int = 0) -> list:
    """`inputs` once for each device: tensors in parts along `dim`, in tuples, lists and mappings too; all else as it
    is.

    Args:
        inputs: a tensor or what holds some.
        target_gpus: the devices; numbers are those of cuda.
        dim: the dimension along which tensors are divided.

    Returns: one for each device, fewer where a tensor has fewer parts.
    """
    devices = [as_device(one) for one in target_gpus]
    if isinstance(inputs, Tensor):
        return [part.to(one) for part, one in zip(inputs.chunk(len(devices), dim), devices)]
    if isinstance(inputs, tuple | list) and inputs:
        return [alike(inputs, members) for members in zip(*(scatter(one, devices, dim) for one in inputs))]
    if isinstance(inputs, Mapping) and inputs:
        parts = zip(*(scatter(one, devices, dim) for one in inputs.values()))
        return [type(inputs)(zip(inputs, members)) for members in parts]  # type: ignore[call-arg]
    return [inputs for _ in devices]


def gather(outputs: Sequence[Any], target_device: int | str | device, dim: int = 0) -> Any:
    """The results of several devices as one on `target_device`: tensors are joined along `dim`, numbers of no dimension
    become a vector; tuples, lists and mappings are joined member by member.

    Args:
        outputs: one result for each device, alike in structure.
        target_device: where to; a number is one of cuda, -1 the CPU.
        dim: the dimension along which tensors are joined.
    """
    if target_device == -1:
        target_device = "cpu"
    where = device("cuda", target_device) if isinstance(target_device, int) else device(target_device)
    first = outputs[0]
    if isinstance(first, Tensor):
        moved = [one.to(where) for one in outputs]
        return ops.stack(moved) if not first.ndim else ops.cat(moved, dim)
    if first is None:
        return None
    if isinstance(first, Mapping):
        if not all(len(one) == len(first) for one in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)((name, gather([one[name] for one in outputs], where, dim)) for name in first)  # type: ignore[call-arg]
    return alike(first, [gather(one, where, dim) for one in zip(*outputs)])
