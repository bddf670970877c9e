"""The random streams of docs/random.md, written over an array namespace.

Philox 4x32-10 is due to Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). Every
function is pure: the same `(seed, offset)` gives the same array, and element `i` depends on `(seed, offset, i)` alone.
The caller, which holds the state, adds `consumed(kind, n, dtype)` to its offset afterwards, modulo 2^64.

Arguments that every function shares: `xp` is the array namespace (`numpy`, or one with NumPy's functions and `out=`);
`shape` is a tuple; `dtype` is anything `numpy.dtype` accepts, `ml_dtypes.bfloat16` included; `seed` and `offset` are
integers taken modulo 2^64. float16 and bfloat16 are computed in float32 and then rounded. Parameters of distributions
are not validated here: the frontend knows the name of the op that was called.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy

Array = Any
Shape = tuple[int, ...]

MASK32 = 0xFFFFFFFF
MASK64 = 0xFFFFFFFFFFFFFFFF

# The constants of Philox 4x32 (Salmon et al., table 2): the multipliers, and the Weyl increments of the key.
M0, M1 = 0xD2511F53, 0xCD9E8D57
W0, W1 = 0x9E3779B9, 0xBB67AE85
ROUNDS = 10

# Blocks computed at a time: the scratch arrays of `_word_chunks` and of a converter then stay in a core's L2 cache.
CHUNK = 8192

# Up to so many blocks are computed faster by Python's integers than by arrays, whose cost is that of some 60 calls.
FEW = 8

# The bits of a uniform value: one significand, so that every value is exact and below one.
SIGNIFICAND_BITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}

# 32-bit words per value, for the kinds whose words do not depend on the dtype.
_WORDS = {"uint32": 1, "uint64": 2, "integers": 2, "geometric": 2, "permutation": 2, "multinomial": 2}
# The others take one word per real number, or two where the dtype has 53 bits.
_FLOATING_KINDS = frozenset({"uniform", "normal", "bernoulli", "exponential", "cauchy", "log_normal"})


def consumed(kind: str, n: int, dtype: Any = None) -> int:
    """The 128-bit blocks that a call takes from the stream: what the caller adds to its offset.

    Args:
        kind: the name of a function of this module; `random_uint32` and `random_uint64` may drop their prefix.
        n: the number of values returned. For `multinomial` it is the number of random words, one for each sample
            (with replacement) or for each weight (without), over all rows.
        dtype: of the values; needed by the kinds in which it decides how many bits a value takes.

    >>> consumed("uniform", 5, "float32"), consumed("uniform", 5, "float64"), consumed("integers", 0)
    (2, 3, 0)
    """
    kind = kind.removeprefix("random_")
    if kind in _FLOATING_KINDS:
        words = _words_per_value(numpy.dtype(dtype))
    elif kind in _WORDS:
        words = _WORDS[kind]
    else:
        raise ValueError(f"philox: unknown kind {kind!r}; known are {sorted(_FLOATING_KINDS | _WORDS.keys())}")
    return -(-n * words // 4)


def blocks(xp: Any, seed: int, offset: int, count: int) -> Array:
    """The blocks `offset, ..., offset + count - 1` of the stream of `seed`: uint32, shape `(count, 4)`."""
    return random_uint32(xp, (count, 4), seed, offset)


def random_uint32(xp: Any, shape: Shape, seed: int, offset: int) -> Array:
    """Uniform over all uint32: the words themselves."""

    def convert(words: Array, out: Array) -> None:
        out[...] = words

    return _fill(xp, shape, "uint32", 1, seed, offset, convert)


def random_uint64(xp: Any, shape: Shape, seed: int, offset: int) -> Array:
    """Uniform over all uint64: pairs of words, the low one first."""

    def convert(words: Array, out: Array) -> None:
        # Here and below: the low word is the first one in memory, since hosts are little-endian.
        out[...] = words.view("uint64")

    return _fill(xp, shape, "uint64", 2, seed, offset, convert)


def uniform(xp: Any, shape: Shape, dtype: Any, seed: int, offset: int, low: float = 0.0, high: float = 1.0) -> Array:
    """Uniform over `[low, high)` on an even grid; for a complex dtype, real and imaginary part each.

    `high` itself never comes out, even where rounding would reach it; `low == high` gives `low`.
    """
    dtype = numpy.dtype(dtype)
    real = _real(dtype)
    bits = SIGNIFICAND_BITS[real.name]

    def convert(words: Array, out: Array) -> None:
        _grid(words, bits, 0, out)

    u = _fill(xp, _components(shape, dtype), _compute(real), _words_per_value(real), seed, offset, convert)
    if (low, high) == (0.0, 1.0):
        return _complex(_store(u, real), dtype)
    # Two roundings, never one fused multiply-add: the bits must be the same on every backend.
    bottom, top = (numpy.asarray(bound, dtype=real) for bound in (low, high))
    u *= top.astype(u.dtype) - bottom.astype(u.dtype)
    u += bottom.astype(u.dtype)
    u = _store(u, real)
    if bottom < top:
        u = xp.minimum(u, numpy.nextafter(top, bottom))
    return _complex(u, dtype)


def integers(xp: Any, shape: Shape, dtype: Any, seed: int, offset: int, low: int, high: int) -> Array:
    """Integers of `low <= x < high`, each with a probability within 2^-64 of `1 / (high - low)`.

    The values do not depend on `dtype`, which must hold them. One 64-bit type, signed or unsigned, must hold both `low`
    and `high - 1`, so `high - low` may be as large as 2^64.
    """
    low, high = int(low), int(high)
    span = high - low
    if span <= 0:
        raise ValueError(f"integers: low {low} must be below high {high}")
    signed = low >= -(2**63) and high <= 2**63
    if not signed and not (low >= 0 and high <= 2**64):
        raise ValueError(f"integers: [{low}, {high}) fits neither int64 nor uint64")

    def convert(words: Array, out: Array) -> None:
        out[...] = words.view("uint64") if span == 2**64 else _multiply_high(words.view("uint64"), span)
        # Modulo 2^64, which is two's complement where low is negative.
        out += xp.uint64(low & MASK64)

    x = _fill(xp, shape, "uint64", 2, seed, offset, convert)
    return (x.view("int64") if signed else x).astype(dtype, copy=False)


def bernoulli(xp: Any, shape: Shape, dtype: Any, seed: int, offset: int, p: Any) -> Array:
    """One with probability `p`, else zero: `u < p` with the uniform `u` of float64 if `dtype` is that, else of float32.

    `p` is a number, or an array that broadcasts to `shape`; it is rounded to the type of `u`.
    """
    dtype = numpy.dtype(dtype)
    compute = numpy.dtype("float64" if dtype == "float64" else "float32")
    u = uniform(xp, shape, compute, seed, offset)
    return (u < xp.asarray(p, dtype=compute)).astype(dtype, copy=False)


def normal(xp: Any, shape: Shape, dtype: Any, seed: int, offset: int, mean: Any = 0.0, std: Any = 1.0) -> Array:
    """Normal, by the method of Box and Muller ("A note on the generation of random normal deviates", 1958).

    A complex value has the variance `std` squared, half of it in each part. `mean` and `std` are numbers, or arrays
    that broadcast to `shape`.
    """
    dtype = numpy.dtype(dtype)
    real = _real(dtype)
    box_muller = _box_muller64 if real == "float64" else _box_muller32
    variance = 0.5 if dtype.kind == "c" else 1.0

    def convert(words: Array, out: Array) -> None:
        box_muller(xp, words, variance, out)

    z = _fill(xp, _components(shape, dtype), _compute(real), _words_per_value(real), seed, offset, convert)
    z = _complex(z, dtype)
    return _store(_affine(xp, z, mean, std), dtype)


def log_normal(xp: Any, shape: Shape, dtype: Any, seed: int, offset: int, mean: float = 1.0, std: float = 2.0) -> Array:
    """The exponential of a normal value with this `mean` and `std`."""
    dtype = numpy.dtype(dtype)
    y = normal(xp, shape, _compute(dtype), seed, offset, mean, std)
    with numpy.errstate(over="ignore"):
        return _store(xp.exp(y.astype("float64")).astype(y.dtype, copy=False), dtype)


def exponential(xp: Any, shape: Shape, dtype: Any, seed: int, offset: int, lambd: float = 1.0) -> Array:
    """Exponential with the rate `lambd`: positive, since the logarithm is that of a number below one."""

    def convert(v: Array, out: Array) -> None:
        xp.log(v, out=v)
        xp.negative(v, out=out)

    e = _fill_open(xp, shape, dtype, seed, offset, convert)
    if lambd != 1:
        e /= e.dtype.type(lambd)
    return _store(e, dtype)


def cauchy(xp: Any, shape: Shape, dtype: Any, seed: int, offset: int, median: float = 0.0, sigma: float = 1.0) -> Array:
    """Cauchy with this `median` and half width at half maximum `sigma`."""

    def convert(v: Array, out: Array) -> None:
        # tan(pi x) for |x| < 1/2: beyond 1/4 it is the cotangent of the complement, which is exact here, so that no
        # digits are lost at the poles.
        x = v - 0.5
        a = xp.abs(x)
        t = xp.tan(math.pi * xp.minimum(a, 0.5 - a))
        xp.copysign(xp.where(a > 0.25, 1 / t, t), x, out=out)

    z = _fill_open(xp, shape, dtype, seed, offset, convert)
    return _store(_affine(xp, z, median, sigma), dtype)


def geometric(xp: Any, shape: Shape, dtype: Any, seed: int, offset: int, p: float) -> Array:
    """The number of trials up to the first success, each of probability `p`: 1, 2, ...

    Computed in float64 for every dtype; an integer dtype that cannot hold the value gets the largest it can.
    """
    dtype = numpy.dtype(dtype)
    log_failure = math.log1p(-p) if p < 1 else -math.inf

    def convert(words: Array, out: Array) -> None:
        _grid(words, 53, 1, out)
        xp.log(out, out=out)
        out /= log_failure
        xp.ceil(out, out=out)
        xp.maximum(out, 1.0, out=out)

    k = _fill(xp, shape, "float64", 2, seed, offset, convert)
    if dtype.kind in "iu":
        xp.minimum(k, _largest_float64_in(dtype), out=k)
    return _store(k, dtype)


def permutation(xp: Any, n: int, dtype: Any, seed: int, offset: int) -> Array:
    """A permutation of `0, ..., n - 1`: the stable order of `n` random 64-bit keys."""
    return _stable_argsort(xp, random_uint64(xp, (n,), seed, offset)).astype(dtype, copy=False)


def multinomial(xp: Any, weights: Array, num_samples: int, replacement: bool, seed: int, offset: int) -> Array:
    """Indices drawn in proportion to `weights`: int64 of shape `(..., num_samples)`.

    Args:
        weights: `(..., m)`, finite and not negative, not all zero in a row; they need not sum to one.
        num_samples: draws for each row; without replacement at most the number of positive weights of any row.
        replacement: whether an index may come again. With it, the draw inverts the cumulative sum. Without, the
            indices are those of the earliest of independent exponential arrivals with the weights as rates (Efraimidis
            and Spirakis, "Weighted random sampling with a reservoir", 2006), in the order of arrival.
    """
    w = xp.asarray(weights).astype("float64")
    if replacement:
        cumulative = xp.cumsum(w, axis=-1)
        u = uniform(xp, (*w.shape[:-1], num_samples), "float64", seed, offset)
        return _bisect_right(xp, cumulative, u * cumulative[..., -1:])
    arrivals = exponential(xp, w.shape, "float64", seed, offset)
    with numpy.errstate(divide="ignore", over="ignore"):
        arrivals /= w  # a weight of zero arrives at infinity
    return _stable_argsort(xp, arrivals)[..., :num_samples].astype("int64")


# The stream of words.


def philox4x32(xp: Any, lanes: Array, key: int) -> None:
    """Philox 4x32-10 in place: the first four of the six rows of `lanes` are the counter words, then the random words.

    Args:
        lanes: uint64, `(6, n)`: a word to a 64-bit lane, so that a product of two is one multiplication. The last two
            rows are scratch.
        key: the 64-bit key.
    """
    # Constants as arrays: NumPy would convert a number anew in each of the hundred operations.
    m0, m1, mask, half = (xp.asarray(number, dtype="uint64") for number in (M0, M1, MASK32, 32))
    c0, c1, c2, c3, p0, p1 = lanes
    for k0, k1 in xp.asarray(_round_keys(key)):
        xp.multiply(c0, m0, out=p0)
        xp.multiply(c2, m1, out=p1)
        xp.right_shift(p1, half, out=c0)
        xp.bitwise_xor(c0, c1, out=c0)
        xp.bitwise_xor(c0, k0, out=c0)
        xp.bitwise_and(p1, mask, out=c1)
        xp.right_shift(p0, half, out=c2)
        xp.bitwise_xor(c2, c3, out=c2)
        xp.bitwise_xor(c2, k1, out=c2)
        xp.bitwise_and(p0, mask, out=c3)


def _word_chunks(xp: Any, seed: int, offset: int, count: int) -> Iterator[tuple[int, Array]]:
    """Yields `(start, words)`: the words of the blocks from `offset + start` on, uint32, in scratch that the next step
    overwrites and the receiver may."""
    if 0 < count <= FEW and xp is numpy:
        yield 0, _few_words(seed, offset, count)
        return
    size = max(1, min(CHUNK, count) if xp is numpy else count)  # on a GPU, few large kernels
    index = xp.arange(size, dtype="uint64")
    lanes = xp.empty((6, size), dtype="uint64")
    words = xp.empty((size, 4), dtype="uint32")
    for start in range(0, count, size):
        if count - start < size:
            size = count - start
            index, lanes, words = index[:size], lanes[:, :size], words[:size]
        block = index + xp.uint64((offset + start) & MASK64)
        xp.bitwise_and(block, xp.uint64(MASK32), out=lanes[0])
        xp.right_shift(block, xp.uint64(32), out=lanes[1])
        lanes[2:4] = 0
        philox4x32(xp, lanes, seed)
        for j in range(4):
            words[:, j] = lanes[j]
        yield start, words.reshape(-1)


def _few_words(seed: int, offset: int, count: int) -> numpy.ndarray:
    """The words of `count` blocks from `offset` on, uint32, a block at a time."""
    words: list[int] = []
    for block in range(offset, offset + count):
        c0, c1, c2, c3 = block & MASK32, block >> 32 & MASK32, 0, 0
        k0, k1 = seed & MASK32, seed >> 32 & MASK32
        for _ in range(ROUNDS):
            p0, p1 = M0 * c0, M1 * c2
            c0, c1, c2, c3 = p1 >> 32 ^ c1 ^ k0, p1 & MASK32, p0 >> 32 ^ c3 ^ k1, p0 & MASK32
            k0, k1 = k0 + W0 & MASK32, k1 + W1 & MASK32
        words += (c0, c1, c2, c3)
    return numpy.array(words, "uint32")


def _round_keys(seed: int) -> numpy.ndarray:
    """The keys `(k0, k1)` of each round: uint64 of shape `(10, 2, 1)`, so that each is an array to broadcast."""
    k0, k1 = seed & MASK32, seed >> 32 & MASK32
    keys = [((k0 + r * W0) & MASK32, (k1 + r * W1) & MASK32) for r in range(ROUNDS)]
    return numpy.array(keys, dtype="uint64")[..., None]


def _fill(
    xp: Any, shape: Shape, dtype: Any, words_per_value: int, seed: int, offset: int, convert: Callable[[Array, Array],
    None],
) -> Array:  # fmt: skip
    """An array of `shape`, made chunk by chunk: `convert(words, out)` turns the words of whole blocks into values."""
    n = math.prod(shape)
    per_block = 4 // words_per_value
    out = xp.empty(n, dtype=dtype)
    for start, words in _word_chunks(xp, seed, offset, -(-n // per_block)):
        values = out[start * per_block :][: words.size // words_per_value]
        if values.size * words_per_value == words.size:
            convert(words, values)
        else:  # the last block is not used up
            whole = xp.empty(words.size // words_per_value, dtype=dtype)
            convert(words, whole)
            values[...] = whole[: values.size]
    return out.reshape(shape)


# From words to numbers.


def _grid(words: Array, bits: int, lowest: int, out: Array) -> None:
    """`out` becomes the top `bits` of each word over 2^bits, exactly; the words are overwritten.

    A word has 64 bits if `bits` is 53, else 32. `lowest = 1` sets the last of the bits, which leaves odd numerators
    only: a grid over the open interval (0, 1), even about 1/2.
    """
    unsigned, signed, width = ("uint64", "int64", 64) if bits == 53 else ("uint32", "int32", 32)
    words = words.view(unsigned)
    words >>= width - bits
    if lowest:
        words |= 1
    out[...] = words.view(signed)  # not negative any more, and processors convert signed integers faster
    out *= 2.0**-bits


def _fill_open(
    xp: Any, shape: Shape, dtype: Any, seed: int, offset: int, convert: Callable[[Array, Array], None]
) -> Array:
    """`_fill` for a real dtype with `convert(v, out)`, where `v` holds the float64 values of the open uniform."""
    compute = _compute(numpy.dtype(dtype))
    bits = SIGNIFICAND_BITS[compute.name]

    def from_words(words: Array, out: Array) -> None:
        v = xp.empty(out.size, dtype="float64")
        _grid(words, bits, 1, v)
        convert(v, out)

    return _fill(xp, shape, compute, _words_per_value(compute), seed, offset, from_words)


def _box_muller32(xp: Any, words: Array, variance: float, out: Array) -> None:
    """Pairs of float32 normals from pairs of 32-bit words, computed in float64 and rounded once.

    With t = tan(pi v), cos(2 pi v) = (1 - t^2) / (1 + t^2) and sin(2 pi v) = 2 t / (1 + t^2): half the time of two
    trigonometric functions. The digits that cancel near the zeros are ones that float32 has not.
    """
    v = xp.empty(words.size, dtype="float64")
    _grid(words, 24, 1, v)
    r = xp.sqrt(-2 * variance * xp.log(v[0::2]))
    t = xp.tan(math.pi * v[1::2])
    square = t * t
    r /= 1 + square
    xp.multiply(r, 1 - square, out=out[0::2])
    xp.multiply(r, 2 * t, out=out[1::2])


def _box_muller64(xp: Any, words: Array, variance: float, out: Array) -> None:
    """Pairs of float64 normals from pairs of 64-bit words.

    With x = v - 1/2, cos(2 pi v) = sin(2 pi (|x| - 1/4)), and |sin(2 pi v)| = sin(2 pi min(|x|, 1/2 - |x|)). These
    differences are exact, and the sine is only asked for up to a quarter turn, so both keep their digits near zero.
    """
    v = xp.empty(words.size // 2, dtype="float64")
    _grid(words, 53, 1, v)
    r = xp.sqrt(-2 * variance * xp.log(v[0::2]))
    x = v[1::2] - 0.5
    a = xp.abs(x)
    xp.multiply(r, xp.sin(2 * math.pi * (a - 0.25)), out=out[0::2])
    xp.multiply(r, xp.copysign(xp.sin(2 * math.pi * xp.minimum(a, 0.5 - a)), -x), out=out[1::2])


def _multiply_high(w: Array, span: int) -> Array:
    """The upper 64 bits of the 128-bit products of `w`, uint64, and `span < 2^64`: `floor(w span / 2^64)`."""
    w_low, w_high = w & MASK32, w >> 32
    s_low, s_high = span & MASK32, span >> 32
    middle = w_high * s_low + (w_low * s_low >> 32)
    if s_high == 0:
        return middle >> 32
    return w_high * s_high + (middle >> 32) + (w_low * s_high + (middle & MASK32) >> 32)


def _affine(xp: Any, z: Array, location: Any, scale: Any) -> Array:
    """`location + scale z`, rounded after each of the two steps, in the type of `z`."""
    if not (isinstance(scale, float | int) and scale == 1):
        z = z * xp.asarray(scale, dtype=z.real.dtype)
    if not (isinstance(location, float | int) and location == 0):
        z = z + xp.asarray(location, dtype=z.dtype)
    return z


def _stable_argsort(xp: Any, keys: Array) -> Array:
    """The stable order of `keys` along the last axis."""
    if xp is not numpy:
        return xp.argsort(keys, axis=-1, kind="stable")
    # NumPy's unstable sort is several times faster, and where no two keys are equal there is only one order.
    order = numpy.argsort(keys, axis=-1)
    ordered = numpy.take_along_axis(keys, order, axis=-1)
    if (ordered[..., 1:] == ordered[..., :-1]).any():
        return numpy.argsort(keys, axis=-1, kind="stable")
    return order


def _bisect_right(xp: Any, cumulative: Array, target: Array) -> Array:
    """For each target the first index of its row with `cumulative > target`, which exists; int64.

    Args:
        cumulative: `(..., m)`, ascending.
        target: `(..., k)`, below the last of its row.
    """
    if cumulative.ndim == 1:
        return xp.searchsorted(cumulative, target, side="right").astype("int64", copy=False)
    first = xp.zeros(target.shape, dtype="int64")
    last = xp.full(target.shape, cumulative.shape[-1] - 1, dtype="int64")
    for _ in range((cumulative.shape[-1] - 1).bit_length()):
        middle = (first + last) >> 1
        right = xp.take_along_axis(cumulative, middle, axis=-1) <= target
        first = xp.where(right, middle + 1, first)
        last = xp.where(right, last, middle)
    return first


# Types.


def _real(dtype: numpy.dtype) -> numpy.dtype:
    """The type of the real and imaginary parts; a real type is its own."""
    return numpy.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else dtype


def _compute(dtype: numpy.dtype) -> numpy.dtype:
    """The type that values of a real dtype are computed in."""
    return numpy.dtype("float64" if dtype == "float64" else "float32")


def _words_per_value(dtype: numpy.dtype) -> int:
    """32-bit words per value of a kind that takes one random number for each real one."""
    return (2 if _real(dtype) == "float64" else 1) * (2 if dtype.kind == "c" else 1)


def _components(shape: Shape, dtype: numpy.dtype) -> Shape:
    """The shape in real numbers of an array of `dtype`."""
    return (*shape, 2) if dtype.kind == "c" else shape


def _complex(values: Array, dtype: numpy.dtype) -> Array:
    """Real numbers in the shape of `_components` as an array of `dtype`."""
    return values.view(dtype)[..., 0] if dtype.kind == "c" else values


def _store(values: Array, dtype: Any) -> Array:
    """`values` as `dtype`, by way of the type it is computed in, so that half types are rounded from float32."""
    dtype = numpy.dtype(dtype)
    if dtype == values.dtype:
        return values
    with numpy.errstate(over="ignore"):  # a half type has less range than float32: infinity is the right value
        if dtype.kind not in "iu" and values.dtype == "float64":
            values = values.astype("float32")
        return values.astype(dtype)


def _largest_float64_in(dtype: numpy.dtype) -> float:
    """The largest float64 that the integer `dtype` holds."""
    top = int(numpy.iinfo(dtype).max)
    bits = max(top.bit_length() - 53, 0)
    return float(top >> bits << bits)
