"""Tensors in parts on several processes, which are not there yet; the names are for what asks whether one is."""

from __future__ import annotations

from typing import Any, NoReturn

from corefw.tensor import Tensor

__all__ = [
    "DTensor",
    "DeviceMesh",
    "Partial",
    "Placement",
    "Replicate",
    "Shard",
    "distribute_module",
    "distribute_tensor",
    "init_device_mesh",
]


def _refuse(name: str) -> NoReturn:
    raise NotImplementedError(f"{name}: tensors in parts on several processes are not there yet; use the whole tensor")


class _Refused:
    """What needs several processes.

    Raises:
        NotImplementedError: always.
    """

    def __init__(self, *arguments: Any, **options: Any):
        _refuse(type(self).__name__)


class DTensor(Tensor):
    """A tensor in parts on several processes; refused."""

    def __new__(cls, *arguments: Any, **options: Any) -> DTensor:
        _refuse("DTensor")

    @staticmethod
    def from_local(*arguments: Any, **options: Any) -> NoReturn:
        """Refused."""
        _refuse("DTensor.from_local")


class DeviceMesh(_Refused):
    """Processes in an array; refused."""


class Placement:
    """How a tensor lies on the processes of a mesh."""


class Shard(_Refused, Placement):
    """In parts along a dimension; refused."""


class Replicate(_Refused, Placement):
    """Whole on every process; refused."""


class Partial(_Refused, Placement):
    """In summands; refused."""


def init_device_mesh(*arguments: Any, **options: Any) -> NoReturn:
    """Refused.

    Raises:
        NotImplementedError: always.
    """
    _refuse("init_device_mesh")


def distribute_tensor(*arguments: Any, **options: Any) -> NoReturn:
    """Refused.

    Raises:
        NotImplementedError: always.
    """
    _refuse("distribute_tensor")


def distribute_module(*arguments: Any, **options: Any) -> NoReturn:
    """Refused.

    Raises:
        NotImplementedError: always.
    """
    _refuse("distribute_module")
