"""The distribution of Cholesky factors of correlation matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corefw.autograd.grad_mode import no_grad
from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.beta import Beta
from corefw.distributions.distribution import Distribution
from corefw.distributions.utils import broadcast_all
from corefw.dtypes import finfo
from corefw.tensor import Tensor


class LKJCholesky(Distribution):
    """Distributions of the Cholesky factors L of correlation matrices, whose density is in proportion to the
    determinant of ``L @ L.mT`` to the power ``concentration - 1``.

    Args:
        dim: the number of rows, at least 2.
        concentration: 1 for all correlation matrices alike; larger for those near the identity, shape (...).

    Source: Lewandowski, Kurowicka, Joe, "Generating random correlation matrices based on vines and extended onion
    method", 2009.

    >>> import corefw as torch
    >>> torch.distributions.LKJCholesky(3, 0.5).sample().square().sum(-1).allclose(torch.ones(3))
    True
    """

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration: Tensor | float = 1.0, validate_args: bool | None = None) -> None:
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args=validate_args)

    def _row_numbers(self):
        """0 to dim - 1."""
        return ops.arange(self.dim, dtype=self.concentration.dtype, device=self.concentration.device)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """Factors made by the onion method: the direction of each row off the diagonal, and how long that part is."""
        with no_grad():
            rows = self._row_numbers()[1:]
            rest = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 1 - rows)
            squares = Beta((0.5 * rows).expand_as(rest), rest, validate_args=False).sample(sample_shape).unsqueeze(-1)
            shape = (*self._extended_shape(sample_shape)[:-2], self.dim - 1, self.dim)
            directions = ops.randn(shape, dtype=rest.dtype, device=rest.device).tril()
            directions = directions / directions.square().sum(-1, keepdim=True).sqrt()
            below = ops.cat([ops.zeros_like(directions[..., :1, :]), squares.sqrt() * directions], -2)
            diagonal = (1 - below.square().sum(-1)).clamp(min=finfo(below.dtype).tiny).sqrt()
            return below + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        # the Jacobian of the factors gives row i the power dim - 1 - i of its diagonal besides
        eta, rest = self.concentration, self.dim - 1
        powers = 2 * (eta - 1).unsqueeze(-1) + (rest - self._row_numbers()[1:])
        density = (powers * value.diagonal(dim1=-2, dim2=-1)[..., 1:].log()).sum(-1)
        top = eta + 0.5 * rest
        constant = 0.5 * rest * math.log(math.pi) + (top - 0.5).mvlgamma(rest) - rest * top.lgamma()
        return density - constant
