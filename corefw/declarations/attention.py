"""Attention: values averaged with weights from the similarity of queries and keys."""

from __future__ import annotations

from math import inf, sqrt

from corefw import dtypes
from corefw.declarations._shared.batching import from_the_end_together, full
from corefw.dispatch.batching.calls import aligned
from corefw.dispatch.declare import Index, Statistic, composite, ops
from corefw.dispatch.random_generator import Generator
from corefw.dispatch.registry import registry
from corefw.dispatch.resolution import decide
from corefw.dispatch.rules import promoted_real_floats, real_floats, statistic
from corefw.dispatch.settings import settings
from corefw.errors import DimensionError, DtypeError, KernelNotFoundError, ShapeError
from corefw.shapes import broadcast
from corefw.tensor import Tensor
from corefw.tracebacks import warn


# -- the step that backends compute -----------------------------------------------------------------------------------
# Scores are S = scale * Q Kᵀ + bias, weights P = softmax(S) along the keys, the output is P V. A query that may attend
# to no key at all has output 0. The logarithms L of the softmax's denominators are kept for the gradient, which
# computes P = exp(S - L) again instead of storing it (Dao et al., "FlashAttention", 2022); L is +inf for such a query.
def _attention_shapes(query, key, value, bias=None, is_causal=False, scale=1.0):
    for name, shape in (("query", query), ("key", key), ("value", value)):
        if len(shape) < 2:
            raise ShapeError(f"attention: {name} must have at least 2 dimensions, got shape {list(shape)}")
    if not (query[:-2] == key[:-2] == value[:-2] and query[-1] == key[-1] and key[-2] == value[-2]):
        raise ShapeError(
            f"attention: shapes of query {list(query)}, key {list(key)} and value {list(value)} do not fit: (*, L, E), "
            "(*, S, E) and (*, S, V) are wanted"
        )
    scores = (*query[:-1], key[-2])
    if bias is not None and tuple(broadcast(bias, scores)) != scores:
        raise ShapeError(f"attention: a mask of shape {list(bias)} does not broadcast to the scores' {list(scores)}")
    return (*query[:-1], value[-1]), query[:-1]


def _shapes(*tensors) -> list:
    return [None if tensor is None else tuple(tensor.array.shape) for tensor in tensors]


def _scores(query, key, bias, is_causal: bool, scale: float):
    scores = (query * scale) @ key.mT
    if bias is not None:
        scores = scores + bias
    if is_causal:
        allowed = ops.ones(scores.shape[-2:], dtype=dtypes.bool_, device=scores.device).tril()
        scores = scores.masked_fill(allowed.logical_not(), -inf)
    return scores


def _weights(scores):
    """The softmax of the scores; 0 for a query that may attend to no key."""
    nowhere = (scores == -inf).all(-1, keepdim=True)
    return scores.masked_fill(nowhere, 0).softmax(-1).masked_fill(nowhere, 0)


@composite(
    dtype=real_floats.giving(real_floats, statistic),
    shape=_attention_shapes,
    outputs=("output", "logsumexp"),
    public="",
    grad_name="ScaledDotProductAttention",
)
def attention(query, key, value, bias=None, is_causal: bool = False, scale: float = 1.0):
    """The weighted values, and for each query the logarithm of the sum of its keys' exponential scores."""
    _attention_shapes(*_shapes(query, key, value, bias))
    scores = _scores(query, key, bias, is_causal, scale)
    logsumexp = scores.logsumexp(-1)
    return _weights(scores) @ value, logsumexp.masked_fill(logsumexp == -inf, inf)


attention.batching(from_the_end_together)


@attention.gradient("query", "key", "value")
def attention_vjp_query(grad, query, key, value, output, logsumexp, bias, is_causal, scale):
    return tuple(ops.attention_backward(grad, query, key, value, output, logsumexp, bias, is_causal, scale))


