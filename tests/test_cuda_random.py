"""Random numbers of the CuPy backend: the bits of docs/random.md, wherever a call begins and however many it draws."""

import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw import dtypes
from corefw_cupy import dropout, random
from corefw_cupy.graphs import GeneratorState
from corefw_numpy import philox
from tests.emulation import compiler, memory
from tests.emulation.device import cuda

pytestmark = pytest.mark.skipif(compiler.COMPILER is None, reason="there is no C++ compiler")

STATES = [(0, 0), (1, 7), (0x0123456789ABCDEF, 2**32 - 1), (2**64 - 1, 2**64 - 1)]
SHAPES = [(), (1,), (5,), (0, 4), (17, 2), (3, 301)]
FLOATING = [np.dtype(d.numpy) for d in dtypes.ALL if d.is_floating_point]
EVERY = [d.numpy for d in dtypes.ALL if not d.is_complex]


@pytest.fixture(scope="module")
def kernels():
    made = (*random.kernels(cuda()), *dropout.kernels(cuda()))
    return {kernel.op: kernel.function for kernel in made}


def same_bits(made, wanted):
    made, wanted = memory.host(made), np.asarray(wanted)
    assert (made.shape, made.dtype) == (wanted.shape, wanted.dtype)
    assert made.tobytes() == wanted.tobytes()


def near(made, wanted, units):
    """Whether results agree to so many units in the last place."""
    made, wanted = (np.asarray(x, "c16" if wanted.dtype.kind == "c" else "f8") for x in (memory.host(made), wanted))
    np.testing.assert_allclose(made, wanted, units, 0)


@pytest.mark.parametrize("dtype", [*FLOATING, np.dtype("F"), np.dtype("D")], ids=str)
@pytest.mark.parametrize("state", STATES)
def test_uniform_and_normal(kernels, state, dtype):
    precision = float(dtypes.finfo(dtypes.of_numpy(dtype)).eps)
    for shape in SHAPES:
        for bounds in ((0.0, 1.0), (-2.5, 3.25), (0.1, 0.1), (1.0, 1.001)):
            made = kernels["uniform_at"](shape, *state, *bounds, dtype)
            same_bits(made, philox.uniform(np, shape, dtype, *state, *bounds))
        made = kernels["normal_at"](shape, *state, 0.0, 1.0, dtype)
        near(made, philox.normal(np, shape, dtype, *state), 6 * precision)


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("state", STATES)
def test_exponential_and_cauchy(kernels, state, dtype):
    precision = float(dtypes.finfo(dtypes.of_numpy(dtype)).eps)
    for shape in SHAPES:
        for kind, *parameters in (("exponential", 1.5), ("cauchy", 0.0, 0.5)):
            made = kernels[f"{kind}_at"](shape, *state, *parameters, dtype)
            near(made, getattr(philox, kind)(np, shape, dtype, *state, *parameters), 6 * precision)
        made = kernels["log_normal_at"](shape, *state, 1.0, 0.5, dtype)
        near(made, philox.log_normal(np, shape, dtype, *state, 1.0, 0.5), 40 * precision)


@pytest.mark.parametrize("dtype", EVERY, ids=str)
@pytest.mark.parametrize("state", STATES)
def test_whole_numbers(kernels, state, dtype):
    high = 2 if dtype == np.bool_ else 100
    for shape in SHAPES:
        made = kernels["integers_at"](shape, *state, 0, high, dtype)
        same_bits(made, philox.integers(np, shape, dtype, *state, 0, high))
        for p in (0.0, 0.3, 1.0, np.random.random(shape), np.float32(np.random.random(shape[1:]))):
            made = kernels["bernoulli_at"](memory.device(p), shape, *state, dtype)
            same_bits(made, philox.bernoulli(np, shape, dtype, *state, p))
        if dtype != np.bool_:
            for p in (1.0, 0.3, 1e-6):
                made = kernels["geometric_at"](shape, *state, p, dtype)
                same_bits(made, philox.geometric(np, shape, dtype, *state, p))


@pytest.mark.parametrize(
    ("low", "high", "dtype"),
    [(-(2**63), 2**63, "i8"), (0, 2**64, "u8"), (2**63, 2**64, "u8"), (-5, 2**40, "i8"), (-(2**20), 2**20, "f4")],
)
def test_ranges_of_64_bits(kernels, low, high, dtype):
    for state in STATES:
        made = kernels["integers_at"]((9,), *state, low, high, np.dtype(dtype))
        same_bits(made, philox.integers(np, (9,), dtype, *state, low, high))


