"""Dropout layers: random zeros in training, nothing in evaluation."""

from __future__ import annotations

from corefw.dispatch.declare import ops
from corefw.nn.modules.module import Module
from corefw.tensor import Tensor


class _Dropout(Module):
    """A dropout with probability `p` of a zero; `inplace` overwrites the input."""

    def __init__(self, p: float = 0.5, inplace: bool = False):
        super().__init__()
        if not 0 <= p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
        self.p, self.inplace = p, inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, each element zero with probability `p`, the others scaled by ``1 / (1 - p)`` (Srivastava et al.
    2014).

    Args:
        p: the probability of zero.
        inplace: whether the input is overwritten.

    >>> import corefw as torch
    >>> torch.nn.Dropout(0.5).eval()(torch.ones(3))
    tensor([1., 1., 1.])
    """

    def forward(self, input: Tensor) -> Tensor:
        return ops.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """`Dropout` of whole channels, for inputs (N, C, L) or (C, L). Arguments as for `Dropout`.

    >>> import corefw as torch
    >>> torch.nn.Dropout1d()(torch.ones(2, 3)).shape
    torch.Size([2, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return ops.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """`Dropout` of whole channels, for inputs (N, C, H, W). Arguments as for `Dropout`.

    >>> import corefw as torch
    >>> torch.nn.Dropout2d()(torch.ones(1, 2, 3, 3)).shape
    torch.Size([1, 2, 3, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return ops.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """`Dropout` of whole channels, for inputs (N, C, D, H, W) or (C, D, H, W). Arguments as for `Dropout`.

    >>> import corefw as torch
    >>> torch.nn.Dropout3d()(torch.ones(1, 2, 3, 3, 3)).shape
    torch.Size([1, 2, 3, 3, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return ops.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """In training, each element with probability `p` where SELU saturates, then scaled so that mean 0 and variance 1
    are kept (Klambauer et al. 2017)."""

    def forward(self, input: Tensor) -> Tensor:
        return ops.alpha_dropout(input, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """`AlphaDropout` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        return ops.feature_alpha_dropout(input, self.p, self.training, self.inplace)
