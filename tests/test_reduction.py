"""Reductions: overloads, options, errors and corner cases beyond the rows of cases/reduction.py."""

import pytest

import corefw as torch

inf, nan = float("inf"), float("nan")
BACKENDS = [backend.name for backend in torch.backends() if backend.usable and "cpu" in backend.devices]


def values(tensor):
    """The elements as nested lists."""
    return tensor.tolist()


@pytest.mark.parametrize(
    ("dtype", "expected"), [(torch.uint8, torch.int64), (torch.bool, torch.int64), (torch.float16, torch.float16)]
)
@pytest.mark.parametrize("name", ["sum", "prod", "nansum"])
def test_accumulating_dtype(name, dtype, expected):
    assert getattr(torch.ones(3, dtype=dtype), name)().dtype is expected


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "nansum", "nanmean"])
def test_dtype_option_converts_first(name):
    result = getattr(torch.tensor([2, 3], dtype=torch.int8), name)(dtype=torch.float64)
    assert result.dtype is torch.float64
    assert result.item() == {"sum": 5, "nansum": 5, "prod": 6}.get(name, 2.5)


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("sum", torch.int32, 3),
        ("sum", torch.bool, True),
        ("nansum", torch.float64, 1.75 + 2.75),
        ("prod", torch.int8, 2),
        ("cumsum", torch.int32, [1, 3]),
        ("cumprod", torch.complex64, [1.75, 4.8125]),
    ],
)
def test_elements_are_converted_to_the_dtype_of_out(name, dtype, expected):
    out = torch.zeros(2 if name.startswith("cum") else (), dtype=dtype)
    assert getattr(torch, name)(torch.tensor([1.75, 2.75]), 0, out=out).tolist() == expected


def test_a_sum_asked_for_a_dtype_fits_into_out_or_is_refused():
    x = torch.tensor([1.75, 2.75])
    assert torch.sum(x, 0, dtype=torch.int64, out=torch.zeros(())).item() == 3
    with pytest.raises(RuntimeError, match="Float can't be cast to the desired output type Int"):
        torch.sum(x, 0, dtype=torch.float32, out=torch.zeros((), dtype=torch.int32))


def test_uint8_does_not_overflow():
    assert torch.full((300,), 255, dtype=torch.uint8).sum().item() == 300 * 255


def test_half_sums_in_float32():
    assert torch.ones(4096, dtype=torch.float16).sum().item() == 4096
    assert torch.ones(4096, dtype=torch.bfloat16).mean().item() == 1


def test_long_columns_are_precise():
    column = torch.full((100_000, 2), 0.1)
    assert abs(column.sum(0)[0].item() - 10_000) < 0.01


def test_max_takes_a_dimension_or_a_tensor():
    x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
    assert x.max().item() == 7
    assert values(x.max(1).values) == [5, 7]
    assert values(x.max(dim=0, keepdim=True).indices) == [[1, 0]]
    assert values(torch.max(x, torch.full((2,), 4.0))) == [[4, 5], [7, 4]]
    assert values(torch.min(x, other=torch.full((2,), 4.0))) == [[1, 4], [4, 2]]
    found, where = torch.min(x, 0)
    assert (values(found), values(where)) == ([1, 2], [0, 1])


def test_results_print_as_named_tuples():
    shown = repr(torch.tensor([1, 2]).max(0))
    assert shown == "torch.return_types.max(\nvalues=tensor(2),\nindices=tensor(1))"


def test_out_of_one_and_of_two_results():
    x = torch.tensor([[1.0, 5.0], [7.0, 2.0]])
    one, two = torch.empty(2), torch.empty(2, dtype=torch.int64)
    result = torch.max(x, 1, out=(one, two))
    assert result.values is one
    assert (values(one), values(two)) == ([5, 7], [1, 0])
    largest = torch.empty(())
    assert torch.max(x, out=largest) is largest
    assert largest.item() == 7
    with pytest.raises(TypeError, match=r"sum\(\): argument 'out' must be Tensor, not tuple"):
        torch.sum(x, out=(one,))
    with pytest.raises(TypeError, match=r"max\(\): argument 'out' must be tuple of Tensors"):
        torch.max(x, 1, out=one)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("amax", [0, 0.5, 0.5]), ("max", [0, 0.5, 0.5]), ("amin", [1, 0, 0]), ("median", None)],
)
def test_equal_extremes_share_the_gradient(name, expected):
    x = torch.tensor([1.0, 3.0, 3.0], requires_grad=True)
    getattr(x, name)().backward()
    assert values(x.grad) == expected if expected else x.grad.sum().item() == 1


@pytest.mark.parametrize("name", ["amax", "max"])
def test_infinite_gradient_of_extremes(name):
    x = torch.tensor([1.0, 3.0, 3.0], requires_grad=True)
    getattr(x, name)().backward(torch.tensor(torch.inf))
    assert values(x.grad) == [0, torch.inf, torch.inf]


