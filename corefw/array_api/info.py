"""What the namespace can do: the array API's inspection."""

from __future__ import annotations

from typing import Any

import corefw
from corefw import dtypes
from corefw.array_api.data_types import KINDS, isdtype
from corefw.devices import device as device_class
from corefw.devices import get_default_device


class _Info:
    """The answers of ``__array_namespace_info__()``."""

    def capabilities(self) -> dict[str, Any]:
        """Boolean masks and shapes that depend on data work; a tensor has at most 64 dimensions."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """Where new arrays lie."""
        return get_default_device()

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The element types of new arrays by kind; corefw's defaults, which `set_default_dtype` changes."""
        real = dtypes.get_default_dtype()
        return {
            "real floating": real,
            "complex floating": dtypes.promote_types(real, dtypes.complex64),
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, Any]:
        """The standard's element types by name, those of a kind or of several."""
        everything = (*KINDS["bool"], *KINDS["numeric"])
        return {d.name: d for d in everything if kind is None or isdtype(d, kind)}

    def devices(self) -> list[Any]:
        """The devices that arrays can lie on."""
        cuda = [device_class("cuda", i) for i in range(corefw.cuda.device_count())]
        return [device_class("cpu"), *cuda]


def __array_namespace_info__() -> _Info:
    """The object whose methods tell what the namespace can do.

    >>> import corefw as torch
    >>> info = torch.ones(1).__array_namespace__().__array_namespace_info__()
    >>> list(info.dtypes(kind="real floating"))
    ['float32', 'float64']
    """
    return _Info()