#: what each kind is given beside the state, before and after it
KINDS = {
    "uniform_at": ((7,), 0.0, 1.0, np.dtype("f4")),
    "normal_at": ((7,), 0.0, 1.0, np.dtype("D")),
    "log_normal_at": ((7,), 0.0, 1.0, np.dtype("f8")),
    "exponential_at": ((7,), 2.0, np.dtype("f2")),
    "cauchy_at": ((7,), 0.0, 1.0, np.dtype("f4")),
    "integers_at": ((7,), 0, 50, np.dtype("i8")),
    "geometric_at": ((7,), 0.2, np.dtype("i4")),
    "permutation_at": (70, np.dtype("i8")),
    "bernoulli_at": (np.full((), 0.5), (40,), np.dtype("f4")),
    "masked_dropout": (np.ones(40, "f4"), 0.5),
    "multinomial_at with replacement": (np.ones((2, 9), "f4"), 5, True),
    "multinomial_at of one": (np.ones((2, 9), "f4"), 1, False),
    "multinomial_at": (np.ones((2, 9), "f4"), 5, False),
}


@pytest.mark.parametrize("name", KINDS)
def test_states_on_the_device(kernels, name):
    """A graph's kernels are given a generator's state for the seed, and the distance from its offset."""
    given = [memory.device(value) if isinstance(value, np.ndarray) else value for value in KINDS[name]]
    kernel = name.partition(" ")[0]
    split = {"masked_dropout": 2, "multinomial_at": 3, "bernoulli_at": 2}.get(kernel, 1)
    capturing = cuda().capturing
    state = GeneratorState(cuda())
    for seed, offset in STATES:
        state.write(seed, offset)
        wanted = kernels[kernel](*given[:split], seed, (offset + 3) % 2**64, *given[split:])
        capturing.capture = state
        try:
            made = kernels[kernel](*given[:split], state, 3, *given[split:])
        finally:
            capturing.capture = None
        for m, w in zip(*(value if isinstance(value, tuple) else (value,) for value in (made, wanted))):
            same_bits(m, memory.host(w))


@pytest.mark.parametrize("low", [5, -(2**63) - 1, -1])
def test_a_range_that_nothing_holds_is_refused(kernels, low):
    with pytest.raises(ValueError, match="holds"):
        kernels["integers_at"]((1,), 0, 0, low, 2**63 + 1 if low < 0 else 5, np.dtype("i8"))


@pytest.mark.parametrize("n", [0, 1, 5, 2049])
def test_permutations(kernels, n):
    for dtype in ("i8", "i2", "f4"):
        same_bits(kernels["permutation_at"](n, 3, 1, np.dtype(dtype)), philox.permutation(np, n, dtype, 3, 1))


@pytest.mark.parametrize("shape", [(7,), (1001,), (3, 301), (2, 2, 1)])
@pytest.mark.parametrize("samples", [(1, False), (5, False), (1, True), (70, True), (0, True)])
@pytest.mark.parametrize("dtype", FLOATING, ids=str)
def test_draws_in_proportion_to_weights(kernels, shape, samples, dtype):
    count, replacement = samples
    if not replacement and count >= shape[-1] > 1:
        pytest.skip("fewer weights than samples")
    weights = np.random.random(shape).astype(dtype)
    weights[..., 1:2] = 0
    if not replacement and count > shape[-1]:
        with pytest.raises(ValueError, match="samples"):
            kernels["multinomial_at"](memory.device(weights), count, replacement, 5, 2)
        return
    made = kernels["multinomial_at"](memory.device(weights), count, replacement, 5, 2)
    same_bits(made, philox.multinomial(np, weights, count, replacement, 5, 2))


@pytest.mark.parametrize("dtype", FLOATING, ids=str)
@pytest.mark.parametrize("p", [0.0, 0.3, 1])
def test_dropout(kernels, dtype, p):
    computed = np.dtype("f8" if dtype == "f8" else "f4")
    for shape in SHAPES:
        x = np.asarray(np.random.standard_normal(shape), dtype)
        kept = philox.bernoulli(np, shape, computed, 3, 9, 1 - p)
        wanted = (x.astype(computed) * (kept * computed.type(0 if p == 1 else 1 / (1 - p)))).astype(dtype)
        output, mask = kernels["masked_dropout"](memory.device(x), p, 3, 9)
        same_bits(output, wanted)
        same_bits(mask, kept.astype(bool))
        same_bits(kernels["masked_dropout_backward"](memory.device(x), mask, p), wanted)
    column = memory.device(np.ones((6, 4), dtype)).T  # drawn in row-major order all the same
    kept = philox.bernoulli(np, (4, 6), computed, 0, 0, 1 - p)
    same_bits(kernels["masked_dropout"](column, p, 0, 0)[1], kept.astype(bool))
