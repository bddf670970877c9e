"""Kernels make PyTorch's numbers of words (docs/random.md, "PyTorch's numbers"): its formulas, one number at a time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.dtypes import dtype
from corefw.tensor import Tensor
from corefw.testing.behaviour import behaviour
from corefw.testing.comparison import compare_values, host_of
from corefw.testing.samples import to_tensor
from corefw.testing.targets import Target, dispatch_key

FLOATS = ("float16", "bfloat16", "float32", "float64")
_of_words = partial(behaviour, "random streams", optional=True)  # devices' own numbers are Philox's
_BLOCK = 16  # normal numbers that are made together
_COUNT = 37  # no whole number of blocks or pairs


def _words(count: int) -> np.ndarray:
    """The words that a generator would have drawn."""
    return np.random.default_rng(3).integers(0, 1 << 32, count, dtype=np.uint32)


def _single(words: np.ndarray, i: int) -> float:
    return (int(words[i]) & 0xFFFFFF) / 2**24


def _long(words: np.ndarray, i: int) -> int:
    return int(words[2 * i]) << 32 | int(words[2 * i + 1])


def _double(words: np.ndarray, i: int) -> float:
    return (_long(words, i) & (1 << 53) - 1) / 2**53


def _unit(d: dtype) -> tuple[int, Callable[[np.ndarray, int], float]]:
    """How many words a uniform number of a dtype takes, and how it is made of them."""
    return (2, _double) if d is dtypes.float64 else (1, _single)


def _compare(made: Tensor, wanted: Sequence[Any], d: dtype, ulps: float = 8) -> None:
    """Compare results with numbers in float64, within units in the last place of the dtype."""
    assert d.numpy is not None
    tolerance = ulps * dtypes.finfo(d).eps if d.category >= dtypes.FLOATING else 0.0
    compare_values(host_of(made, d), np.array(wanted).astype(d.numpy), tolerance, tolerance)


@_of_words("uniform_of_words", dtypes=FLOATS)
def words_of_uniform(target: Target, d: dtype) -> None:
    """On [0, 1) and on another interval."""
    each, unit = _unit(d)
    words = _words(each * _COUNT)
    for low, high in ((0.0, 1.0), (-2.0, 3.0)):
        made = ops.uniform_of_words(dispatch_key(target, d), (_COUNT,), words, low, high, d.numpy)
        _compare(made, [low + (high - low) * unit(words, i) for i in range(_COUNT)], d, 2)


@_of_words("integers_of_words", dtypes=("int16", "int32", "int64"))
def words_of_integers(target: Target, d: dtype) -> None:
    """The remainders of a word, and of two."""
    for each, low, high in ((1, -9, 99), (2, 0, 100)):
        words = _words(each * _COUNT)
        taken = [_long(words, i) if each == 2 else int(words[i]) for i in range(_COUNT)]
        made = ops.integers_of_words(dispatch_key(target, d), (_COUNT,), words, low, high, d.numpy)
        _compare(made, [low + word % (high - low) for word in taken], d)


@_of_words("normal_blocks_of_words", dtypes=FLOATS)
def words_of_normal_blocks(target: Target, d: dtype) -> None:
    """Eight cosines, then the eight sines; the last block of 16 is made anew."""
    each, unit = _unit(d)
    words = _words(each * (_COUNT + _BLOCK))
    uniform = [unit(words, i) for i in range(_COUNT + _BLOCK)]

    def block(first: int) -> list[float]:
        half = _BLOCK // 2
        radii = [math.sqrt(-2 * math.log(1 - u)) for u in uniform[first : first + half]]
        angles = [2 * math.pi * u for u in uniform[first + half : first + _BLOCK]]
        return [r * f(a) for f in (math.cos, math.sin) for r, a in zip(radii, angles, strict=True)]

    normal = [number for first in range(0, _COUNT - _BLOCK + 1, _BLOCK) for number in block(first)]
    normal = [*normal, *([0.0] * (_COUNT - len(normal)))]
    normal[-_BLOCK:] = block(_COUNT)
    made = ops.normal_blocks_of_words(dispatch_key(target, d), (_COUNT,), words, 0.5, 2.0, d.numpy)
    _compare(made, [2 * number + 0.5 for number in normal], d)


def _pairs(words: np.ndarray, count: int) -> list[float]:
    """Normal numbers made in pairs: cosine and sine alternate."""
    found = []
    for i in range(0, count, 2):
        radius, angle = math.sqrt(-2 * math.log1p(-_double(words, i + 1))), 2 * math.pi * _double(words, i)
        found += [radius * math.cos(angle), radius * math.sin(angle)]
    return found[:count]


@_of_words("normal_pairs_of_words", dtypes=FLOATS)
def words_of_normal_pairs(target: Target, d: dtype) -> None:
    """After a number that was left over, and without one."""
    words = _words(2 * (_COUNT + 1))
    key, normal = dispatch_key(target, d), _pairs(words, _COUNT + 1)
    for first, numbers in ((None, normal[:_COUNT]), (0.25, [0.25, *normal[: _COUNT - 1]])):
        made = ops.normal_pairs_of_words(key, (_COUNT,), words, first, 0.5, 2.0, d.numpy)
        _compare(made, [2 * number + 0.5 for number in numbers], d)


@_of_words("log_normal_of_words", dtypes=FLOATS)
def words_of_log_normal(target: Target, d: dtype) -> None:
    """Exponentials of the numbers of pairs."""
    words = _words(2 * (_COUNT + 1))
    made = ops.log_normal_of_words(dispatch_key(target, d), (_COUNT,), words, None, 0.5, 0.25, d.numpy)
    _compare(made, [math.exp(0.25 * number + 0.5) for number in _pairs(words, _COUNT + 1)[:_COUNT]], d)


@_of_words("bernoulli_of_words", dtypes=FLOATS)
def words_of_bernoulli(target: Target, d: dtype) -> None:
    """Whether a uniform number is below the probability of its element."""
    each, unit = _unit(d)
    words, p = _words(each * _COUNT), np.linspace(0, 1, _COUNT).astype(d.numpy)
    key = dispatch_key(target, d)
    made = ops.bernoulli_of_words(key, to_tensor(p, target.device), (_COUNT,), words, d.numpy)
    _compare(made, [float(unit(words, i) < float(p[i])) for i in range(_COUNT)], d)


def _transformed(op: str, target: Target, d: dtype, parameters: Sequence[float], transform: Callable) -> None:
    """Compare with a function of uniform numbers, which are drawn in float64 for every dtype."""
    words = _words(2 * _COUNT)
    made = getattr(ops, op)(dispatch_key(target, d), (_COUNT,), words, *parameters, d.numpy)
    _compare(made, [transform(_double(words, i)) for i in range(_COUNT)], d)


@_of_words("exponential_of_words", dtypes=FLOATS)
def words_of_exponential(target: Target, d: dtype) -> None:
    """Logarithms of uniform numbers."""
    _transformed("exponential_of_words", target, d, (0.5,), lambda u: -math.log1p(-u) / 0.5)


@_of_words("cauchy_of_words", dtypes=FLOATS)
def words_of_cauchy(target: Target, d: dtype) -> None:
    """Tangents of uniform angles."""
    _transformed("cauchy_of_words", target, d, (0.5, 2.0), lambda u: 0.5 + 2 * math.tan(math.pi * (u - 0.5)))


@_of_words("geometric_of_words", dtypes=("int64", *FLOATS))
def words_of_geometric(target: Target, d: dtype) -> None:
    """Logarithms, rounded up."""
    _transformed("geometric_of_words", target, d, (0.3,), lambda u: math.ceil(math.log(u) / math.log1p(-0.3)))


@_of_words("permutation_of_words", dtypes=("int32", "int64"))
def words_of_permutation(target: Target, d: dtype) -> None:
    """Each place takes the number at a place that is not before it (Fisher and Yates)."""
    words, wanted = _words(_COUNT - 1), [*range(_COUNT)]
    for i in range(_COUNT - 1):
        other = i + int(words[i]) % (_COUNT - i)
        wanted[i], wanted[other] = wanted[other], wanted[i]
    _compare(ops.permutation_of_words(dispatch_key(target, d), _COUNT, words, d.numpy), wanted, d)


@_of_words("multinomial_of_words", dtypes=("float32", "float64"))
def words_of_multinomial(target: Target, d: dtype) -> None:
    """The first place where the sum of the weights so far is not below a uniform number."""
    weights, count = np.arange(1, 9).astype(d.numpy), 5
    words, sums = _words(2 * count), np.cumsum(weights, dtype=np.float64)
    wanted = [int(np.searchsorted(sums / sums[-1], _double(words, i))) for i in range(count)]
    made = ops.multinomial_of_words(to_tensor(weights, target.device), count, words)
    assert host_of(made, dtypes.int64).tolist() == wanted
