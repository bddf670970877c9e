"""Where loaded storages go: the location a checkpoint names, or what `map_location` makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from corefw.devices import device
from corefw.dtypes import dtype
from corefw.errors import DeviceError
from corefw.serialization.storages import host_storage
from corefw.tensor_api.memory import UntypedStorage

MapLocation = str | device | Mapping[str, Any] | Callable[[UntypedStorage, str], Any] | None


def _on(where: Any, host: np.ndarray, d: dtype, location: str) -> UntypedStorage:
    try:
        return host_storage(host, d, device(where))
    except (DeviceError, TypeError, RuntimeError) as error:
        raise RuntimeError(
            f"don't know how to restore data location of a storage (tagged with {location}): {error}. To load it "
            "elsewhere, use torch.load with map_location, e.g. map_location=torch.device('cpu')."
        ) from error


def restored(host: np.ndarray, d: dtype, location: str, map_location: MapLocation) -> UntypedStorage:
    """A storage with the content of a flat NumPy array, on the device where it belongs.

    Raises RuntimeError if that device cannot be used.
    """
    if map_location is None:
        return _on(location, host, d, location)
    if isinstance(map_location, Mapping):
        return _on(map_location.get(location, location), host, d, location)
    if isinstance(map_location, str | device):
        return _on(map_location, host, d, location)
    if not callable(map_location):
        raise TypeError(
            f"map_location must be a device, a string, a dict or a function, not {type(map_location).__name__}"
        )
    found = map_location(host_storage(host, d, device("cpu")), location)
    if found is None:
        return _on(location, host, d, location)
    if not isinstance(found, UntypedStorage):
        raise TypeError(f"map_location must return a storage or None, not {type(found).__name__}")
    return found
