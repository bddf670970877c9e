"""What C kernels do otherwise for operands that are large, or lie apart: beside float64, and beside NumPy's kernels."""

import numpy as np
import pytest

import corefw as torch
from corefw.nn import functional as F
from tests.test_c_kernels import kernel

SEED = 7


def draw(*shape):
    """Standard normal numbers in float32, the same for a shape."""
    return np.random.default_rng([SEED, *shape]).standard_normal(shape, np.float32)


def close(found, expected, tolerance=2e-5):
    """Whether float32 numbers are float64 ones, but for rounding relative to the largest."""
    np.testing.assert_allclose(np.asarray(found), expected, rtol=0, atol=tolerance * max(1, np.abs(expected).max()))


LAYOUTS = {
    "transposed": lambda x: np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1),
    "inside": lambda x: np.pad(x, ((0, 1), (1, 2), (3, 0)))[:-1, 1:-2, 3:],
    "columns": lambda x: np.asfortranarray(x),
}


# -- products ---------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize(
    ("rows", "k", "n"), [((5, 3), 17, 9), ((3, 50), 260, 70), ((2, 3), 300, 900), ((41, 2), 33, 40)]
)
def test_linear_maps_of_rows_that_lie_apart(layout, rows, k, n):
    x, w, b = LAYOUTS[layout](draw(*rows, k)), draw(n, k), draw(n)
    input, weight, bias = (torch.from_numpy(a).requires_grad_() for a in (x, w, b))
    output = F.linear(input, weight, bias)
    expected = x.astype(float) @ w.T.astype(float) + b
    close(output.detach(), expected)
    assert output.is_contiguous()
    close((torch.from_numpy(x) @ torch.from_numpy(w.T)).numpy(), expected - b)
    gradient = LAYOUTS[layout](draw(*rows, n))
    output.backward(torch.from_numpy(gradient))
    flat = gradient.reshape(-1, n).astype(float)
    close(input.grad, (flat @ w).reshape(x.shape))
    close(weight.grad, flat.T @ x.reshape(-1, k))
    close(bias.grad, flat.sum(0))


@pytest.mark.parametrize("m", [1, 2, 4, 7, 9, 40, 41])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("k", [320, 1027])
def test_few_rows_beside_a_large_matrix(m, transposed, k):
    a, b, c = draw(m, k), draw(901, k), draw(901)
    left, right, added = map(torch.from_numpy, (a, b if transposed else np.ascontiguousarray(b.T), c))
    found = F.linear(left, right, added) if transposed else torch.addmm(added, left, right)
    close(found.numpy(), a.astype(float) @ b.T.astype(float) + c)
    close((right @ left.mT if transposed else right.mT @ left.mT).numpy(), b.astype(float) @ a.T.astype(float))


@pytest.mark.parametrize("dtype", [np.float64, np.int32, np.int64])
@pytest.mark.parametrize("m", [5, 40])
def test_few_rows_beside_long_columns(dtype, m):
    """Blocks of them, the last of which is no whole line, are added up in every type."""
    a, b = ((100 * draw(rows, 5003)).astype(dtype) for rows in (m, 70))
    found, expected = (torch.from_numpy(a) @ torch.from_numpy(b).mT).numpy(), a @ b.T
    assert np.allclose(found, expected, rtol=1e-12, atol=1e-7) if dtype is np.float64 else (found == expected).all()


# -- attention --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 1, 3), (2, 1, 0, 3)])
@pytest.mark.parametrize("queries", [2, 37])
def test_results_of_attention_lie_as_its_operands(order, queries):
    """A projection of several heads is read as it lies, and what comes out is joined again without a copy."""
    back = np.argsort(order)
    q, k, v = (draw(*np.take((2, 3, n, 15), order))[..., i : i + 5] for i, n in ((0, queries), (5, 40), (10, 40)))
    q, k, v = (a.transpose(back) for a in (q, k, v))
    gradient = draw(2, 3, queries, 5)
    inputs = [torch.from_numpy(a).requires_grad_() for a in (q, k, v)]
    output = F.scaled_dot_product_attention(*inputs, is_causal=True)
    output.backward(torch.from_numpy(gradient))
    wide = [torch.from_numpy(a.astype(float)).requires_grad_() for a in (q, k, v)]
    with torch.backend("numpy"):
        expected = F.scaled_dot_product_attention(*wide, is_causal=True)
        expected.backward(torch.from_numpy(gradient.astype(float)))
    close(output.detach(), expected.detach().numpy())
    for a, b in zip(inputs, wide, strict=True):
        close(a.grad, b.grad.numpy())
    assert output.permute(order).is_contiguous() and inputs[0].grad.permute(order).is_contiguous()


