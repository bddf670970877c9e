"""Attention and transformer layers: parity with PyTorch, masks, dropout, refused inputs."""

import pickle
import warnings
from math import inf

import numpy as np
import pytest

import corefw as torch
from tests.parity import compare_layers, import_torch, to_torch

F = torch.nn.functional
RNG = np.random.default_rng(0)


def draw(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def layers(name, *arguments, **options):
    """A layer of corefw and PyTorch's, the latter with parameters that are not zero or one."""
    reference = import_torch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nested tensors, which PyTorch would rather use
        theirs = getattr(reference.nn, name)(*arguments, **options)
    for parameter in theirs.parameters():
        parameter.data.add_(reference.randn(parameter.shape) / 4)
    return getattr(torch.nn, name)(*arguments, **options), theirs


CAUSAL = np.triu(np.ones((3, 3), bool), 1)
PADDED = np.array([[False, False, True, False], [False, True, True, False]])


@pytest.mark.parametrize(
    "options", [{}, {"batch_first": True}, {"bias": False}, {"kdim": 5, "vdim": 7}, {"kdim": 5, "bias": False}]
)
@pytest.mark.parametrize("extra", [{}, {"add_bias_kv": True}, {"add_zero_attn": True, "add_bias_kv": True}])
@pytest.mark.parametrize(
    "call", [{}, {"need_weights": False}, {"average_attn_weights": False, "key_padding_mask": PADDED}]
)
def test_multihead_attention(options, extra, call):
    ours, theirs = layers("MultiheadAttention", 6, 2, **options, **extra)
    sizes = options.get("kdim", 6), options.get("vdim", 6)
    inputs = draw(3, 2, 6), draw(4, 2, sizes[0]), draw(4, 2, sizes[1])
    if options.get("batch_first"):
        inputs = [np.ascontiguousarray(x.swapaxes(0, 1)) for x in inputs]
    compare_layers(ours, theirs, *inputs, **call)


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize(
    "mask",
    [CAUSAL, np.where(CAUSAL, -inf, 0).astype(np.float32), draw(3, 3), np.stack([CAUSAL] * 4), draw(4, 3, 3)],
    ids=["bool", "causal", "float", "heads", "float heads"],
)
def test_attention_masks(mask, need_weights):
    ours, theirs = layers("MultiheadAttention", 6, 2)
    compare_layers(ours, theirs, draw(3, 2, 6), draw(3, 2, 6), draw(3, 2, 6), attn_mask=mask, need_weights=need_weights)


@pytest.mark.parametrize("padding", [None, PADDED[0, :3]])
def test_without_a_batch(padding):
    ours, theirs = layers("MultiheadAttention", 6, 2, batch_first=True)
    compare_layers(ours, theirs, draw(3, 6), draw(3, 6), draw(3, 6), key_padding_mask=padding)


def test_causal_hint():
    layer = torch.nn.MultiheadAttention(6, 2)
    x, mask = torch.randn(3, 2, 6), torch.nn.Transformer.generate_square_subsequent_mask(3)
    hinted, _ = layer(x, x, x, attn_mask=mask, is_causal=True, need_weights=False)
    torch.testing.assert_close(hinted, layer(x, x, x, attn_mask=mask)[0])
    with pytest.raises(RuntimeError, match="Need attn_mask"):
        layer(x, x, x, is_causal=True)


CONFIGURATIONS = [
    {},
    {"norm_first": True},
    {"batch_first": True, "activation": "gelu"},
    {"bias": False, "layer_norm_eps": 1e-3},
]


@pytest.mark.parametrize("options", CONFIGURATIONS)
def test_encoder_layer(options):
    ours, theirs = layers("TransformerEncoderLayer", 6, 2, 8, dropout=0.0, **options)
    padding = PADDED[:, :3] if options.get("batch_first") else PADDED[:1, :2].repeat(3, 0)[:, :2]
    source = draw(2, 3, 6)
    if not options.get("batch_first"):
        compare_layers(ours, theirs, source)
        compare_layers(
            *layers("TransformerEncoderLayer", 6, 2, 8, dropout=0.0, **options), source, src_key_padding_mask=padding
        )
    else:
        compare_layers(ours, theirs, source, src_mask=CAUSAL, src_key_padding_mask=padding)


@pytest.mark.parametrize("options", CONFIGURATIONS)
def test_decoder_layer(options):
    ours, theirs = layers("TransformerDecoderLayer", 6, 2, 8, dropout=0.0, **options)
    target, memory = draw(3, 2, 6), draw(4, 2, 6)
    if options.get("batch_first"):
        target, memory = (np.ascontiguousarray(x.swapaxes(0, 1)) for x in (target, memory))
    compare_layers(ours, theirs, target, memory, tgt_mask=CAUSAL, memory_key_padding_mask=PADDED)


@pytest.mark.parametrize("options", CONFIGURATIONS)
def test_transformer(options):
    ours, theirs = layers("Transformer", 6, 2, 2, 2, 8, dropout=0.0, **options)
    source, target = draw(4, 2, 6), draw(3, 2, 6)
    if options.get("batch_first"):
        source, target = (np.ascontiguousarray(x.swapaxes(0, 1)) for x in (source, target))
    compare_layers(ours, theirs, source, target, tgt_mask=CAUSAL, src_key_padding_mask=PADDED, tolerance=3e-5)


def test_stacks_copy_their_layer():
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8)
    stack = torch.nn.TransformerEncoder(layer, 3, torch.nn.LayerNorm(4))
    assert len({id(p) for p in [*layer.parameters(), *stack.parameters()]}) == 12 * 4 + 2
    decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(4, 2, 8), 2)
    assert decoder(torch.zeros(3, 4), stack(torch.zeros(5, 4))).shape == (3, 4)


