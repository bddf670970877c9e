"""Functions that make tensors: values, dtypes, layouts and refusals, beside PyTorch's where it is installed."""

import numpy as np
import pytest

import corefw

torch = pytest.importorskip("torch")

SAME = """
t.zeros(2, 3)
t.zeros((2, 3), dtype=t.int16)
t.zeros(size=(2,))
t.zeros(())
t.zeros(2, dtype=float)
t.ones(2, dtype=t.bool)
t.ones(2, 0)
t.full((2,), 2)
t.full((2,), True)
t.full((2,), 2j)
t.full((2,), t.tensor(3.0))
t.full((2,), -1, dtype=t.uint8)
t.full((2,), 2.7, dtype=t.int64)
t.scalar_tensor(3)
t.scalar_tensor(3, dtype=t.int64)
t.zeros_like(t.ones(2, 3).t())
t.full_like(t.ones(2, 3).t(), 5, dtype=t.int8)
t.ones_like(t.ones(2), dtype=t.float64)
t.ones(2).new_zeros(3, 4, dtype=t.int64)
t.ones(2).new_full((2,), 3)
t.ones(2).new_tensor([1, 2])
t.ones(2).new_ones(size=(1, 2))
t.arange(5)
t.arange(1, 5, 2)
t.arange(5, 1, -2)
t.arange(1, 2.5, 0.5)
t.arange(0, 1, 0.1, dtype=t.bfloat16)
t.arange(t.tensor(3))
t.arange(2**62, 2**62 + 3)
t.arange(0.5, 3, dtype=t.int64)
t.arange(2.5, dtype=t.int8)
t.arange(0, 5, 1.5, dtype=t.int32)
t.arange(0, 3, 0.5, dtype=t.int16)
t.arange(0, 3, 1.5, dtype=t.int64)
t.arange(3, 0.2, -0.7, dtype=t.int16)
t.linspace(0, 1, 5)
t.linspace(0, 1, 1)
t.linspace(0, 1, 0)
t.linspace(3, -3, 4, dtype=t.float64)
t.linspace(-10, 10, 7, dtype=t.int32)
t.linspace(0, 1j, 3)
t.linspace(t.tensor(0.0), 1, 3)
t.logspace(-1, 1, 3)
t.logspace(1, 1.2, 2, dtype=t.int64)
t.logspace(1.5, 3.7, 5, dtype=t.int32)
t.logspace(0, 1.5, 4, base=2, dtype=t.int64)
t.logspace(2.5, 2.5, 1, dtype=t.int64)
t.logspace(0, 2, 3, base=2, dtype=t.int64)
t.eye(2)
t.eye(2, 3, dtype=t.bool)
t.tensor([[1, 2], [3, 4]])
t.tensor([True, 2])
t.tensor([True, 0.5])
t.tensor([1, 2j])
t.tensor([])
t.tensor([[], []])
t.tensor(range(3))
t.tensor((1, [2, 3][0], 2.5))
t.tensor(2**63, dtype=t.uint64)
t.tensor([2**70, 1.0])
t.tensor([-1], dtype=t.uint8)
t.tensor([1.7], dtype=t.int64)
t.tensor([1e6], dtype=t.float16)
t.tensor([float("nan"), 0.5], dtype=t.bool)
t.tensor([t.tensor(1.0, dtype=t.float64), 1.0])
t.tensor([t.ones(1, 1), 2])
t.tensor(np.array([1.7, 300]), dtype=t.uint8)
t.tensor([np.float64(1)])
t.tensor([np.float32(1), 1.0])
t.tensor([np.int8(1), 1])
t.tensor(np.arange(6.0).reshape(2, 3).T)
t.as_tensor(np.float64(3.5))
t.as_tensor([1, 2], dtype=t.float64)
t.asarray(np.ones(2), copy=True)
t.asarray([1, 2])
t.asarray(t.ones(2), requires_grad=True)
t.frombuffer(bytearray(b"abcd"), dtype=t.int16)
t.from_numpy(np.array(1.5))
t.complex(t.ones(2), t.zeros(2))
""".strip().splitlines()

REFUSED = """
t.zeros(-2)
t.zeros("a")
t.zeros(2.5)
t.zeros((2, 3.5))
t.zeros()
t.zeros(True)
t.zeros(2, foo=1)
t.zeros(2, dtype="float32")
t.zeros(2, device="foo")
t.zeros(2, dtype=t.int64, requires_grad=True)
t.zeros(2, out=t.zeros(2, dtype=t.int64), dtype=t.float32)
t.zeros_like([1])
t.full(3, 2.0)
t.full((2,), "a")
t.full((2,), 300, dtype=t.uint8)
t.full((2,), float("nan"), dtype=t.int64)
t.full((2,), 1e300)
t.full((2,), 2j, dtype=t.float32)
t.full((-2,), 1)
t.scalar_tensor(3j)
t.arange(1, 5, -1)
t.arange(1, 5, 0)
t.arange(0, 5, 0.5, dtype=t.int64)
t.arange(0.7, 0.2, dtype=t.int32)
t.arange(float("inf"))
t.arange("a")
t.arange(5, dtype=t.bool)
t.arange(5, requires_grad=True)
t.linspace(0, 1, -1)
t.linspace(0, 1)
t.linspace(t.tensor([0.0]), 1, 3)
t.eye(-1)
t.empty_strided((2, 3), (1,))
t.empty_strided((2, 3), (1, -1))
t.empty_permuted((2, 3, 5), (0, 2))
t.empty_permuted((2, 3, 5), (0, 2, 2))
t.tensor([[1, 2], [3]])
t.tensor([[1, 2], 3])
t.tensor([[[1], [2]], [[1], [2, 3]]])
t.tensor(None)
t.tensor([None])
t.tensor("a")
t.tensor(["a"])
t.tensor({1: 2})
t.tensor([2**63])
t.tensor([300], dtype=t.uint8)
t.tensor([float("nan")], dtype=t.int64)
t.tensor([2j], dtype=t.float32)
t.tensor([t.ones(2), t.ones(2)])
t.tensor(np.array(["a"]))
t.tensor([1, 2], requires_grad=True)
t.from_numpy([1])
t.from_numpy(np.ones(3)[::-1])
t.from_numpy(np.array([1], dtype=">i4"))
t.from_numpy(np.array(["a"]))
t.from_numpy(np.zeros(3, dtype=[("a", "i1"), ("b", "i4")])["b"])
t.frombuffer(bytearray(b"abcd"), dtype=t.int16, offset=1)
t.frombuffer(bytearray(b"abcd"), dtype=t.int16, count=5)
t.set_default_dtype(t.int64)
t.broadcast_shapes((2,), (3,))
t.numel(1)
""".strip().splitlines()


