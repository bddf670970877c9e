"""Extremes."""

import numpy as np

from corefw.testing.case import Case
from corefw.testing.cases.reduction import DIM, DIMS, FULL, along, fits, over


def _largest(line):
    i = next((i for i, v in enumerate(line) if v != v), None)
    i = max(range(len(line)), key=lambda i: (line[i], -i)) if i is None else i
    return line[i], i


def _smallest(line):
    i = next((i for i, v in enumerate(line) if v != v), None)
    i = min(range(len(line)), key=lambda i: (line[i], i)) if i is None else i
    return line[i], i


CASES = (
    Case("amax", over(np.max), FULL, DIMS, valid=fits),
    Case("amin", over(np.min), FULL, DIMS, valid=fits),
    Case(
        "aminmax",
        lambda a, dim=None, keepdim=False: (over(np.min)(a, dim, keepdim), over(np.max)(a, dim, keepdim)),
        FULL,
        ({}, *DIM),
        valid=fits,
    ),
    Case("max_dim", along(_largest), FULL, DIM, valid=fits, torch="max"),
    Case("min_dim", along(_smallest), FULL, DIM, valid=fits, torch="min"),
    Case("max", np.max, FULL),
    Case("min", np.min, FULL),
    Case("argmax", over(np.argmax), FULL, ({}, {"keepdim": True}, *DIM), valid=fits),
    Case("argmin", over(np.argmin), FULL, ({}, {"keepdim": True}, *DIM), valid=fits),
)
