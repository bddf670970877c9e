"""From a CUDA source to a launch: subnormal numbers stay, code is kept on disk and loaded once on each device."""

import re
import sys
from types import SimpleNamespace

import pytest

pytest.importorskip("cupy", reason="CuPy is not installed")
pytest.importorskip("corefw_cupy", reason="the CuPy backend is not installed")

import corefw_cupy
from corefw_cupy import compilation
from corefw_cupy.launch import text
from tests import nvrtc

if not nvrtc.available():
    pytest.skip("NVRTC is not installed", allow_module_level=True)

SOURCE = """
extern "C" __global__ void add(float *x, float *y) { x[0] += y[0]; }
extern "C" __global__ void scale(float *x, float *y) { x[0] *= y[0]; }
"""


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty folder for machine code."""
    monkeypatch.setenv("COREFW_CUPY_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def instructions(options) -> str:
    """What the source becomes, as text."""
    program = nvrtc.nvrtc.createProgram(SOURCE, "source.cu", (), ())
    nvrtc.nvrtc.compileProgram(program, [*options, "-arch=compute_90"])
    return nvrtc.nvrtc.getPTX(program).decode()


def test_numbers_below_the_smallest_normal_one_stay():
    assert "add.ftz.f32" in instructions([*compilation.OPTIONS, "-ftz=true"]), "what CuPy would add"
    assert "add.f32" in instructions(compilation.OPTIONS) and ".ftz" not in instructions(compilation.OPTIONS)


def test_a_source_is_compiled_once(cache, monkeypatch):
    code = compilation.machine_code(SOURCE, "sm_90")
    assert b"scale" in code and [file.read_bytes() for file in cache.iterdir()] == [code]
    monkeypatch.setattr(compilation, "compiled", None)
    assert compilation.machine_code(SOURCE, "sm_90") == code
    with pytest.raises(TypeError):
        compilation.machine_code(SOURCE, "sm_80")
    with pytest.raises(TypeError):
        compilation.machine_code(SOURCE + " ", "sm_90")


def test_a_folder_that_cannot_be_written_to_does_no_harm(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COREFW_CUPY_CACHE", str(tmp_path / "file" / "below"))
    assert b"scale" in compilation.machine_code(SOURCE, "sm_90")


def test_the_newest_architecture_that_the_compiler_knows():
    assert compilation.architecture("90") == "sm_90"
    assert compilation.architecture("999") == f"sm_{max(nvrtc.nvrtc.getSupportedArchs())}"


@pytest.fixture
def driver():
    """What stands in for CuPy, with `state` of what it was asked to do."""
    state = SimpleNamespace(device=0, devices=2, loaded=[], launched=[], shared={})

    class Module:
        def load(self, code):
            state.loaded.append((state.device, code))

        def get_function(self, name):
            def function(*launch, **options):
                state.launched.append((name, *launch, options))

            function.ptr = name, state.device
            return function

    def set_attribute(function, attribute, value):
        assert attribute == "dynamic"
        state.shared[function] = value

    attributes = {"CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES": "own"}
    attributes["CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES"] = "dynamic"
    runtime = {"getDevice": lambda: state.device, "getDeviceCount": lambda: state.devices}
    runtime["cudaDevAttrMaxSharedMemoryPerBlockOptin"] = "most"
    runtime["deviceGetAttribute"] = lambda attribute, device: {"most": (166912, 232448)[device]}[attribute]
    cupy = SimpleNamespace(
        cuda=SimpleNamespace(
            function=SimpleNamespace(Module=Module),
            runtime=SimpleNamespace(**runtime),
            driver=SimpleNamespace(
                funcGetAttribute=lambda attribute, function: {"own": 512}[attribute],
                funcSetAttribute=set_attribute,
                **attributes,
            ),
            Device=lambda index: SimpleNamespace(compute_capability=("80", "90")[index]),
        ),
    )
    return type("Hashable", (SimpleNamespace,), {"__hash__": object.__hash__})(**vars(cupy), state=state)


def test_on_one_device_nothing_stands_before_a_launch(driver):
    state = driver.state
    state.devices = 1
    add = compilation.launcher(driver, SOURCE, "add")
    assert len(state.loaded) == 1
    add((1,), (32,), ("x", "y"))
    assert state.launched == [("add", (1,), (32,), ("x", "y"), {})]
    assert add.__qualname__.startswith("driver."), "CuPy's object itself"


def test_a_module_is_loaded_once_on_each_device(driver):
    state = driver.state
    add, scale = (compilation.launcher(driver, SOURCE, name) for name in ("add", "scale"))
    assert not state.loaded, "nothing is compiled before it is launched"
    add((1,), (32,), ("x", "y"))
    scale((2,), (32,), ("x", "y"), shared_mem=4)
    assert state.launched == [
        ("add", (1,), (32,), ("x", "y"), {}),
        ("scale", (2,), (32,), ("x", "y"), {"shared_mem": 4}),
    ]
    assert len(state.loaded) == 1
    state.device = 1
    add((1,), (32,), ("x", "y"))
    add((1,), (32,), ("x", "y"))
    assert [device for device, _ in state.loaded] == [0, 1] and state.loaded[0][1] != state.loaded[1][1]
    assert state.shared == {("add", 0): 166400, ("scale", 0): 166400, ("add", 1): 231936}, "what a block may have"


def test_conversions_to_integers_keep_the_lowest_bits():
    """A device's own conversion of -1.0 to uint8 gives 0, where every CPU gives 255."""
    source = """#include "elementwise/elementwise.cuh"
    extern "C" __global__ void convert(float *x, RESULT *y) { *y = converted<RESULT>(*x); }"""
    for result, wanted in {"uint8": "s64", "int16": "s64", "uint32": "s64", "int64": "s64", "float64": "f64"}.items():
        program = nvrtc.nvrtc.createProgram(text(source, {"RESULT": result, "T": "float32"}), "source.cu", (), ())
        nvrtc.nvrtc.compileProgram(program, [*compilation.OPTIONS, "-arch=compute_90"])
        (how,) = re.findall(r"cvt\.(?:rzi\.)?(\w+)\.f32", nvrtc.nvrtc.getPTX(program).decode())
        assert how == wanted, f"{result}: by {how}"


def test_a_missing_library_makes_the_backend_unusable(monkeypatch):
    monkeypatch.setattr("cupy.cuda.runtime.getDeviceCount", lambda: 1)
    for module in corefw_cupy.LIBRARIES.values():
        monkeypatch.setitem(sys.modules, module, SimpleNamespace(getVersion=lambda: (13, 0)))
    assert corefw_cupy.unusable() is None
    for library, module in corefw_cupy.LIBRARIES.items():
        with monkeypatch.context() as context:
            context.setitem(sys.modules, module, None)
            assert re.match(
                rf"{library} cannot be loaded \(.*\): install .*corefw-cupy\[cuda13\]", corefw_cupy.unusable()
            )