def test_pickling():
    stack = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 8), 2).eval()
    x = torch.randn(3, 1, 4)
    assert pickle.loads(pickle.dumps(stack))(x).tolist() == stack(x).tolist()


def test_subsequent_mask():
    mask = torch.nn.Transformer.generate_square_subsequent_mask(3)
    assert mask.tolist() == [[0, -inf, -inf], [0, 0, -inf], [0, 0, 0]]


def test_dropout_of_weights():
    torch.manual_seed(0)
    q, k = torch.zeros(1, 2), torch.zeros(1000, 2)
    result = F.scaled_dot_product_attention(q, k, torch.ones(1000, 1), dropout_p=0.5)
    assert 0.8 < result.item() < 1.2 and result.item() != 1
    layer = torch.nn.MultiheadAttention(4, 2, dropout=0.5)
    x = torch.randn(8, 1, 4)
    assert (layer(x, x, x)[1] == 0).any()
    assert not (layer.eval()(x, x, x)[1] == 0).any()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_train(dtype):
    layer = torch.nn.TransformerEncoderLayer(4, 2, 8, dtype=dtype)
    x = torch.randn(3, 2, 4).to(dtype).requires_grad_()
    layer(x).square().sum().backward()
    assert x.grad.dtype is dtype and bool(x.grad.isfinite().all())
    assert all(p.grad.dtype is dtype for p in layer.parameters())


def test_gradients_of_queries_without_keys_are_zero():
    x = torch.randn(2, 3, 4).requires_grad_()
    mask = torch.tensor([[True, False, True], [False] * 3, [True] * 3])
    F.scaled_dot_product_attention(x, x.detach(), x.detach(), mask).sum().backward()
    assert bool(x.grad.isfinite().all())
    assert not x.grad[:, 1].any()


def test_gradient_of_a_mask():
    reference = import_torch()
    q, bias = draw(2, 3, 4), draw(3, 3)
    ours, theirs = torch.tensor(bias).requires_grad_(), to_torch(bias).requires_grad_()
    for library, mask in ((torch, ours), (reference, theirs)):
        x = library.tensor(q)
        library.nn.functional.scaled_dot_product_attention(x, x, x, mask).sin().sum().backward()
    np.testing.assert_allclose(ours.grad.numpy(), theirs.grad.numpy(), 1e-5, 1e-6)


def test_gumbel_softmax():
    logits = torch.tensor([0.0, 0.0, 2.0]).expand(2000, 3).clone().requires_grad_()
    hard = F.gumbel_softmax(logits, tau=0.5, hard=True)
    assert set(hard.detach().unique().round().tolist()) == {0.0, 1.0}
    torch.testing.assert_close(hard.mean(0), logits[0].softmax(0), atol=0.05, rtol=0)
    (hard * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad.any()
    torch.testing.assert_close(F.gumbel_softmax(logits, dim=0).sum(0), torch.ones(3))
    with pytest.warns(UserWarning, match="eps"):
        F.gumbel_softmax(logits, eps=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: F.scaled_dot_product_attention(x, x.double(), x), RuntimeError, "to have the same dtype"),
        (lambda x: F.scaled_dot_product_attention(x[0], x, x), RuntimeError, "at least 2 dimensional"),
        (lambda x: F.scaled_dot_product_attention(x, x[:, :2], x), RuntimeError, "do not fit"),
        (lambda x: F.scaled_dot_product_attention(x, x, x, torch.ones(3, 3)), RuntimeError, "size of tensor a"),
        (lambda x: F.scaled_dot_product_attention(x, x, x, enable_gqa=True), IndexError, "wants heads in dimension -3"),
        (
            lambda x: F.scaled_dot_product_attention(x, x, x, x.int()),
            RuntimeError,
            "attn_mask dtype to be bool or float",
        ),
        (lambda x: torch.nn.MultiheadAttention(5, 2), AssertionError, "divisible by num_heads"),
        (lambda x: torch.nn.MultiheadAttention(0, 2), ValueError, "greater than 0"),
        (lambda x: torch.nn.MultiheadAttention(4, 2)(x[0], x, x), AssertionError, "query should be unbatched 2D"),
        (lambda x: torch.nn.MultiheadAttention(6, 2)(x, x, x), AssertionError, "expecting embedding dimension of 6"),
        (lambda x: torch.nn.MultiheadAttention(4, 2)(x, x, x[:1]), AssertionError, "does not match value shape"),
        (
            lambda x: torch.nn.MultiheadAttention(4, 2)(x, x, x, attn_mask=torch.ones(3, 3)),
            RuntimeError,
            r"The shape of the 2D attn_mask is torch.Size\(\[3, 3\]\), but should be \(2, 2\)",
        ),
        (lambda x: torch.nn.TransformerEncoderLayer(4, 2, activation="tanh"), RuntimeError, "relu/gelu, not tanh"),
        (
            lambda x: torch.nn.Transformer(4, 2, 1, 1, 8)(x[:, None], x[:, None].repeat(1, 2, 1)),
            RuntimeError,
            "batch number",
        ),
        (lambda x: torch.nn.Transformer(6, 2, 1, 1, 8)(x, x), RuntimeError, "equal to d_model"),
    ],
)
def test_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(torch.ones(2, 4))


def test_errors_are_called_after_what_is_wrong():
    x = torch.ones(2, 4)
    with pytest.raises(AssertionError) as sizes:
        torch.nn.MultiheadAttention(6, 2)(x, x, x)
    with pytest.raises(AssertionError) as mask:
        torch.nn.MultiheadAttention(4, 2)(x, x, x, attn_mask=torch.ones(2, 2).int())
    assert (sizes.typename, mask.typename) == ("EmbeddingError", "MaskError")
