"""The runtime of `cuda`: devices, streams, events, copies, statistics, over a driver of two devices that stands in."""

import ctypes
import gc
import io
import re
import subprocess
import sys
import textwrap
import zipfile
from inspect import signature
from types import SimpleNamespace

import numpy as np
import pytest

import corefw as torch
from corefw.dispatch.registry import dispatch_key_of, registry
from corefw.tensor import wrap

pytest.importorskip("cupy", reason="CuPy is not installed")
pytest.importorskip("corefw_cupy", reason="the CuPy backend is not installed")

import cupy

from corefw_cupy.compiler import allocating
from tests.emulation import compiler, driver, memory, queue

pytestmark = pytest.mark.skipif(compiler.COMPILER is None, reason="no C++ compiler")


def test_devices(cuda):
    assert torch.cuda.is_available() and torch.cuda.device_count() == 2
    assert torch.cuda.get_device_name(1) == "emulated" and torch.cuda.get_device_capability() == (9, 0)
    assert torch.cuda.get_device_properties("cuda:0").total_memory == 1 << 34
    assert torch.cuda.mem_get_info() == (1 << 33, 1 << 34)
    assert torch.cuda.current_device() == 0
    with torch.cuda.device(1):
        assert torch.cuda.current_device() == 1
        assert torch.ones(2, device="cuda").device == torch.device("cuda", 1)
    torch.cuda.set_device(1)
    assert torch.cuda.current_device() == 1
    with pytest.raises(RuntimeError, match="cuda:2 does not exist"):
        torch.ones(2, device="cuda:2")


def test_kernels_run_on_the_device_of_their_operands(cuda, monkeypatch):
    seen = []
    kernel = next(k.function for b, k in registry.kernels["exp", "cuda"] if torch.float32 in k.dtypes)

    def noting(*arguments, **keywords):
        seen.append(torch.cuda.current_device())
        return kernel(*arguments, **keywords)

    guarded = cuda.guarded(noting, 1)
    x = torch.tensor([0.0, 1.0], device="cuda:1")
    assert np.allclose(memory.host(guarded(x.array)), [1, np.e])
    assert seen == [1] and torch.cuda.current_device() == 0
    monkeypatch.setattr(cuda, "device_count", lambda: 1)
    assert cuda.guarded(noting, 0) is noting, "nothing is added where there is one device"


def test_copies_between_devices(cuda):
    host = torch.arange(6.0).reshape(2, 3)
    x = host.to("cuda:0")
    y = x.t().to("cuda:1")
    assert y.device == torch.device("cuda:1") and torch.equal(y.cpu(), host.t())
    assert torch.equal(x.double().cpu(), host.double())
    assert y.stride() == y.cpu().stride() == host.t().to("cuda").stride() == (1, 3), "memory order is kept"
    kinds = [kind for kind, _ in driver.State.log]
    assert kinds.count("host to device") == 2, "a copy between devices does not go through the host"


def test_arrays_of_other_libraries_are_shared(cuda, monkeypatch):
    class Foreign:
        """What another library's array is to us."""

        array = memory.device(np.arange(3, dtype=np.int32))
        __cuda_array_interface__ = {"version": 3}

    monkeypatch.setattr(cuda, "cupy", SimpleNamespace(**vars(cuda.cupy), asarray=lambda producer: producer.array))
    x = torch.as_tensor(Foreign())
    assert x.device == torch.device("cuda:0") and x.dtype is torch.int32
    assert x.data_ptr() == Foreign.array.data.ptr and x.tolist() == [0, 1, 2]
    assert torch.as_tensor(Foreign(), dtype=torch.float64, device="cpu").tolist() == [0, 1, 2]
    with pytest.raises(RuntimeError, match="requires grad"):
        torch.ones(2, device="cuda", requires_grad=True).__cuda_array_interface__
    with pytest.raises(AttributeError, match="non-CUDA"):
        torch.ones(2).__cuda_array_interface__
    assert not hasattr(torch.ones(2), "__cuda_array_interface__")


def test_no_op_waits_or_copies(cuda):
    x = torch.ones(4, 4, device="cuda", requires_grad=True)
    driver.State.log.clear()
    y = (x * 2.0 + 1).exp() - x.t()
    y[0] = 3
    torch.where(y > 1, y, -y)
    assert driver.State.log == []
    y.detach().cpu()
    assert [kind for kind, _ in driver.State.log] == ["device to host", "wait"]


