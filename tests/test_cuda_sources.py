"""Every CUDA function of the CuPy backend compiles to machine code, without a GPU."""

import re

import pytest

pytest.importorskip("cupy", reason="CuPy is not installed")
pytest.importorskip("corefw_cupy", reason="the CuPy backend is not installed")

from corefw_cupy.compilation import compiled
from corefw_cupy.launch import BITS, FOLDER, text
from tests import cuda_resources, nvrtc

if not nvrtc.available():
    pytest.skip("NVRTC is not installed", allow_module_level=True)

FUNCTIONS = nvrtc.functions()
KERNEL = re.compile(r'^extern "C" __global__ void (?:__launch_bounds__\(.*?\)\s*)?(\w+)\(', re.MULTILINE)


def test_every_function_in_the_sources_is_used():
    declared = {(f.source.split('"')[1], f.name) for f in FUNCTIONS if "__global__" not in f.source}
    names = [file.relative_to(FOLDER).as_posix() for file in FOLDER.glob("*/*.cu")]
    complete = {name: text(f'#include "{name}"', {}) for name in names}
    written = {(file, name) for file, source in complete.items() for name in KERNEL.findall(source)}
    assert declared == written


def test_no_macro_is_a_template_parameter():
    macros = {macro for function in FUNCTIONS for macro in function.macros}
    for file in FOLDER.glob("*/*"):
        names = re.findall(r"(?:class|typename|int) (\w+)[,>]", file.read_text())
        assert not macros & set(names), f"{file.name}: a macro would replace the parameter"


def first(function):
    """The definitions of one variant: what the older architecture is tried with."""
    return function.variants()[:1]


VARIANTS = dict(zip(nvrtc.ARCHITECTURES, (first, nvrtc.sample), strict=True))


def of_walks(function):
    """As `nvrtc.sample` for flat walks and for copies; other walks of a formula differ from one type to the next in no
    more than these."""
    return (
        nvrtc.sample(function) if function.name.endswith("_flat") or function.macros["T"] is BITS else first(function)
    )


GENERATED = dict(zip(nvrtc.ARCHITECTURES, (first, of_walks), strict=True))


@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
@pytest.mark.parametrize("file", sorted({f.source.split('"')[1] for f in FUNCTIONS if "__global__" not in f.source}))
def test_files(file, architecture):
    chosen = [function for function in FUNCTIONS if function.source == f'#include "{file}"']
    assert nvrtc.compile_all(chosen, architecture, VARIANTS[architecture]) >= len(chosen)


@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
@pytest.mark.parametrize(
    "kind", sorted({f.name.rpartition("_")[0].rpartition("_")[2] for f in FUNCTIONS if "__global__" in f.source})
)
def test_generated_functions(kind, architecture):
    chosen = [f for f in FUNCTIONS if "__global__" in f.source and f.name.split("_")[-2] == kind]
    assert nvrtc.compile_all(chosen, architecture, GENERATED[architecture]) >= len(chosen)


def resources_of(file):
    return list(cuda_resources.table([function for function in FUNCTIONS if function.source == f'#include "{file}"']))


def spilling(rows):
    return [row for *row, taken in rows if taken.stored or taken.loaded]


@pytest.mark.parametrize("file", ["attention/attention_half.cu", "attention/attention_backward_half.cu"])
def test_attention_by_tensor_cores_keeps_its_sums_in_registers(file):
    rows = resources_of(file)
    assert len(rows) >= 10 and all(taken.registers > 100 for *_, taken in rows)
    assert not spilling(rows)


@pytest.mark.parametrize(
    "file", ["normalization/normalize.cu", "normalization/moments.cu", "convolution/convolution_tensor.cu"]
)
def test_groups_and_tiles_stay_in_registers(file):
    assert not spilling(resources_of(file))


def test_what_spills_is_reported():
    source = """extern "C" __global__ void __launch_bounds__(1024, 2) spill(float *x) {
        float own[96];
        for (int i = 0; i < 96; ++i) own[i] = x[i * 1024 + threadIdx.x];
        __syncthreads();
        for (int i = 0; i < 96; ++i) x[i * 1024 + threadIdx.x] = own[95 - i] * own[i]; }
    extern "C" __global__ void share(float *x) {
        __shared__ float turned[64];
        turned[threadIdx.x] = x[threadIdx.x];
        __syncthreads();
        x[threadIdx.x] = turned[63 - threadIdx.x]; }"""
    found = cuda_resources.resources(source, "sm_90")
    assert found["spill"].registers == 32 and min(found["spill"].stored, found["spill"].loaded) >= 100
    assert found["share"][1:] == (0, 0, 256)


def test_a_faulty_source_is_refused():
    with pytest.raises(RuntimeError, match="undefined"):
        compiled('extern "C" __global__ void wrong(float *x) { x[0] = y; }', "sm_90")
