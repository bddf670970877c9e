"""Fused kernels compute what their ops compute one by one: every expression, every layout, random graphs."""

import importlib

import numpy as np
import pytest

import corefw as torch
from corefw import dtypes
from corefw.dispatch.expressions import EXPRESSIONS
from corefw.dispatch.fusion import Fusion, Part, Reduction
from corefw.dispatch.rules import computed
from tests.fusions import FLOATS, chain, numbers, random_fusion, random_inputs
from tests.plans import same_bits

fusing = pytest.importorskip("corefw_c.fusion", reason="the C backend is not installed")
elementwise = importlib.import_module("corefw_c.elementwise")
library = importlib.import_module("corefw_c.library")

INTEGERS = (dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.int32, dtypes.int64)


@pytest.fixture(scope="module", params=library.levels())
def level(request):
    return request.param


@pytest.fixture(scope="module")
def lib(level):
    return library.load(level)


@pytest.fixture(scope="module")
def fuse(lib, level):
    return fusing.maker(lib, level)


@pytest.fixture(scope="module")
def one_by_one(lib):
    """What computes a fusion with the loops of its ops."""
    ufuncs = {name: ufunc for name, (ufunc, _) in elementwise.ufuncs(lib).items()}

    def compute(fusion, *inputs):
        values = list(inputs)
        for part in fusion.parts:
            operands = [values[i] for i in part.operands]
            if part.expression == "cast":
                result = operands[0].astype(part.dtype.numpy)
            else:
                wide = computed(dtypes.of_numpy(operands[0].dtype)).numpy
                result = ufuncs[part.expression](*operands, *(np.array(n, wide) for n in part.numbers))
            values.append(np.asarray(result))
        shape = np.broadcast_shapes(*(a.shape for a in inputs))
        made = [np.broadcast_to(values[i], shape) for i in fusion.outputs]
        if (r := fusion.reduction) is not None:
            wide = np.broadcast_to(values[r.value], shape).astype(np.float64)
            total = wide.sum(axis=r.dim, keepdims=r.keepdim)
            made.append(total if not r.mean else total * total.size / wide.size if wide.size else total / 0)
        return made

    return compute


def classes(expression):
    """Dtypes for which an expression has formulas."""
    found = []
    for kind in expression.formulas:
        found += (
            FLOATS
            if kind == "floating"
            else (dtypes.bool_,)
            if kind == "bool"
            else INTEGERS[1::3]
            if kind == "unsigned"
            else INTEGERS
        )
    return [d for d in dict.fromkeys(found) if not (d is dtypes.uint8 and [*expression.formulas] == ["signed"])]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda e: f"{e.name}-{'-'.join(e.formulas)}")
def test_every_expression_within_a_chain(fuse, one_by_one, expression):
    for dtype in classes(expression):
        first, last = ("bitwise_or", "bitwise_xor") if not dtype.is_floating_point else ("mul", "sub")
        n = expression.tensors
        inputs = [numbers(dtype, (5, 1031), seed) for seed in range(n + 1)]
        given = (dtype,) * (n + 1)
        parts = [Part(first, (0, n), (), dtype)]
        parts.append(
            Part(
                expression.name,
                (n + 1, *range(1, n)),
                (0.5, 1.5, 2.0)[: expression.numbers],
                dtypes.bool_ if expression.test else dtype,
            )
        )
        outputs = (n + 2,)
        if not expression.test:
            parts.append(Part(last, (n + 2, n), (), dtype))
            outputs = (n + 2, n + 3)
        fusion = Fusion(given, tuple(parts), outputs)
        kernel = fuse(fusion)
        if kernel is None:
            assert "unsigned" in expression.formulas or dtype is dtypes.bool_, (expression, dtype)
            continue
        with np.errstate(all="ignore"):
            for actual, expected in zip(kernel(*inputs), one_by_one(fusion, *inputs), strict=True):
                same_bits(actual, expected)


