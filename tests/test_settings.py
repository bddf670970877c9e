"""Process-wide settings, constants and types of the top-level namespace, and what `cuda` answers without a GPU."""

import math
import warnings

import numpy as np
import pytest

import corefw as torch
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.registry import registry


def test_threads(set_threads):
    set_threads(1)
    assert torch.get_num_threads() == 1
    for wrong, kind in ((0, RuntimeError), (1.5, TypeError), (True, TypeError)):
        with pytest.raises(kind):
            torch.set_num_threads(wrong)


def test_threads_between_ops():
    assert torch.get_num_interop_threads() == 1
    torch.set_num_interop_threads(3)
    assert torch.get_num_interop_threads() == 3
    torch.set_num_interop_threads(1)
    for wrong, kind in ((0, RuntimeError), (1.5, TypeError)):
        with pytest.raises(kind, match="set_num_interop_threads expects"):
            torch.set_num_interop_threads(wrong)


def test_warnings_are_repeated_if_asked():
    def heard() -> int:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            for _ in range(3):
                torch.nn.functional.mse_loss(torch.ones(2), torch.ones(1))
        return len(caught)

    assert heard() == 1
    torch.set_warn_always(True)
    try:
        assert torch.is_warn_always_enabled() and heard() == 3
    finally:
        torch.set_warn_always(False)
    with pytest.raises(TypeError, match="expects a bool"):
        torch.set_warn_always(1)


def test_modules_of_devices():
    assert torch.get_device_module("cuda") is torch.get_device_module(torch.device("cuda", 1)) is torch.cuda
    with pytest.raises(RuntimeError, match="Device 'meta' does not have a corresponding module"):
        torch.get_device_module("meta")
    with pytest.raises(RuntimeError, match="Invalid value of device '3'"):
        torch.get_device_module(3)


def test_memory_is_told_from_tensors():
    assert torch.is_storage(torch.ones(1).untyped_storage()) and not torch.is_storage(torch.ones(1))


def test_samplers_have_the_default_generator():
    assert torch.random.thread_safe_generator() is None


def test_determinism():
    assert not torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(True)
    assert torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(False)


def test_constants():
    assert (torch.pi, torch.e, torch.inf) == (math.pi, math.e, math.inf) and math.isnan(torch.nan)
    assert torch.newaxis is None and torch.ones(2)[:, torch.newaxis].shape == (2, 1)
    assert torch.__version__.count(".") == 2


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("BoolTensor", torch.bool),
        ("ByteTensor", torch.uint8),
        ("CharTensor", torch.int8),
        ("ShortTensor", torch.int16),
        ("IntTensor", torch.int32),
        ("LongTensor", torch.int64),
        ("HalfTensor", torch.float16),
        ("FloatTensor", torch.float32),
        ("DoubleTensor", torch.float64),
    ],
)
def test_legacy_tensor_types(name, dtype):
    kind = getattr(torch, name)
    made = kind([1, 0])
    assert made.dtype == dtype and made.tolist() == [1, 0]
    assert isinstance(made, kind) and made.type() == f"torch.{name}"


def test_a_dtype_that_no_backend_holds():
    assert repr(torch.chalf) == "torch.complex32"
    with pytest.raises(NotImplementedError, match="complex32"):
        torch.zeros(1, dtype=torch.chalf)


def test_limits_of_dtypes():
    assert torch.finfo(torch.float16).max == 65504 and torch.finfo(torch.bfloat16).bits == 16
    assert torch.finfo(torch.float64).eps == 2.0**-52 and torch.finfo().bits == 32
    assert (torch.iinfo(torch.int8).min, torch.iinfo(torch.uint64).max) == (-128, 2**64 - 1)
    with pytest.raises(TypeError):
        torch.finfo(torch.int32)
    with pytest.raises(TypeError):
        torch.iinfo(torch.float32)


def test_casting_and_kinds():
    assert torch.can_cast(torch.int32, torch.float32) and not torch.can_cast(torch.float32, torch.int32)
    assert torch.is_tensor(torch.ones(1)) and not torch.is_tensor([1])


def test_memory_formats():
    assert (
        repr(torch.channels_last_3d) == "torch.channels_last_3d"
        and repr(torch.preserve_format) == "torch.preserve_format"
    )
    x = torch.zeros(1, 2, 3, 4, 5).contiguous(memory_format=torch.channels_last_3d)
    assert (
        x.stride() == (120, 1, 40, 10, 2)
        and torch.empty_like(x, memory_format=torch.preserve_format).stride() == x.stride()
    )


