"""Importing this module skips a test file where no kernels of the C backend are compiled."""

from importlib.util import find_spec

import pytest

library = pytest.importorskip("corefw_c.library", reason="the C backend is not installed")
if not any(find_spec(f"corefw_c._{level}") for level in library.LEVELS):
    pytest.skip("no kernels of the C backend are compiled", allow_module_level=True)
