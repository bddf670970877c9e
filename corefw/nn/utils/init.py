"""Modules whose parameters are not drawn."""

from __future__ import annotations

import inspect
from typing import Any

from corefw.nn.modules.module import Module


def skip_init(module_cls: type[Module], *args: Any, **kwargs: Any) -> Module:
    """A module whose parameters hold what was in memory: for those that are filled by other means.

    Args:
        module_cls: its class, whose constructor takes a `device`.
        args, kwargs: the constructor's arguments.

    >>> import corefw as torch
    >>> torch.nn.utils.skip_init(torch.nn.Linear, 1, 5)
    Linear(in_features=1, out_features=5, bias=True)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    return module_cls(*args, device="meta", **kwargs).to_empty(device=device)
