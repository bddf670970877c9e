"""Arrays of which each op sees one example: a batch of them in one array, on a device of its own.

A batched array has the shape of an example. It lies on a `BatchedDevice`, whose dispatch keys have tables of their own,
so that ordinary calls pay nothing; gradients are recorded above it, as for other tensors.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from math import prod
from typing import Any, NamedTuple, NoReturn

import numpy as np

from corefw.devices import DispatchKey, device
from corefw.dispatch.registry import dispatch_key_of
from corefw.dispatch.runtime import Runtime
from corefw.errors import CorefwError


class BatchingError(CorefwError, RuntimeError):
    """What a function does cannot be done for all examples of a batch at once."""


class Level(NamedTuple):
    """One `vmap` that is running: the number of its examples, what random numbers mean in it, and when it began, in the
    order of nodes."""

    size: int
    randomness: str
    start: int


class _Levels(threading.local):
    """The thread's running `vmap`s by their depths, which grow inwards from 1."""

    def __init__(self):
        self.running: dict[int, Level] = {}


levels = _Levels()


class BatchedDevice(device):
    """A device seen from inside of `vmap`: equal to the device below, but other dispatch keys belong to it.

    Attributes: ``inner`` the device of the batch; ``depth`` how many `vmap`s deep; ``examples`` their number.
    """

    __slots__ = ("depth", "examples", "inner")
    depth: int
    examples: int
    inner: device
    made: dict[tuple[device, int, int], BatchedDevice] = {}

    def __new__(cls, inner: device, depth: int, examples: int, runtime: Runtime) -> BatchedDevice:
        found = cls.made.get((inner, depth, examples))
        if found is None:
            found = object.__new__(cls)
            found.type, found.index = inner.type, inner.index
            found.inner, found.depth, found.examples = inner, depth, examples
            batched = BatchedRuntime(runtime, found)
            for d in runtime.dtypes:
                DispatchKey.intern(found, d, batched)
            found = cls.made.setdefault((inner, depth, examples), found)
        return found

    def __eq__(self, other) -> bool:
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    __hash__ = object.__hash__  # tables keep it apart from the device that it equals

    def __reduce__(self):
        return device, (self.type, self.index)


def depths(where: device) -> dict[int, int]:
    """The number of examples at each depth that a device belongs to."""
    found = {}
    while where.__class__ is BatchedDevice:
        found[where.depth] = where.examples
        where = where.inner
    return found


def base_of(where: device) -> device:
    """The device on which the elements lie."""
    while where.__class__ is BatchedDevice:
        where = where.inner
    return where


def at_depths(base: device, wanted: dict[int, int], dtype: Any) -> device:
    """The device over `base` that belongs to these depths."""
    for depth in sorted(wanted):
        runtime = dispatch_key_of(base, dtype).runtime
        base = BatchedDevice(base, depth, wanted[depth], runtime)
    return base


def joined(keys: Iterable[DispatchKey]) -> device:
    """The device that belongs to all depths of these keys; BatchingError if they differ in the number of examples."""
    keys = list(keys)
    wanted: dict[int, int] = {}
    for key in keys:
        for depth, size in depths(key.device).items():
            if wanted.setdefault(depth, size) != size:
                raise BatchingError(f"vmap: tensors of different batches meet, of {wanted[depth]} and {size} examples")
    key = next((key for key in keys if base_of(key.device).type != "cpu"), keys[0])
    return at_depths(base_of(key.device), wanted, key.dtype)


class BatchedArray:
    """An example of a batch, for all examples at once.

    Attributes: ``values`` an array of the device below, (examples or 1, ...): one stands for all; ``level`` the device.
    """

    __slots__ = ("level", "values")
    __array_ufunc__ = None  # NumPy refuses it
    base = None

    def __init__(self, values: Any, level: BatchedDevice):
        self.values, self.level = values, level

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape[1:])

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(self.values.strides[1:])

    @property
    def dtype(self) -> np.dtype:
        return self.values.dtype

    @property
    def ndim(self) -> int:
        return len(self.values.shape) - 1

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def __array__(self, *arguments, **options) -> NoReturn:
        raise _no_numbers()


