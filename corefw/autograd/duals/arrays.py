"""Arrays that hold an array and its tangent, on a device of their own.

A dual array has the shape of both. It lies on a `DualDevice`, whose dispatch keys have tables of their own, so that
ordinary calls pay nothing; gradients are recorded above it, as for other tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from corefw import dtypes
from corefw.devices import DispatchKey, device
from corefw.dispatch.batching.arrays import LevelDevice, levels, stopped
from corefw.dispatch.registry import dispatch_key_of
from corefw.dispatch.runtime import Runtime
from corefw.dtypes import dtype


class Scope:
    """One forward differentiation, from its begin to its end.

    Attributes: ``alive`` whether its tangents count: while it runs, and while a backward goes through what it computed;
    ``depth`` how many levels deep.
    """

    __slots__ = ("__weakref__", "alive", "depth")
    randomness = ""  # it means nothing for random numbers
    start = 0  # nothing older has its depth

    def __init__(self, depth: float, alive: bool = True):
        self.depth, self.alive = depth, alive

    def revive(self) -> None:
        """Let its tangents count until the end of the backward that is running."""
        if not self.alive:
            self.alive = True
            levels.revived.append(self)


_ENDED = Scope(0, alive=False)
#: of shared numbers, which outlive every scope
TIMELESS = Scope(0, alive=False)


def scope_at(depth: float) -> Scope:
    """The scope that tensors of this depth belong to: the running one, or one that a backward goes through."""
    running = levels.running.get(depth)
    return running or next((scope for scope in reversed(levels.revived) if scope.depth == depth), _ENDED)


class DualArray:
    """An array and its tangent.

    Attributes: ``primal`` the array, of the device below; ``tangent`` another one of its shape and dtype, None for
    zeros; ``level`` the device; ``scope`` the differentiation that it belongs to.
    """

    __slots__ = ("level", "primal", "scope", "tangent")
    __array_ufunc__ = None  # NumPy refuses it
    base = None

    def __init__(self, primal: Any, tangent: Any, level: LevelDevice, scope: Scope | None = None):
        self.primal, self.tangent, self.level = primal, tangent, level
        self.scope = scope_at(level.depth) if scope is None else scope

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.primal.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(self.primal.strides)

    @property
    def dtype(self) -> np.dtype:
        return self.primal.dtype

    @property
    def ndim(self) -> int:
        return len(self.primal.shape)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def mapped(self, change: Callable, to: device) -> DualArray:
        """The array with what `change` makes of both arrays below."""
        tangent = None if self.tangent is None else change(self.tangent)
        return DualArray(change(self.primal), tangent, to, self.scope)  # type: ignore[arg-type]

    def stopped(self) -> DualArray:
        """The array without its tangent."""
        return DualArray(stopped(self.primal), None, self.level, self.scope)

    def varying(self) -> Any:
        """The tangent, laid out in memory as the primal is, so that views of both are alike; zeros for None. It stays
        the array's own from now on."""
        runtime, d = below(self.level, self.dtype).runtime, dtypes.of_numpy(self.dtype)
        if self.tangent is None or not _alike(self.primal, self.tangent):
            laid_out = _empty_like(self.primal, runtime, d, self.level.index)
            runtime.copy(laid_out, zero(runtime, d, self.level.index) if self.tangent is None else self.tangent)
            self.tangent = laid_out
        return self.tangent


def below(level: LevelDevice, numpy_dtype: Any) -> DispatchKey:
    """The dispatch key of a NumPy dtype on the device below a level's."""
    return dispatch_key_of(level.inner, dtypes.of_numpy(numpy_dtype))


def zero(runtime: Runtime, d: dtype, index: int | None) -> Any:
    """A 0-d array of zero, which may be shared."""
    return runtime.constant(0, d, index)


def _alike(primal: Any, tangent: Any) -> bool:
    """Whether the tangent has the primal's strides, and memory of its own for each element that has."""
    steps = zip(primal.shape, primal.strides, tangent.strides, strict=True)
    return all(first == second for size, first, second in steps if size > 1)


def _empty_like(array: Any, runtime: Runtime, d: dtype, index: int | None) -> Any:
    """New memory for an array of these strides."""
    steps = tuple(step // array.dtype.itemsize for step in array.strides)
    extent = 0 if 0 in array.shape else 1 + sum((n - 1) * step for n, step in zip(array.shape, steps, strict=True))
    return runtime.as_strided(runtime.empty((extent,), d, index), tuple(array.shape), steps, 0)


class DualRuntime(Runtime):
    """The memory of dual arrays: that of the device below, twice. Python and NumPy see the primals."""

    array_type = DualArray

    def __init__(self, inner: Runtime, level: LevelDevice):
        self.inner, self.level = inner, level
        self.device_type, self.dtypes = inner.device_type, inner.dtypes

    def _of(self, primal: Any, tangent: Any = None, scope: Scope | None = None) -> DualArray:
        return DualArray(primal, tangent, self.level, scope)

    def current_device(self):
        return self.inner.current_device()

    def empty(self, shape, dtype, index):
        return self._of(self.inner.empty(shape, dtype, index))

    def upload(self, host, index):
        return self._of(self.inner.upload(host, index))

    def constant(self, number, dtype, index):
        return self._of(self.inner.constant(number, dtype, index), scope=TIMELESS)

    def download(self, array):
        return self.inner.download(array.primal)

    def item(self, array):
        return self.inner.item(array.primal)

    def copy(self, target, source):
        self.inner.copy(target.primal, source.primal)
        if target.tangent is None and source.tangent is None:
            return
        d = dtypes.of_numpy(target.dtype)
        if d.category >= dtypes.FLOATING:
            given = zero(self.inner, d, self.level.index) if source.tangent is None else source.tangent
            self.inner.copy(target.varying(), given)

    def clone(self, array):
        tangent = None if array.tangent is None else self.inner.clone(array.tangent)
        return self._of(self.inner.clone(array.primal), tangent, array.scope)

    def cast(self, array, dtype):
        kept = array.tangent is not None and dtype.category >= dtypes.FLOATING
        tangent = self.inner.cast(array.tangent, dtype) if kept else None
        return self._of(self.inner.cast(array.primal, dtype), tangent, array.scope)

    def as_strided(self, array, shape, strides, offset, dtype=None):
        primal = self.inner.as_strided(array.primal, shape, strides, offset, dtype)
        if not _is_continuous(dtypes.of_numpy(array.dtype), dtype):
            return self._of(primal, None, array.scope)
        varying = array.varying()
        begin, of_tangent = map(self.inner.storage_offset, (array.primal, varying))
        factor = array.dtype.itemsize / primal.dtype.itemsize  # of an element seen as several, or several as one
        moved = offset - int((begin - of_tangent) * factor)
        return self._of(primal, self.inner.as_strided(varying, shape, strides, moved, dtype), array.scope)

    def is_writable(self, array):
        return self.inner.is_writable(array.primal)

    def storage_offset(self, array):
        return self.inner.storage_offset(array.primal)

    def address(self, array):
        return self.inner.address(array.primal)

    def memory_bytes(self, array):
        return self.inner.memory_bytes(array.primal)


def _is_continuous(source: dtype, seen_as: dtype | None) -> bool:
    """Whether a view has a tangent: numbers with fractions do, complex ones as pairs of real ones too, other bits do
    not."""
    if seen_as is None or seen_as is source:
        return source.category >= dtypes.FLOATING
    return source.category >= dtypes.FLOATING and seen_as.category >= dtypes.FLOATING and (
        source.to_real() is seen_as.to_real()
    )  # fmt: skip
