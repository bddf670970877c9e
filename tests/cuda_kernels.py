"""Kernels of the CUDA backend called without the frontend, on the emulated device."""

from collections.abc import Callable
from functools import cache

import ml_dtypes
import numpy as np

from corefw_cupy import launch, table
from tests.emulation import memory
from tests.emulation.device import cuda

#: the errors that a result in this dtype may have, relative to 1 + its size
TOLERANCES = {"float64": 1e-11, "float32": 2e-5, "float16": 2e-2, "bfloat16": 6e-2}
DTYPES = ("float32", "float16", "bfloat16")
BARRIER = "__syncthreads();"


@cache
def kernels() -> dict[str, Callable]:
    """All kernels that are offered for float32, by op."""
    return {kernel.op: kernel.function for kernel in table(cuda()) if "float32" in {d.name for d in kernel.dtypes}}


def rounded(array, dtype: str):
    """An array in one of the dtypes above."""
    return np.asarray(array).astype(getattr(ml_dtypes, dtype, dtype))


def compare(kernel: Callable, arguments, expected, tolerance: float | None = None) -> None:
    """Call a kernel with NumPy's arrays, and compare what it returns."""
    given = [memory.device(value) if isinstance(value, np.ndarray) else value for value in arguments]
    results = kernel(*given)
    if not isinstance(results, tuple):
        results, expected = (results,), (expected,)
    for result, wanted in zip(results, expected, strict=True):
        found = memory.host(result)
        allowed = TOLERANCES[found.dtype.name] if tolerance is None else tolerance
        np.testing.assert_allclose(found.astype("f8"), np.asarray(wanted, "f8"), allowed, allowed)


def barriers(*files: str) -> list[tuple[str, int]]:
    """The barriers of files in source/, counted from the end, which is where a file stands in what is compiled."""
    return [
        (file, i + 1)
        for file in files
        for i in range((launch.FOLDER / file).read_text(encoding="utf-8").count(BARRIER))
    ]


def without_barrier(file: str, from_end: int) -> Callable:
    """`launch.text`, but for a barrier that a file has and should not do without."""

    def planted(source, definitions):
        complete = launch.text(source, definitions)
        if file not in source:
            return complete
        before, *after = complete.rsplit(BARRIER, from_end)
        return before + BARRIER.join(after)

    return planted
