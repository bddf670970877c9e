"""New tensors: constants, ranges, random numbers, tensors like others."""

from __future__ import annotations

from random import Random

from tests.fuzzing import drawing
from tests.fuzzing.builder import Builder
from tests.fuzzing.programs import Name


def _number(rng: Random):
    return rng.choice((0, 1, -1, 2, 5, 0.5, 2.5, -3.5, 7, 10, True))


def _range(rng: Random) -> tuple:
    start, step = _number(rng), rng.choice((1, 1, 2, 0.5, -1, 3, 0.1))
    return rng.choice(((start,), (start, start + rng.randint(-2, 9)), (start, start + rng.randint(-2, 9) * step, step)))


#: how the arguments of functions that take no tensor are drawn
FUNCTIONS = {
    "arange": _range,
    "range": lambda rng: (0, rng.randint(0, 5), rng.choice((1, 2, 0.5))),
    "linspace": lambda rng: (_number(rng), _number(rng), rng.choice((0, 1, 2, 5, 17))),
    "logspace": lambda rng: (rng.choice((0, 1, -1, 0.5)), rng.choice((1, 2, 0.5)), rng.choice((0, 1, 2, 5))),
    "full": lambda rng: (drawing.shape(rng), _number(rng)),
    "zeros": lambda rng: (drawing.shape(rng),),
    "ones": lambda rng: (drawing.shape(rng),),
    "eye": lambda rng: (rng.randint(0, 5), rng.randint(0, 5)),
    "rand": lambda rng: (drawing.shape(rng),),
    "randn": lambda rng: (drawing.shape(rng),),
    "randint": lambda rng: (rng.randint(-3, 2), rng.randint(3, 300), drawing.shape(rng)),
    "randperm": lambda rng: (rng.choice((0, 1, 5, 33)),),
    "tril_indices": lambda rng: (rng.randint(0, 4), rng.randint(0, 4), rng.randint(-2, 2)),
    "triu_indices": lambda rng: (rng.randint(0, 4), rng.randint(0, 4), rng.randint(-2, 2)),
    "scalar_tensor": lambda rng: (_number(rng),),
    "normal": lambda rng: (0.5, 2.0, drawing.shape(rng)),
    "fft.fftfreq": lambda rng: (rng.randint(0, 6), rng.choice((1.0, 0.5))),
    "fft.rfftfreq": lambda rng: (rng.randint(1, 6), rng.choice((1.0, 0.5))),
}
#: those of functions whose result is like a tensor
LIKE = {
    "zeros_like": lambda rng: (),
    "ones_like": lambda rng: (),
    "full_like": lambda rng: (_number(rng),),
    "rand_like": lambda rng: (),
    "randn_like": lambda rng: (),
    "randint_like": lambda rng: (-2, 9),
    ".new_zeros": lambda rng: (drawing.shape(rng),),
    ".new_ones": lambda rng: (drawing.shape(rng),),
    ".new_full": lambda rng: (drawing.shape(rng), _number(rng)),
}


def creation(b: Builder) -> None:
    """One or two new tensors, and what an op makes of them."""
    rng = b.rng
    for _ in range(rng.randint(1, 2)):
        keywords = {"dtype": Name(drawing.dtype(rng, floating=0.5))} if rng.random() < 0.6 else {}
        if rng.random() < 0.6:
            name = rng.choice(tuple(FUNCTIONS))
            b.call(name, *FUNCTIONS[name](rng), **keywords)
        else:
            name = rng.choice(tuple(LIKE))
            leaf = b.leaf(drawing.dtype(rng, floating=0.5), drawing.shape(rng))
            b.call(name, leaf, *LIKE[name](rng), **keywords)
    if b.tensors():
        b.call(rng.choice(("operator.add", "operator.mul")), b.tensors()[-1], rng.choice(b.tensors()))
