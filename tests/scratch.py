"""The memory that kernels take while they compute."""

import pytest

pytest.importorskip("tests.compiled")
from corefw_c import allocator


def extra(function, *arguments, **options):
    """The memory that a call takes beyond its results, in bytes."""
    function(*arguments, **options)  # what threads keep for scratch is there
    allocator.reset_peak()
    before, results = allocator.statistics().in_use, function(*arguments, **options)
    kept = results if isinstance(results, tuple) else (results,)
    return allocator.statistics().peak - before - sum(t.nbytes for t in kept)