def evaluate(text, t):
    return eval(text, {"t": t, "np": np})


@pytest.mark.parametrize("text", SAME)
def test_as_pytorch(text):
    result, expected = evaluate(text, corefw), evaluate(text, torch)
    assert result.dtype.name == str(expected.dtype).removeprefix("torch.")
    assert result.shape == tuple(expected.shape)
    assert result.stride() == expected.stride()
    assert result.requires_grad == expected.requires_grad
    np.testing.assert_allclose(result.tolist(), expected.tolist(), rtol=1e-6)


@pytest.mark.parametrize("text", REFUSED)
def test_refuses_as_pytorch(text):
    with pytest.raises(Exception) as expected:
        evaluate(text, torch)
    wanted = next(c for c in (NotImplementedError, RuntimeError, ValueError, TypeError) if issubclass(expected.type, c))
    with pytest.raises(wanted):
        evaluate(text, corefw)


@pytest.mark.parametrize(
    "make",
    [
        lambda t, **o: t.zeros(2, 3, **o),
        lambda t, **o: t.ones(2, 3, **o),
        lambda t, **o: t.empty(2, 3, **o),
        lambda t, **o: t.full((2, 3), 1, **o),
        lambda t, **o: t.eye(2, 3, **o),
        lambda t, **o: t.arange(6, **o),
        lambda t, **o: t.linspace(0, 1, 6, **o),
        lambda t, **o: t.empty_strided((2, 3), (1, 2), **o),
        lambda t, **o: t.zeros_like(t.ones(2, 3), **o),
        lambda t, **o: t.rand(2, 3, **o),
        lambda t, **o: t.randn(2, 3, **o),
        lambda t, **o: t.randint(5, (2, 3), **o),
        lambda t, **o: t.randperm(6, **o),
        lambda t, **o: t.tensor([1.5] * 6, **o),
    ],
)
def test_meta_device(make):
    here, there = make(corefw), make(corefw, device="meta")
    assert there.device.type == "meta" and there.shape == here.shape and there.dtype is here.dtype
    assert there.stride() == here.stride()
    with corefw.device("meta"):
        assert (
            make(corefw).is_meta or "like" in make.__code__.co_names or make.__code__.co_names == ("zeros_like", "ones")
        )


def test_out_is_resized_and_returned():
    out = corefw.zeros(3, dtype=corefw.int64)
    assert corefw.arange(5, out=out) is out
    assert out.tolist() == [0, 1, 2, 3, 4] and out.dtype is corefw.int64


def test_default_dtype_decides_floats():
    corefw.set_default_dtype(corefw.float64)
    try:
        made = [
            corefw.tensor(1.5),
            corefw.zeros(2),
            corefw.arange(1.5),
            corefw.tensor([1]) / 2,
            corefw.tensor([1]) + 1.5,
        ]
        assert {t.dtype for t in made} == {corefw.float64}
        assert corefw.tensor(1j).dtype is corefw.complex128
    finally:
        corefw.set_default_dtype(corefw.float32)


def test_default_device():
    corefw.set_default_device("meta")
    try:
        assert corefw.zeros(2).is_meta and corefw.tensor([1]).is_meta and corefw.get_default_device().type == "meta"
        assert corefw.ones(2, device="cpu").is_cpu
    finally:
        corefw.set_default_device(None)
    assert corefw.zeros(2).is_cpu


def test_memory_is_shared_with_numpy_and_copied_by_tensor():
    array = np.zeros(3, np.float32)
    shared, copied = corefw.from_numpy(array), corefw.tensor(array)
    array[0] = 1
    shared[1] = 2
    assert shared.tolist() == [1, 2, 0] and copied.tolist() == [0, 0, 0] and array.tolist() == [1, 2, 0]
    assert corefw.as_tensor(array).data_ptr() == array.ctypes.data


def test_read_only_arrays_warn():
    with pytest.warns(UserWarning, match="not writable"):
        corefw.from_numpy(np.frombuffer(b"abcd", np.uint8))


def test_tensor_of_a_tensor_warns_and_copies():
    x = corefw.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="copy construct"):
        y = corefw.tensor(x)
    assert not y.requires_grad and y.data_ptr() != x.data_ptr()


def test_as_tensor_and_asarray_keep_what_they_can():
    x = corefw.ones(2, requires_grad=True)
    assert corefw.as_tensor(x) is x
    assert corefw.as_tensor(x, dtype=corefw.float64).requires_grad
    assert not corefw.asarray(x).requires_grad
    with pytest.raises(ValueError, match="alias"):
        corefw.asarray([1], copy=False)
