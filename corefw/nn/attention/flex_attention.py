"""Attention whose scores a function changes: `flex_attention`, computed step by step."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.func import vmap
from corefw.tensor import Tensor

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "create_nested_block_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]
_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What `flex_attention` shall give beside the result: the logarithm of the weights' sum, the largest score."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for by an `AuxRequest`; None for what was not."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Any, head: Any, token_q: Any, token_kv: Any) -> Tensor:
    """The mask that lets every query see every key."""
    return batch.new_ones(size=(), dtype=dtypes.bool_)


def and_masks(*mask_mods: Callable) -> Callable:
    """The mask that holds where all of several do."""
    return lambda *at: functools.reduce(lambda a, b: a & b, (mask(*at) for mask in mask_mods))


def or_masks(*mask_mods: Callable) -> Callable:
    """The mask that holds where any of several does."""
    return lambda *at: functools.reduce(lambda a, b: a | b, (mask(*at) for mask in mask_mods))


def _everywhere(function: Callable, leading: tuple[int | None, ...]) -> Callable:
    """A function of (leading tensors, batch, head, query, key) that works on all four positions at once."""
    for position in (3, 2, 1, 0):
        dims: list[int | None] = [None] * 4
        dims[position] = 0
        function = vmap(function, in_dims=(*leading, *dims))
    return function


def create_mask(mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None) -> Tensor:
    """The mask that a function of positions gives, (B, H, Q_LEN, KV_LEN).

    Args:
        mod_fn: ``mod_fn(batch, head, query, key)``, four tensors without dimensions, gives a bool.
        B, H: batches and heads; None for one that stands for all.
        Q_LEN, KV_LEN: queries and keys.
        device: where the mask lies.

    >>> from corefw.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    positions = (ops.arange(size or 1, device=device) for size in (B, H, Q_LEN, KV_LEN))
    return _everywhere(mod_fn, ())(*positions)


class BlockMask:
    """Which keys each query sees, made by `create_block_mask`.

    Attributes: ``mask_mod`` the function of positions; ``mask`` its values; ``shape`` of them; ``BLOCK_SIZE`` the sizes
    of blocks of queries and keys; ``seq_lengths`` the numbers of both.
    """

    def __init__(self, mask_mod: Callable, mask: Tensor, block_size: tuple[int, int]):
        self.mask_mod, self.mask, self.BLOCK_SIZE = mask_mod, mask, block_size
        self.shape, self.seq_lengths = tuple(mask.shape), (mask.shape[-2], mask.shape[-1])

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"

    def __getitem__(self, index: Any) -> BlockMask:
        return BlockMask(self.mask_mod, self.mask[index], self.BLOCK_SIZE)

    @property
    def device(self) -> Any:
        """Where the mask lies."""
        return self.mask.device

    def to(self, device: Any) -> BlockMask:
        """The same mask on another device."""
        return BlockMask(self.mask_mod, self.mask.to(device), self.BLOCK_SIZE)

    def numel(self) -> int:
        """The number of pairs of queries and keys."""
        return self.mask.numel()

    def to_dense(self) -> Tensor:
        """1 for each block of queries and keys of which any pair is seen, (batch, head, blocks, blocks)."""
        rows, columns = self.BLOCK_SIZE
        queries, keys = self.seq_lengths
        padding = (0, -keys % columns, 0, -queries % rows)
        padded = ops.pad(self.mask.to(dtypes.int32), padding)
        blocks = padded.unflatten(-1, (-1, columns)).unflatten(-3, (-1, rows))
        return blocks.amax((-1, -3))

    def sparsity(self) -> float:
        """The part of blocks, in percent, of which nothing is seen."""
        return 100 * (1 - self.to_dense().double().mean().item())


def create_block_mask(
    mask_mod: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE, _compile: bool = False, **options: Any,
) -> BlockMask:  # fmt: skip
    """The mask for `flex_attention` that a function of positions gives.

    Args:
        mask_mod, B, H, Q_LEN, KV_LEN, device: as of `create_mask`.
        BLOCK_SIZE: of blocks of queries and keys, by which the mask tells its sparsity.
        options: PyTorch's further arguments, which concern its compiler.
    """
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    return BlockMask(mask_mod, create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device), size)


def create_nested_block_mask(*arguments: Any, **options: Any) -> BlockMask:
    """Refused: there are no nested tensors.

    Raises:
        NotImplementedError: always.
    """
    raise NotImplementedError("create_nested_block_mask: there are no nested tensors; pad them, and mask the padding")


def flex_attention(
    query: Tensor, key: Tensor, value: Tensor, score_mod: Callable | None = None, block_mask: BlockMask | None = None,
    scale: float | None = None, enable_gqa: bool = False, return_lse: bool = False, kernel_options: Any = None, *,
    return_aux: AuxRequest | None = None,
) -> Any:  # fmt: skip
    """Attention with scores that a function changes, and a mask.

    Args:
        query: (batch, heads, queries, features).
        key, value: (batch, heads, keys, features); fewer heads with `enable_gqa`.
        score_mod: ``score_mod(score, batch, head, query, key)`` gives the score to use; it is called once, for tensors
            without dimensions that stand for all of them.
        block_mask: which keys each query sees.
        scale: of the scores, by default one over the root of the features.
        enable_gqa: let several heads of queries share one of keys.
        return_lse: give the logarithm of the sum of the exponentials of the scores too, (batch, heads, queries).
        kernel_options: PyTorch's; without effect.
        return_aux: give what an `AuxRequest` asks for.

    Returns:
        (batch, heads, queries, features of the values); queries that see nothing get 0.

    Raises:
        ValueError: the numbers of heads do not fit.

    >>> import corefw as torch
    >>> from corefw.nn.attention.flex_attention import create_block_mask, flex_attention
    >>> x = torch.ones(1, 1, 2, 4)
    >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2)
    >>> flex_attention(x, x, x, lambda score, b, h, q, kv: score - (q - kv), mask).shape
    torch.Size([1, 1, 2, 4])
    """
    heads, shared = query.shape[1], key.shape[1]
    if heads != shared:
        if not enable_gqa:
            raise ValueError(
                f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={shared}. Try "
                "setting enable_gqa=True for GQA."
            )
        key, value = (t.repeat_interleave(heads // shared, 1) for t in (key, value))
    scores = query @ key.mT * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if score_mod is not None:
        function = _everywhere(score_mod, (0,))
        scores = function(scores, *(ops.arange(size, device=query.device) for size in scores.shape))
    if block_mask is not None:
        seen = block_mask.mask[..., : scores.shape[-2], : scores.shape[-1]]
        scores = scores.masked_fill(~seen, -math.inf)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.unsqueeze(-1)).exp().masked_fill(lse.isneginf().unsqueeze(-1), 0)
    result = (weights.to(value.dtype) @ value).to(query.dtype)
    if return_aux is not None:
        largest = scores.amax(-1) if return_aux.max_scores else None
        return result, AuxOutput(lse if return_aux.lse else None, largest)
    return (result, lse) if return_lse else result
