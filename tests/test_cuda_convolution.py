"""Convolutions of the CuPy backend beyond the conformance rows: large tiles, split sums, phases, and cuDNN's plans."""

import ctypes
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw.dispatch.settings import settings
from corefw_cupy import convolution as family
from corefw_cupy import convolution_geometry as geometry
from corefw_cupy.convolution_geometry import Layout
from corefw_cupy.cudnn import Cudnn
from corefw_numpy import convolution as reference
from tests.cuda_kernels import barriers, without_barrier
from tests.emulation import device, driver, memory, queue
from tests.emulation.device import cuda

EXPECTED = reference.kernels(np)
DTYPES = (np.float16, ml_dtypes.bfloat16, np.float32)
LARGE, WIDE, COMMON = (128, 128), (32, 128), (64, 64)


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(len(shape)).integers(-4, 5, shape).astype(dtype)  # exact in any order of summation


def options(spatial, **given):
    """The options of `convolution`, one for all dimensions."""
    defaults = {"stride": 1, "padding": 0, "dilation": 1, "transposed": False, "output_padding": 0, "groups": 1} | given
    return tuple(v if k in ("transposed", "groups") else (v,) * spatial for k, v in defaults.items())


def check(kernels, *arguments, dtype=np.float32):
    """The result of `convolution` is what NumPy computes, rounded once."""
    expected = EXPECTED["convolution"](*arguments).astype(dtype)
    given = [memory.device(a.astype(dtype)) if isinstance(a, np.ndarray) else a for a in arguments]
    np.testing.assert_array_equal(memory.host(kernels.forward(*given)), expected)


@pytest.mark.parametrize("tile", [LARGE, WIDE, COMMON])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_tile(tile, transposed, dtype, monkeypatch):
    monkeypatch.setattr(geometry, "tile", lambda *sizes: tile)
    how = options(2, stride=2, padding=1, transposed=transposed, groups=2)
    x, w = numbers(2, 24, 9, 8), numbers(24, 20, 3, 3) if transposed else numbers(150, 12, 3, 3)
    bias = numbers(w.shape[1] * 2 if transposed else 150)
    check(family.Convolutions(cuda()), x, w, bias, *how, dtype=dtype)