def shared(name: str) -> BatchingError:
    """The error of an op that is to write into what is the same for all examples what is not."""
    return BatchingError(
        f"vmap: {name} would write the results of all examples into a tensor that they share: make it batched first "
        "(zeros_like(x) or clone() of a batched x), or use the form that is not in place"
    )


def _no_numbers() -> BatchingError:
    return BatchingError(
        "vmap: a tensor inside of vmap stands for all examples, and has no elements that Python or NumPy could see "
        "(.item(), bool(), .numpy(), an `if` on a tensor): compute with tensors alone, choose by where(), or call the "
        "function for each example"
    )


def _unsqueezed(array: Any, runtime: Runtime) -> Any:
    steps = tuple(s // array.dtype.itemsize for s in array.strides)
    return runtime.as_strided(array, (1, *array.shape), (0, *steps), runtime.storage_offset(array))


def lift(array: Any, dtype: Any, where: device, to: device) -> Any:
    """An array of the device `where` as one of `to`, which belongs to its depths and to others: the same for all
    examples there."""
    if where is to:
        return array
    assert isinstance(to, BatchedDevice)
    if isinstance(where, BatchedDevice) and where.depth == to.depth:
        return BatchedArray(lift(array.values, dtype, where.inner, to.inner), to)
    inside = lift(array, dtype, where, to.inner)
    return BatchedArray(_unsqueezed(inside, dispatch_key_of(to.inner, dtype).runtime), to)


class BatchedRuntime(Runtime):
    """The memory of batched arrays: that of the device below, with one dimension more."""

    array_type = BatchedArray

    def __init__(self, inner: Runtime, level: BatchedDevice):
        self.inner, self.level = inner, level
        self.device_type, self.dtypes = inner.device_type, inner.dtypes

    def _of(self, values: Any) -> BatchedArray:
        return BatchedArray(values, self.level)

    def current_device(self):
        return self.inner.current_device()

    def empty(self, shape, dtype, index):
        return self._of(self.inner.empty((self.level.examples, *shape), dtype, index))

    def upload(self, host, index):
        host = np.asarray(host)
        return self._of(self.inner.upload(np.repeat(host[None], self.level.examples, 0), index))

    def constant(self, number, dtype, index):
        inside = self.inner.constant(number, dtype, index)
        return self._of(_unsqueezed(inside, self.inner))

    def download(self, array):
        raise _no_numbers()

    item = download

    def copy(self, target, source):
        values, given = target.values, source.values
        if given.shape[0] > values.shape[0]:
            raise shared("an in-place operation")
        missing = array_dims(target) - array_dims(source)
        if missing > 0:
            steps = [s // given.dtype.itemsize for s in given.strides]
            given = self.inner.as_strided(
                given, (given.shape[0], *(1,) * missing, *given.shape[1:]), (steps[0], *(0,) * missing, *steps[1:]),
                self.inner.storage_offset(given),
            )  # fmt: skip
        self.inner.copy(values, given)

    def clone(self, array):
        return self._of(self.inner.clone(array.values))

    def cast(self, array, dtype):
        return self._of(self.inner.cast(array.values, dtype))

    def as_strided(self, array, shape, strides, offset, dtype=None):
        values = array.values
        itemsize = (values.dtype if dtype is None else dtype.numpy).itemsize
        step = values.strides[0] // itemsize
        found = (values.shape[0], *shape), (step, *strides)
        return self._of(self.inner.as_strided(values, *found, offset, dtype))

    def is_writable(self, array):
        return self.inner.is_writable(array.values)

    def storage_offset(self, array):
        return self.inner.storage_offset(array.values)

    def address(self, array):
        return self.inner.address(array.values)

    def memory_bytes(self, array):
        return self.inner.memory_bytes(array.values)


def array_dims(array: Any) -> int:
    """The number of an array's dimensions."""
    return len(array.shape)