def test_gradient_of_an_extreme_beside_nan_is_nan():
    x = torch.tensor([1.0, torch.nan], requires_grad=True)
    x.amax().backward()
    assert x.grad.isnan().all()


def test_max_along_a_dimension_gives_the_gradient_to_one():
    x = torch.tensor([1.0, 3.0, 3.0], requires_grad=True)
    x.max(0).values.backward()
    assert values(x.grad) == [0, 1, 0]


@pytest.mark.parametrize("name", ["median", "nanmedian"])
def test_the_median_of_nothing_has_a_gradient(name):
    x = torch.zeros(0, 3, requires_grad=True)
    median = getattr(x, name)()
    assert median.isnan() and median.shape == ()
    median.backward()
    assert x.grad.shape == (0, 3)


def test_not_a_number_is_the_extreme():
    x = torch.tensor([1.0, nan, 3.0])
    for name in ("max", "min", "median", "argmax", "argmin"):
        result = getattr(x, name)()
        assert result.item() == 1 if "arg" in name else result.isnan().item()
    assert x.max(0).indices.item() == x.min(0).indices.item() == x.median(0).indices.item() == 1
    assert x.nanmedian().item() == 1
    assert x.nansum().item() == 4


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, 7 / 3),
        ({"unbiased": False}, 14 / 9),
        ({"correction": 0}, 14 / 9),
        ({"correction": 2}, 14 / 3),
        ({"dim": 0}, 7 / 3),
    ],
)
def test_corrections(options, expected):
    x = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    assert x.var(**options).item() == pytest.approx(expected)
    assert x.std(**options).item() == pytest.approx(expected**0.5)
    assert [part.item() for part in torch.var_mean(x, **options)] == pytest.approx([expected, 7 / 3])


def test_unbiased_may_come_first():
    x = torch.tensor([1.0, 3.0])
    assert (x.var(False).item(), x.var(True).item(), x.std(0, False).item()) == (1, 2, 1)


def test_nothing_left_after_the_correction_is_not_a_number():
    assert torch.ones(1).var().isnan().item()
    assert torch.ones(0).mean().isnan().item()


def test_deviation_of_equal_elements_has_no_gradient():
    x = torch.ones(3, requires_grad=True)
    x.std().backward()
    assert values(x.grad) == [0, 0, 0]


@pytest.mark.parametrize("p", [0.5, 1, 2, 3, inf])
def test_norm_of_zeros_has_no_gradient(p):
    x = torch.zeros(3, requires_grad=True)
    x.norm(p).backward()
    assert values(x.grad) == [0, 0, 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32])
def test_the_gradient_of_a_small_norm_is_of_length_one(dtype):
    x = torch.tensor([3e-6, -4e-6], dtype=dtype, requires_grad=True)
    (gradient,) = torch.autograd.grad(x.norm(), x)
    assert gradient.tolist() == pytest.approx([0.6, -0.8], rel=0.05)


def test_logsumexp_of_infinities():
    assert torch.tensor([-inf, -inf]).logsumexp(0).item() == -inf
    assert torch.tensor([inf, 1.0]).logsumexp(0).item() == inf
    assert torch.ones(0, 2).logsumexp(0).tolist() == [-inf, -inf]
    assert torch.tensor([1, 1]).logsumexp(0).dtype is torch.float32


def test_truth_of_uint8_is_uint8():
    x = torch.tensor([1, 0], dtype=torch.uint8)
    assert (x.all().dtype, x.any(0).dtype) == (torch.uint8, torch.uint8)
    assert (x.all().item(), x.any().item()) == (0, 1)
    assert torch.any(x, out=torch.zeros((), dtype=torch.bool)).item() is True


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "midpoint", "nearest"])
def test_quantiles(interpolation):
    x, q = torch.tensor([[1.0, 2.0], [4.0, 3.0]], dtype=torch.float64), torch.tensor([0.4, 0.9], dtype=torch.float64)
    expected = {
        "linear": [[1.4, 3.4], [1.9, 3.9]],
        "lower": [[1, 3], [1, 3]],
        "higher": [[2, 4], [2, 4]],
        "midpoint": [[1.5, 3.5], [1.5, 3.5]],
        "nearest": [[1, 3], [2, 4]],
    }[interpolation]
    result = x.quantile(q, dim=1, interpolation=interpolation)
    for row, expected_row in zip(values(result), expected, strict=True):
        assert row == pytest.approx(expected_row)
    assert tuple(x.quantile(q, keepdim=True).shape) == (2, 1, 1)
    assert tuple(x.quantile(0.5, dim=0, keepdim=True).shape) == (1, 2)


