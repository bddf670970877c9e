"""Transformer layers: encoders and decoders of attention and feed-forward blocks (Vaswani et al. 2017)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from corefw.dispatch.declare import ops
from corefw.nn import init
from corefw.nn.modules.attention import MultiheadAttention
from corefw.nn.modules.container import ModuleList
from corefw.nn.modules.dropout import Dropout
from corefw.nn.modules.linear import Linear
from corefw.nn.modules.module import Module
from corefw.nn.modules.normalization import LayerNorm
from corefw.tensor import Tensor

Activation = str | Callable[[Tensor], Tensor]


def _get_activation_fn(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(ops, activation)


class _Layer(Module):
    """What encoder and decoder layers share: self-attention, a feed-forward block and `norms` normalisations."""

    norms: int

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1,
        activation: Activation = "relu", layer_norm_eps: float = 1e-5, batch_first: bool = False,
        norm_first: bool = False, bias: bool = True, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        options: dict[str, Any] = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **options}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        if self.norms == 3:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **options)
        self.norm_first = norm_first
        for i in range(1, self.norms + 1):
            setattr(self, f"norm{i}", LayerNorm(d_model, layer_norm_eps, bias=bias, **options))
        for i in range(1, self.norms + 1):
            setattr(self, f"dropout{i}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def _attend(self, attention, query, source, mask, padding, is_causal: bool):
        return attention(
            query, source, source, key_padding_mask=padding, need_weights=False, attn_mask=mask, is_causal=is_causal
        )[0]

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _residual(self, x, norm: Module, block: Callable, dropout: Module):
        """``x + block(x)``, normalised before the block or after the sum."""
        if self.norm_first:
            return x + dropout(block(norm(x)))
        return norm(x + dropout(block(x)))


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a feed-forward network, each added to its input and normalised.

    Args:
        d_model: the size E of an element of the sequence.
        nhead: the number of heads.
        dim_feedforward: the width of the feed-forward network.
        dropout: the probability of zeros, in training.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: the normalisations' eps.
        batch_first: whether inputs are (N, S, E) instead of (S, N, E).
        norm_first: whether the normalisations come before the blocks instead of after.
        bias: whether linear maps and normalisations have one.

    >>> import corefw as torch
    >>> torch.nn.TransformerEncoderLayer(4, 2, 8)(torch.zeros(5, 1, 4)).shape
    torch.Size([5, 1, 4])
    """

    norms = 2

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal: bool = False):
        """The sequence `src` through the layer; masks as for `MultiheadAttention`."""

        def attend(x):
            return self._attend(self.self_attn, x, x, src_mask, src_key_padding_mask, is_causal)

        x = self._residual(src, self.norm1, attend, self.dropout1)
        return self._residual(x, self.norm2, self._feed_forward, self.dropout2)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, then a feed-forward network. Arguments as for
    `TransformerEncoderLayer`.

    >>> import corefw as torch
    >>> torch.nn.TransformerDecoderLayer(4, 2, 8)(torch.zeros(3, 1, 4), torch.zeros(5, 1, 4)).shape
    torch.Size([3, 1, 4])
    """

    norms = 3

    def forward(
        self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
        tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ):  # fmt: skip
        """The sequence `tgt` through the layer, attending to `memory`; masks as for `MultiheadAttention`."""

        def attend(x):
            return self._attend(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def remember(x):
            return self._attend(self.multihead_attn, x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)

        x = self._residual(tgt, self.norm1, attend, self.dropout1)
        x = self._residual(x, self.norm2, remember, self.dropout2)
        return self._residual(x, self.norm3, self._feed_forward, self.dropout3)


class _Stack(Module):
    """Copies of a layer, one after the other, and a normalisation at the end."""

    def __init__(self, layer: Module, num_layers: int, norm: Module | None):
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _run(self, x, step: Callable):
        for layer in self.layers:
            x = step(layer, x)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """`num_layers` copies of an encoder layer, one after the other.

    Args:
        encoder_layer: the layer, which is copied.
        num_layers: how many copies.
        norm: a normalisation of the output.
        enable_nested_tensor, mask_check: accepted for compatibility.

    >>> import corefw as torch
    >>> torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(4, 2, 8), 2)(torch.zeros(5, 1, 4)).shape
    torch.Size([5, 1, 4])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(self, src, mask=None, src_key_padding_mask=None, is_causal: bool | None = None):
        """The sequence `src` through the layers; masks as for `MultiheadAttention`."""

        def step(layer, x):
            return layer(x, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=bool(is_causal))

        return self._run(src, step)


class TransformerDecoder(_Stack):
    """`num_layers` copies of a decoder layer, one after the other.

    Args:
        decoder_layer: the layer, which is copied.
        num_layers: how many copies.
        norm: a normalisation of the output.

    >>> import corefw as torch
    >>> decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(4, 2, 8), 2)
    >>> decoder(torch.zeros(3, 1, 4), torch.zeros(5, 1, 4)).shape
    torch.Size([3, 1, 4])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None):
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self, tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ):  # fmt: skip
        """The sequence `tgt` through the layers, attending to `memory`; masks as for `MultiheadAttention`."""

        def step(layer, x):
            return layer(
                x,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )

        return self._run(tgt, step)


class Transformer(Module):
    """An encoder of one sequence and a decoder of another that attends to it.

    Args:
        d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: as for
            `TransformerEncoderLayer`.
        num_encoder_layers, num_decoder_layers: how many layers each has.
        custom_encoder, custom_decoder: modules to use instead.

    >>> import corefw as torch
    >>> model = torch.nn.Transformer(4, 2, 1, 1, 8)
    >>> model(torch.zeros(5, 1, 4), torch.zeros(3, 1, 4)).shape
    torch.Size([3, 1, 4])
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6,
        dim_feedforward: int = 2048, dropout: float = 0.1, activation: Activation = "relu",
        custom_encoder: Any | None = None, custom_decoder: Any | None = None, layer_norm_eps: float = 1e-5,
        batch_first: bool = False, norm_first: bool = False, bias: bool = True, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__()
        layer = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device,
            dtype,
        )  # fmt: skip

        def norm():
            return LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype)

        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*layer), num_encoder_layers, norm())
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*layer), num_decoder_layers, norm())
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None, src_key_padding_mask=None,
        tgt_key_padding_mask=None, memory_key_padding_mask=None, src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ):  # fmt: skip
        """What the decoder makes of `tgt`, attending to the encoded `src`; masks as for `MultiheadAttention`.

        Args:
            src: (S, N, E), (N, S, E) if `batch_first`, or (S, E).
            tgt: (T, N, E), (N, T, E) if `batch_first`, or (T, E).
        """
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device=None, dtype=None):
        """A causal mask of shape (sz, sz): 0 up to the diagonal, -inf above.

        >>> import corefw as torch
        >>> torch.nn.Transformer.generate_square_subsequent_mask(2)
        tensor([[0., -inf],
                [0., 0.]])
        """
        return ops.full((sz, sz), float("-inf"), device=device, dtype=dtype).triu(1)
