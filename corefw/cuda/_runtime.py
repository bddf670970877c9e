"""The runtime of "cuda" and what is asked of it everywhere in this package."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from corefw.devices import device
from corefw.dispatch.random_generator import Generator, defaults
from corefw.dispatch.registry import registry
from corefw.errors import DeviceError


class CudaUnavailableError(DeviceError, AssertionError):
    """There is no usable CUDA device (PyTorch raises AssertionError or RuntimeError)."""


def runtime() -> Any:
    """The runtime of "cuda", whose methods carry the names of the package's functions."""
    try:
        return registry.runtime("cuda")
    except DeviceError as error:
        raise CudaUnavailableError(str(error)) from error


def is_initialized() -> bool:
    """Whether a backend for "cuda" has been loaded."""
    return "cuda" in registry.runtimes


def index_of(given: Any = None) -> int:
    """The index of a GPU, the current one if none is given."""
    if given is None:
        return runtime().current_device()
    chosen = device(given)
    if chosen.type != "cuda":
        raise ValueError(f"Expected a cuda device, but got: {chosen}")
    return runtime().current_device() if chosen.index is None else chosen.index


def named_statistics(found: Mapping[str, int]) -> OrderedDict[str, int]:
    """What a runtime counts of its memory under PyTorch's names; nothing if it is nothing."""
    return OrderedDict(
        (f"{what}_bytes.all.{when}", found[name])
        for what in ("allocated", "reserved")
        for when, name in (("current", what), ("peak", f"max_{what}"))
        if found
    )


def generator_of(given: Any = None) -> Generator:
    """A GPU's generator; its state needs no GPU."""
    try:
        there = runtime().device_count() > 0
    except CudaUnavailableError:
        there = False
    return defaults[device("cuda", index_of(given) if there else 0)]
