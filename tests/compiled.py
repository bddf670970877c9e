"""Importing this module skips a test file where no kernels of the C backend are compiled."""

import pytest

library = pytest.importorskip("corefw_c.library", reason="the C backend is not installed")
if not any(map(library.is_built, library.MODULES)):
    pytest.skip("no kernels of the C backend are compiled", allow_module_level=True)
