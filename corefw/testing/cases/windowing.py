"""Windows of signals; SciPy's are the reference."""

import numpy as np

from corefw.testing.case import Case, require
from corefw.testing.cases.creation import made

windows = require("scipy.signal.windows")


def periodic(name, *arguments):
    """The row of a window among the functions of `corefw`."""

    def reference(length, periodic=True, *parameters):
        if name == "hamming" and parameters:
            alpha, beta = parameters
            weights = np.arange(length) * 2 * np.pi / (length if periodic else length - 1)
            return alpha - beta * np.cos(weights)
        return getattr(windows, name)(length, *(parameters or ([12.0] if name == "kaiser" else [])), sym=not periodic)

    return made(f"{name}_window", reference, (6,), (5, False), (1,), (0,), *arguments, dtypes=("float64",))


def symmetric(name, *options, **scipy):
    """The row of a window of `signal.windows`; `scipy` holds what SciPy has no default for."""

    def reference(M, **given):
        return getattr(windows, name)(M, **{**scipy, **given})

    lengths = ((6, {}), (5, {"sym": False}), (1, {}), (0, {}))
    return Case(
        f"signal_{name}",
        reference,
        make=lambda rng, dtype: [([length], {**how, **given}) for length, how in lengths for given in options or ({},)],
        dtypes=("float64",),
        gradient=False,
    )


CASES = (
    periodic("hann"),
    periodic("blackman"),
    periodic("bartlett"),
    periodic("hamming", (6, True, 0.5, 0.3)),
    periodic("kaiser", (6, True, 3.0)),
    symmetric("hann"),
    symmetric("hamming"),
    symmetric("blackman"),
    symmetric("bartlett"),
    symmetric("nuttall"),
    symmetric("cosine"),
    symmetric("gaussian", {}, {"std": 0.7}, std=1.0),
    symmetric("exponential", {}, {"tau": 3.0}, tau=1.0),
    symmetric("general_cosine", {"a": [0.5, 0.25, 0.25]}),
    symmetric("general_hamming", {}, {"alpha": 0.7}, alpha=0.54),
    symmetric("kaiser", {}, {"beta": 3.0}, beta=12.0),
)