def test_pinned_memory_stays_until_it_was_copied(cuda, monkeypatch):
    """Batches follow each other faster than they are copied: the next one must not take the memory of the last."""
    monkeypatch.setattr(queue, "DEFERRED", True)
    batches = [torch.full((64,), float(i)).pin_memory().to("cuda", non_blocking=True) for i in range(4)]
    assert cuda.in_flight.count() == 4, "the host's memory is held as long as it may be read"
    assert [int(batch.sum()) for batch in batches] == [0, 64, 128, 192]
    torch.ones(64).pin_memory().to("cuda", non_blocking=True)
    assert cuda.in_flight.count() == 1, "and given back after"


def test_without_a_mark_pinned_memory_is_overwritten(cuda, monkeypatch):
    monkeypatch.setattr(queue, "DEFERRED", True)
    monkeypatch.setattr(cuda.in_flight, "hold", lambda memory, stream: None)
    batches = [torch.full((64,), float(i)).pin_memory().to("cuda", non_blocking=True) for i in range(4)]
    assert [int(batch.sum()) for batch in batches] != [0, 64, 128, 192]


def test_memory_used_on_another_stream_stays(cuda, monkeypatch):
    monkeypatch.setattr(queue, "DEFERRED", True)
    torch.ones(64, device="cuda")  # the first one of a process stays
    x = torch.ones(64, device="cuda")
    side = torch.cuda.Stream()
    x[2:].record_stream(side)
    torch.cuda.synchronize()
    cuda.in_flight.release()
    assert cuda.in_flight.count() == 1, "the program still has it, and may give the stream more work"
    queue.submit(lambda: None, side.cuda_stream)
    del x
    cuda.in_flight.release()
    assert cuda.in_flight.count() == 1, "the stream is not done with it"
    for _ in range(2):
        torch.cuda.synchronize()
        cuda.in_flight.release()
    assert cuda.in_flight.count() == 0
    with pytest.raises(RuntimeError, match="record_stream: device 'cpu' has no streams"):
        torch.ones(3).record_stream(torch.cuda.Stream())


def test_pinned_memory_is_copied_in_the_background(cuda):
    pinned = torch.arange(4.0).pin_memory()
    assert pinned.is_pinned() and not torch.arange(4.0).is_pinned()
    driver.State.log.clear()
    moved = pinned.to("cuda", non_blocking=True)
    assert [kind for kind, _ in driver.State.log] == ["host to device"]
    driver.State.log.clear()
    pinned.to("cuda")
    assert [kind for kind, _ in driver.State.log] == ["host to device", "wait"]
    assert torch.equal(moved.cpu(), pinned)


def test_streams_and_events(cuda):
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    stream = torch.cuda.Stream()
    assert stream != torch.cuda.default_stream()
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        queue.submit(lambda: None, stream.cuda_stream)
        event = stream.record_event()
    assert torch.cuda.current_stream() == torch.cuda.default_stream()
    torch.cuda.current_stream().wait_stream(stream)
    assert driver.Stream.null.waited_for[-1].stream.ptr == stream.cuda_stream
    event.wait(stream)
    assert event.query() != queue.DEFERRED
    event.synchronize()
    assert event.query() and driver.State.log[-1] == ("wait", stream.cuda_stream)
    stream.synchronize()
    assert stream.query()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    end.record()
    end.synchronize()
    assert end.query() and start.elapsed_time(end) >= 0


def test_a_stream_of_another_device(cuda):
    stream = torch.cuda.Stream(device=1)
    with stream:
        assert torch.cuda.current_device() == 1 and torch.cuda.current_stream() == stream
    assert torch.cuda.current_device() == 0


def test_memory_statistics(cuda):
    gc.collect()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    x = torch.ones(1000, device="cuda")
    assert torch.cuda.memory_allocated() - before == 4096, "of 4000 bytes, as the pool counts"
    torch.cuda.synchronize()  # a launch that waits holds its arrays
    del x
    assert torch.cuda.memory_allocated() == before
    assert torch.cuda.max_memory_allocated() - before == 4096
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated()


