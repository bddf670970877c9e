"""Tests of the random streams: published answers, and the text of docs/random.md."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from corefw.testing.naive_philox import Naive, cos_sin, log, naive_philox
from corefw_numpy import philox

bfloat16 = np.dtype(ml_dtypes.bfloat16)

# Around the places where a word or the whole counter overflows, and where the key is large, small or negative.
STATES = [
    (0, 0),
    (1, 7),
    (0x0123456789ABCDEF, 2**32 - 1),
    (2**64 - 1, 2**64 - 1),
    (-5, 3 * 2**32 - 2),
]


class OtherNamespace:
    """NumPy under another name: takes the paths written for array libraries that are not NumPy."""

    def __getattr__(self, name):
        return getattr(np, name)


def assert_close(actual, expected, dtype, ulps):
    """Every element within so many units in the last place of `dtype` of the float64 value expected."""
    assert actual.dtype == dtype
    expected = np.asarray(expected)
    unit = np.spacing(np.abs(expected).astype(dtype)).astype("float64")
    np.testing.assert_array_less(np.abs(actual.astype("float64") - expected), ulps * unit)


# The float32 kinds are rounded once; those of float64 gather an error from each function, as does the naive value.
ULPS = {"float32": 0.52, "float64": 5.0}


# Known answers.


@pytest.mark.parametrize(
    "counter, key, answer",
    # From kat_vectors of the Random123 distribution.
    [
        ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
    ],
)
def test_random123_vectors(counter, key, answer):
    counter, key, answer = ([int(word, 16) for word in words.split()] for words in (counter, key, answer))
    assert list(naive_philox(counter, key)) == answer
    lanes = np.zeros((6, 1), dtype="uint64")
    lanes[:4, 0] = counter
    philox.philox4x32(np, lanes, key[0] + 2**32 * key[1])
    assert lanes[:4, 0].tolist() == answer


# The bits of the first values at seed 0, offset 0, of kinds that must agree bit by bit.
LITERAL_BITS = {
    "uint32": (
        lambda: philox.random_uint32(np, (5,), 0, 0),
        [1713891541, 3781805453, 3159862348, 2600524760, 4175744164],
    ),
    "uint64": (
        lambda: philox.random_uint64(np, (3,), 0, 0),
        [16242730742183356629, 11169168799798111308, 6679402142117448868],
    ),
    "uniform float16": (lambda: philox.uniform(np, (3,), "float16", 0, 0), [0.399, 0.8804, 0.7354]),
    "uniform bfloat16": (lambda: philox.uniform(np, (3,), bfloat16, 0, 0), [0.3984375, 0.87890625, 0.734375]),
    "uniform float32": (lambda: philox.uniform(np, (3,), "float32", 0, 0), [0.39904642, 0.88052016, 0.73571277]),
    "uniform float64": (
        lambda: philox.uniform(np, (3,), "float64", 0, 0),
        [0.8805201978886142, 0.6054818538799213, 0.36209111566940344],
    ),
    "uniform complex64": (
        lambda: philox.uniform(np, (2,), "complex64", 0, 0),
        [0.39904642 + 0.88052016j, 0.73571277 + 0.6054818j],
    ),
    "uniform [-1, 2)": (lambda: philox.uniform(np, (3,), "float32", 0, 0, -1, 2), [0.19713926, 1.6415606, 1.2071383]),
    "integers [0, 10)": (lambda: philox.integers(np, (8,), "int64", 0, 0, 0, 10), [8, 6, 3, 0, 3, 2, 4, 4]),
    "integers int64": (
        lambda: philox.integers(np, (2,), "int64", 0, 0, -(2**63), 2**63),
        [7019358705328580821, 1945796762943335500],
    ),
    "bernoulli": (
        lambda: philox.bernoulli(np, (8,), "bool", 0, 0, 0.5),
        [True, False, False, False, False, True, False, True],
    ),
    "bernoulli float64": (
        lambda: philox.bernoulli(np, (8,), "float64", 0, 0, 0.5),
        [0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
    ),
    "geometric": (lambda: philox.geometric(np, (8,), "int64", 0, 0, 0.25), [1, 2, 4, 12, 4, 5, 4, 3]),
    "permutation": (lambda: philox.permutation(np, 10, "int64", 0, 0), [3, 5, 4, 2, 6, 7, 1, 8, 0, 9]),
    "multinomial with": (lambda: philox.multinomial(np, np.arange(5.0), 8, True, 0, 0), [4, 4, 3, 1, 3, 2, 3, 3]),
    "multinomial without": (lambda: philox.multinomial(np, np.arange(5.0), 4, False, 0, 0), [4, 1, 2, 3]),
}


@pytest.mark.parametrize("name", LITERAL_BITS)
def test_literal_values(name):
    call, expected = LITERAL_BITS[name]
    actual = call()
    np.testing.assert_array_equal(actual, np.asarray(expected, dtype=actual.dtype))


# The first values at seed 0, offset 0, of kinds that go through a library's functions.
LITERAL_VALUES = {
    "normal float32": (
        lambda: philox.normal(np, (5,), "float32", 0, 0),
        [0.9911375, -0.92466277, -0.6176091, -0.48206836, -0.15363818],
    ),
    "normal float64": (
        lambda: philox.normal(np, (3,), "float64", 0, 0),
        [-0.39766753844418234, -0.31039547880173823, 1.3868444271028377],
    ),
    "normal complex64": (
        lambda: philox.normal(np, (2,), "complex64", 0, 0),
        [0.70084006 - 0.6538353j, -0.43671554 - 0.3408738j],
    ),
    "log_normal": (lambda: philox.log_normal(np, (3,), "float32", 0, 0, 0.0, 0.5), [1.6414316, 0.6298136, 0.7343243]),
    "exponential float32": (lambda: philox.exponential(np, (3,), "float32", 0, 0), [0.9186774, 0.12724245, 0.30691543]),
    "exponential float64": (
        lambda: philox.exponential(np, (3,), "float64", 0, 0),
        [0.12724241219640778, 0.5017306852573519, 1.0158593980834756],
    ),
    "cauchy float32": (lambda: philox.cauchy(np, (3,), "float32", 0, 0), [-0.32823476, 2.5378203, 0.9140319]),
    "cauchy float64": (
        lambda: philox.cauchy(np, (3,), "float64", 0, 0),
        [2.5378211723985875, 0.34406864148191735, -0.4625647871034439],
    ),
}


@pytest.mark.parametrize("name", LITERAL_VALUES)
def test_literal_values_of_functions(name):
    call, expected = LITERAL_VALUES[name]
    actual = call()
    real = actual.real.dtype
    maxulp = 2 if real == "float32" else 4
    np.testing.assert_array_max_ulp(actual.view(real), np.asarray(expected, actual.dtype).view(real), maxulp)


# Bit by bit against the naive text.


@pytest.mark.parametrize("seed, offset", STATES)
class TestNaive:
    def test_words(self, seed, offset):
        naive = Naive(seed, offset)
        assert philox.blocks(np, seed, offset, 5).tolist() == [
            [naive.word(4 * b + j) for j in range(4)] for b in range(5)
        ]
        assert philox.random_uint32(np, (3, 3), seed, offset).ravel().tolist() == [naive.word(i) for i in range(9)]
        assert philox.random_uint64(np, (9,), seed, offset).tolist() == [naive.long_word(i) for i in range(9)]

    @pytest.mark.parametrize("dtype", ["float16", bfloat16, "float32", "float64"], ids=str)
    def test_uniform(self, seed, offset, dtype):
        naive = Naive(seed, offset)
        x = philox.uniform(np, (17,), dtype, seed, offset)
        assert x.dtype == dtype
        assert [Fraction(float(value)) for value in x] == [naive.U(i, dtype) for i in range(17)]

    @pytest.mark.parametrize("dtype", ["float16", bfloat16, "float32", "float64"], ids=str)
    @pytest.mark.parametrize("low, high", [(-1.0, 1.0), (0.1, 0.3), (1000.0, 1001.0), (2.0, 2.0)])
    def test_uniform_range(self, seed, offset, dtype, low, high):
        D = np.dtype("float64" if dtype == "float64" else "float32").type
        dtype = np.dtype(dtype)
        low, high = dtype.type(low), dtype.type(high)
        expected = []
        for i in range(17):
            u = D(float(Naive(seed, offset).U(i, dtype)))
            value = dtype.type(D(u * (D(high) - D(low))) + D(low))
            expected.append(min(value, np.nextafter(high, low)))
        x = philox.uniform(np, (17,), dtype, seed, offset, float(low), float(high))
        assert x.tolist() == [value.item() for value in expected]

    @pytest.mark.parametrize("dtype", ["complex64", "complex128"])
    def test_complex_uniform(self, seed, offset, dtype):
        real = np.empty(0, dtype).real.dtype
        x = philox.uniform(np, (2, 3), dtype, seed, offset)
        assert x.dtype == dtype and x.shape == (2, 3)
        np.testing.assert_array_equal(x.view(real), philox.uniform(np, (2, 6), real, seed, offset))

    @pytest.mark.parametrize(
        "low, high, dtype",
        [
            (0, 1, "int64"),
            (0, 2, "bool"),
            (-128, 128, "int8"),
            (0, 256, "uint8"),
            (-7, 1000, "float32"),
            (5, 5 + 2**32, "int64"),
            (-3, 2**33 + 1, "int64"),
            (-(2**63), 2**63, "int64"),
            (-(2**63), -(2**63) + 3, "int64"),
            (1, 2**63, "int64"),
            (-(2**63), 2**63 - 1, "int64"),
            (0, 2**64, "uint64"),
            (2**63 + 5, 2**64, "uint64"),
            (1, 2**64, "uint64"),
        ],
    )
    def test_integers(self, seed, offset, low, high, dtype):
        x = philox.integers(np, (9,), dtype, seed, offset, low, high)
        assert x.dtype == dtype
        assert x.tolist() == [Naive(seed, offset).integer(i, low, high) for i in range(9)]

    @pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", bfloat16, "float32", "float64"], ids=str)
    def test_bernoulli(self, seed, offset, dtype):
        D = "float64" if dtype == "float64" else "float32"
        u = [Naive(seed, offset).U(i, D) for i in range(17)]
        x = philox.bernoulli(np, (17,), dtype, seed, offset, 0.3)
        assert x.dtype == dtype
        assert x.tolist() == [value < Fraction(float(np.dtype(D).type(0.3))) for value in u]
        # A probability equal to the number drawn is the border.
        at_border = np.array([float(value) for value in u])
        assert not philox.bernoulli(np, (17,), dtype, seed, offset, at_border).any()
        assert philox.bernoulli(np, (17,), dtype, seed, offset, at_border + 2.0**-24).all()

    @pytest.mark.parametrize("dtype", ["float32", "float64"])
    def test_values_of_functions(self, seed, offset, dtype):
        naive = Naive(seed, offset)
        for kind in ("normal", "exponential", "cauchy"):
            expected = [getattr(naive, kind)(i, dtype) for i in range(33)]
            assert_close(getattr(philox, kind)(np, (33,), dtype, seed, offset), expected, dtype, ULPS[dtype])

    @pytest.mark.parametrize("dtype, real", [("complex64", "float32"), ("complex128", "float64")])
    def test_complex_normal(self, seed, offset, dtype, real):
        z = philox.normal(np, (3, 5), dtype, seed, offset)
        assert z.dtype == dtype and z.shape == (3, 5)
        expected = [Naive(seed, offset).normal(i, real, 0.5) for i in range(30)]
        assert_close(z.view(real).ravel(), expected, real, ULPS[real])

    def test_geometric(self, seed, offset):
        for p in (0.25, 1e-3, 1.0):
            expected = [
                1 if p == 1 else max(1, math.ceil(log(Naive(seed, offset).V(i, "float64")) / math.log1p(-p)))
                for i in range(17)
            ]
            assert philox.geometric(np, (17,), "int64", seed, offset, p).tolist() == expected
            assert philox.geometric(np, (17,), "float32", seed, offset, p).tolist() == expected

    def test_permutation(self, seed, offset):
        keys = [Naive(seed, offset).long_word(i) for i in range(50)]
        expected = sorted(range(50), key=keys.__getitem__)
        assert philox.permutation(np, 50, "int64", seed, offset).tolist() == expected
        assert philox.permutation(np, 50, "float32", seed, offset).tolist() == expected

    @pytest.mark.parametrize("rows", [None, 1, 3])
    def test_multinomial(self, seed, offset, rows):
        naive = Naive(seed, offset)
        weights = np.array([0.0, 0.5, 0.0, 2.0, 1.0, 0.25, 0.0], dtype="float32")
        if rows:
            weights = weights * np.arange(1, rows + 1, dtype="float32")[:, None]
        expected_with, expected_without = [], []
        for r, row in enumerate(np.atleast_2d(weights).tolist()):
            sums = [sum(row[: k + 1]) for k in range(7)]
            targets = [float(naive.U(5 * r + s, "float64")) * sums[-1] for s in range(5)]
            expected_with.append([next(k for k in range(7) if sums[k] > target) for target in targets])
            keys = [naive.exponential(7 * r + k, "float64") / w if w else math.inf for k, w in enumerate(row)]
            expected_without.append(sorted(range(7), key=keys.__getitem__)[:4])
        drawn_with = philox.multinomial(np, weights, 5, True, seed, offset)
        drawn_without = philox.multinomial(np, weights, 4, False, seed, offset)
        assert drawn_with.dtype == drawn_without.dtype == "int64"
        assert drawn_with.tolist() == (expected_with if rows else expected_with[0])
        assert drawn_without.tolist() == (expected_without if rows else expected_without[0])


@pytest.mark.parametrize("dtype, width", [("float32", 32), ("float64", 64)])
def test_normals_near_the_axes(dtype, width):
    """Relative precision where sine or cosine is smallest, and where the radius is smallest and largest."""
    unsigned = f"uint{width}"
    step = 2 ** (width - (24 if width == 32 else 53))
    near = [(quarter * 2 ** (width - 2) + k * step) % 2**width for quarter in range(4) for k in (-3, -1, 0, 1, 2)]
    radii = [0, step, 2**width - 1, 2**width - 4 * step, 2 ** (width - 1)]
    words = np.array([(radius, angle) for radius in radii for angle in near], dtype=unsigned).ravel()
    bits = 24 if width == 32 else 53
    v = [Fraction((int(word) >> (width - bits)) | 1, 2**bits) for word in words]
    expected = [
        math.sqrt(-2 * log(radius)) * part for radius, angle in zip(v[0::2], v[1::2]) for part in cos_sin(angle)
    ]
    z = np.empty(words.size, dtype)
    (philox._box_muller32 if width == 32 else philox._box_muller64)(np, words.view("uint32"), 1.0, z)
    assert_close(z, expected, dtype, ULPS[dtype])


# Parameters and dtypes.


@pytest.mark.parametrize("half", ["float16", bfloat16], ids=str)
@pytest.mark.parametrize("kind", ["normal", "log_normal", "exponential", "cauchy"])
def test_half_types_round_the_float32_values(kind, half):
    draw = getattr(philox, kind)
    x = draw(np, (10000,), half, 3, 1)
    assert x.dtype == half
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(x, draw(np, (10000,), "float32", 3, 1).astype(half))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_location_and_scale(dtype):
    z = philox.normal(np, (4, 5), dtype, 1, 2)
    D = z.real.dtype.type
    np.testing.assert_array_equal(philox.normal(np, (4, 5), dtype, 1, 2, 0.1, 3.3), z * D(3.3) + D(0.1))
    mean, std = np.arange(5, dtype=D), np.arange(1, 5, dtype=D)[:, None]
    np.testing.assert_array_equal(philox.normal(np, (4, 5), dtype, 1, 2, mean, std), z * std + mean)
    if z.dtype.kind == "f":
        y = philox.normal(np, (4, 5), dtype, 1, 2, 1.0, 2.0)
        np.testing.assert_array_max_ulp(philox.log_normal(np, (4, 5), dtype, 1, 2), np.exp(y), maxulp=4, dtype=dtype)
        c = philox.cauchy(np, (4, 5), dtype, 1, 2)
        np.testing.assert_array_equal(philox.cauchy(np, (4, 5), dtype, 1, 2, 0.1, 3.3), c * D(3.3) + D(0.1))
        e = philox.exponential(np, (4, 5), dtype, 1, 2)
        np.testing.assert_array_equal(philox.exponential(np, (4, 5), dtype, 1, 2, 3.3), e / D(3.3))


def test_geometric_saturates():
    assert philox.geometric(np, (100,), "int8", 0, 0, 1e-9).tolist() == [127] * 100
    x = philox.geometric(np, (100,), "int64", 0, 0, 1e-300)
    assert x.tolist() == [2**63 - 1024] * 100


@pytest.mark.parametrize("dtype", ["float16", bfloat16, "float32", "float64"], ids=str)
def test_open_ends(dtype):
    """The highest and the lowest words give numbers inside the interval."""
    D = np.dtype("float64" if dtype == "float64" else "float32")
    bits = philox.SIGNIFICAND_BITS[np.dtype(dtype).name]
    words = np.array([0, 0, 2**32 - 1, 2**32 - 1], dtype="uint32")
    u = np.empty(2 if D == "float64" else 4, D)
    philox._grid(words.copy(), bits, 0, u)
    assert u[0] == 0 and u[-1] == 1 - 2.0**-bits == u.astype(dtype)[-1]
    philox._grid(words.copy(), philox.SIGNIFICAND_BITS[D.name], 1, u)
    assert 0 < u[0] == 1 - u[-1]


def test_uniform_never_reaches_high():
    # A float16 grid of 2^11 numbers against 4 in this interval: rounding alone would give `high` every eighth time.
    x = philox.uniform(np, (1000,), "float16", 0, 0, 1024.0, 1028.0)
    assert set(x.tolist()) == {1024.0, 1025.0, 1026.0, 1027.0}


@pytest.mark.parametrize("low, high", [(0, 0), (3, 2), (-1, 2**63 + 1), (0, 2**64 + 1), (-(2**63) - 1, 0)])
def test_integers_refuses(low, high):
    with pytest.raises(ValueError, match="integers"):
        philox.integers(np, (1,), "int64", 0, 0, low, high)


# The shape of the stream.

KINDS = {
    "uint32": (lambda shape, seed, offset, xp=np: philox.random_uint32(xp, shape, seed, offset), None),
    "uint64": (lambda shape, seed, offset, xp=np: philox.random_uint64(xp, shape, seed, offset), None),
    "integers": (lambda shape, seed, offset, xp=np: philox.integers(xp, shape, "int32", seed, offset, -9, 99), "int32"),
    "geometric": (lambda shape, seed, offset, xp=np: philox.geometric(xp, shape, "int64", seed, offset, 0.1), "int64"),
    "bernoulli": (lambda shape, seed, offset, xp=np: philox.bernoulli(xp, shape, "bool", seed, offset, 0.5), "bool"),
}


def floating(kind, dtype):
    return lambda shape, seed, offset, xp=np: getattr(philox, kind)(xp, shape, dtype, seed, offset), dtype


for kind in ("uniform", "normal", "log_normal", "exponential", "cauchy"):
    for dtype in ("float16", bfloat16, "float32", "float64", "complex64", "complex128"):
        if np.dtype(dtype).kind != "c" or kind in ("uniform", "normal"):
            KINDS[f"{kind} {dtype}"] = floating(kind, dtype)


@pytest.mark.parametrize("name", KINDS)
class TestStream:
    def test_an_element_depends_on_its_index_only(self, name):
        draw, _ = KINDS[name]
        longest = draw((70,), 5, 11)
        for n in range(20):
            np.testing.assert_array_equal(draw((n,), 5, 11), longest[:n])
        np.testing.assert_array_equal(draw((7, 1, 10), 5, 11).ravel(), longest)
        np.testing.assert_array_equal(draw((), 5, 11), longest[0])

    def test_the_next_call_goes_on_where_blocks_end(self, name):
        draw, dtype = KINDS[name]
        kind = name.split()[0]
        whole = draw((64,), 5, 2**32 - 3)
        for n in (0, 4, 8, 32):
            offset = 2**32 - 3 + philox.consumed(kind, n, dtype)
            np.testing.assert_array_equal(draw((64 - n,), 5, offset), whole[n:])
        # Left over bits are dropped: one value more than whole blocks takes a block more.
        assert philox.consumed(kind, 5, dtype) == philox.consumed(kind, 4, dtype) + 1

    def test_chunks_do_not_show(self, name, monkeypatch):
        draw, _ = KINDS[name]
        whole = draw((103,), 9, 2**64 - 5)
        monkeypatch.setattr(philox, "CHUNK", 4)
        np.testing.assert_array_equal(draw((103,), 9, 2**64 - 5), whole)

    def test_other_namespace(self, name, monkeypatch):
        draw, _ = KINDS[name]
        monkeypatch.setattr(philox, "CHUNK", 4)
        np.testing.assert_array_equal(draw((103,), 9, 3, xp=OtherNamespace()), draw((103,), 9, 3))

    def test_empty(self, name):
        draw, dtype = KINDS[name]
        for shape in ((0,), (3, 0, 2)):
            x = draw(shape, 0, 0)
            assert x.shape == shape and x.dtype == (dtype or name)
        assert philox.consumed(name.split()[0], 0, dtype) == 0


def test_large_arrays_are_chunked_alike():
    n = 8 * philox.CHUNK + 5
    x = philox.random_uint32(np, (n,), 1, 2)
    np.testing.assert_array_equal(x[4 * philox.CHUNK - 4 :][:8], philox.random_uint32(np, (8,), 1, 1 + philox.CHUNK))
    assert x[n - 1] == Naive(1, 2).word(n - 1)


def test_consumed():
    blocks_for_nine = {
        ("random_uint32", None): 3,
        ("random_uint64", None): 5,
        ("uniform", "float32"): 3,
        ("uniform", bfloat16): 3,
        ("uniform", "complex64"): 5,
        ("normal", "float64"): 5,
        ("normal", "complex128"): 9,
        ("bernoulli", "bool"): 3,
        ("bernoulli", "float64"): 5,
        ("integers", "int8"): 5,
        ("permutation", "int64"): 5,
        ("multinomial", "int64"): 5,
    }
    assert {key: philox.consumed(key[0], 9, key[1]) for key in blocks_for_nine} == blocks_for_nine
    with pytest.raises(ValueError, match="unknown kind 'poisson'"):
        philox.consumed("poisson", 1)


def test_orders():
    assert philox.permutation(np, 0, "int64", 0, 0).shape == (0,)
    assert philox.permutation(np, 1, "int64", 0, 0).tolist() == [0]
    x = philox.permutation(np, 10**5, "int64", 4, 0)
    np.testing.assert_array_equal(np.sort(x), np.arange(10**5))
    np.testing.assert_array_equal(x, philox.permutation(OtherNamespace(), 10**5, "int64", 4, 0))
    # Equal keys: the smaller index first.
    keys = np.array([[5, 1, 5, 1] * 100, list(range(400))], dtype="uint64")
    expected = np.argsort(keys, axis=-1, kind="stable")
    np.testing.assert_array_equal(philox._stable_argsort(np, keys), expected)
    assert philox.multinomial(np, np.array([0.0, 1.0, 0.0]), 3, False, 0, 0).tolist() == [1, 0, 2]


@pytest.mark.parametrize("seed", [0, 2**32, 2**64 - 1])
@pytest.mark.parametrize("offset", [0, 2**32 - 2, 2**64 - 3])
def test_few_blocks_are_those_of_many(seed, offset):
    many = philox.blocks(np, seed, offset, 2 * philox.FEW)
    for count in range(1, philox.FEW + 1):
        np.testing.assert_array_equal(philox.blocks(np, seed, offset, count), many[:count])
