"""The accelerator: what there is without one, and a plug-in's device as one."""

import importlib

import pytest

import corefw
from corefw.dispatch.registry import registry
from corefw_numpy.runtime import NumpyRuntime

accelerator = corefw.accelerator


class Memory(NumpyRuntime):
    """Two devices, of which one is current."""

    device_type = "acme"

    def __init__(self):
        super().__init__()
        self.current, self.waited = 0, []

    def device_count(self):
        return 2

    def current_device(self):
        return self.current

    def set_device(self, index):
        self.current = index

    def synchronize(self, index=None):
        self.waited.append(index)

    def memory_statistics(self, index):
        return {"allocated": 1 + index, "max_allocated": 2, "reserved": 3, "max_reserved": 4}

    def memory_info(self, index):
        return 10, 20


@pytest.fixture
def without(monkeypatch):
    monkeypatch.setattr(registry, "runtimes", {"cpu": registry.runtimes["cpu"]})
    monkeypatch.setattr(registry, "load", lambda kind: None)


@pytest.fixture
def acme(without, monkeypatch):
    monkeypatch.setattr("corefw.devices._types", {"cpu", "cuda", "meta", "acme"})
    registry.runtimes["acme"] = ("acme", Memory())
    return registry.runtimes["acme"][1]


def test_without_one(without):
    assert not accelerator.is_available() and accelerator.device_count() == 0
    assert accelerator.current_accelerator() is accelerator.current_accelerator(check_available=True) is None
    assert accelerator.memory_stats() == {}
    with accelerator.device_index(None):
        pass
    asked = [
        "current_device_index",
        "current_device_idx",
        "synchronize",
        "current_stream",
        "empty_cache",
        "empty_host_cache",
    ]
    asked += ["get_device_capability", "get_memory_info", "memory_allocated", "memory_reserved", "max_memory_allocated"]
    asked += ["max_memory_reserved", "reset_peak_memory_stats", "reset_accumulated_memory_stats", "Graph"]
    for name in asked:
        with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
            getattr(accelerator, name)()
    for name in ("set_device_index", "set_device_idx"):
        with pytest.raises(RuntimeError, match="none is available"):
            getattr(accelerator, name)(0)


def test_all_installed_backends_are_asked(without, monkeypatch):
    asked = []
    monkeypatch.setattr(registry, "load", asked.append)
    assert not accelerator.is_available() and asked == ["cuda", None]


def test_a_device_of_a_plugin(acme):
    assert accelerator.is_available() and accelerator.device_count() == 2
    assert accelerator.current_accelerator() is corefw.device("acme")
    accelerator.synchronize()
    accelerator.synchronize(corefw.device("acme:1"))
    assert acme.waited == [0, 1]
    with accelerator.device_index(1):
        assert accelerator.current_device_index() == accelerator.current_device_idx() == 1
    accelerator.set_device_index("acme:1")
    accelerator.set_device_idx(-1)
    assert acme.current == 1
    for wrong, error in (("cpu", ValueError), (2, RuntimeError)):
        with pytest.raises(error):
            accelerator.set_device_index(wrong)
    assert accelerator.get_device_capability() == {"supported_dtypes": {*acme.dtypes}}


def test_memory_of_a_plugin(acme, monkeypatch):
    assert accelerator.memory_allocated() == 1 and accelerator.memory_allocated(1) == 2
    assert (accelerator.max_memory_allocated(), accelerator.memory_reserved(), accelerator.max_memory_reserved()) == (
        2,
        3,
        4,
    )
    assert accelerator.memory_stats()["reserved_bytes.all.peak"] == 4 and accelerator.get_memory_info() == (10, 20)
    accelerator.empty_cache()
    accelerator.empty_host_cache()
    accelerator.reset_accumulated_memory_stats()
    monkeypatch.setattr(acme, "reset_memory_statistics", acme.waited.append, raising=False)
    accelerator.reset_peak_memory_stats(1)
    assert acme.waited == [1]


def test_what_a_device_lacks_is_said(acme):
    with pytest.raises(RuntimeError, match="'acme' does not tell its streams"):
        accelerator.current_stream()
    with pytest.raises(RuntimeError, match="'acme' has no graphs"):
        accelerator.Graph()


def test_streams_of_a_device_are_its_own(acme, monkeypatch):
    entered = []

    class Stream:
        def __enter__(self):
            entered.append(self)

    stream = Stream()
    monkeypatch.setattr(acme, "current_stream", lambda index: stream, raising=False)
    accelerator.set_stream(accelerator.current_stream())
    assert entered == [stream]


def test_switches_of_libraries_that_are_not_here():
    backends = corefw.backends
    absent = (backends.mkldnn, backends.mkl, backends.openmp, backends.nnpack, backends.mps)
    assert not any(library.is_available() for library in absent) and not backends.mps.is_macos_or_newer(13, 0)
    assert backends.mkldnn.enabled and not backends.mkldnn.deterministic
    with backends.mkldnn.flags(deterministic=True), backends.mkldnn.verbose(1), backends.mkl.verbose(1):
        assert backends.mkldnn.deterministic and not backends.mkldnn.enabled
    assert backends.mkldnn.enabled and not backends.mkldnn.deterministic
    before = backends.cudnn.benchmark
    with backends.cudnn.flags(benchmark=not before), backends.nnpack.flags(enabled=True):
        assert backends.cudnn.benchmark is not before
    assert backends.cudnn.benchmark is before
    with pytest.raises(AttributeError, match="nonsense"):
        backends.cudnn.nonsense
    assert backends.quantized.engine == "none" and backends.quantized.supported_engines == ["none"]
    with pytest.raises(RuntimeError, match="fbgemm is not a valid value"):
        backends.quantized.engine = "fbgemm"
    assert backends.cpu.get_cpu_capability() in ("AVX512", "AVX2", "DEFAULT")


def test_the_order_of_contractions(monkeypatch):
    switches, asked = corefw.backends.opt_einsum, []
    package = switches.get_opt_einsum()
    path = package.contract_path
    monkeypatch.setattr(package, "contract_path", lambda *a, **k: asked.append(k["optimize"]) or path(*a, **k))
    a, b, c = corefw.ones(2, 3), corefw.ones(3, 4), corefw.ones(4)
    for options, strategy in (({}, "auto"), ({"strategy": "optimal"}, "optimal"), ({"enabled": False}, None)):
        with switches.flags(**options):
            assert switches.enabled is (strategy is not None)
            assert corefw.einsum("ij,jk,k->i", a, b, c).tolist() == [12, 12]
        assert asked[-1:] == [strategy] if strategy else len(asked) == 2
    assert switches.is_available() and switches.enabled and switches.strategy == "auto"
    with pytest.raises(ValueError, match="'random-greedy', not 'best'"):
        switches.strategy = "best"


def test_modules_are_found_by_name():
    assert importlib.import_module("corefw.backends.mkldnn") is corefw.backends.mkldnn