def test_the_hook_counts_what_the_pool_gives(cuda):
    use = cuda.memory_use
    use.hook.malloc_postprocess(device_id=1, size=10, mem_size=512, mem_ptr=4096, pmem_id=0)
    use.hook.free_postprocess(device_id=1, mem_size=512, mem_ptr=4096, pmem_id=0)
    assert use.used[1] == 0 and use.most_used[1] == 512


def test_the_hook_takes_the_arguments_that_cupy_documents(cuda):
    for name in ("malloc_postprocess", "free_postprocess"):
        documented = re.findall(r"(\w+)\(int\)", getattr(cupy.cuda.MemoryHook, name).__doc__)
        assert set(documented) == signature(getattr(cuda.memory_use.hook, name)).parameters.keys()


def test_memory_that_the_pool_could_not_give_is_not_counted(cuda, monkeypatch):
    """The pool tells hooks of a failed allocation too, with the address 0 and while its total still has the bytes."""
    torch.cuda.reset_peak_memory_stats()
    before, statistics = cuda.memory_statistics(0), {"device_id": 0, "mem_size": 1 << 40, "mem_ptr": 0}
    with monkeypatch.context() as failing:
        failing.setattr(driver.Pool, "total_bytes", staticmethod(lambda: 1 << 40))
        cuda.memory_use.hook.alloc_postprocess(**statistics)
    cuda.memory_use.hook.malloc_postprocess(size=1 << 40, pmem_id=0, **statistics)
    assert cuda.memory_statistics(0) == before


