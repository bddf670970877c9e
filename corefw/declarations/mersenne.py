"""PyTorch's random numbers: made of words that the generator MT19937 drew (docs/random.md, "PyTorch's numbers")."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from corefw.declarations._shared.batching import the_same
from corefw.declarations._shared.factories import given_size
from corefw.devices import DispatchKey
from corefw.dispatch.batching.calls import one_by_one
from corefw.dispatch.declare import primitive
from corefw.dispatch.rules import floats, index, ordered, real_floats, real_numbers

# Each is a primitive because PyTorch's arithmetic decides its last bits. `words` is a uint32 array of the host with as
# many words as the kind takes, in the order in which they were drawn. In a `func.vmap` all examples have the same ones.


@primitive(dtype=floats, shape=given_size, public="")
def uniform_of_words(dispatch_key: DispatchKey, size: tuple, words: Any, low: float, high: float, dtype: Any):
    """Uniform numbers in ``[low, high)``."""


uniform_of_words.batching(the_same)


@primitive(dtype=ordered, shape=given_size, public="")
def integers_of_words(dispatch_key: DispatchKey, size: tuple, words: Any, low: int, high: int, dtype: Any):
    """Integers in ``[low, high)``, of one word each or of two."""


integers_of_words.batching(the_same)


@primitive(dtype=floats, shape=given_size, public="")
def normal_blocks_of_words(dispatch_key: DispatchKey, size: tuple, words: Any, mean: float, std: float, dtype: Any):
    """16 normal numbers or more, made in blocks of 16."""


normal_blocks_of_words.batching(the_same)


@primitive(dtype=floats, shape=given_size, public="")
def normal_pairs_of_words(
    dispatch_key: DispatchKey, size: tuple, words: Any, first: Any, mean: float, std: float, dtype: Any
):
    """Normal numbers, made in pairs after the number `first`, of mean 0 and variance 1, if that is not None."""


normal_pairs_of_words.batching(the_same)


@primitive(dtype=real_floats, shape=given_size, public="")
def log_normal_of_words(
    dispatch_key: DispatchKey, size: tuple, words: Any, first: Any, mean: float, std: float, dtype: Any
):
    """Exponentials of normal numbers, which are made in pairs."""


log_normal_of_words.batching(the_same)


@primitive(dtype=ordered, shape=lambda p, size, *attributes: size, public="")
def bernoulli_of_words(dispatch_key: DispatchKey, p, size: tuple, words: Any, dtype: Any):
    """One with probability `p`, a tensor that broadcasts to `size`, else zero; two words each if `p` is float64."""


bernoulli_of_words.batching(one_by_one)


@primitive(dtype=real_floats, shape=given_size, public="")
def exponential_of_words(dispatch_key: DispatchKey, size: tuple, words: Any, lambd: float, dtype: Any):
    """Exponential numbers of rate `lambd`."""


exponential_of_words.batching(the_same)


@primitive(dtype=real_floats, shape=given_size, public="")
def cauchy_of_words(dispatch_key: DispatchKey, size: tuple, words: Any, median: float, sigma: float, dtype: Any):
    """Cauchy numbers."""


cauchy_of_words.batching(the_same)


@primitive(dtype=real_numbers, shape=given_size, public="")
def geometric_of_words(dispatch_key: DispatchKey, size: tuple, words: Any, p: float, dtype: Any):
    """The number of trials up to the first success, each of probability `p`."""


geometric_of_words.batching(the_same)


@primitive(dtype=real_numbers, shape=lambda n, *attributes: (n,), public="")
def permutation_of_words(dispatch_key: DispatchKey, n: int, words: Any, dtype: Any):
    """A permutation of the numbers below `n`: of one word, or two, for each but the last."""


permutation_of_words.batching(the_same)


@primitive(
    dtype=replace(index, promotes=False).without("bool", "integer", "complex"),
    shape=lambda input, num_samples, words: (*input[:-1], num_samples),
    public="",
)
def multinomial_of_words(input, num_samples: int, words: Any):
    """Positions along the last dimension, in proportion to the weights there, each of which may come again."""


multinomial_of_words.batching(one_by_one)
