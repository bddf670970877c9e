"""Convolutions of sequences whose first dimension is time."""

import numpy as np

from corefw.testing.case import Case


def conv_tbc(input, weight, bias, pad=0):
    padded = np.pad(input, ((pad, pad), (0, 0), (0, 0)))
    size = len(weight)
    windows = [padded[t : t + size] for t in range(len(padded) - size + 1)]
    return np.stack([np.einsum("knc,kcd->nd", window, weight) + bias for window in windows])


CASES = (
    Case(
        "conv_tbc",
        conv_tbc,
        shapes=(((5, 2, 3), (2, 3, 4), (4,)), ((3, 1, 2), (3, 2, 1), (1,))),
        attributes=({}, {"pad": 1}),
        dtypes=("float32", "float64"),
        special=False,
    ),
)
