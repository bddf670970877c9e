"""The runtime of a device: memory, copies, views."""

from __future__ import annotations

import numpy as np

from corefw import dtypes
from corefw.dispatch.registry import registry
from corefw.dtypes import dtype
from corefw.shapes import contiguous_strides
from corefw.testing.behaviour import behaviour
from corefw.testing.samples import draw
from corefw.testing.targets import Target, dispatch_key

ALL = tuple(d.name for d in dtypes.ALL)
SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (5,), (2, 3), (0, 4), (2, 1, 3))


def _runtime(target: Target):
    return registry.runtime(target.device)


def _given(target: Target, d: dtype, shape, seed: int = 0):
    """(an array of the host, the same on the device)."""
    host = draw(np.random.default_rng(seed), shape, d, 0, 9)
    return host, _runtime(target).upload(host.copy(), dispatch_key(target, d).device.index)


def _same(found: np.ndarray, wanted: np.ndarray, what: str) -> None:
    assert found.shape == wanted.shape, f"{what}: shape {found.shape}, {wanted.shape} was expected"
    assert found.dtype == wanted.dtype, f"{what}: dtype {found.dtype}, {wanted.dtype} was expected"
    assert found.tobytes() == wanted.tobytes(), f"{what}: {found} where {wanted} was expected"


@behaviour("runtime", dtypes=ALL)
def upload_and_download(target: Target, d: dtype) -> None:
    """What is uploaded comes back, bit for bit; arrays say shape, strides, dtype and size."""
    runtime = _runtime(target)
    for shape in SHAPES:
        host, array = _given(target, d, shape)
        assert isinstance(array, runtime.array_type), f"upload gives {type(array)}, not {runtime.array_type}"
        assert array.dtype == d.numpy, f"the array says {array.dtype}"
        said = (tuple(array.shape), array.ndim, array.nbytes)
        assert said == (shape, len(shape), host.nbytes), f"the array says {said} of shape, dimensions and bytes"
        _same(np.asarray(runtime.download(array)), host, "download")
        if host.size == 1:
            assert runtime.item(array) == host.item(), "item is not the only element"


@behaviour("runtime", dtypes=ALL)
def empty_memory(target: Target, d: dtype) -> None:
    """New memory is contiguous, of the shape and dtype asked for, and its own."""
    runtime, index = _runtime(target), dispatch_key(target, d).device.index
    for shape in SHAPES:
        arrays = [runtime.empty(shape, d, index) for _ in range(2)]
        for array in arrays:
            assert tuple(array.shape) == shape and array.dtype == d.numpy and runtime.is_contiguous(array)
            assert runtime.storage_offset(array) == 0, "new memory begins in the middle"
        if np.prod(shape):
            assert runtime.address(arrays[0]) != runtime.address(arrays[1]), "two new arrays share memory"


@behaviour("runtime", dtypes=ALL)
def views(target: Target, d: dtype) -> None:
    """`as_strided` shows the memory: by every stride, with an offset, and what is written through it is seen."""
    runtime = _runtime(target)
    host, array = _given(target, d, (4, 6))
    for shape, strides, offset in (((6, 4), (1, 6), 0), ((2, 3), (12, 2), 1), ((3, 4), (0, 1), 5), ((), (), 7)):
        view = runtime.as_strided(array, shape, strides, offset)
        itemsize = host.itemsize
        memory, bytes_ = host.reshape(-1)[offset:], [s * itemsize for s in strides]
        wanted = np.lib.stride_tricks.as_strided(memory, shape, bytes_, writeable=False)
        _same(np.array(runtime.download(view), order="C"), np.array(wanted, order="C"), "as_strided")
        assert runtime.storage_offset(view) == offset, f"the offset is {runtime.storage_offset(view)}, not {offset}"
    part = runtime.as_strided(array, (2, 3), (12, 2), 1)
    source, given = _given(target, d, (2, 3), seed=1)
    runtime.copy(part, given)
    host[::2, 1::2] = source
    _same(np.asarray(runtime.download(array)), host, "memory after a copy into a view of it")
    permuted = runtime.clone(runtime.as_strided(array, (2, 3, 4), (12, 1, 3), 0))  # neither C's order nor Fortran's
    again = runtime.as_strided(permuted, (2, 3, 4), tuple(step // host.itemsize for step in permuted.strides), 0)
    wanted = np.array(runtime.download(permuted), order="C")
    _same(np.array(runtime.download(again), order="C"), wanted, "as_strided of memory in an order of its own")


@behaviour("runtime", dtypes=ALL)
def copies(target: Target, d: dtype) -> None:
    """`copy` broadcasts, `clone` is other memory, `transfer` arrives."""
    runtime, index = _runtime(target), dispatch_key(target, d).device.index
    host, array = _given(target, d, (3, 4))
    row, given = _given(target, d, (4,), seed=1)
    other = runtime.clone(array)
    runtime.copy(other, given)
    _same(np.asarray(runtime.download(other)), np.broadcast_to(row, (3, 4)).copy(), "copy")
    _same(np.asarray(runtime.download(array)), host, "what was cloned, after its clone was written to")
    _same(np.asarray(runtime.download(runtime.transfer(array, index))), host, "transfer")
    transposed = runtime.as_strided(array, (4, 3), tuple(reversed(contiguous_strides((3, 4)))), 0)
    _same(np.ascontiguousarray(runtime.download(runtime.clone(transposed))), np.ascontiguousarray(host.T), "clone")


@behaviour("runtime", dtypes=ALL)
def casts(target: Target, d: dtype) -> None:
    """From every dtype that the device stores."""
    runtime = _runtime(target)
    for source in (s for s in dtypes.ALL if s in runtime.dtypes and (d.is_complex or not s.is_complex)):
        host, array = _given(target, source, (3, 4))
        _same(np.asarray(runtime.download(runtime.cast(array, d))), host.astype(d.numpy), f"cast from {source.name}")


@behaviour("runtime")
def devices(target: Target, d: dtype) -> None:
    """The current device is one of those that there are, and can be waited for."""
    runtime = _runtime(target)
    current, count = runtime.current_device(), runtime.device_count()
    assert count >= 1 and (current is None or 0 <= current < count), f"device {current} of {count}"
    runtime.synchronize()
    assert runtime.device_type == target.device, f"the runtime of '{target.device}' says '{runtime.device_type}'"


@behaviour("runtime", dtypes=ALL)
def constants(target: Target, d: dtype) -> None:
    """Python numbers become 0-d arrays."""
    runtime, index = _runtime(target), dispatch_key(target, d).device.index
    for number in (0, 1, *((-1,) if d.is_signed and d is not dtypes.bool_ else ())):
        array = runtime.constant(number, d, index)
        _same(np.asarray(runtime.download(array)), np.asarray(number).astype(d.numpy), f"the constant {number}")