@attention.gradient("bias")
def attention_vjp_bias(grad, query, key, value, output, bias, is_causal, scale):
    weights = _weights(_scores(query, key, bias, is_causal, scale))
    return weights * (grad @ value.mT - (grad * output).sum(-1, keepdim=True))


def _backward_shapes(gradient, query, key, value, output, logsumexp, bias=None, is_causal=False, scale=1.0):
    expected, of_queries = _attention_shapes(query, key, value, bias)
    for name, shape, wanted in (
        ("gradient", gradient, expected),
        ("output", output, expected),
        ("logsumexp", logsumexp, of_queries),
    ):
        if tuple(shape) != tuple(wanted):
            raise ShapeError(f"attention: expected {name} of shape {list(wanted)}, got {list(shape)}")
    return query, key, value


@composite(
    dtype=promoted_real_floats.giving(promoted_real_floats, promoted_real_floats, promoted_real_floats),
    shape=_backward_shapes,
    outputs=("grad_query", "grad_key", "grad_value"),
    public="",
)
def attention_backward(
    gradient, query, key, value, output, logsumexp: Statistic, bias=None, is_causal: bool = False, scale: float = 1.0
):
    """The gradients of `attention`."""
    _backward_shapes(*_shapes(gradient, query, key, value, output, logsumexp, bias))
    weights = (_scores(query, key, bias, is_causal, scale) - logsumexp.unsqueeze(-1)).exp()
    of_scores = weights * (gradient @ value.mT - (gradient * output).sum(-1, keepdim=True))
    return of_scores @ key * scale, of_scores.mT @ query * scale, weights.mT @ gradient


@attention_backward.batching
def attention_backward_batching(call, examples, gradient, query, key, value, output, logsumexp, bias, *rest):
    bias = aligned(query, bias)[1]
    return call(*(full(one, examples) for one in (gradient, query, key, value, output, logsumexp)), bias, *rest)


@attention_backward.gradient("gradient", "query", "key", "value", "bias")
def attention_backward_vjp(
    grad_grad_query, grad_grad_key, grad_grad_value, gradient, query, key, value, bias, is_causal, scale
):
    """With G = dO, the gradients are dQ = scale dS K, dK = scale dSᵀ Q, dV = Pᵀ G where dP = G Vᵀ, D = sum(P dP) and
    dS = P (dP - D). For cotangents A, B, C of them the scalar is H = sum(dS U + P W), U = scale (A Kᵀ + Q Bᵀ),
    W = G Cᵀ; what follows are its derivatives."""
    a = ops.zeros_like(query) if grad_grad_query is None else grad_grad_query
    b = ops.zeros_like(key) if grad_grad_key is None else grad_grad_key
    c = ops.zeros_like(value) if grad_grad_value is None else grad_grad_value
    weights = _weights(_scores(query, key, bias, is_causal, scale))

    def centred(x):
        return x - (weights * x).sum(-1, keepdim=True)

    of_weights = gradient @ value.mT
    u = (a @ key.mT + query @ b.mT) * scale
    of_scores = weights * centred(of_weights)
    by_of_weights = weights * centred(u)
    average_u = (weights * u).sum(-1, keepdim=True)
    by_scores = weights * centred(centred(of_weights) * u - of_weights * average_u + gradient @ c.mT)
    return (
        by_of_weights @ value + weights @ c,
        (by_scores @ key + of_scores @ b) * scale,
        (by_scores.mT @ query + of_scores.mT @ a) * scale,
        by_of_weights.mT @ gradient,
        None if bias is None else by_scores,
    )


attention_backward.no_gradient("output")


# -- scaled dot-product attention -------------------------------------------------------------------------------------
class AttentionKernelError(KernelNotFoundError):
    """None of the ways in which attention may be computed is there."""


def _bias(mask, query):
    """A mask as numbers to add to the scores: 0 where attention is allowed."""
    if mask.dtype is query.dtype:
        return mask
    if mask.dtype is dtypes.bool_:
        allowed, forbidden = (ops.full((), x, dtype=query.dtype, device=query.device) for x in (0, -inf))
        return ops.where(mask, allowed, forbidden)
    if mask.dtype is dtypes.float32:
        return mask.to(query.dtype)
    raise DtypeError(
        "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
        f"{mask.dtype.name} and  query.dtype: {query.dtype.name} instead."
    )


