"""Batches divided among the devices of one process."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from corefw.autograd.grad_mode import is_grad_enabled
from corefw.devices import device
from corefw.dispatch.registry import registry
from corefw.errors import DeviceError
from corefw.nn.modules.module import Module
from corefw.nn.parallel.replicas import parallel_apply, replicate
from corefw.nn.parallel.scatter_gather import as_device, gather, scatter


def _is_served(where: int | str | device) -> bool:
    """Whether a backend serves the type of a device that is not the CPU; a number is one of cuda."""
    kind = "cuda" if isinstance(where, int) else device(where).type
    try:
        return kind != "cpu" and registry.runtime(kind) is not None
    except DeviceError:
        return False


def _all_devices() -> list[int]:
    """The numbers of all devices of cuda."""
    return list(range(registry.runtime("cuda").device_count())) if _is_served("cuda") else []


class DataParallel(Module):
    """A model that is copied to several devices in each call, each with a part of the batch. Where there is no device
    but the CPU it is the model itself.

    Args:
        module: the model; its parameters are on the first device.
        device_ids: the devices; all of cuda if missing.
        output_device: where results are joined; the first device if missing.
        dim: the dimension of the batch.

    >>> import corefw as torch
    >>> model = torch.nn.DataParallel(torch.nn.Linear(2, 3))
    >>> model(torch.ones(4, 2)).shape, [name for name, _ in model.named_parameters()]
    (torch.Size([4, 3]), ['module.weight', 'module.bias'])
    """

    module: Module

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[int | str | device] | None = None,
        output_device: int | str | device | None = None,
        dim: int = 0,
    ):
        super().__init__()
        self.module, self.dim = module, dim
        self.device_ids = _all_devices() if device_ids is None else list(filter(_is_served, device_ids))
        if self.device_ids:
            self.output_device = self.device_ids[0] if output_device is None else output_device
            if len(self.device_ids) == 1:
                module.to(as_device(self.device_ids[0]))

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        first = as_device(self.device_ids[0])
        for tensor in chain(self.module.parameters(), self.module.buffers()):
            if tensor.device != first:
                raise RuntimeError(
                    f"module must have its parameters and buffers on device {first} (device_ids[0]) but found one of "
                    f"them on device: {tensor.device}"
                )
        parts = scatter((inputs, kwargs), self.device_ids, self.dim)
        if len(self.device_ids) == 1:
            given, named = parts[0]
            return self.module(*given, **named)
        used = self.device_ids[: len(parts)]
        positional, named = [given for given, _ in parts], [named for _, named in parts]
        results = parallel_apply(replicate(self.module, used, not is_grad_enabled()), positional, named, used)
        return gather(results, self.output_device, self.dim)


def data_parallel(
    module: Module,
    inputs: Any,
    device_ids: Sequence[int | str | device] | None = None,
    output_device: int | str | device | None = None,
    dim: int = 0,
    module_kwargs: dict[str, Any] | None = None,
) -> Any:
    """One call of `DataParallel`.

    Args:
        module, device_ids, output_device, dim: as for `DataParallel`.
        inputs: the positional arguments: a tuple, or the only one.
        module_kwargs: the keyword arguments.
    """
    given = inputs if isinstance(inputs, tuple) else (inputs,)
    return DataParallel(module, device_ids, output_device, dim)(*given, **(module_kwargs or {}))
