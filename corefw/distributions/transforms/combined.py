"""Transforms of several values together: of independent dimensions, of other shapes, of parts."""

from __future__ import annotations

from collections.abc import Sequence

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.constraints.constraint import Constraint
from corefw.distributions.transforms.transform import Transform
from corefw.distributions.utils import sum_rightmost
from corefw.shapes import Size
from corefw.tensor import Tensor


class IndependentTransform(Transform):
    """A transform whose last batch dimensions are dimensions of one value: its Jacobian is summed over them.

    Args:
        base_transform: the transform.
        reinterpreted_batch_ndims: how many dimensions.
        cache_size: as for `Transform`.

    >>> import corefw as torch
    >>> D = torch.distributions
    >>> x = torch.ones(3)
    >>> D.IndependentTransform(D.ExpTransform(), 1).log_abs_det_jacobian(x, x.exp())
    tensor(3.)
    """

    def __init__(self, base_transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _parameters(self):
        return self.base_transform, self.reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:
        return self.base_transform.bijective

    @property
    def sign(self) -> Tensor | int:
        return self.base_transform.sign

    def _call(self, x):
        return self.base_transform(_at_least(x, self.domain.event_dim))

    def _inverse(self, y):
        return self.base_transform.inv(_at_least(y, self.codomain.event_dim))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return self.base_transform.inverse_shape(shape)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"


def _at_least(value, event_dim: int):
    if value.ndim < event_dim:
        raise ValueError(f"IndependentTransform: too few dimensions on input: {value.ndim}, expected {event_dim}")
    return value


class ReshapeTransform(Transform):
    """Values of the shape `in_shape` as values of the shape `out_shape`, with the same elements.

    >>> import corefw as torch
    >>> torch.distributions.ReshapeTransform((2, 3), (6,))(torch.zeros(5, 2, 3)).shape
    torch.Size([5, 6])
    """

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size: int = 0):
        super().__init__(cache_size)
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"ReshapeTransform: in_shape {tuple(in_shape)} and out_shape {tuple(out_shape)} have different numbers "
                "of elements"
            )

    def _parameters(self):
        return self.in_shape, self.out_shape

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x):
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y):
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.ndim - len(self.in_shape)])

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        return _replaced(shape, self.out_shape, self.in_shape)


def _replaced(shape, old, new):
    """The shape with `new` for `old` at its end."""
    cut = len(shape) - len(old)
    if cut < 0 or tuple(shape[cut:]) != tuple(old):
        raise ValueError(f"ReshapeTransform: shape mismatch: expected a shape that ends in {old}, got {tuple(shape)}")
    return Size((*shape[:cut], *new))


class _Parts(Transform):
    """Transforms of the parts of a value along a dimension.

    Args:
        tseq: the transforms.
        dim: the dimension.
        cache_size: as for `Transform`.
    """

    def __init__(self, tseq, dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    def _parameters(self):
        return self.transforms, self.dim

    @property
    def bijective(self) -> bool:
        return all(t.bijective for t in self.transforms)

    def _split(self, value):
        """The parts of a value, one per transform."""
        raise NotImplementedError

    def _joined(self, parts):
        """The value with these parts."""
        raise NotImplementedError

    def _call(self, x):
        return self._joined([t(part) for t, part in zip(self.transforms, self._split(x))])

    def _inverse(self, y):
        return self._joined([t.inv(part) for t, part in zip(self.transforms, self._split(y))])


class CatTransform(_Parts):
    """Transforms of parts that lie one after another.

    Args:
        tseq: the transforms.
        dim: the dimension in which the parts lie.
        lengths: the length of each part; 1 if missing.
        cache_size: as for `Transform`.

    >>> import corefw as torch
    >>> D = torch.distributions
    >>> D.CatTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], lengths=[1, 2])(torch.zeros(3))
    tensor([1., 1., 1.])
    """

    def __init__(self, tseq, dim: int = 0, lengths=None, cache_size: int = 0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"CatTransform: {len(self.transforms)} transforms with {len(self.lengths)} lengths")

    def _parameters(self):
        return self.transforms, self.dim, self.lengths

    @property
    def event_dim(self) -> int:
        return max(t.event_dim for t in self.transforms)

    @property
    def length(self) -> int:
        """The length of all parts together."""
        return sum(self.lengths)

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def _split(self, value):
        if value.shape[self.dim] != self.length:
            raise ValueError(
                f"CatTransform: expected the size {self.length} in dimension {self.dim}, got {tuple(value.shape)}"
            )
        return value.split(self.lengths, self.dim)

    def _joined(self, parts):
        return ops.cat(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = []
        for t, a, b in zip(self.transforms, self._split(x), self._split(y)):
            terms.append(sum_rightmost(t.log_abs_det_jacobian(a, b), self.event_dim - t.event_dim))
        dim = self.dim - x.ndim if self.dim >= 0 else self.dim
        dim += self.event_dim
        return ops.cat(terms, dim) if dim < 0 else sum(terms[1:], terms[0])  # the parts may be parts of one value


class StackTransform(_Parts):
    """Transforms of the slices along a dimension.

    Args:
        tseq: the transforms, one per slice.
        dim: the dimension.
        cache_size: as for `Transform`.

    >>> import corefw as torch
    >>> D = torch.distributions
    >>> D.StackTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)], dim=1)(torch.ones(1, 2))
    tensor([[2.7183, 3.0000]])
    """

    @constraints.dependent_property
    def domain(self) -> Constraint:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Constraint:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def _split(self, value):
        if value.shape[self.dim] != len(self.transforms):
            raise ValueError(
                f"StackTransform: expected the size {len(self.transforms)} in dimension {self.dim}, "
                f"got {tuple(value.shape)}"
            )
        return value.unbind(self.dim)

    def _joined(self, parts):
        return ops.stack(parts, self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = zip(self.transforms, self._split(x), self._split(y))
        return ops.stack([t.log_abs_det_jacobian(a, b) for t, a, b in terms], self.dim)
