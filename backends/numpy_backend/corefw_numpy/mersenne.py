"""PyTorch's random numbers from words of the generator MT19937, with the roundings of PyTorch's arithmetic.

Words are uint32 arrays in the order in which they were drawn. PyTorch compiles its kernels for processors with fused
multiply-adds, so that `a * b + c` is rounded once; that is done here by hand. The functions of the C library that it
calls for each number are those of Python's `math`; where a result is rounded to float32 or less in the end, NumPy's
faster ones, which may differ from them in the last bit of float64, give the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

_BLOCK = 16  # normal numbers that are made together: eight cosines, then the eight sines
_CHUNK = 1 << 14  # numbers whose intermediate results stay in a core's cache


# -- words to uniform numbers -----------------------------------------------------------------------------------------
def _singles(words: np.ndarray) -> np.ndarray:
    """The lower 24 bits of each word over 2^24, float32."""
    return (words & 0xFFFFFF).astype(np.float32) * np.float32(2.0**-24)


def _longs(words: np.ndarray) -> np.ndarray:
    """64 bits of each pair of words, of which the first is the high one."""
    return words[0::2].astype(np.uint64) << np.uint64(32) | words[1::2]


def _doubles(words: np.ndarray) -> np.ndarray:
    """The lower 53 bits of each pair of words over 2^53, float64."""
    return (_longs(words) & np.uint64(2**53 - 1)).astype(np.float64) * 2.0**-53


# -- arithmetic -------------------------------------------------------------------------------------------------------
def _fused32(a, b, c) -> np.ndarray:
    """``a * b + c`` of float32 numbers, rounded once: the product is exact in float64."""
    return (np.multiply(a, b, dtype=np.float64) + c).astype(np.float32)


def _halves(a):
    """Two numbers of 26 bits whose sum is `a` (Dekker, "A floating-point technique", 1971)."""
    shifted = a * 134217729.0
    high = shifted - (shifted - a)
    return high, a - high


def _fused64(a: np.ndarray, b: float, c: float) -> np.ndarray:
    """``a * b + c`` of float64 numbers, rounded once: with the rounding errors of both steps added at last."""
    if b == 1 and c == 0:
        return a
    with np.errstate(all="ignore"):
        product = a * b
        (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
        product_error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
        result = product + c
        added = result - product
        exact = result + ((product - (result - added)) + (c - added) + product_error)
        return np.where(np.isfinite(exact), exact, result)


def _mapped(function: Callable[[float], float], values: np.ndarray, exact: bool) -> np.ndarray:
    """A function of `math`, or NumPy's function of this name unless the last bit counts."""
    if not exact:
        with np.errstate(all="ignore"):
            return getattr(np, function.__name__)(values)
    return np.fromiter(map(function, values.tolist()), np.float64, values.size)


def _real(dtype) -> np.dtype:
    """The type of the real and imaginary parts; a real type is its own."""
    dtype = np.dtype(dtype)
    return np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _stored(numbers: np.ndarray, size: tuple[int, ...], dtype) -> np.ndarray:
    """Real numbers as an array of `dtype`, whose parts they are if it is complex; half types are rounded from
    float32."""
    real = _real(dtype)
    with np.errstate(all="ignore"):
        if real.itemsize == 2 and numbers.dtype == np.float64 and real.kind != "i":
            numbers = numbers.astype(np.float32)
        return numbers.astype(real, copy=False).view(dtype).reshape(size)


# -- kinds ------------------------------------------------------------------------------------------------------------
def uniform_of_words(size, words, low, high, dtype):
    """Where rounding reaches `high`, PyTorch puts `low`."""
    real = _real(dtype)
    if real == np.float64:
        numbers = _fused64(_doubles(words), high - low, low)
    else:
        bottom, top = np.float32(low), np.float32(high)
        numbers = _fused32(_singles(words), top - bottom, bottom).astype(real, copy=False)
    numbers[numbers == real.type(high)] = low
    return _stored(numbers, size, dtype)


def integers_of_words(size, words, low, high, dtype):
    """The remainder of a word, or of 64 bits, by the range."""
    span = high - low
    numbers = _longs(words) if words.size > math.prod(size) else words.astype(np.uint64)
    if span < 2**64:
        numbers = numbers % np.uint64(span) + np.uint64(low % 2**64)
    return (numbers.view(np.int64) if high <= 2**63 else numbers).astype(dtype, copy=False).reshape(size)


