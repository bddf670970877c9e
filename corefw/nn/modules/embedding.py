"""Embedding layers: learned vectors for positions in a vocabulary, one by one or in bags."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.graph.grad_mode import no_recording
from corefw.nn import init
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor


def _padding_position(padding_idx: int | None, count: int) -> int | None:
    """A position given as padding, counted from the beginning."""
    if padding_idx is None:
        return None
    if not -count <= padding_idx < count:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % count


def _table(given: Tensor | None, count: int, size: int, device, dtype) -> Tensor:
    """A table of `count` vectors, the given one if there is one."""
    if given is None:
        return ops.empty((count, size), device=device, dtype=dtype)
    if tuple(given.shape) != (count, size):
        raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
    return given


def _draw_table(weight: Parameter, padding_idx: int | None) -> None:
    """Fill a table with normal numbers, and the row of the padding with zeros."""
    init.normal_(weight)
    if padding_idx is not None:
        with no_recording():
            weight[padding_idx] = 0


class Embedding(Module):
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
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = _padding_position(padding_idx, num_embeddings)
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self.weight = Parameter(_table(_weight, num_embeddings, embedding_dim, device, dtype), not _freeze)
        if _weight is None:
            self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A layer with the table `embeddings`; `freeze` says that it is not trained.

        >>> import corefw as torch
        >>> torch.nn.Embedding.from_pretrained(torch.tensor([[1.0, 2.0]]))(torch.tensor(0))
        tensor([1., 2.])
        """
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        return cls(
            embeddings.shape[0],
            embeddings.shape[1],
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        _draw_table(self.weight, self.padding_idx)

    def forward(self, input):
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


class EmbeddingBag(Module):
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
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device=None,
        dtype=None,
    ):
        super().__init__()
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx = _padding_position(padding_idx, num_embeddings)
        self.max_norm, self.norm_type, self.scale_grad_by_freq = max_norm, norm_type, scale_grad_by_freq
        self.mode, self.sparse, self.include_last_offset = mode, sparse, include_last_offset
        self.weight = Parameter(_table(_weight, num_embeddings, embedding_dim, device, dtype))
        if _weight is None:
            self.reset_parameters()

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A layer with the table `embeddings`; `freeze` says that it is not trained.

        >>> import corefw as torch
        >>> torch.nn.EmbeddingBag.from_pretrained(torch.tensor([[1.0], [3.0]]))(torch.tensor([[0, 1]]))
        tensor([[2.]])
        """
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        layer = cls(
            embeddings.shape[0],
            embeddings.shape[1],
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            _weight=embeddings,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        layer.weight.requires_grad_(not freeze)
        return layer

    def reset_parameters(self) -> None:
        """Draw the table anew."""
        _draw_table(self.weight, self.padding_idx)

    def forward(self, input, offsets=None, per_sample_weights=None):
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
