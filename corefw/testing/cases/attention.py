"""Attention."""

import numpy as np

from corefw.testing.case import Case


def softmax_rows(scores):
    """The softmax along the last dimension; 0 where everything is -inf. Also the logarithm of the sum, +inf there."""
    weights, logs = np.zeros_like(scores), np.full(scores.shape[:-1], np.inf, scores.dtype)
    for row in np.ndindex(scores.shape[:-1]):
        if scores.shape[-1] and scores[row].max() > -np.inf:
            e = np.exp(scores[row] - scores[row].max())
            weights[row], logs[row] = e / e.sum(), np.log(e.sum()) + scores[row].max()
    return weights, logs


def scored(query, key, bias, is_causal, scale):
    scores = np.einsum("...le,...se->...ls", query, key) * scale
    if bias is not None:
        scores = scores + bias
    for i in range(scores.shape[-2]) if is_causal else ():
        scores[..., i, i + 1 :] = -np.inf
    return scores


def attention(query, key, value, bias=None, is_causal=False, scale=1.0):
    weights, logs = softmax_rows(scored(query, key, bias, is_causal, scale))
    return np.einsum("...ls,...sv->...lv", weights, value), logs


def attention_backward(gradient, query, key, value, output, logsumexp, bias=None, is_causal=False, scale=1.0):
    weights = np.exp(scored(query, key, bias, is_causal, scale) - logsumexp[..., None])
    of_weights = np.einsum("...lv,...sv->...ls", gradient, value)
    of_scores = weights * (of_weights - (gradient * output).sum(-1)[..., None])
    return (
        np.einsum("...ls,...se->...le", of_scores, key) * scale,
        np.einsum("...ls,...le->...se", of_scores, query) * scale,
        np.einsum("...ls,...lv->...sv", weights, gradient),
    )


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    if attn_mask is not None and attn_mask.dtype == bool:
        attn_mask = np.where(attn_mask, 0.0, -np.inf)
    if enable_gqa:
        key, value = (np.repeat(x, query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    return attention(query, key, value, attn_mask, is_causal, scale or query.shape[-1] ** -0.5)[0]


def multi_head_attention_forward(
    query, key, value, embed_dim_to_check, num_heads, in_proj_weight, in_proj_bias, bias_k, bias_v, add_zero_attn,
    dropout_p, out_proj_weight, out_proj_bias, need_weights=True, average_attn_weights=True,
):  # fmt: skip
    size = embed_dim_to_check // num_heads
    projected = []
    for x, weight, bias in zip((query, key, value), np.split(in_proj_weight, 3), np.split(in_proj_bias, 3)):
        x = x @ weight.T + bias
        projected.append(x.reshape(*x.shape[:-1], num_heads, size).transpose(1, 2, 0, 3))
    q, k, v = projected
    weights, _ = softmax_rows(scored(q, k, None, False, size**-0.5))
    out = (weights @ v).transpose(2, 0, 1, 3).reshape(query.shape) @ out_proj_weight.T + out_proj_bias
    if not need_weights:
        return out, None
    return out, weights.mean(1) if average_attn_weights else weights


# -- calls ------------------------------------------------------------------------------------------------------------
SHAPES = (((3, 4), (5, 4), (5, 2)), ((2, 2, 3, 4), (2, 2, 5, 4), (2, 2, 5, 4)), ((2, 3, 1), (2, 3, 1), (2, 3, 1)))


def masked(bias):
    """A mask with forbidden keys, and one query that may attend to no key."""
    bias = bias.copy()
    bias[..., 1] = -np.inf
    bias[..., 0, :] = -np.inf
    return bias


def inputs(rng, numpy_dtype):
    """(query, key, value) and options of `attention`."""

    def draw(shape):
        return rng.normal(size=shape).astype(numpy_dtype)

    for shapes in SHAPES:
        queries, keys = shapes[0][-2], shapes[1][-2]
        for options in ({}, {"is_causal": True, "scale": 0.5}, {"bias": draw((queries, keys))}):
            yield [draw(shape) for shape in shapes], options


def calls(rng, numpy_dtype):
    return list(inputs(rng, numpy_dtype))


def masked_calls(rng, numpy_dtype):
    """Also no queries, no keys and masks that forbid; numerical derivatives cannot pass through infinities."""
    found = [(x, {**o, "bias": masked(o["bias"])}) for x, o in inputs(rng, numpy_dtype) if "bias" in o]
    empty = [[np.zeros((2, n, 3), numpy_dtype), *np.ones((2, 2, m, 3), numpy_dtype)] for n, m in ((0, 4), (4, 0))]
    return found + [(tensors, {}) for tensors in empty]


def backward_calls(rng, numpy_dtype):
    made = []
    for tensors, options in inputs(rng, numpy_dtype):
        wide = [x.astype(np.float64) for x in tensors]
        output, logs = attention(*wide, **options)
        output, logs = output.astype(numpy_dtype), logs.astype(np.result_type(numpy_dtype, np.float32))
        made.append(([rng.normal(size=output.shape).astype(numpy_dtype), *tensors, output, logs], options))
    return made


def public_calls(rng, numpy_dtype):
    made = []
    for tensors, options in inputs(rng, numpy_dtype):
        options = dict(options)
        bias = options.pop("bias", None)
        made.append((tensors, options if bias is None else {"attn_mask": bias}))
        if bias is not None:
            made.append((tensors, {"attn_mask": rng.random(bias.shape) < 0.6}))
    for queries, options in ((3, {}), (1, {}), (1, {"is_causal": True}), (1, {"scale": 2.0})):
        shapes = (2, 4, queries, 4), (2, 2, 3, 4), (2, 2, 3, 5)
        heads = [rng.normal(size=shape).astype(numpy_dtype) for shape in shapes]
        made.append((heads, {"enable_gqa": True, **options}))
        for mask in () if options else ((1, 3), (2, 1, queries, 3), (4, queries, 3)):
            bias = rng.normal(size=mask).astype(numpy_dtype)
            made.append((heads, {"enable_gqa": True, "attn_mask": bias}))
    several = [rng.normal(size=(n, 3, 4)).astype(numpy_dtype) for n in (12, 4, 6)]
    return [*made, (several, {"enable_gqa": True})]


def head_calls(rng, numpy_dtype):
    def draw(*shape):
        return rng.normal(size=shape).astype(numpy_dtype)

    made = []
    for options in ({}, {"need_weights": False}, {"average_attn_weights": False}):
        sources = draw(3, 2, 4), draw(5, 2, 4), draw(5, 2, 4)
        projections = (draw(12, 4), draw(12), None, None, False, 0.0, draw(4, 4), draw(4))
        made.append(([*sources, 4, 2, *projections], options))
    return made


CASES = (
    Case("attention", attention, make=calls, gradient=False),
    Case("attention", attention, make=masked_calls, gradient=False),
    Case("attention_backward", attention_backward, make=backward_calls, gradient=False, rtol=1e-6),
    Case(
        "multi_head_attention_forward",
        multi_head_attention_forward,
        make=head_calls,
        rtol=1e-6,
    ),
    Case(
        "scaled_dot_product_attention",
        scaled_dot_product_attention,
        make=public_calls,
        rtol=1e-6,
    ),
)
