"""Arrays of which each op sees one example: a batch of them in one array, on a device of its own.

A batched array has the shape of an example. It lies on a `BatchedDevice`, whose dispatch keys have tables of their own,
so that ordinary calls pay nothing; gradients are recorded above it, as for other tensors.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, NoReturn

import numpy as np

from corefw.devices import DispatchKey, device
from corefw.dispatch.op import Op
from corefw.dispatch.registry import dispatch_key_of
from corefw.dispatch.runtime import Runtime
from corefw.errors import CorefwError
from corefw.tensor import Tensor


class BatchingError(CorefwError, RuntimeError):
    """What a function does cannot be done for all examples of a batch at once."""


class HiddenElementsError(BatchingError):
    """A function looks at elements, or makes shapes of them, which may differ between the examples of a batch."""


class OperandsChanged(CorefwError):
    """A call is to be made again, because what it was given has changed, or belongs to a level that ended."""


class Level(NamedTuple):
    """One `vmap` that is running: the number of its examples, what random numbers mean in it, and when it began, in the
    order of nodes."""

    size: int
    randomness: str
    start: int

    def over(self, base: device, depth: float, runtime: Runtime) -> device:
        """The device of its examples over `base`."""
        return BatchedDevice(base, depth, self.size, runtime)


class _Levels(threading.local):
    """The thread's levels by their depths, which grow inwards from 1: `vmap`s and forward differentiations.

    Attributes: ``running`` those that are running; ``revived`` those that ended, while a backward goes through what
    they computed; ``roots`` the depths of what the thread differentiates backward.
    """

    def __init__(self):
        self.running: dict[float, Any] = {}
        self.revived: list[Any] = []
        self.roots: frozenset[float] = frozenset()

    def innermost(self) -> Any:
        """The deepest level that is running, None outside of all."""
        return self.running[max(self.running)] if self.running else None

    def next_depth(self) -> int:
        """The depth of a `vmap` inside of all levels that are running."""
        return int(max(self.running, default=0)) + 1


levels = _Levels()


class LevelDevice(device):
    """A device seen from inside of a level: equal to the device below, but other dispatch keys belong to it.

    Attributes: ``inner`` the device below; ``depth`` how many levels deep, a whole number where a user calls `vmap`;
    ``examples`` how many there are of each tensor.
    """

    __slots__ = ("depth", "examples", "inner")
    depth: float
    examples: int
    inner: device
    made: dict[tuple[type, device, float, int], Any] = {}
    runtime_class: Callable[..., Runtime]

    def __new__(cls, inner: device, depth: float, examples: int, runtime: Runtime):
        found = cls.made.get((cls, inner, depth, examples))
        if found is None:
            found = object.__new__(cls)
            found.type, found.index, found._keys = inner.type, inner.index, {}
            found.inner, found.depth, found.examples = inner, depth, examples
            own = cls.runtime_class(runtime, found)
            for d in runtime.dtypes:
                DispatchKey.intern(found, d, own)
            found = cls.made.setdefault((cls, inner, depth, examples), found)
        return found

    def __eq__(self, other) -> bool:
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    __hash__ = object.__hash__  # tables keep it apart from the device that it equals

    def __reduce__(self):
        return device, (self.type, self.index)

    def over(self, base: device, depth: float, runtime: Runtime) -> device:
        """The device of the same level over another one."""
        return self.__class__(base, depth, self.examples, runtime)

    def holding(self, array: Any, dtype: Any) -> Any:
        """An array of the device below as one of this."""
        raise NotImplementedError

    def paired(self, array: Any) -> Any:
        """The part that a tensor which does not belong to the level gets of a gradient, unless it `keeps` all."""
        raise NotImplementedError

    def keeps(self, depth: float) -> bool:
        """Whether a gradient at a tensor that does not belong to the level remains one of the level's."""
        raise NotImplementedError

    def entry(self, op: Op, dispatch_key: DispatchKey, results: Callable, geometry: Callable) -> tuple:
        """What stands in an op's table for this device; the functions are those of other devices: dispatch keys of
        results, kernels of views."""
        raise NotImplementedError

    def current(self, tensor: Tensor) -> Tensor:
        """A tensor as it is now: itself, or what has become of it by the end of the level."""
        return tensor

    def apply(self, function: Any, ctx: Any, args: tuple, run: Callable) -> Any:
        """The outputs of a function with a gradient of its own (`corefw.autograd.Function`), where the level has a part
        in it; `run` gives them of arguments below. None where it has none."""
        return None

    def said(self, op: Op) -> list[str]:
        """What is to be told of how an op computes here."""
        return []

    def text(self, tensor: Tensor) -> str:
        """A tensor as it is printed."""
        raise NotImplementedError

    def settled(self, gradient: Tensor) -> Tensor:
        """A gradient as a leaf keeps it that does not belong to the level."""
        return gradient

    def check_admission(self, name: str) -> None:
        """Refuse to make a tensor that the op `name` changes in place one of the level, where that cannot be."""