def capsule(array) -> object:
    """A DLPack capsule over an array of the device, which CuPy makes with a driver only."""
    integers = [ctypes.c_int64 * array.ndim for _ in "ss"]
    shape, strides = integers[0](*array.shape), integers[1](*[step // array.itemsize for step in array.strides])
    fields = [("data", "u8"), ("device", "i4", 2), ("ndim", "i4"), ("code", "u1"), ("bits", "u1"), ("lanes", "u2")]
    fields += [(name, "u8") for name in ("shape", "strides", "byte_offset", "context", "deleter")]
    managed = np.zeros(1, fields)
    kind = {"f": 2, "i": 0}[array.dtype.kind]
    addresses = [ctypes.addressof(numbers) for numbers in (shape, strides)]
    managed[0] = (array.data.ptr, (2, 0), array.ndim, kind, 8 * array.itemsize, 1, *addresses, 0, 0, 0)
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    KEPT.extend((managed, shape, strides, array))
    return new(managed.ctypes.data, b"dltensor", None)


KEPT: list[object] = []  # what capsules point to


SIZED = {
    "new": lambda t: t.arange(7.0, device="cuda"),
    "view": lambda t: t.arange(7.0, device="cuda")[2:],
    "view of a view": lambda t: t.arange(7.0, device="cuda")[2:].view(5, 1)[1:],
    "transposed": lambda t: t.arange(7.0, device="cuda").reshape(7, 1).t(),
    "clone": lambda t: t.arange(7.0, device="cuda").clone(),
    "computed": lambda t: t.arange(7.0, device="cuda") * 2,
    "moved": lambda t: t.arange(7.0).to("cuda"),
    "resized": lambda t: t.empty(0, device="cuda").resize_(7),
    "shrunk": lambda t: t.arange(7.0, device="cuda").resize_(2),
    "detached": lambda t: t.arange(7.0, device="cuda", requires_grad=True).detach(),
    "loaded": lambda t: through_a_file(t, t.arange(7.0, device="cuda")[2:]),
}


def through_a_file(t, tensor):
    file = io.BytesIO()
    t.save(tensor, file)
    return t.load(io.BytesIO(file.getvalue()))


@pytest.mark.parametrize("make", SIZED.values(), ids=SIZED)
def test_memory_has_the_size_that_was_asked_for(cuda, make):
    x = make(torch)
    assert x.untyped_storage().nbytes() == 28
    with pytest.raises(RuntimeError, match="out of bounds for the storage"):
        x.as_strided((8,), (1,), 0)
    assert x.as_strided((7,), (1,), 0).shape == (7,)
    assert x.untyped_storage().cpu().nbytes() == 28


def test_checkpoints_hold_no_bytes_of_others(cuda):
    file = io.BytesIO()
    torch.save({"x": torch.ones(7, device="cuda"), "y": torch.ones(3, device="cuda", dtype=torch.uint8)}, file)
    with zipfile.ZipFile(io.BytesIO(file.getvalue())) as archive:
        sizes = sorted(entry.file_size for entry in archive.infolist() if "/data/" in entry.filename)
    assert sizes == [3, 28]


@pytest.mark.parametrize("view", ["x", "x.transpose()", "x[:, ::2]", "x[3:, 4]", "x[:0]", "x[0, 0]", "x[None, 2:3]"])
@pytest.mark.filterwarnings("ignore:This function is deprecated")
def test_memory_of_other_libraries_has_the_size_of_what_is_shown(cuda, view, monkeypatch):
    read = pytest.importorskip("cupy").fromDlpack
    monkeypatch.setattr(cuda, "cupy", SimpleNamespace(**vars(cuda.cupy), from_dlpack=read))
    array = eval(view, {"x": memory.device(np.arange(100.0, dtype=np.float32).reshape(10, 10))})
    shown = [step * (n - 1) for step, n in zip(array.strides, array.shape)]
    x = wrap(cuda.from_dlpack(capsule(array)), dispatch_key_of(torch.device("cuda", 0), torch.float32))
    assert x.untyped_storage().nbytes() == (sum(shown) + 4 if array.size else 0)
    assert x.as_strided(x.shape, x.stride()).tolist() == memory.host(array).tolist()
    assert x[...].flatten().tolist() == memory.host(array).ravel().tolist()


def test_a_generator_for_each_device(cuda):
    torch.cuda.manual_seed_all(3)
    states = [torch.cuda.get_rng_state(i) for i in range(2)]
    assert torch.equal(*states)
    torch.cuda.manual_seed(4)
    assert torch.cuda.initial_seed() == 4


WAITS = {
    "for the device": lambda x: torch.cuda.synchronize(),
    "for a stream": lambda x: torch.cuda.current_stream().synchronize(),
    "for an event": lambda x: torch.cuda.current_stream().record_event().synchronize(),
    "for elements": lambda x: x.cpu(),
    "for how many there are": lambda x: registry.runtime("cuda").cuda.number(x.array),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_whoever_waits_gets_what_kernels_reported(cuda, wait):
    x, kind = torch.ones(1, device="cuda"), cuda.device_asserts.out_of_bounds("gather")
    wait(x)
    cuda.device_asserts.memory[...] = kind, 7, 0, 5
    with pytest.raises(IndexError, match="gather: index 7 is out of bounds for dimension 0 with size 5"):
        wait(x)
    wait(x)


def run(program: str, **environment) -> str:
    """What a program prints in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_a_machine_without_a_gpu():
    if registry.backends.get("cupy") and not registry.backends["cupy"].unusable:
        pytest.skip("a GPU is there")
    out = run("""
        import corefw as torch
        import corefw_cupy
        print(torch.cuda.is_available(), torch.cuda.device_count())
        from corefw.dispatch.registry import registry
        print(registry.backends["cupy"].unusable)
        try:
            torch.ones(1, device="cuda")
        except RuntimeError as error:
            print(error)
    """)
    available, reason, error = out.strip().splitlines()
    assert available == "False 0" and "driver" in reason
    assert reason in error and "cupy" in error


def test_a_machine_without_cupy():
    out = run("""
        import sys
        sys.modules["cupy"] = None
        import corefw_cupy
        print(corefw_cupy.corefw_backend().unusable)
    """)
    assert "CuPy cannot be imported" in out and "corefw-cupy[cuda13]" in out


def test_new_arrays_are_what_the_constructor_makes(cuda):
    made, wanted = (make((2, 3), np.dtype("f4")) for make in (allocating(cupy.ndarray), cupy.ndarray))
    for name in ("shape", "strides", "dtype", "size", "nbytes", "base"):
        assert getattr(made, name) == getattr(wanted, name)
    assert type(made) is cupy.ndarray and made.flags.c_contiguous and made.data.ptr != wanted.data.ptr
    assert allocating(np.ndarray) is np.ndarray  # a constructor of C's
