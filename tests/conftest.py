"""What every test starts from: the same random numbers and the default settings."""

import numpy as np
import pytest

from corefw import dtypes


@pytest.fixture(autouse=True)
def defaults():
    """Each test begins, and leaves, with NumPy's generator seeded and the default dtype float32."""
    np.random.seed(0)
    yield
    assert dtypes.get_default_dtype() is dtypes.float32, "a test left another default dtype behind"