class BatchedDevice(LevelDevice):
    """A device seen from inside of `vmap`."""

    __slots__ = ()

    def holding(self, array: Any, dtype: Any) -> BatchedArray:
        return BatchedArray(_unsqueezed(array, dispatch_key_of(self.inner, dtype).runtime), self)

    def keeps(self, depth: float) -> bool:
        return depth in levels.running

    def check_admission(self, name: str) -> None:
        raise shared(name)


def depths(where: device) -> dict[float, Any]:
    """The devices of the levels that a device belongs to, by their depths."""
    found = {}
    while isinstance(where, LevelDevice):
        found[where.depth] = where
        where = where.inner
    return found


def base_of(where: device) -> device:
    """The device on which the elements lie."""
    while isinstance(where, LevelDevice):
        where = where.inner
    return where


def at_depths(base: device, wanted: dict[float, Any], dtype: Any) -> device:
    """The device over `base` that belongs to these levels."""
    for depth in sorted(wanted):
        base = wanted[depth].over(base, depth, dispatch_key_of(base, dtype).runtime)
    return base


def joined(keys: Iterable[DispatchKey]) -> device:
    """The device that belongs to all depths of these keys; BatchingError if they differ in the number of examples."""
    return _joined(*keys)


@lru_cache(maxsize=4096)
def _joined(*keys: DispatchKey) -> device:
    wanted: dict[float, Any] = {}
    for key in keys:
        for depth, level in depths(key.device).items():
            present = wanted.setdefault(depth, level)
            if present.examples != level.examples or present.__class__ is not level.__class__:
                raise BatchingError(
                    f"vmap: tensors of different batches meet, of {present.examples} and {level.examples} examples"
                )
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

    def mapped(self, change: Callable, to: device) -> BatchedArray:
        """The array with what `change` makes of the one below."""
        return BatchedArray(change(self.values), to)  # type: ignore[arg-type]

    def stopped(self) -> BatchedArray:
        """The array without tangents."""
        return BatchedArray(stopped(self.values), self.level)

    def __array__(self, *arguments, **options) -> NoReturn:
        raise _no_numbers()


def shared(name: str) -> BatchingError:
    """The error of an op that is to write into what is the same for all examples what is not."""
    return BatchingError(
        f"vmap: {name} would write the results of all examples into a tensor that they share: make it batched first "
        "(zeros_like(x) or clone() of a batched x), or use the form that is not in place"
    )


def _no_numbers() -> HiddenElementsError:
    return HiddenElementsError(
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
    assert isinstance(to, LevelDevice)
    if isinstance(where, LevelDevice) and where.depth == to.depth:
        return array.mapped(lambda part: lift(part, dtype, where.inner, to.inner), to)
    return to.holding(lift(array, dtype, where, to.inner), dtype)


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


BatchedDevice.runtime_class = BatchedRuntime


def stopped(array: Any) -> Any:
    """An array without tangents, over the same memory: a constant of all levels of forward differentiation."""
    stop = getattr(array.__class__, "stopped", None)  # of the class: a sparse tensor's array raises for what it has not
    return array if stop is None else stop(array)


def array_dims(array: Any) -> int:
    """The number of an array's dimensions."""
    return len(array.shape)
