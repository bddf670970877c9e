"""Lists of tensors in groups that functions of lists take: those of one device and dtype."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.devices import device
from corefw.dtypes import dtype
from corefw.tensor import Tensor

__all__: list[str] = []


def _group_tensors_by_device_and_dtype(
    tensorlistlist: Sequence[Sequence[Tensor | None]], with_indices: bool = False
) -> dict[tuple[device, dtype], tuple[list[list[Tensor | None]], list[int]]]:
    """Lists of equal lengths by the device and dtype of the first one's tensors.

    Args:
        tensorlistlist: the lists; those after the first may have None for tensors.
        with_indices: whether the positions are told too.

    >>> import corefw as torch
    >>> groups = _group_tensors_by_device_and_dtype([[torch.ones(1), torch.ones(1).double()], [None, None]], True)
    >>> groups[torch.device("cpu"), torch.float64]
    ([[tensor([1.], dtype=torch.float64)], [None]], [1])
    """
    groups: dict[tuple[device, dtype], list[int]] = {}
    for position, first in enumerate(tensorlistlist[0]):
        assert first is not None
        groups.setdefault((first.device, first.dtype), []).append(position)
    return {
        kind: ([[each[i] for i in positions] for each in tensorlistlist], positions if with_indices else [])
        for kind, positions in groups.items()
    }


def _device_has_foreach_support(device: device) -> bool:
    """Whether tensors of a device can be given to functions of lists: all can."""
    return True


def _has_foreach_support(tensors: Sequence[Tensor | None], device: device) -> bool:
    """Whether these are plain tensors or None."""
    return all(each is None or type(each) is Tensor for each in tensors)