@composite(public="nn.functional")
def scaled_dot_product_attention(
    query, key, value, attn_mask: Index | None = None, dropout_p: float = 0.0, is_causal: bool = False, *,
    scale: float | None = None, enable_gqa: bool = False,
):  # fmt: skip
    """``softmax(scale * query @ keyᵀ + mask) @ value``.

    Args:
        query: shape (*, L, E).
        key: shape (*, S, E).
        value: shape (*, S, V).
        attn_mask: broadcasts to (*, L, S); bool (True where attention is allowed) or numbers that are added to the
            scores. A query that may attend to no key gives zeros.
        dropout_p: the probability with which a weight becomes 0.
        is_causal: whether query i attends to the keys up to i only.
        scale: ``1 / sqrt(E)`` if missing.
        enable_gqa: whether query may have several times the heads (dimension -3) of key and value, which are then
            shared by groups of heads.

    Returns: shape (*, L, V).

    Source: Vaswani et al., "Attention is all you need", 2017, equation 1.

    >>> import corefw as torch
    >>> q, k, v = torch.zeros(1, 2), torch.zeros(2, 2), torch.tensor([[1.0], [3.0]])
    >>> torch.nn.functional.scaled_dot_product_attention(q, k, v)
    tensor([[2.]])
    """
    if not query.dispatch_key.dtype is key.dispatch_key.dtype is value.dispatch_key.dtype:
        raise DtypeError(
            "Expected query, key, and value to have the same dtype, but got query.dtype: "
            f"{query.dtype.name} key.dtype: {key.dtype.name} and value.dtype: {value.dtype.name} instead."
        )
    if min(query.array.ndim, key.array.ndim, value.array.ndim) < 2:
        raise ShapeError(
            "Expected query, key, and value to all be  at least 2 dimensional, but got query.dim: "
            f"{query.ndim} key.dim: {key.ndim} and value.dim: {value.ndim} instead."
        )
    if enable_gqa and _shares_heads(query, key, value):
        grouped = _grouped(query, key, value, attn_mask, is_causal)
        output = ops.scaled_dot_product_attention(*grouped, dropout_p, is_causal, scale=scale)
        return output.reshape(*output.shape[: query.ndim - 3], *query.shape[-3:-1], value.shape[-1])
    shapes = [x.array.shape[:-2] for x in (query, key, value)]
    if not shapes[0] == shapes[1] == shapes[2]:
        batch = broadcast(broadcast(shapes[0], shapes[1]), shapes[2])
        query, key, value = (
            x if shape == batch else x.expand(*batch, *x.shape[-2:])
            for x, shape in zip((query, key, value), shapes, strict=True)
        )
    if scale is None:
        width = query.array.shape[-1]
        scale = 1 / sqrt(width) if width else 1.0
    bias = None if attn_mask is None else _bias(attn_mask, query)
    if dropout_p == 0 if settings.attention is None else _takes_one_kernel(query.dispatch_key, dropout_p):
        return ops.attention(query, key, value, bias, is_causal, scale)[0]
    _attention_shapes(*_shapes(query, key, value, bias))
    weights = _weights(_scores(query, key, bias, is_causal, scale))
    return (ops.dropout(weights, dropout_p) if dropout_p else weights) @ value