@pytest.mark.parametrize("tile", [LARGE, WIDE, COMMON])
@pytest.mark.parametrize("least", [1, 1000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_gradient_of_kernels_whole_and_split(tile, least, dtype, monkeypatch):
    monkeypatch.setattr(geometry, "tile", lambda *sizes: tile)
    monkeypatch.setattr(geometry, "LEAST_SLABS", least)
    x, grad, how = numbers(3, 20, 9, 8), numbers(3, 33, 5, 4), ((3, 3), (2, 2), (1, 1), (1, 1), 1)
    result = family.Convolutions(cuda()).gradient(*(memory.device(a.astype(dtype)) for a in (x, grad)), *how)
    np.testing.assert_array_equal(memory.host(result), EXPECTED["convolution_weight"](x, grad, *how).astype(dtype))


@pytest.fixture
def tf32(monkeypatch):
    monkeypatch.setitem(settings.library, "allow_tf32", True)


def to_tf32(array):
    """float32 with 10 bits of mantissa, rounded to nearest."""
    bits = np.asarray(array, np.float32).view(np.uint32)
    return ((bits + 0x1000) & 0xFFFFE000).view(np.float32).astype(np.float64)


def computed(kernels, op, x, other, how):
    """What a table of kernels computes without a bias."""
    return kernels[op](x, other, *([None] if op == "convolution" else []), *how)


TF32_CASES = {
    "forward": ("convolution", (2, 24, 9, 8), (150, 12, 3, 3), options(2, stride=2, padding=1, groups=2)),
    "wide": ("convolution", (1, 40, 30, 9), (20, 40, 3, 2), options(2, dilation=2)),
    "input gradient": ("convolution", (2, 24, 5, 6), (24, 20, 3, 3), options(2, stride=2, transposed=True, groups=2)),
    "kernel gradient": ("convolution_weight", (3, 20, 9, 8), (3, 33, 5, 4), ((3, 3), (2, 2), (1, 1), (1, 1), 1)),
}


@pytest.mark.parametrize("tile", [LARGE, WIDE, COMMON])
@pytest.mark.parametrize(("op", "of_x", "of_other", "how"), TF32_CASES.values(), ids=TF32_CASES)
def test_tensor_float_32(tf32, op, of_x, of_other, how, tile, monkeypatch):
    monkeypatch.setattr(geometry, "tile", lambda *sizes: tile)
    rng, made = np.random.default_rng(3), family.Convolutions(cuda())
    numbers = [rng.normal(size=shape).astype(np.float32) for shape in (of_x, of_other)]
    ours = {"convolution": made.forward, "convolution_weight": made.gradient}
    given = list(map(memory.device, numbers))
    exact, rounded, magnitude = (
        computed(EXPECTED, op, *map(to, numbers), how) for to in (np.float64, to_tf32, lambda a: np.abs(a.astype("f8")))
    )
    found = memory.host(computed(ours, op, *given, how))
    np.testing.assert_allclose(found, rounded, 1e-6, 2e-5)  # sums are of float32
    assert (np.abs(found - exact) <= 2**-10 * magnitude).all(), "each factor is rounded by at most 2**-11 of it"
    monkeypatch.setitem(settings.library, "allow_tf32", False)
    np.testing.assert_allclose(memory.host(computed(ours, op, *given, how)), exact, 1e-6, 2e-5)
    assert np.abs(rounded - exact).max() > 1e-3, "that is not what TensorFloat-32 gives"


def test_tensor_float_32_of_what_is_no_finite_number(tf32):
    x, w = numbers(1, 16, 6), numbers(32, 16, 3)
    x[0, 0, 2], w[3, 0, 1] = np.nan, np.inf
    found = memory.host(family.Convolutions(cuda()).forward(memory.device(x), memory.device(w), None, *options(1)))
    exact = EXPECTED["convolution"](x.astype(np.float64), w.astype(np.float64), None, *options(1))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(exact))
    assert np.isnan(found).any() and np.isinf(found).any()


@pytest.mark.parametrize(("file", "from_end"), barriers("convolution/convolution_tensor.cu"))
def test_every_barrier_is_needed(tf32, file, from_end, monkeypatch):
    monkeypatch.setattr(device, "text", without_barrier(file, from_end))
    with pytest.raises(AssertionError, match="Arrays are not equal"):
        check(family.Convolutions(cuda()), numbers(2, 40, 20, 9), numbers(70, 40, 3, 3), None, *options(2))


def test_split_sums_with_a_bias(monkeypatch):
    monkeypatch.setattr(geometry, "LEAST_SLABS", 1)
    check(family.Convolutions(cuda()), numbers(1, 40, 5), numbers(12, 40, 3), numbers(12), *options(1))


@pytest.mark.parametrize("transposed", [False, True])
def test_depthwise_of_more_channels_than_blocks(transposed, monkeypatch):
    monkeypatch.setattr(family, "MOST_BLOCKS_DOWN", 3)
    how = options(3, stride=2, padding=1, dilation=2, transposed=transposed, groups=5)
    x, w = numbers(2, 5, 4, 5, 6), numbers(5, 2, 2, 3, 2) if transposed else numbers(10, 1, 2, 3, 2)
    check(family.Convolutions(cuda()), x, w, numbers(10), *how)


@pytest.mark.parametrize("least", [1, 1000])
def test_depthwise_gradient_of_kernels(least, monkeypatch):
    monkeypatch.setattr(geometry, "LEAST_SLABS", least)
    x, grad, how = numbers(3, 4, 9, 70), numbers(3, 8, 5, 35), ((3, 3), (2, 2), (1, 1), (1, 1), 4)
    result = family.Convolutions(cuda()).gradient(memory.device(x), memory.device(grad), *how)
    np.testing.assert_array_equal(memory.host(result), EXPECTED["convolution_weight"](x, grad, *how))


@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_kernels_of_one_element(size, transposed):
    w = numbers(4, 5, 1, 1) if transposed else numbers(5, 4, 1, 1)
    for bias in (None, numbers(5)):
        how = options(2, transposed=transposed)
        check(family.Convolutions(cuda()), numbers(3, 4, size, size), w, bias, *how)


def test_great_stride():
    how = options(2, stride=5, padding=1, dilation=6, output_padding=5, transposed=True, groups=2)
    check(family.Convolutions(cuda()), numbers(2, 4, 3, 2), numbers(4, 3, 2, 2), numbers(6), *how)


def test_strided_images_are_read_in_place():
    x, w = numbers(2, 9, 6, 5), numbers(12, 9, 3, 2)
    device = memory.device(np.ascontiguousarray(x.transpose(0, 2, 3, 1))).transpose(0, 3, 1, 2)
    result = family.Convolutions(cuda()).forward(device[:, :, ::-1], memory.device(w), None, *options(2))
    np.testing.assert_array_equal(memory.host(result), EXPECTED["convolution"](x[:, :, ::-1], w, None, *options(2)))


@pytest.mark.parametrize(("stride", "dilation", "taps"), [(1, 1, 3), (2, 1, 3), (3, 2, 2), (2, 2, 4), (4, 1, 2)])
def test_phases_of_a_transposed_convolution_meet_every_pair_once(stride, dilation, taps):
    size = 5
    results = (size - 1) * stride + dilation * (taps - 1) + 1 - 2
    image, kernel = Layout.dense((1, 1, size)), Layout.dense((1, 1, taps))
    how = ((stride,), (1,), (dilation,), True, (0,), 1)
    met = []
    for part in geometry.convolution(image, kernel, None, *how).parts:
        head, axis = part.struct.memory[0], part.struct.memory[0]["axes"][-1]
        for place in range(axis["places"]):
            for tap in range(axis["taps"]):
                position = place * axis["place_step"] + tap * axis["tap_step"] + axis["first"]
                if 0 <= position < size:
                    result = head["place_offset"] + place * axis["place_stride"]
                    met.append((int(result), int(position), int(head["tap_offset"] + tap * axis["tap_stride"])))
    pairs = ((p * stride + k * dilation - 1, p, k) for p in range(size) for k in range(taps))
    assert sorted(met) == sorted(pair for pair in pairs if 0 <= pair[0] < results)


def test_tiles_and_splits():
    assert geometry.tile(16, 1000, 1) == WIDE
    assert geometry.tile(64, 50, 1) == COMMON
    assert geometry.tile(256, 100_000, 1) == LARGE
    assert geometry.tile(256, 500, 1) == COMMON  # large tiles would be too few
    assert geometry.splits(132, 1 << 20, 8, 4) == 1
    assert geometry.splits(10, 1 << 20, 8, 4) == 27
    assert geometry.splits(10, 64, 8, 4) == 1  # too little to split
    assert geometry.splits(1, 1 << 20, 8, 1 << 25) == 2  # bounded memory


# -- cuDNN ------------------------------------------------------------------------------------------------------------
class Tensor(SimpleNamespace):
    """A tensor of a graph; what is set can be read back."""

    made = 0

    def __init__(self, dim=None, stride=None, data_type=None):
        Tensor.made += 1
        super().__init__(dim=dim, stride=stride, data_type=data_type, uid=Tensor.made)

    def __getattr__(self, name):
        if not name.startswith("set_"):
            raise AttributeError(name)
        return lambda value: setattr(self, name.removeprefix("set_"), value) or self

    def get_uid(self):
        return self.uid

    def at(self, addresses):
        """The tensor's memory."""
        reach = sum((n - 1) * step for n, step in zip(self.dim, self.stride)) + 1
        memory = (ctypes.c_char * (4 * reach)).from_address(addresses[self.uid])
        return np.ndarray(self.dim, np.float32, memory, 0, [4 * step for step in self.stride])


class Graph:
    """A graph of one convolution, computed by NumPy."""

    refused = False
    log: list[tuple] = []

    def __init__(self, handle, **types):
        self.handle, self.types = handle, types

    def tensor(self, dim, stride, data_type):
        return Tensor(dim, stride, data_type)

    def _operation(self, name, first, second, padding, stride, dilation):
        self.name, self.first, self.second, self.result = name, first, second, Tensor()
        self.steps = tuple(stride), tuple(padding), tuple(dilation)
        Graph.log.append((name, tuple(first.dim), tuple(first.stride), *self.steps))
        return self.result

    def conv_fprop(self, image, weight, **steps):
        return self._operation("fprop", image, weight, **steps)

    def conv_dgrad(self, loss, filter, **steps):
        return self._operation("dgrad", loss, filter, **steps)

    def conv_wgrad(self, image, loss, **steps):
        return self._operation("wgrad", image, loss, **steps)

    def validate(self):
        assert self.result.output
        assert len(self.result.dim) == len(self.result.stride) == len(self.first.dim)

    def check_support(self):
        if Graph.refused:
            raise RuntimeError("no engine")

    def deselect_numeric_notes(self, notes):
        Graph.log.append(("without", *notes))

    def get_workspace_size(self):
        return 0

    def build_operation_graph(self): ...
    def build_plans(self): ...
    def create_execution_plans(self, modes): ...

    def execute(self, addresses, workspace, handle):
        assert workspace
        assert handle == self.handle
        assert all(address % 16 == 0 for address in addresses.values()), "a device would fault"
        queue.submit(lambda: self.compute(addresses), driver.get_current_stream().ptr)

    def compute(self, addresses):
        first, second, out = (t.at(addresses) for t in (self.first, self.second, self.result))
        if self.name == "wgrad":
            groups = first.shape[1] // out.shape[1]
            out[...] = EXPECTED["convolution_weight"](first, second, out.shape[2:], *self.steps, groups)
            return
        transposed = self.name == "dgrad"
        extent = [d * (k - 1) + 1 for d, k in zip(self.steps[2], second.shape[2:])]
        sizes = zip(out.shape[2:], first.shape[2:], *self.steps[:2], extent)
        left = tuple(n - ((m - 1) * s - 2 * p + e) if transposed else 0 for n, m, s, p, e in sizes)
        groups = out.shape[1] // second.shape[1] if transposed else first.shape[1] // second.shape[1]
        out[...] = EXPECTED["convolution"](first, second, None, *self.steps, transposed, left, groups)


@pytest.fixture
def with_cudnn():
    """Convolutions that find cuDNN."""
    Graph.refused, Graph.log = False, []
    made = family.Convolutions(cuda())
    made.cudnn.module = SimpleNamespace(
        pygraph=Graph,
        create_handle=object,
        set_stream=lambda handle, stream: Graph.log.append(("stream", stream)),
        data_type=SimpleNamespace(FLOAT="float", HALF="half", BFLOAT16="bfloat16"),
        heur_mode=SimpleNamespace(A="a", FALLBACK="fallback"),
        numerical_note=SimpleNamespace(
            TENSOR_CORE="tensor core",
            DOWN_CONVERT_INPUTS="inputs",
            REDUCED_PRECISION_REDUCTION="reduction",
            NONDETERMINISTIC="nondeterministic",
        ),
    )
    return made


def graphs():
    """The operations for which a plan was sought."""
    return [entry[0] for entry in Graph.log if entry[0] in ("fprop", "dgrad", "wgrad")]


@pytest.mark.parametrize("spatial", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_cudnn_forward(with_cudnn, spatial, transposed):
    how = options(
        spatial, stride=2, padding=1, dilation=2, transposed=transposed, output_padding=int(transposed), groups=2
    )
    w = numbers(4, 9, *(3,) * spatial) if transposed else numbers(18, 2, *(3,) * spatial)
    check(with_cudnn, numbers(2, 4, *(6,) * spatial), w, numbers(18), *how)
    check(with_cudnn, numbers(2, 4, *(6,) * spatial), w, None, *how)
    assert graphs() == ["dgrad" if transposed else "fprop"]  # the second time, the plan is known


def test_cudnn_gradient_of_kernels(with_cudnn):
    x, grad, how = numbers(3, 20, 9), numbers(3, 33, 5), ((3,), (2,), (1,), (1,), 1)
    result = with_cudnn.gradient(memory.device(x), memory.device(grad), *how)
    np.testing.assert_array_equal(memory.host(result), EXPECTED["convolution_weight"](x, grad, *how))
    assert ("wgrad", (3, 20, 1, 9), (180, 9, 9, 1), (1, 2), (0, 1), (1, 1)) in Graph.log


def test_cudnn_precision_and_determinism(with_cudnn, monkeypatch):
    arguments = numbers(1, 9, 5), numbers(12, 9, 3), None, *options(1)
    check(with_cudnn, *arguments)
    monkeypatch.setitem(settings.library, "allow_tf32", True)
    monkeypatch.setitem(settings.library, "deterministic", True)
    check(with_cudnn, *arguments)
    without = [set(entry[1:]) for entry in Graph.log if entry[0] == "without"]
    assert without == [{"tensor core", "inputs", "reduction"}, {"nondeterministic"}]


def test_cudnn_can_be_switched_off(with_cudnn, monkeypatch):
    monkeypatch.setitem(settings.library, "enabled", False)
    check(with_cudnn, numbers(1, 9, 5), numbers(12, 9, 3), None, *options(1))
    assert graphs() == []


def test_what_cudnn_refuses_is_computed_here(with_cudnn, caplog):
    Graph.refused = True
    arguments = numbers(1, 9, 5), numbers(12, 9, 3), numbers(12), *options(1)
    for _ in range(2):
        check(with_cudnn, *arguments)
    assert graphs() == ["fprop"]  # asked once
    assert [record.levelname for record in caplog.records] == ["WARNING"] and "conv_fprop" in caplog.text


def test_what_lies_between_multiples_of_16_bytes_is_copied_for_cudnn(with_cudnn):
    x, w, how = numbers(1, 9, 5), numbers(12, 9, 3), options(1)
    shifted = memory.device(np.concatenate([[0], x.ravel()]).astype(x.dtype))[1:].reshape(x.shape)
    assert shifted.data.ptr % 16
    found = with_cudnn.forward(shifted, memory.device(w), None, *how)
    np.testing.assert_array_equal(memory.host(found), EXPECTED["convolution"](x, w, None, *how))
    assert graphs() == ["fprop"]


def test_cudnn_is_not_asked_for_small_groups(with_cudnn):
    check(with_cudnn, numbers(1, 6, 5), numbers(6, 1, 3), None, *options(1, groups=6))
    assert not graphs()


def test_no_cudnn_for_emulated_arrays():
    assert Cudnn(cuda()).module is None
