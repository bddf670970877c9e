"""The machine that is measured on: what it is, and how fast it multiplies and copies at most."""

from __future__ import annotations

import math
import os
import platform
from collections.abc import Callable, Mapping
from contextlib import suppress

import corefw
from corefw.benchmarks.columns import Column
from corefw.benchmarks.timing import take_turns
from corefw.processor import processor

#: variables that figures depend on
ENVIRONMENT = ("COREFW_", "OMP_", "OPENBLAS_", "MKL_", "ONEDNN_", "ATEN_", "CUDA_VISIBLE_DEVICES")
SIDE, ELEMENTS = 1024, 1 << 24  # of the product, and of the copy: beyond the caches


def about() -> dict:
    """What figures depend on."""
    return {
        "processor": processor(),
        "cores": os.cpu_count(),
        "platform": platform.platform(),
        "python": platform.python_version(),
        "corefw": corefw.__version__,
        "environment": {name: value for name, value in sorted(os.environ.items()) if name.startswith(ENVIRONMENT)},
    }


def limits(columns: Mapping[str, Column], seconds: float) -> dict[str, float]:
    """Operations and bytes per second that the fastest column reaches in a large product and in a large copy; 0 where
    no column can do it."""

    def product(torch) -> Callable:
        factors = torch.randn(SIDE, SIDE), torch.randn(SIDE, SIDE)
        return lambda: factors[0] @ factors[1]

    def copy(torch) -> Callable:
        source = torch.randn(ELEMENTS)
        target = torch.empty_like(source)
        return lambda: target.copy_(source)

    def best(make: Callable) -> float:
        calls: dict[str, Callable] = {}
        for name, column in columns.items():
            with suppress(Exception), column:
                calls[name] = make(column.module)
        return min((least for least, _ in take_turns(columns, calls, seconds, {}).values()), default=math.inf)

    with next(iter(columns.values())) as column:
        itemsize = column.module.empty(0).element_size()
    return {"flops": 2 * SIDE**3 / best(product), "bytes": 2 * ELEMENTS * itemsize / best(copy)}
