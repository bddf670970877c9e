"""Embedding layers: learned vectors for positions in a vocabulary, one by one or in bags."""

from __future__ import annotations

from typing import Any

from corefw.dispatch.declare import ops
from corefw.graph.grad_mode import no_recording
from corefw.nn import init
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor


class _Table(Module):
    """A table of learned vectors."""

    def __init__(
        self, count: int, size: int, padding_idx: int | None, given: Tensor | None, freeze: bool, device, dtype
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = count, size
        if padding_idx is not None and not -count <= padding_idx < count:
            raise AssertionError("Padding_idx must be within num_embeddings")
        self.padding_idx = None if padding_idx is None else padding_idx % count
        if given is not None and tuple(given.shape) != (count, size):
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        table = ops.empty((count, size), device=device, dtype=dtype) if given is None else given
        self.weight = Parameter(table, not freeze)
        if given is None:
            self.reset_parameters()

    @classmethod
    def _of(cls: type[Any], embeddings: Tensor, freeze: bool, **options):
        """A layer with this table."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        layer = cls(*embeddings.shape, _weight=embeddings, **options)
        layer.weight.requires_grad_(not freeze)
        return layer

    def reset_parameters(self) -> None:
        """Draw the table anew, from N(0, 1); the row of the padding is zeros."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_recording():
                self.weight[self.padding_idx] = 0


class Embedding(_Table):
    """A learned vector for each of `num_embeddings` positions.

    Args:
        num_embeddings: the size V of the table.
        embedding_dim: the size D of a vector.
        padding_idx: a position whose vector starts as zeros and gets no gradient.
        max_norm: if given, vectors in use of larger norm are scaled down to it.
        norm_type: the order of that norm.
        scale_grad_by_freq: whether the gradient of a vector is divided by how often it was used.
        sparse: whether the gradient of the table is a sparse tensor, for `optim.SparseAdam` and `optim.SGD`.

    Attributes: ``weight`` (V, D), from N(0, 1).

    >>> import corefw as torch
    >>> torch.nn.Embedding(10, 3)(torch.tensor([[1, 2], [4, 9]])).shape
    torch.Size([2, 2, 3])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False, _weight: Tensor | None = None,
        _freeze: bool = False, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None, max_norm: float | None = None,
        norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
    ) -> Embedding:  # fmt: skip
        """A layer with the table `embeddings`; `freeze` says that it is not trained.

        >>> import corefw as torch
        >>> torch.nn.Embedding.from_pretrained(torch.tensor([[1.0, 2.0]]))(torch.tensor(0))
        tensor([1., 2.])
        """
        options: dict[str, Any] = {"padding_idx": padding_idx, "max_norm": max_norm, "norm_type": norm_type}
        return cls._of(embeddings, freeze, scale_grad_by_freq=scale_grad_by_freq, sparse=sparse, **options)

    def forward(self, input: Tensor) -> Tensor:
        return ops.functional_embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq, self.sparse
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return text + (", sparse=True" if self.sparse else "")


class EmbeddingBag(_Table):
    """The sums, means or greatest elements of bags of learned vectors, for `num_embeddings` positions.

    Args:
        num_embeddings: the size V of the table.
        embedding_dim: the size D of a vector.
        max_norm: if given, vectors in use of larger norm are scaled down to it.
        norm_type: the order of that norm.
        scale_grad_by_freq: whether the gradient of a vector is divided by how often it was used; not for "max".
        mode: "sum", "mean" or "max".
        sparse: whether the gradient of the table is a sparse tensor, for `optim.SparseAdam` and `optim.SGD`;
            not for "max".
        include_last_offset: whether the offsets have one more element, where the last bag ends.
        padding_idx: a position whose vector starts as zeros, counts nowhere and gets no gradient.

    Attributes: ``weight`` (V, D), from N(0, 1).

    >>> import corefw as torch
    >>> torch.nn.EmbeddingBag(10, 3)(torch.tensor([[1, 2], [4, 9]])).shape
    torch.Size([2, 3])
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, _weight: Tensor | None = None,
        include_last_offset: bool = False, padding_idx: int | None = None, device=None, dtype=None,
    ):  # fmt: skip
        super().__init__(num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype)
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, max_norm: float | None = None, norm_type: float = 2.0,
        scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:  # fmt: skip
        """A layer with the table `embeddings`; `freeze` says that it is not trained.

        >>> import corefw as torch
        >>> torch.nn.EmbeddingBag.from_pretrained(torch.tensor([[1.0], [3.0]]))(torch.tensor([[0, 1]]))
        tensor([[2.]])
        """
        options: dict[str, Any] = {
            "max_norm": max_norm,
            "norm_type": norm_type,
            "scale_grad_by_freq": scale_grad_by_freq,
        }
        options |= {"mode": mode, "sparse": sparse, "include_last_offset": include_last_offset}
        return cls._of(embeddings, freeze, padding_idx=padding_idx, **options)

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return ops.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"
