"""Attention with a function of scores and a mask, against the formula in NumPy."""

import numpy as np
import pytest

import corefw
from corefw.nn.attention.flex_attention import AuxRequest, and_masks, create_block_mask, flex_attention

rng = np.random.default_rng(0)
q, k, v = rng.normal(size=(2, 4, 5, 8)), rng.normal(size=(2, 2, 6, 8)), rng.normal(size=(2, 2, 6, 3))


def reference():
    """Scores with a slope per head, for keys that are seen."""
    b, h, i, j = np.ogrid[:2, :4, :5, :6]
    scores = q @ np.repeat(k, 2, 1).swapaxes(-1, -2) / np.sqrt(8) + 0.1 * h * (i - j)
    scores = np.where((i >= j) & (j + b < 4) & (i > 0), scores, -np.inf)
    weights = np.exp(scores)
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.nan_to_num(weights / total) @ np.repeat(v, 2, 1), np.log(total[..., 0])


def test_scores_mask_and_shared_heads():
    seen = and_masks(lambda b, h, i, j: i >= j, lambda b, h, i, j: (j + b < 4) & (i > 0))
    mask = create_block_mask(seen, 2, None, 5, 6, BLOCK_SIZE=2)
    query, key, value = (corefw.tensor(x, requires_grad=True) for x in (q, k, v))
    result, lse = flex_attention(
        query, key, value, lambda s, b, h, i, j: s + 0.1 * h * (i - j), mask, enable_gqa=True, return_lse=True
    )
    expected, total = reference()
    assert np.allclose(result.detach().numpy(), expected) and np.allclose(lse.detach().numpy(), total)
    assert mask.shape == (2, 1, 5, 6) and mask.to_dense().shape == (2, 1, 3, 3) and mask[:1].shape == (1, 1, 5, 6)
    result[:, :, 1:].sum().backward()
    assert query.grad.isfinite().all() and query.grad.any()


def test_without_anything_it_is_attention():
    x = corefw.tensor(q)
    result, more = flex_attention(x, x, x, scale=0.5, return_aux=AuxRequest(max_scores=True))
    expected = corefw.nn.functional.scaled_dot_product_attention(x, x, x, scale=0.5)
    assert corefw.allclose(result, expected) and more.lse is None and more.max_scores.shape == (2, 4, 5)
    with pytest.raises(ValueError, match="enable_gqa"):
        flex_attention(x, corefw.tensor(k), corefw.tensor(v))