def _takes_one_kernel(dispatch_key, dropout_p: float) -> bool:
    """Whether attention is computed by one kernel, where `nn.attention.sdpa_kernel` says how it may be."""
    allowed = settings.attention or frozenset()
    one_kernel = not allowed.isdisjoint(("FLASH_ATTENTION", "EFFICIENT_ATTENTION"))
    decision = decide(registry.declared["attention"], dispatch_key)
    has_kernel = bool(decision.kernel or decision.rivals) or dispatch_key.device.type == "meta"
    if one_kernel and has_kernel and dropout_p == 0:
        return True
    if "MATH" in allowed:
        return False
    if not one_kernel:
        why = f"of {sorted(allowed)} corefw has none; allow SDPBackend.FLASH_ATTENTION or SDPBackend.MATH"
    elif has_kernel:
        why = f"no single kernel drops weights out (dropout_p is {dropout_p}); allow SDPBackend.MATH"
    else:
        why = f"no backend has one for {dispatch_key}; allow SDPBackend.MATH"
    raise AttentionKernelError(f"scaled_dot_product_attention: No available kernel. Aborting execution: {why}.")


def _shares_heads(query, key, value) -> bool:
    """Whether several heads of the query share one of key or value; refuses numbers of heads that do not go up."""
    for tensor in (key, value):
        if query.ndim < 3 or tensor.ndim < 3:
            raise DimensionError(
                f"scaled_dot_product_attention: enable_gqa=True wants heads in dimension -3, got {query.ndim} "
                f"dimensions of query and {tensor.ndim} of key or value"
            )
        wanted, found = query.shape[-3], tensor.shape[-3]
        if found == 0 or wanted % found:
            raise ShapeError(
                f"Number of heads in key and value must divide the number of heads in query, got {found} and {wanted}"
            )
    return not query.shape[-3] == key.shape[-3] == value.shape[-3]


