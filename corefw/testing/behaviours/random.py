"""Random kernels draw the documented streams: docs/random.md, one element at a time in Python integers."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.dtypes import dtype
from corefw.tensor import Tensor
from corefw.testing.behaviour import behaviour
from corefw.testing.comparison import compare_values, host, host_of
from corefw.testing.naive_philox import Naive, log
from corefw.testing.samples import to_tensor
from corefw.testing.targets import Target, dispatch_key

FLOATS = ("float16", "bfloat16", "float32", "float64")
COMPLEX = ("complex64", "complex128")
ORDERED = ("bool", "uint8", "int8", "int16", "int32", "int64", *FLOATS)
_SHAPES: tuple[tuple[int, ...], ...] = ((), (5,), (2, 3), (0, 4), (9, 29))
#: (seed, offset): the second crosses from the low to the high words of the counter
_STATES = ((5, 0), (2**63 + 12345, 2**32 - 3))


def _computed(d: dtype) -> str:
    """The name of the real dtype in which numbers of `d` are computed."""
    return "float64" if d in (dtypes.float64, dtypes.complex128) else "float32"


def _check(
    target: Target,
    d: dtype,
    draw: Callable[..., Tensor],
    element: Callable[[Naive, int], float | complex],
    ulps: float = 0,
    shapes=_SHAPES,
) -> None:
    """Compare what an op draws at every state and shape with the elements of the naive stream."""
    key = dispatch_key(target, d)
    assert d.numpy is not None
    for seed, offset in _STATES:
        naive = Naive(seed, offset)
        for shape in shapes:
            made = draw(key, shape, seed, offset)
            assert made.dispatch_key is key, f"the result is {made.dispatch_key}, {key} was asked for"
            count = math.prod(shape)
            wanted = np.array([element(naive, i) for i in range(count)], "complex128" if d.is_complex else "float64")
            tolerance = ulps * dtypes.finfo(d).eps if d.category >= dtypes.FLOATING else 0.0
            compare_values(host_of(made, d), wanted.reshape(shape).astype(d.numpy), tolerance, tolerance * 1e-3)


def _parts(real: Callable[[Naive, int], float], d: dtype) -> Callable[[Naive, int], float | complex]:
    """The element of a complex dtype from two real ones."""
    if not d.is_complex:
        return real
    return lambda naive, i: complex(real(naive, 2 * i), real(naive, 2 * i + 1))


@behaviour("random streams", "uniform_at", dtypes=(*FLOATS, *COMPLEX))
def stream_of_uniform(target: Target, d: dtype) -> None:
    """Every bit, on [0, 1) and on another interval."""
    bits = {"complex64": "float32", "complex128": "float64"}.get(d.name, d.name)
    unit = lambda naive, i: float(naive.U(i, dtypes.of_name(bits).numpy))
    _check(target, d, lambda key, shape, *at: ops.uniform_at(key, shape, *at, 0.0, 1.0, d.numpy), _parts(unit, d))
    if d.is_complex:
        return
    wide, narrow = np.dtype(_computed(d)).type, d.numpy.type
    low, high = -2.0, 3.0

    def between(naive: Naive, i: int) -> float:
        value = narrow(wide(wide(unit(naive, i)) * wide(high - low)) + wide(low))
        return float(value if value < narrow(high) else np.nextafter(narrow(high), narrow(low)))

    _check(target, d, lambda key, shape, *at: ops.uniform_at(key, shape, *at, low, high, d.numpy), between)


@behaviour("random streams", "integers_at", dtypes=ORDERED[1:])
def stream_of_integers(target: Target, d: dtype) -> None:
    """Every bit, within narrow and wide bounds."""
    bounds = [(0, 100), *([(-9, 99)] if d.is_signed else []), *([(-(2**63), 2**63)] if d is dtypes.int64 else [])]
    for low, high in bounds:
        element = lambda naive, i, low=low, high=high: naive.integer(i, low, high)
        key = dispatch_key(target, d)
        for seed, offset in _STATES:
            made = host_of(ops.integers_at(key, (41,), seed, offset, low, high, d.numpy), d)
            wanted = np.array([element(Naive(seed, offset), i) for i in range(41)], object).astype(d.numpy)
            compare_values(made, wanted, 0, 0)


@behaviour("random streams", "bernoulli_at", dtypes=ORDERED)
def stream_of_bernoulli(target: Target, d: dtype) -> None:
    """Every bit, for a common probability and for one of each element."""
    wide = dtypes.of_name(_computed(d))

    def check(p: np.ndarray, shapes) -> None:
        def draw(key, shape, seed, offset):
            return ops.bernoulli_at(key, to_tensor(p, target.device), shape, seed, offset, d.numpy)

        def element(naive: Naive, i: int) -> float:
            return float(naive.U(i, wide.numpy) < Fraction(float(p.flat[i if p.ndim else 0])))

        _check(target, d, draw, element, shapes=shapes)

    for p in (0.0, 0.3, 1.0):
        check(np.asarray(p, wide.numpy), _SHAPES)
    check(np.linspace(0, 1, 35, dtype=wide.numpy).reshape(5, 7), ((5, 7),))


@behaviour("random streams", "normal_at", dtypes=(*FLOATS, *COMPLEX))
def stream_of_normal(target: Target, d: dtype) -> None:
    """Within the units in the last place that the document allows; scaled and moved too."""
    wide, variance = _computed(d), 0.5 if d.is_complex else 1.0
    element = _parts(lambda naive, i: naive.normal(i, wide, variance), d)
    _check(target, d, lambda key, shape, *at: ops.normal_at(key, shape, *at, 0.0, 1.0, d.numpy), element, 8)
    moved = lambda naive, i: 3.0 * element(naive, i) + 100.0
    _check(target, d, lambda key, shape, *at: ops.normal_at(key, shape, *at, 100.0, 3.0, d.numpy), moved, 8)


@behaviour("random streams", "exponential_at", dtypes=FLOATS)
def stream_of_exponential(target: Target, d: dtype) -> None:
    """Within the units in the last place that the document allows."""
    element = lambda naive, i: naive.exponential(i, _computed(d)) / 0.5
    _check(target, d, lambda key, shape, *at: ops.exponential_at(key, shape, *at, 0.5, d.numpy), element, 8)


@behaviour("random streams", "cauchy_at", dtypes=FLOATS)
def stream_of_cauchy(target: Target, d: dtype) -> None:
    """Within the units in the last place that the document allows."""
    element = lambda naive, i: naive.cauchy(i, _computed(d)) * 2.0
    _check(target, d, lambda key, shape, *at: ops.cauchy_at(key, shape, *at, 0.0, 2.0, d.numpy), element, 8)


@behaviour("random streams", "log_normal_at", dtypes=FLOATS)
def stream_of_log_normal(target: Target, d: dtype) -> None:
    """Within the units in the last place that the document allows."""
    element = lambda naive, i: math.exp(naive.normal(i, _computed(d)))
    _check(target, d, lambda key, shape, *at: ops.log_normal_at(key, shape, *at, 0.0, 1.0, d.numpy), element, 64)


@behaviour("random streams", "geometric_at", dtypes=ORDERED[2:])
def stream_of_geometric(target: Target, d: dtype) -> None:
    """Every number, of two probabilities."""
    for p in (0.1, 0.7):
        element = lambda naive, i, p=p: max(1, math.ceil(log(naive.V(i, "float64")) / math.log1p(-p)))
        draw = lambda key, shape, *at, p=p: ops.geometric_at(key, shape, *at, p, d.numpy)
        _check(target, d, draw, element)


@behaviour("random streams", "permutation_at", dtypes=("int32", "int64"))
def stream_of_permutations(target: Target, d: dtype) -> None:
    """The stable order of the long words."""
    key = dispatch_key(target, d)
    for seed, offset in _STATES:
        naive = Naive(seed, offset)
        for n in (0, 1, 100, 1031):
            wanted = np.array(sorted(range(n), key=naive.long_word), d.numpy)
            compare_values(host_of(ops.permutation_at(key, n, seed, offset, d.numpy), d), wanted, 0, 0)


@behaviour("random streams", "multinomial_at", dtypes=("float32", "float64"))
def stream_of_multinomial(target: Target, d: dtype) -> None:
    """The positions that the document says, drawn with and without replacement."""
    weights = np.random.default_rng(0).random((3, 11)).astype(d.numpy)
    weights[:, 1] = 0
    for seed, offset in _STATES:
        for count, replacement in ((5, False), (40, True)):
            made = ops.multinomial_at(to_tensor(weights, target.device), count, replacement, seed, offset)
            draw = _with_replacement if replacement else _without_replacement
            compare_values(
                host_of(made, dtypes.int64), draw(Naive(seed, offset), weights.astype(np.float64), count), 0, 0
            )


def _with_replacement(naive: Naive, weights: np.ndarray, count: int) -> np.ndarray:
    sums = np.cumsum(weights, 1)
    return np.array(
        [
            [int(np.argmax(row > float(naive.U(r * count + j, "float64")) * row[-1])) for j in range(count)]
            for r, row in enumerate(sums)
        ]
    )


def _without_replacement(naive: Naive, weights: np.ndarray, count: int) -> np.ndarray:
    rows, length = weights.shape
    keys = [
        [
            naive.exponential(r * length + k, "float64") / weights[r, k] if weights[r, k] else math.inf
            for k in range(length)
        ]
        for r in range(rows)
    ]
    return np.array([sorted(range(length), key=row.__getitem__)[:count] for row in keys])


@behaviour("random streams", "masked_dropout", dtypes=FLOATS)
def stream_of_dropout(target: Target, d: dtype) -> None:
    """What is kept, and how it is scaled."""
    values = np.random.default_rng(0).uniform(1, 2, (9, 29)).astype(d.numpy)
    for seed, offset in _STATES:
        naive = Naive(seed, offset)
        for p in (0.0, 0.3, 1.0):
            kept = Fraction(float(np.dtype(_computed(d)).type(1 - p)))
            mask = np.array([naive.U(i, _computed(d)) < kept for i in range(values.size)]).reshape(values.shape)
            output, found = ops.masked_dropout(to_tensor(values, target.device), p, seed, offset)
            assert host(found).dtype == np.bool_, f"the mask is {host(found).dtype}"
            compare_values(host(found), mask, 0, 0)
            wanted = values.astype(np.float64) * mask * (0.0 if p == 1 else 1 / (1 - p))
            tolerance = 2 * dtypes.finfo(d).eps
            compare_values(host(output), wanted.astype(d.numpy), tolerance, 0)


@behaviour("random streams", "masked_dropout_backward", dtypes=FLOATS)
def gradient_of_dropout(target: Target, d: dtype) -> None:
    """The gradients of what is kept, scaled alike; the others are zero, whatever they were."""
    rng = np.random.default_rng(0)
    values, mask = rng.uniform(1, 2, (9, 29)).astype(d.numpy), rng.random((9, 29)) < 0.5
    for p in (0.0, 0.3, 1.0):
        grad = ops.masked_dropout_backward(to_tensor(values, target.device), to_tensor(mask, target.device), p)
        wanted = values.astype(np.float64) * mask * (0.0 if p == 1 else 1 / (1 - p))
        compare_values(host(grad), wanted.astype(d.numpy), 2 * dtypes.finfo(d).eps, 0)
