"""The multi-head attention layer."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.nn import init
from corefw.nn.modules.linear import Linear
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter


class MultiheadAttention(Module):
    """Attention in `num_heads` subspaces of the embedding (Vaswani et al. 2017, section 3.2.2).

    Args:
        embed_dim: the size E of a query and of the output.
        num_heads: the number of heads, a divisor of `embed_dim`.
        dropout: the probability of dropping a weight, in training.
        bias: whether the projections add one.
        add_bias_kv: whether a learned key and value are added.
        add_zero_attn: whether a key and a value of zeros are added.
        kdim, vdim: sizes of keys and values; `embed_dim` if missing.
        batch_first: whether inputs are (N, L, E) instead of (L, N, E).

    Attributes: ``in_proj_weight`` (3 E, E), or ``q_proj_weight``, ``k_proj_weight`` and ``v_proj_weight`` where sizes
    differ; ``in_proj_bias`` (3 E); ``out_proj``, a Linear; ``bias_k`` and ``bias_v`` (1, 1, E).

    >>> import corefw as torch
    >>> x = torch.zeros(5, 1, 4)
    >>> output, weights = torch.nn.MultiheadAttention(4, 2)(x, x, x)
    >>> output.shape, weights.shape
    (torch.Size([5, 1, 4]), torch.Size([1, 5, 5]))
    """

    def __init__(
        self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
        add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
        device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        if embed_dim % num_heads:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        packed = self.kdim == self.vdim == embed_dim
        shapes = {
            "q_proj_weight": None if packed else (embed_dim, embed_dim),
            "k_proj_weight": None if packed else (embed_dim, self.kdim),
            "v_proj_weight": None if packed else (embed_dim, self.vdim),
            "in_proj_weight": (3 * embed_dim, embed_dim) if packed else None,
            "in_proj_bias": (3 * embed_dim,) if bias else None,
            "bias_k": (1, 1, embed_dim) if add_bias_kv else None,
            "bias_v": (1, 1, embed_dim) if add_bias_kv else None,
        }
        for name, shape in shapes.items():
            self.register_parameter(name, shape and Parameter(ops.empty(shape, device=device, dtype=dtype)))
        self.out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for weight in (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight, self.in_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self, query, key, value, key_padding_mask=None, need_weights: bool = True, attn_mask=None,
        average_attn_weights: bool = True, is_causal: bool = False,
    ):  # fmt: skip
        """The output and, if `need_weights`, the attention weights, else None.

        Args:
            query: (L, N, E), (N, L, E) if `batch_first`, or (L, E).
            key: (S, N, kdim), (N, S, kdim) if `batch_first`, or (S, kdim).
            value: (S, N, vdim), (N, S, vdim) if `batch_first`, or (S, vdim).
            key_padding_mask: (N, S) or (S,), True for keys that are not there, or numbers to add to the scores.
            need_weights: whether the weights are returned; without, the computation is faster.
            attn_mask: (L, S) or (N * num_heads, L, S), True where attention is forbidden, or numbers to add.
            average_attn_weights: whether the weights are averaged over the heads: (N, L, S), else
                (N, num_heads, L, S).
            is_causal: a hint that `attn_mask` is causal.
        """
        transposed = self.batch_first and query.ndim == 3
        if transposed:  # equal tensors stay one tensor, whose projections are computed at once
            found = {id(x): x.transpose(0, 1) for x in (query, key, value)}
            query, key, value = found[id(query)], found[id(key)], found[id(value)]
        output, weights = ops.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=self.in_proj_weight is None,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return output.transpose(0, 1) if transposed else output, weights
