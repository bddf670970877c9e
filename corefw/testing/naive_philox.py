"""The text of docs/random.md in Python integers, one element at a time."""

import math
from fractions import Fraction

import numpy as np


def naive_philox(counter, key):
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(10):
        p0 = 0xD2511F53 * c0
        p1 = 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 % 2**32, (p0 >> 32) ^ c3 ^ k1, p0 % 2**32
        k0 = (k0 + 0x9E3779B9) % 2**32
        k1 = (k1 + 0xBB67AE85) % 2**32
    return c0, c1, c2, c3


class Naive:
    """The stream at one state."""

    def __init__(self, seed, offset):
        self.seed = seed % 2**64
        self.offset = offset

    def word(self, i):
        b = (self.offset + i // 4) % 2**64
        return naive_philox((b % 2**32, b // 2**32, 0, 0), (self.seed % 2**32, self.seed // 2**32))[i % 4]

    def long_word(self, i):
        return self.word(2 * i) + 2**32 * self.word(2 * i + 1)

    def U(self, i, dtype):
        bits = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}[np.dtype(dtype).name]
        if bits == 53:
            return Fraction(self.long_word(i) >> 11, 2**53)
        return Fraction(self.word(i) >> (32 - bits), 2**bits)

    def V(self, i, dtype):
        if dtype == "float64":
            return Fraction((self.long_word(i) >> 11) | 1, 2**53)
        return Fraction((self.word(i) >> 8) | 1, 2**24)

    def integer(self, i, low, high):
        return low + self.long_word(i) * (high - low) // 2**64

    def normal(self, i, dtype, variance=1.0):
        r = math.sqrt(-2 * variance * log(self.V(i - i % 2, dtype)))
        return r * cos_sin(self.V(i - i % 2 + 1, dtype))[i % 2]

    def exponential(self, i, dtype):
        return -log(self.V(i, dtype))

    def cauchy(self, i, dtype):
        c, s = cos_sin(self.V(i, dtype) / 2)  # tan(x - pi/2) = -cot x
        return -c / s


def log(v):
    """The logarithm of a Fraction, accurate near one too."""
    return math.log1p(float(v - 1)) if v > Fraction(1, 2) else math.log(v)


def cos_sin(turns):
    """Cosine and sine of an angle in turns, a Fraction, reduced exactly to an eighth turn."""
    quarter = round(4 * turns)
    x = 2 * math.pi * float(turns - Fraction(quarter, 4))
    c, s = math.cos(x), math.sin(x)
    return [(c, s), (-s, c), (-c, -s), (s, -c)][quarter % 4]
