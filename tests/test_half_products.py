"""Products of half types and of int8, at every level of the C backend that this machine has, and by emulated tiles."""

import numpy as np
import pytest

import corefw as torch
from corefw.dispatch.registry import registry
from tests.halves import HALVES, LEVELS, check, f64, random
from tests.test_c_backend import run
from tests.test_linear_algebra import LAYOUTS

pytest.importorskip("tests.compiled")
from corefw_c import library

SIZES = [(1, 33, 65), (70, 129, 1), (2, 600, 3), (15, 17, 33), (57, 131, 35), (33, 2100, 40), (5, 0, 4)]


def test_levels_of_one_module_are_told_apart():
    levels, best = library.levels(), library.best_level()
    assert registry.backends["c"].detail.partition(";")[0] == best
    assert {f"c-{level}" for level in levels if level != best} <= set(LEVELS)
    assert len({(library.module_of(level), library.load(level).products) for level in levels}) == len(levels)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_products_are_rounded_once(level, dtype):
    layouts = list(LAYOUTS.values())
    for number, (m, k, n) in enumerate(SIZES):  # each layout of the left meets each of the right in some size
        for left, right in zip(layouts, layouts[number % 5 :] + layouts[: number % 5]):
            a, b = left(random(dtype, m, k)), right(random(dtype, k, n)) if k else random(dtype, k, n)
            expected, moduli = f64(a) @ f64(b), np.abs(f64(a)) @ np.abs(f64(b))
            with torch.backend(level):
                check(a @ b, expected, moduli, dtype)
                check(torch.nn.functional.linear(a, b.mT), expected, moduli, dtype)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_threads_with_columns_of_their_own_sum_in_the_same_order(level, dtype):
    for m, k, n in ((257, 1801, 300), (500, 66, 517)):
        x, weight = random(dtype, m, k), random(dtype, n, k)
        with torch.backend(level):
            whole = torch.nn.functional.linear(x, weight)
            parts = torch.cat([torch.nn.functional.linear(part, weight) for part in x.split(128)])
            expected = f64(x[::50]) @ f64(weight).T
            check(whole[::50], expected, np.abs(f64(x[::50])) @ np.abs(f64(weight)).T, dtype)
        assert torch.equal(whole[: m // 128 * 128], parts[: m // 128 * 128])


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_what_is_added_and_factors_enter_before_the_rounding(level, dtype):
    a, b, matrix, row = (random(dtype, *shape) for shape in ((3, 20, 70), (3, 70, 40), (3, 20, 40), (40,)))
    for added in (matrix, row, matrix[..., :1], matrix.mT.contiguous().mT):
        for beta, alpha in ((1, 1), (0.25, 1), (1, -3), (0, 2)):
            expected = alpha * (f64(a) @ f64(b)) + beta * f64(added)
            moduli = abs(alpha) * (np.abs(f64(a)) @ np.abs(f64(b))) + np.abs(f64(added))
            with torch.backend(level):
                check(torch.baddbmm(added, a, b, beta=beta, alpha=alpha), expected, moduli, dtype)
                one = torch.addmm(added[0] if added.ndim == 3 else added, a[0], b[0], beta=beta, alpha=alpha)
                check(one, expected[0], moduli[0], dtype)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_gradients_of_linear_maps(level, dtype):
    x, weight, bias, gradient = (random(dtype, *shape) for shape in ((2, 40, 70), (33, 70), (33,), (2, 40, 33)))
    rows, columns = f64(gradient).reshape(80, 33), f64(x).reshape(80, 70)
    with torch.backend(level):
        leaves = [t.requires_grad_() for t in (x, weight, bias)]
        of_x, of_weight, of_bias = torch.autograd.grad(torch.nn.functional.linear(*leaves), leaves, gradient)
    check(of_x, f64(gradient) @ f64(weight), np.abs(f64(gradient)) @ np.abs(f64(weight)), dtype)
    check(of_weight, rows.T @ columns, np.abs(rows.T) @ np.abs(columns), dtype)
    check(of_bias, rows.sum(0), np.abs(rows).sum(0), dtype)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_infinities_and_nan_spoil_only_what_they_meet(level, dtype):
    a, b = random(dtype, 40, 70).abs(), random(dtype, 70, 50).abs()
    a[3, 5], a[4, 6], b[7, 8] = float("inf"), float("nan"), float("-inf")
    b[5, 9] = 0.0
    with torch.backend(level):
        result = f64(a @ b)
    finite = np.ones((40, 50), bool)
    finite[3:5], finite[:, 8] = False, False
    assert np.isfinite(result[finite]).all() and np.isnan(result[4]).all() and np.isnan(result[3, 8:10]).all()
    assert (result[3, :8] == np.inf).all() and (result[5:, 8] == -np.inf).all()


@pytest.mark.parametrize("level", LEVELS)
def test_float16_is_exact_to_its_last_bit_and_its_smallest_number(level):
    """All sums of these are exact in float32, so the only rounding is the last one."""
    a = torch.tensor([[2047.0, 2.0**-24], [1023 * 2.0**-24, 65504.0]], dtype=torch.float16)
    b = torch.tensor([[1.0, 0.5 + 2.0**-11], [0.0, 0.0]], dtype=torch.float16)
    with torch.backend(level):
        assert f64(a @ b).tobytes() == (f64(a) @ f64(b)).astype(np.float16).astype(float).tobytes()


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_few_rows_or_columns_whose_factors_are_contiguous_along_k(level, dtype):
    sizes = (1, 300, 5), (2, 256, 33), (3, 777, 70), (4, 4100, 130), (5, 300, 1), (32, 261, 66), (70, 520, 7)
    for m, k, n in (*sizes, (40, 300, 31)):
        a, b = random(dtype, m, k), random(dtype, n, k)
        added = random(dtype, n)
        expected, moduli = f64(a) @ f64(b).T, np.abs(f64(a)) @ np.abs(f64(b)).T
        with torch.backend(level):
            check(a @ b.mT, expected, moduli, dtype)
            check(torch.nn.functional.linear(a, b, added), expected + f64(added), moduli + np.abs(f64(added)), dtype)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_few_rows_or_columns_beside_contiguous_rows(level, dtype):
    """Also those whose elements lie apart, and rows of other lengths than vectors."""
    for m, k, n in ((1, 300, 2100), (2, 17, 601), (4, 5, 95), (7, 64, 333), (8, 1001, 70), (13, 9, 40), (300, 29, 3)):
        a, b = random(dtype, m, k), random(dtype, k, n)
        added = random(dtype, n)
        apart = random(dtype, k, m).mT if m <= n else a
        if m > n:  # whose transposed product has few rows
            a = a.mT.contiguous().mT
        for left in (a, apart):
            expected, moduli = f64(left) @ f64(b), np.abs(f64(left)) @ np.abs(f64(b))
            with torch.backend(level):
                check(left @ b, expected, moduli, dtype)
                found = torch.addmm(added, left, b, beta=2, alpha=-1)
            check(found, 2 * f64(added) - expected, moduli + 2 * np.abs(f64(added)), dtype)


@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("level", LEVELS)
def test_products_of_int8_are_exact(level, right):
    """With the least and the greatest numbers: what AVX512-VNNI adds to bytes is taken away again."""
    sizes = (20, 70, 130), (57, 1101, 300), (300, 2055, 40), (33, 3, 64), (17, 64, 8)
    for (m, k, n), left in zip(sizes, LAYOUTS.values()):
        numbers = [np.random.randint(-128, 128, shape).astype(np.int8) for shape in ((m, k), (k, n))]
        numbers[0][:2, :3], numbers[1][:3, :2] = -128, 127
        a, b = left(torch.from_numpy(numbers[0])), LAYOUTS[right](torch.from_numpy(numbers[1]))
        with torch.backend(level):
            result = torch._int_mm(a, b)
        assert result.dtype == torch.int32 and (result.numpy() == a.numpy().astype(int) @ b.numpy().astype(int)).all()


@pytest.mark.parametrize("level", LEVELS)
def test_bfloat16_below_the_normal_numbers(level):
    """Dot products of pairs and tiles take them for zeros, as docs/precision.md says; float32 does not."""
    small = torch.full((40, 40), 2.0**-130, dtype=torch.bfloat16)
    with torch.backend(level):
        result = f64(small @ torch.eye(40, dtype=torch.bfloat16))
    flushed = level == "c-tiles" or library.load(level[2:] or library.best_level()).products != library.BY_FLOATS
    assert (result == (0 if flushed else 2.0**-130)).all()


@pytest.mark.parametrize("dtype", HALVES)
def test_emulated_tiles_have_the_bits_of_the_processors(dtype):
    if not {"c-tiles", "c"} <= set(LEVELS) or library.load(library.best_level()).products != library.BY_TILES:
        pytest.skip("tiles of the processor and emulated ones are not both here")
    for m, k, n in ((3, 5, 7), (33, 65, 31), (64, 1100, 40)):
        a, b, added = random(dtype, m, k), random(dtype, k, n), random(dtype, n)
        results = []
        for level in ("c", "c-tiles"):
            with torch.backend(level):
                results.append(torch.addmm(added, a, b, alpha=2) if m > 3 else a @ b)
        assert results[0].view(torch.int16).tolist() == results[1].view(torch.int16).tolist(), (m, k, n)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_bits_do_not_depend_on_the_number_of_threads(level, dtype, same_on_threads):
    a, b = random(dtype, 300, 150), random(dtype, 150, 200)
    with torch.backend(level):
        same_on_threads(lambda: a @ b)


def test_a_refusal_of_the_system_is_told(monkeypatch):
    """What the kernel says where it does not keep the state of tiles for this process."""

    class Module:
        class lib:
            machine_level = staticmethod(lambda: 4)
            machine_products = staticmethod(lambda: library.BY_TILES)
            permission_of_tiles = staticmethod(lambda: 1)

    monkeypatch.setattr(library, "is_built", ("v3", "v4").__contains__)
    monkeypatch.setattr(library, "import_module", lambda name: Module)
    assert library.levels() == ["v4-bf16", "v4", "v3"]
    assert library.refused_level() == "amx refused by the system: Operation not permitted"


@pytest.mark.parametrize("level", [level for level in library.levels() if level in library.FURTHER])
def test_the_environment_lowers_products_alone(level):
    program = "import corefw, corefw_c.library as l; corefw.zeros(1); print(l.load(l.best_level()).products)"
    assert run(program, COREFW_C_LEVEL=level) == str(library.FURTHER[level][1])
