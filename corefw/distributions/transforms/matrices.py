"""Transforms into triangular and positive definite matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.transforms.transform import Transform
from corefw.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from corefw.dtypes import finfo
from corefw.shapes import Size
from corefw.tensor import Tensor


class LowerCholeskyTransform(Transform):
    """Square matrices into lower triangular ones with a positive diagonal, the exponential of that of the matrix.

    >>> import corefw as torch
    >>> torch.distributions.LowerCholeskyTransform()(torch.tensor([[0.0, 5.0], [2.0, 0.0]]))
    tensor([[1., 0.],
            [2., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(Transform):
    """Square matrices into positive definite ones, whose Cholesky factor `LowerCholeskyTransform` makes.

    >>> import corefw as torch
    >>> torch.distributions.PositiveDefiniteTransform()(torch.tensor([[0.0, 5.0], [2.0, 0.0]]))
    tensor([[1., 2.],
            [2., 5.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(ops.linalg_cholesky(y))


class CorrCholeskyTransform(Transform):
    """Vectors of D * (D - 1) / 2 numbers into the Cholesky factors of D * D correlation matrices.

    The hyperbolic tangents of the numbers, row by row below the diagonal, are the partial correlations: each tells
    which part of the rest of its row, whose length is 1, an element takes.

    Source: Lewandowski, Kurowicka, Joe, "Generating random correlation matrices based on vines and extended onion
    method", 2009.

    >>> import corefw as torch
    >>> torch.distributions.CorrCholeskyTransform()(torch.tensor([0.0, 1.0, 0.0])).shape
    torch.Size([3, 3])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        eps = finfo(x.dtype).eps
        partial = vec_to_tril_matrix(x.tanh().clamp(eps - 1, 1 - eps), -1)
        # the squared length that is left in each row before a column
        rests = (1 - partial.square()).cumprod(-1)[..., :-1]
        rests = ops.cat([rests.new_ones((*rests.shape[:-1], 1)), rests], -1)
        return (partial + _identity(partial)) * rests.sqrt()

    def _inverse(self, y):
        rests = 1 - y.square().cumsum(-1)[..., :-1]
        partial = tril_matrix_to_vec(y, -1) / _rests_before(rests).sqrt()
        return partial.atanh()

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # an element below the diagonal is tanh(x) times the root of the rest of its row, which those before it fix
        rests = _rests_before(1 - y.square().cumsum(-1)[..., :-1])
        return 0.5 * rests.log().sum(-1) - 2 * (x + ops.softplus(-2 * x) - math.log(2.0)).sum(-1)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 1:
            raise ValueError("CorrCholeskyTransform: expected a vector, got a number: too few dimensions on input")
        n = shape[-1]
        size = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != n:
            raise ValueError(f"CorrCholeskyTransform: input is not a flattened lower-diagonal matrix: length {n}")
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 2:
            raise ValueError("CorrCholeskyTransform: expected a matrix: too few dimensions on input")
        if shape[-2] != shape[-1]:
            raise ValueError(f"CorrCholeskyTransform: expected a square matrix, got the shape {tuple(shape)}")
        size = shape[-1]
        return Size((*shape[:-2], size * (size - 1) // 2))


def _identity(matrix):
    return ops.eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


def _rests_before(rests):
    """Of the rests behind the columns but the last: those before each element below the diagonal, in a vector."""
    return tril_matrix_to_vec(ops.cat([rests.new_ones((*rests.shape[:-1], 1)), rests], -1), -1)
