"""Embedding layers: learned vectors for positions in a vocabulary."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.graph.grad_mode import no_recording
from corefw.nn import init
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.tensor import Tensor


class Embedding(Module):
    """A learned vector for each of `num_embeddings` positions.

    Args:
        num_embeddings: the size V of the table.
        embedding_dim: the size D of a vector.
        padding_idx: a position whose vector starts as zeros and gets no gradient.
        max_norm: if given, vectors in use of larger norm are scaled down to it.
        norm_type: the order of that norm.
        scale_grad_by_freq: whether the gradient of a vector is divided by how often it was used.
        sparse: accepted for compatibility; gradients are dense.

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
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.num_embeddings, self.embedding_dim, self.padding_idx = num_embeddings, embedding_dim, padding_idx
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        if _weight is None:
            weight = ops.empty((num_embeddings, embedding_dim), device=device, dtype=dtype)
        elif tuple(_weight.shape) == (num_embeddings, embedding_dim):
            weight = _weight
        else:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        self.weight = Parameter(weight, requires_grad=not _freeze)
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
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_recording():
                self.weight[self.padding_idx] = 0

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
