"""Distance layers: how far pairs of vectors are apart."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.nn.modules.module import Module
from corefw.tensor import Tensor


class CosineSimilarity(Module):
    """``x1 · x2 / (max(‖x1‖, eps) max(‖x2‖, eps))`` along `dim`.

    >>> import corefw as torch
    >>> torch.nn.CosineSimilarity()(torch.tensor([[1.0, 0.0]]), torch.tensor([[3.0, 4.0]]))
    tensor([0.6000])
    """

    def __init__(self, dim: int = 1, eps: float = 1e-8):
        super().__init__()
        self.dim, self.eps = dim, eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return ops.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """``‖x1 - x2 + eps‖`` along the last dimension, in the norm of order `p`.

    >>> import corefw as torch
    >>> torch.nn.PairwiseDistance(eps=0.0)(torch.tensor([[3.0, 4.0]]), torch.zeros(1, 2))
    tensor([5.])
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm, self.eps, self.keepdim = p, eps, keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return ops.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
