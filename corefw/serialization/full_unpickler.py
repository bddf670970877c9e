"""The unrestricted unpickler: Python's own, with PyTorch's names standing for corefw's."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from importlib import import_module
from typing import IO, Any

from corefw.serialization.names import KNOWN

_PACKAGE = __name__.partition(".")[0]


def _counterpart(module: str, name: str) -> Any:
    """What is called here as something of PyTorch's: the same name in the same module, or in a package above it."""
    path = [_PACKAGE, *module.split(".")[1:]]
    while path:
        try:
            found: Any = import_module(".".join(path))
            for part in name.split("."):
                found = getattr(found, part)
            return found
        except (ImportError, AttributeError):
            path.pop()
    raise pickle.UnpicklingError(f"the file needs {module}.{name} of PyTorch, which has no counterpart in corefw")


def full_unpickler(module: Any, file: IO[bytes], persistent: Callable[[Any], Any], arguments: dict[str, Any]) -> Any:
    """An unpickler of a pickle module for one file.

    Args:
        module: has a class ``Unpickler``.
        persistent: makes a storage from what the pickle says of it.
        arguments: for the class.
    """

    class TranslatingUnpickler(module.Unpickler):
        def find_class(self, mod_name, name):
            found = KNOWN.get((mod_name, name))
            if found is not None:
                return found
            if mod_name == "torch" or mod_name.startswith("torch."):
                return _counterpart(mod_name, name)
            return super().find_class(mod_name, name)

        def persistent_load(self, pid):
            return persistent(pid)

    return TranslatingUnpickler(file, **{"encoding": "utf-8", **arguments})
