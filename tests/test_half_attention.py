"""Attention of half types and its gradients, at every level of the C backend that this machine has, and by emulated
tiles: results are those of float64 rounded once, but for what sums in float32 may lose."""

import numpy as np
import pytest

import corefw as torch
from corefw.testing.cases.attention import attention_backward, scored
from tests.halves import HALVES, LEVELS, check, f64, random
from tests.test_c_large import LAYOUTS

pytest.importorskip("tests.compiled")
from corefw_c import library
from tests.scratch import extra

F = torch.nn.functional
# (batch, queries, keys, width, width of values): few queries, none, and none to attend to; panels that are not full,
# several groups of them and several blocks of keys; many heads and few
PROBLEMS = [
    ((2,), 1, 300, 64, 64),
    ((2, 3), 3, 33, 7, 5),
    ((1,), 140, 200, 65, 33),
    ((2, 2), 129, 70, 32, 96),
    ((9,), 37, 150, 40, 64),
    ((2,), 37, 50, 1, 400),
    ((2,), 0, 4, 3, 3),
    ((2,), 40, 0, 3, 3),
]


def weights_of(query, key, bias, is_causal, scale):
    """The softmax of the scores, 0 where everything is -inf, and the logarithms of its denominators."""
    scores = scored(query, key, bias, is_causal, scale)
    largest = scores.max(-1, initial=-np.inf, keepdims=True)
    weights = np.exp(scores - np.where(largest == -np.inf, 0, largest))
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = np.where(total == 0, np.inf, np.log(total) + largest)[..., 0]
    return weights / np.where(total == 0, 1, total), logs


def lost(level, dtype):
    """What sums lose of their terms: tiles take weights and their gradients as sums of two bfloat16, as
    docs/precision.md says."""
    tiles = level == "c-tiles" or library.load(level[2:] or library.best_level()).products == library.BY_TILES
    return 2.0**-17 if tiles and dtype == "bfloat16" else 2.0**-20


def check_call(level, dtype, tensors, gradient, mask=None, **options):
    """The output and the gradients of a call beside those of float64, and beside their terms' moduli."""
    leaves = [t.requires_grad_() for t in tensors]
    with torch.backend(level):
        output = F.scaled_dot_product_attention(*leaves, mask, **options)
        gradients = torch.autograd.grad(output, leaves, gradient)
    q, k, v, g = (f64(t) for t in (*leaves, gradient))
    bias = None
    if mask is not None:
        bias = np.where(mask.numpy(), 0.0, -np.inf) if mask.dtype is torch.bool else f64(mask)
    options = {"bias": bias, "is_causal": options.get("is_causal", False), "scale": q.shape[-1] ** -0.5}
    weights, logs = weights_of(q, k, **options)
    expected = weights @ v
    check(output, expected, weights @ abs(v), dtype, lost(level, dtype))
    of_all = attention_backward(g, q, k, v, f64(output), logs, **options)  # D is that of the output as it was rounded
    of_scores = weights * (abs(g) @ abs(v).swapaxes(-1, -2) + abs(g * expected).sum(-1)[..., None]) * options["scale"]
    moduli = of_scores @ abs(k), of_scores.swapaxes(-1, -2) @ abs(q), weights.swapaxes(-1, -2) @ abs(g)
    for found, exact, terms in zip(gradients, of_all, moduli, strict=True):
        check(found, exact, terms, dtype, lost(level, dtype))


