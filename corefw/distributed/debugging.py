"""The checked mode, COREFW_DISTRIBUTED_DEBUG=detail: before each collective the ranks compare what they call."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from corefw.distributed.errors import DistBackendError
from corefw.errors import SettingError
from corefw.tensor import Tensor
from corefw.tensor_api.interchange import from_numpy

if TYPE_CHECKING:
    from corefw.distributed.groups import ProcessGroup

_WIDTH = 512  # bytes of a call's text
_chosen: str | None = None


class DebugLevel(Enum):
    """How much is checked."""

    OFF = 0
    INFO = 1
    DETAIL = 2


def level() -> str:
    """ "OFF", "INFO" or "DETAIL"."""
    if _chosen is None:
        set_debug_level_from_env()
    return str(_chosen)


def get_debug_level() -> DebugLevel:
    """How much is checked."""
    return DebugLevel[level()]


def set_debug_level(chosen: DebugLevel) -> None:
    """Check as much as `chosen` says."""
    global _chosen
    _chosen = chosen.name


def set_debug_level_from_env() -> None:
    """Check as much as COREFW_DISTRIBUTED_DEBUG, or PyTorch's TORCH_DISTRIBUTED_DEBUG, says."""
    global _chosen
    text = os.environ.get("COREFW_DISTRIBUTED_DEBUG") or os.environ.get("TORCH_DISTRIBUTED_DEBUG") or "off"
    if text.upper() not in DebugLevel.__members__:
        raise SettingError(f"COREFW_DISTRIBUTED_DEBUG={text!r}: expected off, info or detail")
    _chosen = text.upper()


def described(name: str, sequence: int, tensors: Sequence[Tensor], rest: Sequence[Any]) -> str:
    """A call in a line; where ranks may give tensors of different sizes, without the sizes."""
    free = name in ("gather", "scatter", "all_to_all")
    shapes = [str(t.dtype) if free else f"{list(t.shape)} {t.dtype}" for t in tensors]
    options = [str(value) for value in rest if isinstance(value, (str, int))]
    return f"#{sequence} {name}({', '.join([*shapes, *options])})"


def check(group: ProcessGroup, name: str, tensors: Sequence[Tensor], rest: Sequence[Any]) -> None:
    """Raise DistBackendError, on every rank, if the ranks of a group call different things."""
    own = described(name, group.sequence, tensors, rest)
    text = own.encode()[: _WIDTH - 20].ljust(_WIDTH - 20) + hashlib.sha1(own.encode()).digest()
    mine = from_numpy(np.frombuffer(text, np.uint8).copy()).to(group.home())
    everyone = mine.new_zeros(_WIDTH * group.size())
    request = group.communicator(group.home()).all_gather(everyone.array, mine.array)
    if request is not None:
        try:
            request.wait(group.timeout)
        except TimeoutError as error:
            raise group.failed(f"the check of {own}", error, group.timeout) from None
    calls = [bytes(row) for row in everyone.cpu().numpy().reshape(group.size(), _WIDTH)]
    if len(set(calls)) > 1:
        told = "\n".join(
            f"  rank {rank}: {call[: _WIDTH - 20].decode(errors='replace').rstrip()}"
            for rank, call in zip(group.ranks, calls)
        )
        raise DistBackendError(f"the ranks of group {group.group_name} called different collectives:\n{told}")