# -- layouts ----------------------------------------------------------------------------------------------------------
SHAPES = [
    ((7, 300), (7, 300), (300,)),
    ((300, 7), (7,), (300, 1)),
    ((7, 300), (), (1, 1)),
    ((1,), (), (1,)),
    ((), (), ()),
    ((5000,), (5000,), (1,)),
    ((3, 4, 5, 70), (4, 1, 1), (3, 1, 1, 70)),
    ((2, 3, 700), (3, 1), (2, 1, 700)),
    ((2, 3, 1), (3, 700), (1,)),
    ((40, 1), (1, 40), (40, 40)),
    ((0, 5), (5,), ()),
    ((9000, 2), (2,), (9000, 2)),
]


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_every_broadcast(fuse, one_by_one, shapes, dtype):
    fusion = chain(dtype)
    inputs = [numbers(dtype, shape, seed) for seed, shape in enumerate(shapes)]
    (actual,) = fuse(fusion)(*inputs)
    with np.errstate(all="ignore"):
        same_bits(actual, one_by_one(fusion, *inputs)[0])


def strided(a, how):
    """The same elements, lying elsewhere."""
    if how == "columns":
        return np.asfortranarray(a)
    if how == "steps":
        return np.repeat(a, 3, axis=-1)[..., ::3]
    if how == "backwards":
        return a[::-1, ::-1].copy()[::-1, ::-1]
    unaligned = np.empty(a.nbytes + 1, np.uint8)[1:].view(a.dtype).reshape(a.shape)
    unaligned[...] = a
    return unaligned


@pytest.mark.parametrize("how", ["columns", "steps", "backwards", "unaligned"])
@pytest.mark.parametrize("shape", [(7, 300), (129, 130)], ids=str)
def test_inputs_that_lie_in_any_way(fuse, one_by_one, shape, how):
    for dtype in FLOATS:
        fusion = chain(dtype)
        inputs = [numbers(dtype, shape, seed) for seed in range(3)]
        with np.errstate(all="ignore"):
            expected = one_by_one(fusion, *inputs)[0]
        same_bits(fuse(fusion)(strided(inputs[0], how), inputs[1], strided(inputs[2], how))[0], expected)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_results_in_the_memory_of_an_input(fuse, one_by_one, dtype):
    parts = (
        *(Part("mul", (0, 1), (), dtype), Part("exp", (3,), (), dtype)),
        *(Part("add", (2, 4), (), dtype), Part("sub", (2, 3), (), dtype)),
    )
    for outputs in ((6, 5), (5,)):
        fusion = Fusion((dtype,) * 3, parts, outputs)
        inputs = [numbers(dtype, (3, 2111), seed) for seed in range(3)]
        with np.errstate(all="ignore"):
            expected = one_by_one(fusion, *inputs)
        for target in (inputs[2], np.empty_like(inputs[0])):
            results = [a.copy() for a in inputs]
            out = results[2] if target is inputs[2] else target
            others = fuse(fusion)(*results, out=out)
            for actual, wanted in zip((*others, out), expected, strict=True):
                same_bits(actual, wanted)
    memory = numbers(dtype, 2 * 2111 + 1)
    x, y = memory[:2111], numbers(dtype, 2111)
    fusion = Fusion((dtype,) * 3, parts, (5,))
    with np.errstate(all="ignore"):
        expected = one_by_one(fusion, x, y, x)[0]
    out = memory[1:2112]  # partly over what is read
    assert fuse(fusion)(x, y, x, out=out) == ()
    same_bits(out, expected)


def test_memory_that_may_not_be_written(fuse):
    inputs = [numbers(dtypes.float32, 5) for _ in range(3)]
    out = np.zeros(5, np.float32)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        fuse(chain(dtypes.float32))(*inputs, out=out)


def test_wrong_arrays_are_refused(fuse):
    x = np.zeros(5, np.float32)
    kernel = fuse(chain(dtypes.float32))
    with pytest.raises(TypeError):
        kernel(x, x.astype(np.float64), x)
    with pytest.raises(ValueError):
        kernel(x, x, x, out=np.zeros(6, np.float32))


