"""Kernels that take half types part by part, at every level of the C backend that this machine has: results are those
of float32, rounded once; convolutions, those of float64."""

import re
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import corefw as torch
from corefw import dtypes
from corefw.dispatch.registry import dispatch_key_of, registry
from corefw.errors import KernelNotFoundError
from tests.halves import HALVES, LEVELS, WHOLE, check, f64, random, rounded

pytest.importorskip("tests.compiled")

F = torch.nn.functional
SHAPES = [(5,), (7, 9), (3, 5000), (2000, 3), (2, 3, 65, 7), (0, 4), (100_000,)]


def views(x):
    """The array, and others over its elements: transposed, strided, reversed, with a NaN."""
    yield x
    if x.ndim > 1:
        yield from (x.transpose(0, -1), x[..., ::2], x.flip(0)[:, 1:])
    if x.numel():
        spoilt = x.clone()
        spoilt.view(-1)[x.numel() // 2] = float("nan")
        yield spoilt


def on_copies():
    """The ops that compute a half type on copies of another dtype."""
    found = set()
    for name, op in registry.declared.items():
        for dtype in (dtypes.float16, dtypes.bfloat16) if op.rule is not None else ():
            try:
                kernel = op.table[dispatch_key_of(torch.device("cpu"), dtype)][0]
            except KernelNotFoundError:
                continue
            if hasattr(kernel, "conversion"):
                found.add(name)
    return found


@pytest.mark.parametrize("level", WHOLE)
def test_what_computes_on_copies_is_documented(level):
    text = (Path(__file__).parent.parent / "docs" / "precision.md").read_text()
    section = text.split("## Half types on converted copies")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*`) \|", section, re.MULTILINE)
    documented = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    with torch.backend(level):
        found = on_copies()
    assert sorted(documented) == sorted(set(documented))
    assert set(documented) == found


#: cheap formulas, which are computed from registers of half types to such registers: of one to three tensors
CHEAP = {
    1: [torch.neg, torch.sqrt, torch.square, F.relu, torch.rsqrt, torch.floor, torch.sign,
        lambda x: x * 0.3, lambda x: 1 - x, lambda x: 0.7 / x,
        lambda x: x.clamp(-0.5, 1.5), lambda x: F.leaky_relu(x, 0.1)],
    2: [torch.add, torch.sub, torch.mul, torch.div, torch.maximum, torch.copysign],
    3: [lambda x, y, z: x.addcmul(y, z, value=0.3), torch.lerp],
}  # fmt: skip


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_cheap_formulas(level, dtype):
    for shape in [(1,), (7,), (15,), (16,), (33,), (63,), (65, 70), (3, 9001)]:
        inputs = [random(dtype, *shape) for _ in range(3)]
        for count, functions in CHEAP.items():
            for function in functions:
                rounded(function, *inputs[:count], level=level)
                rounded(function, *(x.flip(0)[..., ::2] for x in inputs[:count]), level=level)
                if count > 1:
                    rounded(function, inputs[0], inputs[1][..., :1], *inputs[2:count], level=level)
                    rounded(function, inputs[0], inputs[1][:1], *inputs[2:count], level=level)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_conversions_of_any_length(level, dtype):
    exact = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}[dtype]
    x = np.random.standard_normal(75).astype(np.float32)
    for n in range(70):
        for begin in (0, 5):
            part, guarded = x[begin : begin + n], torch.full((75,), 7.0)
            with torch.backend(level):
                halves = torch.full((75,), 7.0, dtype=getattr(torch, dtype))
                halves[begin : begin + n] = torch.from_numpy(part)
                guarded[begin : begin + n] = halves[begin : begin + n]
            for found in (halves, guarded):
                expected = np.full(75, 7, np.float32)
                expected[begin : begin + n] = part.astype(exact)
                np.testing.assert_array_equal(f64(found), expected)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_special_numbers_among_others(level, dtype):
    """A NaN, an infinity, and what is rounded to one, to zero or to even, at each place of registers."""
    special = [float("nan"), -float("nan"), float("inf"), -float("inf"), 3.4e38, 65519.9, 65520.0, 1e-40, 1e-8, -0.0]
    special += np.array([0x7FFFFFFF, 0xFFFFFFFF, 0x7F800001], "u4").view("f4").tolist()  # NaN that rounding would spoil
    special += [1 + 2.0**-8, 1 + 3 * 2.0**-8, 1 + 2.0**-11, 1 + 3 * 2.0**-11]
    exact = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16}[dtype]
    for place in range(33):
        for number in special:
            x = np.linspace(-3, 3, 70, dtype=np.float32)
            x[place] = number
            with np.errstate(over="ignore"):
                expected = x.astype(exact)
            with torch.backend(level):
                halves = torch.from_numpy(x).to(getattr(torch, dtype))
                same, double, back = halves * 1, halves + halves, halves.float()
            wide = expected.astype(np.float32)
            np.testing.assert_array_equal(halves.float().numpy(), wide)
            np.testing.assert_array_equal(back.numpy(), wide)
            np.testing.assert_array_equal(same.float().numpy(), wide)
            with np.errstate(over="ignore"):
                np.testing.assert_array_equal(double.float().numpy(), (wide + wide).astype(exact).astype(np.float32))
            zeros = wide == 0
            assert (np.signbit(same.float().numpy()) == np.signbit(wide))[zeros].all()


@pytest.mark.parametrize("name", ["sum", "mean", "nansum", "logsumexp", "prod", "any", "all", "count_nonzero"])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_reductions(level, dtype, name):
    for shape in SHAPES:
        for x in views(random(dtype, *shape)):
            for dim in (*range(x.ndim), *([tuple(range(x.ndim))] if name != "prod" else [])):
                summed_apart = x.numel() > 5000  # blocks of float32 may be summed in another order than parts of them
                if summed_apart and name in ("sum", "mean", "nansum", "logsumexp", "prod"):
                    with torch.backend(level):
                        a, b = (f64(getattr(t, name)(dim)) for t in (x, x.double()))
                    np.testing.assert_allclose(a, b, rtol=1.01 * HALVES[dtype], atol=1e-3)
                else:
                    rounded(lambda t, dim=dim: getattr(torch, name)(t, dim), x, level=level)


@pytest.mark.parametrize("name", ["amax", "argmin", "max", "median", "var", "norm"])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_extremes_and_moments(level, dtype, name):
    for shape in [shape for shape in SHAPES if 0 not in shape]:
        for x in views(random(dtype, *shape)):
            for dim in range(x.ndim):
                if x.shape[dim] > 1:
                    with torch.backend(level):
                        a, b = (getattr(t, name)(dim=dim) for t in (x, x.float()))
                    for found, wide in zip(*(r if isinstance(r, tuple) else (r,) for r in (a, b)), strict=True):
                        limit = HALVES[dtype] * 2 if name in ("var", "norm") else 0
                        np.testing.assert_allclose(f64(found), f64(wide.to(found.dtype)), rtol=limit)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_softmax_and_its_gradient(level, dtype):
    for shape in [(5,), (7, 9), (3, 5000), (2, 21, 9, 9), (1000, 64), (0, 4), (4, 0)]:
        x, gradient = random(dtype, *shape), random(dtype, *shape)
        for dim in range(len(shape)):
            for op in (torch.softmax, torch.log_softmax):
                rounded(lambda t, dim=dim, op=op: op(t, dim), x, level=level)
                rounded(lambda t, dim=dim, op=op: op(t.transpose(0, -1), dim), x, level=level)
                backward = registry.declared[f"{op.__name__}_backward"].function
                rounded(lambda g, y, dim=dim, backward=backward: backward(g, y, dim), gradient, op(x, dim), level=level)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_pooling_dropout_and_embeddings(level, dtype):
    def pooled(pool):
        def both(x):
            leaf = x.detach().requires_grad_()
            y = pool(leaf)
            return y.detach(), torch.autograd.grad(y, leaf, torch.ones_like(y))[0]

        return both

    def dropped(x):
        torch.manual_seed(0)
        return F.dropout(x, 0.3)

    images = random(dtype, 2, 3, 9, 11)
    for pool in (
        *(lambda x: F.max_pool2d(x, 2), lambda x: F.max_pool2d(x, 3, 1, 1), lambda x: F.max_pool2d(x, 3, 2, 1)),
        *(lambda x: F.avg_pool2d(x, 2), lambda x: F.avg_pool2d(x, 3, 2, 1), lambda x: F.adaptive_avg_pool2d(x, 1)),
        *(lambda x: F.adaptive_avg_pool2d(x, (4, 3)), lambda x: F.adaptive_max_pool2d(x, (4, 3)), dropped),
    ):
        rounded(pooled(pool), images, level=level)
    indices = torch.tensor(np.random.default_rng(0).integers(0, 7, (40,)))
    for options in ({}, {"padding_idx": 3}, {"scale_grad_by_freq": True}):

        def embedded(weight, gradient, options=options):
            leaf = weight.detach().requires_grad_()
            return torch.autograd.grad(F.embedding(indices, leaf, **options), leaf, gradient)[0]

        rounded(embedded, random(dtype, 7, 700), random(dtype, 40, 700), level=level)


@pytest.mark.parametrize("name", ["cumsum", "cumprod", "logcumsumexp", "cummax", "cummin"])
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_scans(level, dtype, name):
    for shape in [*SHAPES, (3, 2500, 300), (1,)]:
        for x in views(random(dtype, *shape)):
            for dim in range(x.ndim):
                rounded(lambda t, dim=dim: getattr(torch, name)(t, dim), x, level=level)


def with_ties(dtype, *shape):
    """Few different numbers, zeros of both signs, infinities and NaN among them."""
    x = torch.tensor(np.random.default_rng(0).integers(-9, 9, shape)).to(random(dtype, 1).dtype) / 4
    if x.numel() > 6:
        flat = x.view(-1)
        for value in (-0.0, float("inf"), float("-inf"), float("nan"), -float("nan")):
            flat[torch.tensor(np.random.default_rng(1).integers(0, x.numel(), x.numel() // 9 + 1))] = value
    return x


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_order(level, dtype):
    """The order, which is stable and has NaN last, is that of float32; so are the positions."""
    for shape in [(5,), (7, 9), (3, 5000), (300, 3), (2, 70, 40), (0, 4), (100_000,)]:
        for x in (with_ties(dtype, *shape), random(dtype, *shape), with_ties(dtype, *shape).transpose(0, -1)):
            for dim in range(x.ndim):
                size = x.shape[dim]
                functions = [
                    lambda t, dim=dim: torch.sort(t, dim, stable=True),
                    lambda t, dim=dim: torch.sort(t, dim, descending=True, stable=True),
                    lambda t, dim=dim, size=size: torch.topk(t, min(size, 7), dim),
                    lambda t, dim=dim, size=size: torch.topk(t, size // 2, dim, largest=False),
                ]
                if size:
                    functions += [
                        lambda t, dim=dim, size=size: torch.kthvalue(t, size // 2 + 1, dim),
                        lambda t, dim=dim: torch.median(t, dim),
                        lambda t, dim=dim: torch.nanmedian(t, dim),
                        lambda t, dim=dim: torch.mode(t, dim),
                    ]
                for function in functions:
                    rounded(lambda t, function=function: tuple(function(t)), x, level=level)
            rounded(lambda t: torch.unique(t, return_inverse=True, return_counts=True), x, level=level)
            rounded(lambda t: torch.unique_consecutive(t, return_counts=True), x, level=level)
            some = x.reshape(-1)[:700]
            with torch.backend(level):
                ordered = some.sort()[0]
            for right in (False, True):
                rounded(
                    lambda s, t, right=right: torch.searchsorted(s, t, right=right), ordered, x.clone(), level=level
                )
            for tests in (some[:5], some):
                rounded(torch.isin, x, tests, level=level)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_resampling_and_columns(level, dtype):
    def both(function):
        def value_and_gradient(x):
            leaf = x.detach().requires_grad_()
            y = function(leaf)
            gradient = torch.tensor(np.random.default_rng(2).standard_normal(y.shape)).to(random(dtype, 1).dtype)
            return y.detach(), torch.autograd.grad(y, leaf, gradient.to(y.dtype))[0]

        return value_and_gradient

    for shape, modes in (
        ((2, 3, 17), ("nearest", "linear", "area")),
        ((2, 3, 9, 40), ("nearest", "nearest-exact", "bilinear", "bicubic", "area")),
        ((1, 2, 5, 6, 7), ("nearest", "trilinear")),
    ):
        for x in (random(dtype, *shape), random(dtype, *shape[::-1]).permute(*reversed(range(len(shape))))):
            for mode in modes:
                for factor in (2, 0.5, 1.7):
                    rounded(
                        both(lambda t, mode=mode, factor=factor: F.interpolate(t, scale_factor=factor, mode=mode)),
                        x,
                        level=level,
                    )
    rounded(
        both(lambda t: F.interpolate(t, (20, 5), mode="bilinear", antialias=True)),
        random(dtype, 2, 3, 9, 40),
        level=level,
    )
    for size, kernel, options in (
        ((9, 11), (3, 3), {"padding": 1}),
        ((9, 11), (3, 2), {"stride": 2, "dilation": 2}),
        ((30, 70), (5, 5), {}),
    ):
        images = random(dtype, 2, 3, *size)
        columns = F.unfold(images, kernel, **options)
        for given in (columns, columns.transpose(0, 1).clone().transpose(0, 1)):
            rounded(lambda t, o=options, k=kernel, s=size: F.fold(t, s, k, **o), given, level=level)
        rounded(both(lambda t, o=options, k=kernel: F.unfold(t, k, **o)), images, level=level)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_sums_at_positions(level, dtype):
    """Terms are added in float32, in the order of the positions, and the sum is rounded once."""
    rng = np.random.default_rng(0)

    def positions(size, *shape):
        return torch.tensor(rng.integers(0, size, shape))

    for shape, dim, count in (
        *(((50,), 0, 300), ((50, 70), 0, 300), ((50, 70), 1, 300), ((50, 3), 0, 40), ((3, 50, 4), 1, 90)),
        *(((5000, 9), 0, 3), ((5000,), 0, 3), ((40, 1300), 0, 100), ((6, 50), 1, 1), ((4, 30), 0, 0)),
    ):
        for x in (random(dtype, *shape), random(dtype, *shape[::-1]).permute(*reversed(range(len(shape))))):
            index = positions(shape[dim], count)
            source = random(dtype, *shape[:dim], count, *shape[dim + 1 :])
            rounded(lambda t, s, d=dim, i=index: t.index_add(d, i, s), x, source, level=level)
            rounded(lambda t, s, d=dim, i=index: t.clone().index_add_(d, i, s), x, source, level=level)
            flat = positions(x.numel(), count)
            rounded(lambda t, s, i=flat: t.put(i, s, accumulate=True), x, random(dtype, count), level=level)
            where = positions(shape[dim], *source.shape)
            for reduce in ("sum", "prod", "mean", "amax", "amin"):
                for include in (True, False):
                    rounded(
                        lambda t, s, d=dim, i=where, r=reduce, n=include: t.scatter_reduce(d, i, s, r, include_self=n),
                        x,
                        source,
                        level=level,
                    )
            if count > 1:
                rounded(lambda t, s, d=dim, i=where[..., 1:]: t.scatter_add(d, i, s), x, source, level=level)
    for x in (random(dtype, 20, 30, 5), random(dtype, 20, 60, 5)[:, ::2], random(dtype, 20, 30, 5).flip(0)):
        one, two = positions(20, 200), positions(30, 200)
        for indices, values in (
            ((one, two), (200, 5)),
            ((one,), (200, 30, 5)),
            ((one, two, positions(5, 200)), (200,)),
        ):
            rounded(lambda t, v, i=indices: t.index_put(i, v, accumulate=True), x, random(dtype, *values), level=level)
            rounded(
                lambda t, v, i=indices: t.clone().index_put_(i, v, accumulate=True),
                x,
                random(dtype, *values),
                level=level,
            )


@pytest.mark.parametrize("level", WHOLE)
def test_positions_outside_are_refused(level):
    x, source = random("float16", 5, 40), random("float16", 3, 40)
    with torch.backend(level):
        for call in (
            lambda: x.index_add(0, torch.tensor([0, 5, 1]), source),
            lambda: x.scatter_add(0, torch.tensor([[9] * 40]), source),
            lambda: x.scatter_add(1, torch.tensor([[0, -41]]), source),
        ):
            with pytest.raises((IndexError, RuntimeError)):
                call()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", WHOLE)
def test_steps_of_optimizers(level, dtype):
    """A step rounds the parameter and each state once; its first is that of float32 from the same numbers."""
    for make in (
        lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
        lambda p: torch.optim.AdamW(p, 0.01, amsgrad=True),
        lambda p: torch.optim.RMSprop(p, 0.01),
    ):
        starts, gradients = ([random(dtype, *shape) for shape in ((37, 50), (5,))] for _ in range(2))
        results = []
        for wide in (False, True):
            parameters = [(p.float() if wide else p.clone()).requires_grad_() for p in starts]
            for p, g in zip(parameters, gradients):
                p.grad = g.to(p.dtype)
            with torch.backend(level):
                optimizer = make(parameters)
                optimizer.step()
            states = [t for p in parameters for t in optimizer.state[p].values() if getattr(t, "ndim", 0)]
            results.append([t.detach().to(starts[0].dtype).float().numpy() for t in (*parameters, *states)])
        for narrow, exact in zip(*results, strict=True):
            np.testing.assert_array_equal(narrow, exact)


# (samples, channels, results, size, kernel, stride, padding, dilation, groups)
CONVOLUTIONS = [
    (2, 40, 70, (9, 11), (3, 3), 1, 1, 1, 1),
    (3, 33, 34, (12, 8), (3, 3), 2, 1, 1, 1),
    (2, 64, 20, (6, 6), (1, 1), 2, 0, 1, 1),
    (2, 70, 40, (5, 5), (1, 1), 1, 0, 1, 1),
    (1, 3, 16, (17, 40), (7, 7), 2, 3, 1, 1),
    (2, 8, 6, (12, 12), (3, 2), 1, 2, 2, 2),
    (2, 16, 16, (9, 9), (3, 3), 1, 1, 1, 16),
    (1, 5, 7, (23,), (4,), 3, 2, 1, 1),
    (2, 6, 4, (5, 6, 7), (3, 2, 3), 1, 1, 1, 2),
    (1, 116, 5, (2, 2), (3, 3), 1, 1, 1, 1),
]


@pytest.mark.parametrize("problem", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("level", LEVELS)
def test_convolutions(level, problem):
    samples, channels, results, size, kernel, stride, padding, dilation, groups = problem
    op = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}[len(size)]
    steps = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
    for dtype in HALVES:
        x, w, b = (
            random(dtype, *shape).requires_grad_()
            for shape in ((samples, channels, *size), (results, channels // groups, *kernel), (results,))
        )
        with torch.backend(level):
            y = op(x, w, b, **steps)
            gradient = random(dtype, *y.shape)
            found = y, *torch.autograd.grad(y, (x, w), gradient)
        exact, moduli = [], []
        for kept, of in ((exact, lambda t: t.detach().double()), (moduli, lambda t: t.detach().double().abs())):
            leaves = [of(t).requires_grad_() for t in (x, w, b)]
            with torch.backend("numpy"):
                z = op(*leaves, **steps)
                kept += z, *torch.autograd.grad(z, leaves[:2], of(gradient))
        for result, expected, terms in zip(found, exact, moduli, strict=True):
            check(result, f64(expected), f64(terms), dtype)


@pytest.mark.parametrize("level", LEVELS)
def test_convolutions_do_not_depend_on_the_number_of_threads(level, same_on_threads):
    x, w, gradient = (random("bfloat16", *shape) for shape in ((6, 5, 10, 10), (40, 5, 3, 3), (6, 40, 10, 10)))

    def results():
        leaves = [t.detach().requires_grad_() for t in (x, w)]
        y = F.conv2d(*leaves, padding=1)
        return [y, *torch.autograd.grad(y, leaves, gradient)]

    with torch.backend(level):
        same_on_threads(results)


@pytest.mark.parametrize("level", LEVELS)
def test_infinities_and_nan_stay_where_windows_meet_them(level):
    x, w = random("bfloat16", 1, 3, 12, 12), random("bfloat16", 2, 3, 3, 3)
    x[0, 1, 5, 6], x[0, 2, 11, 11] = float("inf"), float("nan")
    with torch.backend(level):
        y = f64(F.conv2d(x, w, padding=1))
    met = np.zeros((12, 12), bool)
    met[4:7, 5:8] = met[10:, 10:] = True
    assert (np.isfinite(y) == ~met).all()
