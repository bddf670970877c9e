"""Transforms of vectors into vectors that sum to 1."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.transforms.transform import Transform
from corefw.dtypes import finfo
from corefw.shapes import Size
from corefw.tensor import Tensor


class SoftmaxTransform(Transform):
    """The softmax of the last dimension; its inverse is the logarithm, one of the vectors with this result.

    >>> import corefw as torch
    >>> torch.distributions.SoftmaxTransform()(torch.zeros(4))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        return x.softmax(-1)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        if len(shape) < 1:
            raise ValueError("SoftmaxTransform: expected a vector, got a number: too few dimensions on input")
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Transform):
    """Vectors of K - 1 numbers into those of K positive numbers that sum to 1.

    A stick of the length 1 is broken K - 1 times: the number ``x[k]`` gives the part ``sigmoid(x[k] - log(K - 1 - k))``
    of the rest, so that zeros give equal parts.

    >>> import corefw as torch
    >>> torch.distributions.StickBreakingTransform()(torch.zeros(3))
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _offset(x):
        """log(K - 1 - k) for k = 0 to K - 2."""
        return ops.arange(x.shape[-1], 0, -1, dtype=x.dtype, device=x.device).log()

    def _call(self, x):
        # the logarithms of the parts and of the rests
        shifted = x - self._offset(x)
        zero = x.new_zeros((*x.shape[:-1], 1))
        rests = ops.cat([zero, (-ops.softplus(shifted)).cumsum(-1)], -1)
        return (rests + ops.cat([-ops.softplus(-shifted), zero], -1)).exp()

    def _inverse(self, y):
        parts = y[..., :-1]
        rests = (1 - parts.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return parts.log() - rests.log() + self._offset(parts)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        # dy[k] / dx[k] = y[k] * (1 - part[k]), and the Jacobian is triangular
        return (y[..., :-1].log() - ops.softplus(x - self._offset(x))).sum(-1)

    def _changed(self, shape, by: int):
        if len(shape) < 1:
            raise ValueError("StickBreakingTransform: expected a vector, got a number: too few dimensions on input")
        return Size((*shape[:-1], shape[-1] + by))

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._changed(shape, 1)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self._changed(shape, -1)