def _grouped(query, key, value, mask, is_causal: bool):
    """The operands as views: groups of the query's heads that share one of key and value, which has one member there.

    Heads of one query each become rows of one head, so that its keys are read once.
    """
    heads, rows, width = query.shape[-3:]
    if key.shape[-3] != value.shape[-3]:
        key, value = (x.repeat_interleave(heads // x.shape[-3], -3) for x in (key, value))
    groups = key.shape[-3], heads // key.shape[-3]
    are_rows = rows == 1 and not is_causal
    query = query.reshape(*query.shape[:-3], *groups, *((width,) if are_rows else (rows, width)))
    if not are_rows:
        key, value = key.unsqueeze(-3), value.unsqueeze(-3)
    if mask is not None and mask.ndim > 2:
        if mask.shape[-3] == heads:
            mask = mask.reshape(*mask.shape[:-3], *groups, *mask.shape[-1 if are_rows else -2 :])
        elif not are_rows:
            mask = mask.unsqueeze(-3)
    return query, key, value, mask


# -- several heads ----------------------------------------------------------------------------------------------------
class EmbeddingError(ShapeError, AssertionError):
    """Sizes of query, key and value that multi-head attention does not take (PyTorch raises AssertionError)."""


class MaskError(ShapeError, AssertionError):
    """Masks that multi-head attention does not take (PyTorch raises AssertionError)."""


def _float_mask(mask, name: str, dtype):
    """A mask as numbers to add to the scores; a bool mask is True where attention is forbidden."""
    if mask is None or mask.dtype.is_floating_point:
        return mask
    if mask.dtype is not dtypes.bool_:
        raise MaskError(f"only bool and floating types of {name} are supported")
    return ops.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(mask, -inf)


def _is_batched(query, key, value, key_padding_mask, attn_mask) -> bool:
    """Whether the inputs have a batch dimension; refuses numbers of dimensions that do not belong together."""
    ndim = query.ndim
    kind = {2: "unbatched", 3: "batched"}.get(ndim)
    if kind is None:
        raise EmbeddingError(f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor")
    if key.ndim != ndim or value.ndim != ndim:
        raise EmbeddingError(
            f"For {kind} ({ndim}-D) `query`, expected `key` and `value` to be {ndim}-D but found {key.ndim}-D and "
            f"{value.ndim}-D tensors respectively"
        )
    if key_padding_mask is not None and key_padding_mask.ndim != ndim - 1:
        raise MaskError(
            f"For {kind} ({ndim}-D) `query`, expected `key_padding_mask` to be `None` or {ndim - 1}-D but found "
            f"{key_padding_mask.ndim}-D tensor instead"
        )
    if attn_mask is not None and attn_mask.ndim not in (2, 3):
        raise MaskError(
            f"For {kind} ({ndim}-D) `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found "
            f"{attn_mask.ndim}-D tensor instead"
        )
    return ndim == 3


def _project(query, key, value, weight, bias, separate) -> list:
    """The inputs through their projections, of packed or `separate` weights."""
    biases = (None, None, None) if bias is None else bias.chunk(3)
    if separate is not None:
        if key.shape[:2] != value.shape[:2]:
            raise EmbeddingError(
                f"key's sequence and batch dims {key.shape[:2]} do not match value's {value.shape[:2]}"
            )
        return [ops.linear(x, w, b) for x, w, b in zip((query, key, value), separate, biases)]
    if key.shape != value.shape:
        raise EmbeddingError(f"key shape {key.shape} does not match value shape {value.shape}")
    if query is key is value:
        return list(ops.linear(query, weight, bias).chunk(3, -1))
    return [ops.linear(x, w, b) for x, w, b in zip((query, key, value), weight.chunk(3), biases)]


def _check_attention_mask(mask, queries: int, keys: int, count: int):
    """An attention mask as (1 or batch * heads, queries, keys)."""
    wanted = (queries, keys) if mask.ndim == 2 else (count, queries, keys)
    if tuple(mask.shape) != wanted:
        raise ShapeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {wanted}.")
    return mask.unsqueeze(0) if mask.ndim == 2 else mask


def _wider(mask):
    """A mask, if there is one, that allows one more key."""
    if mask is None:
        return None
    return ops.cat([mask, ops.zeros((*mask.shape[:-1], 1), dtype=mask.dtype, device=mask.device)], -1)


@composite(public="nn.functional")
def multi_head_attention_forward(
    query, key, value, embed_dim_to_check: int, num_heads: int, in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
    out_proj_weight, out_proj_bias: Tensor | None, training: bool = True, key_padding_mask=None,
    need_weights: bool = True, attn_mask=None, use_separate_proj_weight: bool = False, q_proj_weight=None,
    k_proj_weight=None, v_proj_weight=None, static_k=None, static_v=None, average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:  # fmt: skip
    """Attention in `num_heads` subspaces: projections of query, key and value, attention of each head, and a
    projection of the heads' outputs side by side.

    Args:
        query: shape (L, N, E) or (L, E).
        key, value: shape (S, N, *) or (S, *).
        embed_dim_to_check: E.
        in_proj_weight, in_proj_bias: the packed projections, shape (3 E, E) and (3 E,).
        bias_k, bias_v: a further key and value, shape (1, 1, E).
        add_zero_attn: whether a key and a value of zeros are added.
        dropout_p: the probability of dropping a weight, in training.
        out_proj_weight, out_proj_bias: the output's projection.
        key_padding_mask: shape (N, S) or (S,), True for keys that are not there, or numbers to add.
        need_weights: whether the weights are returned.
        attn_mask: shape (L, S) or (N * num_heads, L, S), True where attention is forbidden, or numbers to add.
        use_separate_proj_weight: whether `q_proj_weight`, `k_proj_weight`, `v_proj_weight` are used in place of the
            packed weight.
        static_k, static_v: keys and values of the heads as they are, shape (N * num_heads, S, E / num_heads).
        average_attn_weights: whether the returned weights are averaged over the heads.
        is_causal: a hint that `attn_mask` is causal.

    Returns: the output, of the query's shape, and the weights, (N, L, S), per head (N, num_heads, L, S), or None.

    >>> import corefw as torch
    >>> x, w = torch.ones(2, 1, 2), torch.eye(2)
    >>> torch.nn.functional.multi_head_attention_forward(
    ...     x, x, x, 2, 1, w.repeat(3, 1), None, None, None, False, 0.0, w, None
    ... )[1]
    tensor([[[0.5000, 0.5000],
             [0.5000, 0.5000]]])
    """
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask)
    if key_padding_mask is not None and attn_mask is not None and key_padding_mask.dtype is not attn_mask.dtype:
        warn("Support for mismatched key_padding_mask and attn_mask is deprecated. Use same type for both instead.")
    if not batched:
        shared = query is key is value
        query = query.unsqueeze(1)
        key, value = (query, query) if shared else (key.unsqueeze(1), value.unsqueeze(1))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    queries, samples, width = query.shape
    keys, count = key.shape[0], samples * num_heads
    # As (N, L, E) it lies in order, and so shall what follows, unless PyTorch's numbers are to fall as they do there.
    samples_first = query.stride(0) < query.stride(1) and not Generator.engines
    if samples_first:
        shared = query is key is value
        query = query.transpose(0, 1)
        key, value = (query, query) if shared else (key.transpose(0, 1), value.transpose(0, 1))
    if is_causal and attn_mask is None:
        raise ShapeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    hinted = is_causal and key_padding_mask is None and not need_weights
    padding = _float_mask(key_padding_mask, "key_padding_mask", query.dtype)
    mask = None if hinted else _float_mask(attn_mask, "attn_mask", query.dtype)
    if width != embed_dim_to_check:
        raise EmbeddingError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    if width % num_heads:
        raise EmbeddingError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias, separate)
    if mask is not None:
        mask = _check_attention_mask(mask, queries, keys, count)
    if bias_k is not None and bias_v is not None:
        times = (samples, 1, 1) if samples_first else (1, samples, 1)
        k, v = (ops.cat([x, more.repeat(*times)], int(samples_first)) for x, more in ((k, bias_k), (v, bias_v)))
        mask, padding = _wider(mask), _wider(padding)

    def heads(x):
        """A view of (length, N, E), or of (N, length, E), as (N, heads, length, E / heads)."""
        parted = x.reshape(*x.shape[:2], num_heads, width // num_heads)
        return parted.transpose(1, 2) if samples_first else parted.permute(1, 2, 0, 3)

    def of_samples(x):
        """(N * heads, ...) as (N, heads, ...)."""
        return x.reshape(samples, num_heads, *x.shape[1:])

    q = heads(q)
    k = heads(k) if static_k is None else of_samples(static_k)
    v = heads(v) if static_v is None else of_samples(static_v)
    if add_zero_attn:
        zero = ops.zeros((samples, num_heads, 1, width // num_heads), dtype=k.dtype, device=k.device)
        k, v = ops.cat([k, zero], 2), ops.cat([v, zero], 2)
        mask, padding = _wider(mask), _wider(padding)
    keys = k.shape[2]
    if mask is not None and mask.shape[0] != 1:
        mask = of_samples(mask)
    if padding is not None:
        if tuple(padding.shape) != (samples, keys):
            raise MaskError(f"key_padding_mask of shape {(samples, keys)} expected, but got {tuple(padding.shape)}")
        padding = padding.reshape(samples, 1, 1, keys)
        mask = padding if mask is None else mask + padding
    dropout_p = dropout_p if training else 0.0

    weights = None
    if need_weights:
        scores = (q * sqrt(num_heads / width)) @ k.transpose(2, 3)
        weights = (scores if mask is None else scores + mask).softmax(-1)
        weights = ops.dropout(weights, dropout_p) if dropout_p > 0 else weights
        result = weights @ v
        weights = weights.mean(1) if average_attn_weights else weights
    else:
        result = ops.scaled_dot_product_attention(q, k, v, mask, dropout_p, hinted)
    if samples_first:
        joined = result.transpose(1, 2).reshape(samples, queries, width)
        result = ops.linear(joined, out_proj_weight, out_proj_bias).transpose(0, 1)
    else:
        joined = result.permute(2, 0, 1, 3).reshape(queries, samples, width)
        result = ops.linear(joined, out_proj_weight, out_proj_bias)
    if not batched:
        result = result.squeeze(1)
        weights = None if weights is None else weights.squeeze(0)
    return result, weights
