"""Copies of a model on several devices, and their calls side by side."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from corefw.autograd.autocasting.state import present
from corefw.autograd.grad_mode import is_grad_enabled, set_grad_enabled
from corefw.devices import device
from corefw.nn.modules.module import Members, Module
from corefw.nn.parallel.scatter_gather import as_device
from corefw.tensor import Tensor


def replicate(network: Module, devices: Sequence[int | str | device], detach: bool = False) -> list[Module]:
    """A copy of a model for each device. Its parameters are copies of the model's, through which gradients flow back to
    the model; they are tensors, no parameters of the copy.

    Args:
        network: the model.
        devices: where the copies are; numbers are devices of cuda.
        detach: whether no gradient flows back.
    """
    return [_copy(network, as_device(one), detach, {}) for one in devices]


def _copy(module: Module, where: device, detach: bool, done: dict[int, Any]) -> Any:
    """A copy of a module; what it uses twice is copied once."""
    if id(module) in done:
        return done[id(module)]
    made = done[id(module)] = copy.copy(module)
    own = made.__dict__
    own["_parameters"], own["_buffers"], own["_modules"] = Members(made), Members(made), Members(made)
    for name, child in module._modules.items():
        made._modules[name] = None if child is None else _copy(child, where, detach, done)
    for name, tensor in module._parameters.items():
        own[name] = None if tensor is None else _moved(tensor, where, detach, done)
    for name, tensor in module._buffers.items():
        made._buffers[name] = None if tensor is None else _moved(tensor, where, True, done)
    return made


def _moved(tensor: Tensor, where: device, detach: bool, done: dict[int, Any]) -> Tensor:
    if id(tensor) not in done:
        done[id(tensor)] = (tensor.detach() if detach else tensor).to(where)
    return done[id(tensor)]


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[Mapping[str, Any]] | None = None,
    devices: Sequence[int | str | device | None] | None = None,
) -> list:
    """The results of modules, each called with its own inputs, side by side in threads.

    Args:
        modules: what is called.
        inputs: the positional arguments of each: a tuple, or the only one.
        kwargs_tup: the keyword arguments of each.
        devices: where the modules are: as many as there are modules. They are called where their tensors are.
    """
    keywords = kwargs_tup or [{}] * len(modules)
    for name, given in (("inputs", inputs), ("kwargs_tup", keywords), ("devices", devices)):
        if given is not None and len(given) != len(modules):
            raise AssertionError(f"parallel_apply: {len(modules)} modules, but {len(given)} {name}")
    recording, settings = is_grad_enabled(), present()

    def call(module: Module, given: Any, named: Mapping[str, Any]) -> Any:
        with set_grad_enabled(recording), settings:
            return module(*(given if isinstance(given, tuple | list) else (given,)), **named)

    if len(modules) == 1:
        return [call(modules[0], inputs[0], keywords[0])]
    with ThreadPoolExecutor(len(modules)) as threads:
        return list(threads.map(call, modules, inputs, keywords))
