"""Branches of a residual network left out at random (Huang et al., "Deep networks with stochastic depth", 2016)."""

from __future__ import annotations

import corefw
from corefw import Tensor
from corefw.nn import Module

__all__ = ["StochasticDepth", "stochastic_depth"]


def stochastic_depth(input: Tensor, p: float, mode: str, training: bool = True) -> Tensor:
    """`input` with a branch set to zero with probability `p`, and what stays divided by 1 - p, so that the mean stays.

    Args:
        input: of shape (N, ...), what the branch computed for a batch.
        p: probability of a zero, from 0 to 1.
        mode: "row" decides for each sample, "batch" for the whole batch.
        training: without it, `input` comes back as it is.

    Raises:
        ValueError: if `p` is no probability, or `mode` another word.

    >>> stochastic_depth(corefw.ones(2, 2), 1.0, "row").tolist()
    [[0.0, 0.0], [0.0, 0.0]]
    """
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"stochastic_depth: p is a probability from 0 to 1, got {p}")
    if mode not in ("batch", "row"):
        raise ValueError(f"stochastic_depth: mode is 'batch' or 'row', got {mode!r}")
    if not training or p == 0.0:
        return input
    stays = 1.0 - p
    rows = input.shape[0] if mode == "row" else 1
    factors = corefw.empty((rows, *(1,) * (input.ndim - 1)), dtype=input.dtype, device=input.device).bernoulli_(stays)
    return input * (factors / stays if stays > 0 else factors)


class StochasticDepth(Module):
    """`stochastic_depth` as a module, which acts in training.

    >>> StochasticDepth(0.2, "row")
    StochasticDepth(p=0.2, mode=row)
    """

    def __init__(self, p: float, mode: str) -> None:
        super().__init__()
        self.p = p
        self.mode = mode

    def forward(self, input: Tensor) -> Tensor:
        return stochastic_depth(input, self.p, self.mode, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}, mode={self.mode}"
