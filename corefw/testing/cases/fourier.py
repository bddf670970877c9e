"""Discrete Fourier transforms; SciPy's are the reference."""

import numpy as np

from corefw.testing.case import Case, require

fft = require("scipy.fft")

REAL = ("uint8", "int64", "float32", "float64")
COMPLEX = ("complex64", "complex128")
NORMS = ({}, {"norm": "ortho"}, {"norm": "forward"})
ONE = (*NORMS, {"n": 3}, {"n": 6, "dim": 0}, {"n": 7, "norm": "forward"}, {"dim": -2})
TWO = (*NORMS, {"s": (3, 6)}, {"dim": (0, -1), "norm": "ortho"}, {"s": (-1, 3)})
MANY = (*NORMS, {"s": (2, 5)}, {"dim": (1, 0)}, {"dim": (-1,), "s": (6,), "norm": "forward"})
HALF = {"rfft": REAL, "ihfft": REAL}


def transform(name: str, attributes, shapes) -> Case:
    """The row of `fft.<name>`."""
    reference = getattr(fft, name)
    one = name.endswith("fft")

    def meaning(input, **options):
        sizes, axis = ("n", "axis") if one else ("s", "axes")
        options = {{"dim": axis}.get(k, k): v for k, v in options.items()}
        if sizes in options and not one:
            axes = options.get("axes", range(input.ndim - len(options["s"]), input.ndim))
            options["s"] = [input.shape[a] if n == -1 else n for n, a in zip(options["s"], axes)]
        return reference(input * 1.0, **options)

    return Case(
        f"fft_{name}",
        meaning,
        shapes=shapes,
        attributes=attributes,
        dtypes=HALF.get(name.rstrip("n2"), (*REAL, *COMPLEX)),
        special=False,
    )


def frequencies(name: str) -> Case:
    def make(rng, dtype):
        return [([4], {}), ([5], {"d": 0.5}), ([1, 2.0], {})]

    return Case(f"fft_{name}", getattr(fft, name), make=make, gradient=False)


def shift(name: str) -> Case:
    def meaning(input, dim=None):
        return getattr(np.fft, name)(input, dim)

    return Case(
        f"fft_{name}",
        meaning,
        shapes=(((4, 5),), ((3,),)),
        attributes=({}, {"dim": 0}, {"dim": (-1,)}),
    )


CASES = (
    *(transform(name, ONE, (((4, 5),), ((3, 4),))) for name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")),
    *(
        transform(name, TWO, (((4, 5),), ((2, 3, 4),)))
        for name in ("fft2", "ifft2", "rfft2", "irfft2", "hfft2", "ihfft2")
    ),
    *(
        transform(name, MANY, (((4, 5),), ((2, 3, 4),)))
        for name in ("fftn", "ifftn", "rfftn", "irfftn", "hfftn", "ihfftn")
    ),
    *map(frequencies, ("fftfreq", "rfftfreq")),
    *map(shift, ("fftshift", "ifftshift")),
)