EMPTY = torch.ones(0, 3)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: EMPTY.amax(), RuntimeError, "Expected reduction dim to be specified"),
        (lambda: EMPTY.max(), RuntimeError, "Expected reduction dim to be specified"),
        (lambda: EMPTY.amin(0), IndexError, "Expected reduction dim 0 to have non-zero size"),
        (lambda: EMPTY.max(0), IndexError, r"max\(\): Expected reduction dim 0"),
        (lambda: EMPTY.median(0), IndexError, r"median\(\): Expected reduction dim 0"),
        (lambda: torch.ones(0, 0).nanmedian(0), IndexError, r"nanmedian\(\): Expected reduction dim 0"),
        (lambda: EMPTY.mode(0), IndexError, r"mode\(\): Expected reduction dim 0"),
        (lambda: EMPTY.argmax(), IndexError, "Expected reduction dim to be specified"),
        (lambda: EMPTY.argmin(0), IndexError, r"argmin\(\): Expected reduction dim 0"),
        (lambda: EMPTY.aminmax(), RuntimeError, "cannot compute aminmax over an empty dimension"),
        (lambda: EMPTY.norm(inf), RuntimeError, "inf norm on an empty tensor"),
        (lambda: EMPTY.norm(-1, 0), RuntimeError, "-1 norm on the empty dimensions"),
        (
            lambda: EMPTY.sum(2),
            IndexError,
            r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)",
        ),
        (lambda: EMPTY.sum((0, -2)), RuntimeError, "dim 0 appears multiple times"),
        (lambda: torch.ones(3).kthvalue(0), RuntimeError, "selected number k out of range"),
        (lambda: torch.ones(3).kthvalue(4), RuntimeError, "selected number k out of range"),
        (lambda: torch.tensor([1, 2]).mean(), RuntimeError, "mean"),
        (lambda: torch.tensor([1, 2]).var(), RuntimeError, "var"),
        (lambda: torch.tensor([1, 2]).norm(), RuntimeError, "norm"),
        (lambda: torch.tensor([1, 2]).nanmean(), RuntimeError, "nanmean"),
        (lambda: torch.ones(2).nanmean(dtype=torch.bool), RuntimeError, "nanmean.*got Bool"),
        (lambda: torch.tensor([True]).argmax(), RuntimeError, "argmax"),
        (lambda: torch.tensor([1j]).amax(), RuntimeError, "amax"),
        (lambda: torch.ones(3).trace(), RuntimeError, "expected a matrix"),
        (lambda: torch.ones(3).sum_to_size(2), RuntimeError, "not expandable"),
        (lambda: torch.ones(2).quantile(1.5), RuntimeError, "range"),
        (lambda: torch.ones(2).quantile(0.5, interpolation="cubic"), RuntimeError, "interpolation"),
        (lambda: torch.tensor(1.0).quantile(0.5, 1), IndexError, r"range of \[-1, 0\], but got 1"),
        (lambda: torch.ones(2).argmax(0.5), TypeError, "must be int"),
    ],
)
@pytest.mark.parametrize("backend", BACKENDS)
def test_errors(call, error, text, backend):
    with torch.backend(backend), pytest.raises(error, match=text):
        call()


def test_nothing_along_another_dimension_is_fine():
    assert tuple(EMPTY.amax(1).shape) == (0,)
    assert tuple(EMPTY.max(1, keepdim=True).indices.shape) == (0, 1)
    assert tuple(EMPTY.argmax(1).shape) == (0,)
    assert values(EMPTY.sum(0)) == [0, 0, 0]
    assert EMPTY.prod().item() == 1
    assert (EMPTY.all().item(), EMPTY.any().item()) == (True, False)


@pytest.mark.parametrize("name", ["sum", "nansum", "prod"])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float64])
def test_the_dtype_asked_for_is_the_results(name, dtype):
    assert getattr(torch.ones(3), name)(dtype=dtype).dtype == dtype


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_nansum_to_integers_counts_nan_as_zero(dtype):
    assert torch.tensor([torch.nan, 2.7, 1.6]).nansum(dtype=dtype).item() == 3
    assert torch.tensor([[torch.nan, 2.0], [torch.nan, torch.nan]]).nansum(1, dtype=dtype).tolist() == [2, 0]


def test_sum_to_no_dimension_is_a_sum():
    """Of integers in int64, whatever the number of dimensions."""
    for shape in ((), (2,), (2, 3)):
        assert torch.ones(shape, dtype=torch.int16).sum_to_size(()).dtype is torch.int64


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_gradient_of_a_product_whose_parts_are_beyond_the_type(dtype):
    largest = torch.finfo(dtype).max
    x = torch.tensor([largest, 2.0, 0.25, largest**-0.5, 1.0], dtype=dtype, requires_grad=True)
    x.prod().backward()
    wide = x.detach().double().requires_grad_()
    wide.prod().backward()
    torch.testing.assert_close(x.grad, wide.grad.to(dtype))