def test_randint_like_keeps_the_shape():
    drawn = torch.randint_like(torch.ones(50, dtype=torch.int64), 3, 5)
    assert drawn.shape == (50,) and set(drawn.tolist()) == {3, 4}


def test_pinned_memory_needs_an_accelerator(monkeypatch):
    monkeypatch.setattr(registry, "runtimes", {kind: registry.runtimes[kind] for kind in ("cpu", "meta")})
    with pytest.raises(RuntimeError, match="accelerator"):
        torch.ones(3).pin_memory()


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there: these are the answers without one")
def test_cuda_without_a_gpu():
    cuda = torch.cuda
    assert not cuda.is_initialized()
    cuda.seed_all()
    cuda.empty_cache()
    cuda.reset_peak_memory_stats()
    for size in (cuda.memory_allocated, cuda.memory_reserved, cuda.max_memory_allocated, cuda.max_memory_reserved):
        assert size() == 0
    for ask in (
        cuda.init,
        cuda.get_device_properties,
        cuda.current_stream,
        cuda.default_stream,
        cuda.Event,
        lambda: cuda.set_device(0),
        lambda: cuda.device(0).__enter__(),
    ):
        with pytest.raises(RuntimeError, match="cuda"):
            ask()
    with cuda.stream(None):
        assert not torch.backends.cudnn.is_available() and not torch.backends.mps.is_available()


def test_precision_of_matrix_products():
    assert torch.get_float32_matmul_precision() == "highest" and not torch.backends.cuda.matmul.allow_tf32
    torch.set_float32_matmul_precision("high")
    try:
        assert torch.backends.cuda.matmul.allow_tf32 and torch.get_float32_matmul_precision() == "high"
        torch.backends.cuda.matmul.allow_tf32 = False
        assert torch.get_float32_matmul_precision() == "highest"
    finally:
        torch.set_float32_matmul_precision("highest")
    with pytest.raises(RuntimeError, match="precision"):
        torch.set_float32_matmul_precision("low")


def test_switches_of_cudnn():
    assert torch.backends.cudnn.enabled and not torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = True
    try:
        assert torch.backends.cudnn.benchmark is True
    finally:
        torch.backends.cudnn.benchmark = False
    with pytest.raises(AttributeError, match="no attribute"):
        torch.backends.cudnn.absent


def test_kernels_that_are_not_deterministic_are_not_asked(monkeypatch):
    ran = []
    varying = Kernel("cosh", lambda a: ran.append(a.shape) or np.cosh(a), deterministic=False)
    backend = Backend("varying", "1", ("cpu",), {"cpu": [varying]}, priority=99)
    monkeypatch.setattr(registry, "kernels", {**registry.kernels, ("cosh", "cpu"): [(backend, varying)]})
    torch.use_deterministic_algorithms(True)
    try:
        with pytest.raises(NotImplementedError, match="varying: its kernel is not deterministic"):
            torch.zeros(3).cosh()
        torch.use_deterministic_algorithms(True, warn_only=True)
        assert torch.is_deterministic_algorithms_warn_only_enabled()
        for _ in range(2):
            with pytest.warns(UserWarning, match="cosh does not have a deterministic implementation") as caught:
                assert torch.zeros(3).cosh().tolist() == [1, 1, 1]
            assert [warning.filename for warning in caught] == [__file__]
        assert ran.clear() is None and not torch.use_deterministic_algorithms(True)
    finally:
        torch.use_deterministic_algorithms(False)
    assert torch.zeros(3).cosh().tolist() == [1, 1, 1] and ran == [(3,)]
    registry.forget()


@pytest.mark.parametrize(("mode", "number"), [("default", 0), ("warn", 1), ("error", 2), (0, 0), (1, 1), (2, 2)])
def test_deterministic_debug_mode(mode, number):
    try:
        torch.set_deterministic_debug_mode(mode)
        assert torch.get_deterministic_debug_mode() == number
        assert torch.are_deterministic_algorithms_enabled() == (number > 0)
        assert torch.is_deterministic_algorithms_warn_only_enabled() == (number == 1)
    finally:
        torch.use_deterministic_algorithms(False)


@pytest.mark.parametrize(("mode", "error"), [(3, RuntimeError), ("warning", RuntimeError), (None, TypeError)])
def test_wrong_deterministic_debug_modes(mode, error):
    with pytest.raises(error, match="debug_mode"):
        torch.set_deterministic_debug_mode(mode)


def test_subnormal_numbers_stay():
    assert torch.set_flush_denormal(True) is False
    assert (torch.tensor(1e-40) * 1).item() > 0