@pytest.mark.parametrize("problem", PROBLEMS, ids=str)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_values_and_gradients(level, dtype, problem):
    batch, queries, keys, width, wide = problem
    shapes = (*batch, queries, width), (*batch, keys, width), (*batch, keys, wide), (*batch, queries, wide)
    *tensors, gradient = (random(dtype, *shape) for shape in shapes)
    scores, forbidden = random(dtype, queries, keys), torch.from_numpy(np.random.random((queries, keys)) < 0.6)
    scores[..., :1] = -np.inf
    forbidden[:1] = False  # a query that may attend to no key
    check_call(level, dtype, tensors, gradient)
    check_call(level, dtype, tensors, gradient, forbidden)
    for mask in (None, scores, scores[:1], scores[:, :1].clamp(-1)) if keys else ():
        check_call(level, dtype, tensors, gradient, mask, is_causal=True)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_operands_that_lie_otherwise(level, dtype, layout):
    for queries in (2, 45):
        shapes = (3, queries, 32), (3, 70, 32), (3, 70, 24), (3, queries, 24)
        lying = [LAYOUTS[layout](random("float32", *shape).numpy()) for shape in shapes]
        *tensors, gradient = (torch.from_numpy(a).to(getattr(torch, dtype)) for a in lying)
        assert layout == "inside" or not tensors[1].is_contiguous()
        if layout == "inside":
            *tensors, gradient = (torch.nn.functional.pad(t, (1, 2))[..., 1:-2] for t in (*tensors, gradient))
        check_call(level, dtype, [t.detach() for t in tensors], gradient)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_heads_of_one_projection_and_shared_ones(level, dtype):
    projected, gradient = random(dtype, 2, 50, 3, 4, 16), random(dtype, 2, 4, 50, 16)
    check_call(level, dtype, [projected[:, :, i].transpose(1, 2).detach() for i in range(3)], gradient, is_causal=True)
    q, k, v = random(dtype, 2, 4, 50, 16), random(dtype, 2, 2, 60, 16), random(dtype, 2, 2, 60, 16)
    with torch.backend(level):
        shared = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        repeated = F.scaled_dot_product_attention(q, *(x.repeat_interleave(2, 1) for x in (k, v)))
    assert torch.equal(shared, repeated)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_infinities_and_nan_spoil_what_they_spoil_in_float32(level, dtype):
    for queries in (2, 40):
        tensors = [random(dtype, 3, n, 32) for n in (queries, 64, 64, queries)]
        tensors[0][0, 1, 3] = tensors[1][1, 5, 7] = float("nan")
        tensors[2][2, 6, 8], tensors[1][2, 9, 1] = float("inf"), float("-inf")
        spoilt = []
        for backend, wide in ((level, False), ("numpy", True)):
            *leaves, gradient = (t.float() if wide else t.detach() for t in tensors)
            leaves = [t.requires_grad_() for t in leaves]
            with torch.backend(backend):
                output = F.scaled_dot_product_attention(*leaves)
                results = output, *torch.autograd.grad(output, leaves, gradient)
                spoilt.append([np.where(np.isfinite(f64(t)), 0, f64(t)) for t in results])
        for found, expected in zip(*spoilt, strict=True):
            np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("level", LEVELS)
def test_results_do_not_depend_on_the_number_of_threads(level, dtype, same_on_threads):
    *tensors, gradient = (random(dtype, 2, n, 32) for n in (400, 150, 150, 400))

    def results():
        leaves = [t.detach().requires_grad_() for t in tensors]
        output = F.scaled_dot_product_attention(*leaves, is_causal=True)
        return [output, *torch.autograd.grad(output, leaves, gradient)]

    with torch.backend(level):
        same_on_threads(results)


@pytest.mark.parametrize("dtype", HALVES)
def test_no_operand_is_converted_as_a_whole(dtype):
    """Beside the results there is memory for panels and blocks, and for the sums of one head's keys by each thread."""
    *tensors, gradient = (random(dtype, 32, 1024, 64) for _ in range(4))
    leaves, size = [t.requires_grad_() for t in tensors], 2 * gradient.numel()

    forward = extra(F.scaled_dot_product_attention, *leaves)
    output, threads = F.scaled_dot_product_attention(*leaves), torch.get_num_threads()
    backward = extra(torch.autograd.grad, output, leaves, gradient, retain_graph=True)
    assert forward < 2 * 32 * 1024 * 4 + threads * (1 << 20) < size
    assert backward < threads * (2 << 20) < 2 * size
