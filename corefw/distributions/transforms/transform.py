"""The base of transforms, their inverses and their composition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from corefw.dispatch.declare import ops
from corefw.distributions import constraints
from corefw.distributions.constraints.constraint import Constraint
from corefw.distributions.utils import sum_rightmost
from corefw.tensor import Tensor


class Transform:
    """A function of tensors with an inverse and a known Jacobian.

    A subclass gives `domain` and `codomain` and implements `_call`, `_inverse` and `log_abs_det_jacobian`. Two
    transforms are equal if they are of one class with equal parameters.

    Args:
        cache_size: 1 if the last pair of value and result is kept, so that the inverse of a result is exactly the
            value that it was computed from; 0 if nothing is.

    Attributes:
        domain, codomain: the constraints of values and of results.
        bijective: whether different values have different results.
        sign: 1 if the transform is increasing, -1 if it is decreasing.
    """

    bijective: Any = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1, got {cache_size}")
        self._cache_size = cache_size
        self._cached: tuple[Any, Any] = (None, None)
        self._inv: Transform | None = None

    def __getstate__(self) -> Any:
        return self.__dict__ | {"_inv": None, "_cached": (None, None)}

    def _parameters(self) -> tuple:
        """The arguments that made the transform, but the size of the cache."""
        return ()

    @property
    def event_dim(self) -> int:
        """How many of the last dimensions are transformed together, where values and results have equally many."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse, whose inverse is this transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """1 if the transform is increasing, -1 if it is decreasing."""
        raise NotImplementedError(f"{type(self).__name__} has no sign: it is not a monotone function of a number")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """The transform with a cache of this size."""
        if self._cache_size == cache_size:
            return self
        cls: Any = type(self)
        return cls(*self._parameters(), cache_size=cache_size)

    def __eq__(self, other: Any) -> Any:
        if type(self) is not type(other):
            return False
        return all(_equal(a, b) for a, b in zip(self._parameters(), other._parameters(), strict=True))

    def __call__(self, x: Tensor) -> Any:
        """The transformed `x`."""
        if not self._cache_size:
            return self._call(x)
        if x is not self._cached[0]:
            self._cached = x, self._call(x)
        return self._cached[1]

    def _inv_call(self, y):
        if not self._cache_size:
            return self._inverse(y)
        if y is not self._cached[1]:
            self._cached = self._inverse(y), y
        return self._cached[0]

    def _call(self, x):
        raise NotImplementedError(f"{type(self).__name__} does not implement _call")

    def _inverse(self, y):
        raise NotImplementedError(f"{type(self).__name__} does not implement _inverse")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """The logarithm of ``|dy / dx|``, or of the absolute determinant of the Jacobian, for ``y`` made of ``x``."""
        raise NotImplementedError(f"{type(self).__name__} does not implement log_abs_det_jacobian")

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of the result for a value of the shape `shape`."""
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        """The shape of the value for a result of the shape `shape`."""
        return shape

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


def _equal(a, b) -> bool:
    """Whether two parameters are equal, numbers or tensors."""
    same = a == b
    return same if isinstance(same, bool) else bool(same.all())


class _InverseTransform(Transform):
    """The inverse of `transform`, which keeps the pairs."""

    def __init__(self, transform: Transform):
        super().__init__(transform._cache_size)
        self._inv: Transform = transform

    def __getstate__(self):
        return self.__dict__

    def _parameters(self):
        return (self._inv,)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self._inv.domain

    @property
    def bijective(self):
        return self._inv.bijective

    @property
    def sign(self):
        return self._inv.sign

    def with_cache(self, cache_size=1):
        return self._inv.with_cache(cache_size).inv

    def __call__(self, x):
        return self._inv._inv_call(x)

    def _inv_call(self, y):
        return self._inv(y)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)

    def __repr__(self):
        return f"{type(self).__name__}({self._inv!r})"


class ComposeTransform(Transform):
    """Transforms one after another.

    Args:
        parts: the transforms, in the order in which they are applied.
        cache_size: the size of the parts' caches.

    >>> import corefw as torch
    >>> D = torch.distributions
    >>> D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.ExpTransform()])(torch.zeros(1))
    tensor([2.7183])
    """

    def __init__(self, parts, cache_size: int = 0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)

    def _parameters(self):
        return (self.parts,)

    @staticmethod
    def _constraint(ends: list[tuple[Any, Any]]):
        """The constraint at the end where a chain of (constraint of this end, of the other end) begins.

        Every part works on at least the dimensions that those behind it have turned into more or fewer.
        """
        if not ends:
            return constraints.real
        event_dim = ends[-1][1].event_dim
        for near, far in reversed(ends):
            event_dim = max(event_dim + near.event_dim - far.event_dim, near.event_dim)
        first = ends[0][0]
        return constraints.independent(first, event_dim - first.event_dim) if event_dim > first.event_dim else first

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Constraint:
        return self._constraint([(part.domain, part.codomain) for part in self.parts])

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Constraint:
        return self._constraint([(part.codomain, part.domain) for part in reversed(self.parts)])

    @property
    def bijective(self) -> bool:
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Tensor | int:
        sign = 1
        for part in self.parts:
            sign = sign * part.sign
        return sign

    @property
    def inv(self) -> Any:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x: Tensor) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y):
        return self.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        result: Any = ops.zeros_like(x) if not self.parts else 0
        event_dim = self.domain.event_dim
        for i, part in enumerate(self.parts):
            after = y if i == len(self.parts) - 1 else part(x)
            term = part.log_abs_det_jacobian(x, after)
            result = result + sum_rightmost(term, event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
            x = after
        return result

    def forward_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Sequence[int]) -> Sequence[int]:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(map(repr, self.parts))
        return f"{type(self).__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])