# -- sums -------------------------------------------------------------------------------------------------------------
SUMS = [
    ((7, 300), (7, 300), (300,), (0,)),
    ((7, 300), (7, 300), (300,), (1,)),
    ((7, 300), (7, 300), (7, 1), (0, 1)),
    ((100_003,), (), (100_003,), (0,)),
    ((70_000, 3), (3,), (70_000, 1), (0,)),
    ((70_000, 3), (3,), (70_000, 1), (1,)),
    ((3, 70_000), (3, 1), (70_000,), (0,)),
    ((2, 3, 5, 70), (3, 1, 1), (70,), (0,)),
    ((2, 3, 5, 70), (3, 1, 1), (70,), (0, 1)),
    ((2, 3, 5, 70), (3, 1, 1), (70,), (0, 1, 2)),
    ((2, 3, 5, 70), (3, 1, 1), (70,), (2, 3)),
    ((2, 3, 5, 70), (3, 1, 1), (70,), (1, 2, 3)),
    ((1, 5, 7), (5, 1), (7,), (0,)),
    ((5, 7, 1), (5, 1, 1), (7, 1), (2,)),
    ((3, 5, 700), (5, 1), (3, 1, 1), (0, 2)),
    ((70, 6, 9, 11), (6, 1, 1), (11,), (0, 2, 3)),
    ((70, 6, 9, 11), (9, 1), (6, 1, 11), (0, 3)),
    ((7, 2, 3, 5, 4), (), (5, 1), (0, 1, 4)),
    ((7, 6, 1), (6, 1), (), (0, 2)),
    ((2, 3, 20_000), (3, 1), (20_000,), (0, 2)),
    ((1, 1), (1,), (), (0, 1)),
    ((), (), (), ()),
    ((0, 5), (5,), (), (0,)),
    ((5, 0), (), (), (1,)),
]


@pytest.mark.parametrize("mean", [False, True], ids=["sum", "mean"])
@pytest.mark.parametrize("case", SUMS, ids=str)
def test_sums(fuse, one_by_one, case, mean):
    *shapes, dim = case
    for dtype in FLOATS:
        for outputs, keepdim in (((), False), ((5, 4), True)):
            plain = chain(dtype)
            fusion = Fusion(plain.inputs, plain.parts, outputs, Reduction(mean, 5, dim, keepdim, dtype))
            rng = np.random.default_rng(0)
            inputs = [rng.uniform(0, 0.2, shape).astype(dtype.numpy) for shape in shapes]
            *others, total = fuse(fusion)(*inputs)
            with np.errstate(all="ignore"):
                *expected, sums = one_by_one(fusion, *inputs)
            for actual, wanted in zip(others, expected, strict=True):
                same_bits(actual, wanted)
            assert total.dtype == dtype.numpy and total.shape == sums.shape
            eps = {2: 2**-7 if dtype is dtypes.bfloat16 else 2**-10, 4: 1e-6, 8: 1e-14}[dtype.itemsize]
            np.testing.assert_allclose(total.astype(np.float64), sums, rtol=eps)


def test_sums_do_not_depend_on_threads(lib, fuse):
    plain, f = chain(dtypes.float32), dtypes.float32
    cases = [((1_000_003,), (0,)), ((1009, 1013), (0,)), ((1009, 1013), (1,)), ((100_000, 7), (0,))]
    for shape, dim in (*cases, ((64, 7, 999), (0, 2))):
        kernel = fuse(Fusion(plain.inputs, plain.parts, (5,), Reduction(False, 5, dim, False, f)))
        inputs = [np.random.default_rng(i).normal(size=shape).astype(np.float32) for i in range(3)]
        found = []
        for threads in (1, 2, 3, 7):
            lib.set_thread_count(threads)
            found.append([a.tobytes() for a in kernel(*inputs)])
        lib.set_thread_count(torch.get_num_threads())
        assert all(results == found[0] for results in found)


# -- random graphs ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("seed", range(60))
def test_random_graphs(fuse, one_by_one, seed):
    rng = np.random.default_rng(seed)
    fusion = random_fusion(rng)
    inputs = random_inputs(rng, fusion)
    kernel = fuse(fusion)
    assert kernel is not None, str(fusion)
    with np.errstate(all="ignore"):
        for actual, expected in zip(kernel(*inputs), one_by_one(fusion, *inputs), strict=True):
            same_bits(actual, expected)
