"""The types that annotations for TorchScript are written with: those of `typing`."""

from typing import Any, Dict, List, Optional, Tuple, Union  # noqa: UP035, the names that programs import from here

__all__ = ["Any", "Dict", "List", "Optional", "Tuple", "Union"]