def normal_blocks_of_words(size, words, mean, std, dtype):
    """What is left over behind the whole blocks makes the last 16 numbers anew."""
    dtype, real = np.dtype(dtype), _real(dtype)
    if dtype.kind == "c":
        std /= math.sqrt(2)
    if real == np.float64:
        blocks, affine, uniform = _blocks64, _fused64, _doubles(words)
    else:
        blocks, affine, uniform = _blocks32 if real == np.float32 else _blocks16, _fused32, _singles(words)
        mean, std = np.float32(mean), np.float32(std)
    count = math.prod(size) * (dtype.itemsize // real.itemsize)
    whole = count - count % _BLOCK
    numbers = np.empty(count, uniform.dtype)
    numbers[:whole] = blocks(uniform[:whole])
    if whole < count:
        numbers[-_BLOCK:] = blocks(uniform[-_BLOCK:])
    return _stored(affine(numbers, std, mean), size, dtype)


def normal_pairs_of_words(size, words, first, mean, std, dtype):
    """Cosine and sine alternate."""
    dtype, real = np.dtype(dtype), _real(dtype)
    if dtype.kind == "c":
        std /= math.sqrt(2)
    count = math.prod(size) * (dtype.itemsize // real.itemsize)
    return _stored(_fused64(_pairs(count, words, first, real == np.float64), std, mean), size, dtype)


def log_normal_of_words(size, words, first, mean, std, dtype):
    """The exponentials are taken in float64 for every dtype."""
    exact = dtype == np.float64
    normal = _fused64(_pairs(math.prod(size), words, first, exact), std, mean)
    return _stored(_mapped(math.exp, normal, exact), size, dtype)


def bernoulli_of_words(p, size, words, dtype):
    """A uniform number below `p`, in float64 if `p` is that, else in float32."""
    uniform, p = (_doubles(words), p) if p.dtype == np.float64 else (_singles(words), p.astype(np.float32))
    return (uniform.reshape(size) < p).astype(dtype)


def exponential_of_words(size, words, lambd, dtype):
    """In float64 for every dtype, as the two below."""
    return _stored(-1 / lambd * _mapped(math.log1p, -_doubles(words), dtype == np.float64), size, dtype)


def cauchy_of_words(size, words, median, sigma, dtype):
    """The tangent of a uniform angle."""
    tangent = _mapped(math.tan, math.pi * (_doubles(words) - 0.5), dtype == np.float64)
    return _stored(_fused64(tangent, sigma, median), size, dtype)


def geometric_of_words(size, words, p, dtype):
    """Rounded up; integers that are too large wrap around, as PyTorch's do."""
    dtype = np.dtype(dtype)
    with np.errstate(all="ignore"):
        numbers = np.ceil(np.log(_doubles(words)) / math.log1p(-p))
        return _stored(numbers.astype(np.int64) if dtype.kind in "iu" else numbers, size, dtype)


def permutation_of_words(n, words, dtype):
    """Each place but the last takes the number at a place that is drawn from those not before it (Fisher and Yates)."""
    drawn = words.astype(np.uint64) if words.size < n else _longs(words)
    places = np.arange(n)
    others = places[:-1] + (drawn % np.arange(n, 1, -1, dtype=np.uint64)).view(np.int64)
    numbers = places.data  # whose elements Python reads and writes faster than the array's
    for place, other in enumerate(others.tolist()):
        number = numbers[other]
        numbers[other] = numbers[place]
        numbers[place] = number
    return places.astype(dtype, copy=False)


def multinomial_of_words(input, num_samples, words):
    """The first place where the sum of the weights so far, over that of all, is not below a uniform number."""
    sums = np.cumsum(input if input.dtype == np.float64 else input.astype(np.float32), axis=-1)
    sums /= sums[..., -1:]
    sums[..., -1] = 1
    rows = zip(sums.reshape(-1, sums.shape[-1]), _doubles(words).reshape(-1, num_samples), strict=True)
    drawn = [np.searchsorted(row, uniform) for row, uniform in rows]
    return np.array(drawn, np.int64).reshape(*input.shape[:-1], num_samples)


# -- normal numbers (Box and Muller, "A note on the generation of random normal deviates", 1958) ----------------------
def _pairs(count: int, words: np.ndarray, first: float | None, exact: bool) -> np.ndarray:
    """`count` normal numbers in float64, of which `first` is the first if it is not None."""
    uniform = _doubles(words)
    radius = np.sqrt(-2 * _mapped(math.log1p, -uniform[1::2], exact))
    angle = 2 * math.pi * uniform[0::2]
    numbers = np.stack([radius * np.cos(angle), radius * np.sin(angle)], -1).ravel()
    return (numbers if first is None else np.concatenate([[first], numbers]))[:count]


def _in_blocks(radius: np.ndarray, cosine: np.ndarray, sine: np.ndarray) -> np.ndarray:
    return np.concatenate([radius * cosine, radius * sine], 1).ravel()


def _blocks64(uniform: np.ndarray) -> np.ndarray:
    first, second = uniform.reshape(-1, 2, _BLOCK // 2).swapaxes(0, 1)
    radius = np.sqrt(-2 * _mapped(math.log, (1 - first).ravel(), True).reshape(first.shape))
    angle = 2 * math.pi * second
    return _in_blocks(radius, np.cos(angle), np.sin(angle))


def _blocks16(uniform: np.ndarray) -> np.ndarray:
    """For half types: each step is rounded to float32."""
    first, second = uniform.reshape(-1, 2, _BLOCK // 2).swapaxes(0, 1)
    logarithm = np.log((1 - first).astype(np.float64)).astype(np.float32)
    angle = (np.float32(2 * math.pi) * second).astype(np.float64)
    cosine, sine = (f(angle).astype(np.float32) for f in (np.cos, np.sin))
    return _in_blocks(np.sqrt(np.float32(-2) * logarithm), cosine, sine)


def _blocks32(uniform: np.ndarray) -> np.ndarray:
    numbers = np.empty_like(uniform)
    for start in range(0, uniform.size, _CHUNK):
        first, second = uniform[start : start + _CHUNK].astype(np.float64).reshape(-1, 2, _BLOCK // 2).swapaxes(0, 1)
        radius = _rounded(np.sqrt(-2 * _log(1 - first)))
        angle = _rounded(_TURN * second)
        numbers[start : start + _CHUNK] = _in_blocks(radius, *_cosine_and_sine(angle))
    return numbers


# The logarithm, cosine and sine of the Cephes library (Moshier 1989: logf.c, sinf.c), in the order of steps in which
# PyTorch's vectors of float32 compute them. Here float64 arrays hold the float32 numbers: what `_rounded` makes of a
# sum or a product is what float32 gives, and of `a * b + c` what a fused multiply-add does.
def _singles_of(*values: float) -> list[float]:
    return np.array(values, np.float32).tolist()


_LOG = _singles_of(
    7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1, -1.6668057665e-1,
    2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1,
)  # fmt: skip
_SINE = _singles_of(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1)
_COSINE = _singles_of(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2)
_EIGHTH_TURN = _singles_of(0.78515625, 2.4187564849853515625e-4, 3.77489497744594108e-8)  # pi / 4, in parts
_LOG_OF_2 = _singles_of(-2.12194440e-4, 0.693359375)  # in parts
_ROOT_OF_HALF, _PER_EIGHTH_TURN, _TURN = _singles_of(math.sqrt(0.5), 4 / math.pi, 2 * math.pi)


def _rounded(x: np.ndarray) -> np.ndarray:
    return x.astype(np.float32).astype(np.float64)


def _polynomial(coefficients: list[float], x: np.ndarray) -> np.ndarray:
    value: np.ndarray | float = coefficients[0]
    for coefficient in coefficients[1:]:
        value = _rounded(value * x + coefficient)
    return value  # type: ignore[return-value]


def _log(x: np.ndarray) -> np.ndarray:
    """The natural logarithm of positive numbers."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < _ROOT_OF_HALF
    exponent = exponent - small
    x = mantissa - 1 + np.where(small, mantissa, 0)
    square = _rounded(x * x)
    value = _rounded(_polynomial(_LOG, x) * x)
    value = _rounded(value * square + _rounded(exponent * _LOG_OF_2[0]))
    value = _rounded(value - 0.5 * square)
    return _rounded(exponent * _LOG_OF_2[1] + _rounded(x + value))


def _cosine_and_sine(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The cosine and the sine of numbers from 0 to 2 pi."""
    eighth = _rounded(x * _PER_EIGHTH_TURN).astype(np.int32) + 1 & ~1
    for part in _EIGHTH_TURN:
        x = _rounded(x - eighth * part)
    square = _rounded(x * x)
    cosine = _rounded(_polynomial(_COSINE, square) * square)
    cosine = _rounded(_rounded(cosine * square - 0.5 * square) + 1)
    sine = _rounded(_rounded(_polynomial(_SINE, square) * square) * x + x)
    swapped = (eighth & 2) != 0
    cosine, sine = np.where(swapped, sine, cosine), np.where(swapped, cosine, sine)
    return np.where((eighth + 2 & 4) != 0, -cosine, cosine), np.where((eighth & 4) != 0, -sine, sine)


# -- the table --------------------------------------------------------------------------------------------------------
_KERNELS = {
    function.__name__: function
    for function in (
        bernoulli_of_words,
        cauchy_of_words,
        exponential_of_words,
        geometric_of_words,
        integers_of_words,
        log_normal_of_words,
        multinomial_of_words,
        normal_blocks_of_words,
        normal_pairs_of_words,
        permutation_of_words,
        uniform_of_words,
    )
}


def kernels(xp):
    """Ops that compute."""
    return {}


def data_movement(xp):
    """Ops that create elements of the dtype they are given: of NumPy's own arrays, whatever the namespace is."""
    return _KERNELS