def test_attention_of_operands_that_lie_otherwise():
    q, k, v = draw(2, 21, 8), draw(2, 30, 8), draw(2, 30, 6)
    expected = F.scaled_dot_product_attention(*(torch.from_numpy(a.astype(float)) for a in (q, k, v))).numpy()
    for layout in ("transposed", "columns", "inside"):
        found = F.scaled_dot_product_attention(*(torch.from_numpy(LAYOUTS[layout](a)) for a in (q, k, v)))
        close(found.numpy(), expected)
    repeated = (torch.from_numpy(a[:1]).expand(2, -1, -1) for a in (q, k, v))
    for same in F.scaled_dot_product_attention(*repeated):
        close(same.numpy(), expected[0])


# -- several heads ----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("extra", [{}, {"add_bias_kv": True, "add_zero_attn": True}, {"kdim": 5, "vdim": 7}])
def test_heads_of_batches_that_come_first(need_weights, masked, extra):
    """With batch_first a batch is computed as it lies; the numbers are those of batch_first=False."""
    first = torch.nn.MultiheadAttention(6, 2, batch_first=True, dtype=torch.float64, **extra)
    second = torch.nn.MultiheadAttention(6, 2, dtype=torch.float64, **extra)
    second.load_state_dict(first.state_dict())
    query, memory = torch.from_numpy(draw(4, 3, 6)).double(), torch.from_numpy(draw(4, 5, 7)).double()
    key, value = memory[..., : extra.get("kdim", 6)], memory[..., : extra.get("vdim", 6)]
    if not extra:
        value = key
    mask = torch.tensor([[True] + [False] * 4] * 4) if masked else None
    found, weights = first(query, key, value, mask, need_weights)
    turned = (x.transpose(0, 1).contiguous() for x in (query, key, value))
    expected, wanted = second(*turned, mask, need_weights)
    assert found.is_contiguous()
    np.testing.assert_allclose(
        found.detach().numpy(), expected.transpose(0, 1).detach().numpy(), rtol=1e-12, atol=1e-12
    )
    if need_weights:
        np.testing.assert_allclose(weights.detach().numpy(), wanted.detach().numpy(), rtol=1e-12, atol=1e-12)
    found.square().sum().backward()
    expected.square().sum().backward()
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_an_encoder_of_batches_copies_nothing():
    """Its layers read strided views of what they computed: every kernel is one that computes."""
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.from_numpy(draw(3, 5, 8))
    with torch.no_grad(), torch.ledger() as ledger:
        layer(x)
    names = {op for op, *_ in ledger.counts}
    assert "attention" in names and names.isdisjoint({"clone", "contiguous", "copy", "unsafe_view", "cat"}), names


# -- recurrences ------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("op", "gates", "hidden", "gradients"),
    [("rnn_sequence", 1, 530, 2), ("lstm_sequence", 4, 182, 5), ("gru_sequence", 3, 210, 3)],
)
@pytest.mark.parametrize("batches", [(1, 1, 1, 1, 1), (3, 3, 2, 1), (17, 17, 17, 9, 4)])
def test_recurrences_whose_weights_are_larger_than_a_cache(op, gates, hidden, gradients, batches):
    rows, states = sum(batches), 2 if op == "lstm_sequence" else 1
    given = [draw(rows, gates * hidden), *(draw(batches[0], hidden) for _ in range(states))]
    input, *first, weight = (a.astype(float) for a in (*given, draw(gates * hidden, hidden) / hidden))
    rest = batches, False, *(["tanh"] if op == "rnn_sequence" else [])
    expected = kernel(op, "numpy")(input, *first, weight, *rest)
    for a, b in zip(kernel(op, "c")(input, *first, weight, *rest), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11)
    saved = expected[:1] if gates == 1 else (expected[0], *expected[1 + states :])
    arguments = *first, weight, *saved, *rest, draw(rows, hidden).astype(float), *[None] * (gradients - 1)
    expected = kernel(f"{op}_backward", "numpy")(*arguments)
    for a, b in zip(kernel(f"{op}_backward", "c")(*arguments), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("left, right", [(False, False), (True, False), (False, True)])
def test_a_product_of_several_blocks(left, right, same_on_threads):
    """Panels are kept for the second block of rows, and of k; on any number of threads the same bits."""
    a, b = draw(821, 543), draw(543, 197)
    x = torch.tensor(a.T.copy()).t() if left else torch.tensor(a)
    y = torch.tensor(b.T.copy()).t() if right else torch.tensor(b)
    close((x @ y).numpy(), a.astype(np.float64) @ b.astype(np.float64))
    same_on_threads(lambda: x @ y)


def test_products_pass_over_subnormal_numbers():
    """A product of many small floats is 0, and what follows in the same thread keeps its subnormal numbers."""
    assert torch.prod(torch.full((100_000,), 0.9)).item() == 0
    small = np.float32(1e-39)
    assert (torch.full((64,), small) * torch.full((64,), 0.5)).numpy().max() == small * np.float32(0.5) > 0
    doubles = np.full(640, 0.33)
    assert torch.prod(torch.tensor(doubles)).item() == pytest.approx(0.33**640, rel=1e-10, abs=0)
