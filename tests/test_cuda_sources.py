"""The CUDA functions of the CuPy backend compile to machine code, without a GPU."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

pytest.importorskip("cupy", reason="CuPy is not installed")
pytest.importorskip("corefw_cupy", reason="the CuPy backend is not installed")

from corefw_cupy.compilation import OPTIONS as OPTIMIZED
from corefw_cupy.compilation import compiled
from corefw_cupy.launch import FOLDER, text
from tests import cuda_resources, nvrtc

if not nvrtc.available():
    pytest.skip("NVRTC is not installed", allow_module_level=True)

FUNCTIONS = nvrtc.functions()
TABLE = Path(__file__).parents[1] / "benchmarks" / "results" / "cuda-resources.tsv"
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


#: what is tried by architecture; the emulated device runs all types of all functions
VARIANTS = dict(zip(nvrtc.ARCHITECTURES, (first, nvrtc.covering(FUNCTIONS)), strict=True))
#: how: the few as they are compiled for a device, the many quickly
OPTIONS = dict(zip(nvrtc.ARCHITECTURES, (OPTIMIZED, nvrtc.QUICK), strict=True))


def test_everything_that_a_macro_may_stand_for_is_compiled():
    of_kinds = defaultdict(lambda: (set(), set()))
    for function in FUNCTIONS:
        wanted, compiled = of_kinds[function.source if "__global__" not in function.source else "", function.name[-5:]]
        wanted.update(item for definitions in nvrtc.sample(function) for item in definitions.items())
        compiled.update(item for definitions in VARIANTS["sm_90"](function) for item in definitions.items())
    assert of_kinds and all(wanted == compiled for wanted, compiled in of_kinds.values())


@pytest.mark.parametrize("architecture", nvrtc.ARCHITECTURES)
@pytest.mark.parametrize("file", sorted({f.source.split('"')[1] for f in FUNCTIONS if "__global__" not in f.source}))
def test_files(file, architecture):
    chosen = [function for function in FUNCTIONS if function.source == f'#include "{file}"']
    assert nvrtc.compile_all(chosen, architecture, VARIANTS[architecture], OPTIONS[architecture]) >= len(chosen)


def formulas(kind):
    """The functions made of formulas of a class of dtypes: where there are many formulas, each in one of its walks, of
    which the others differ in nothing that concerns it."""
    of_formula = defaultdict(list)
    for function in FUNCTIONS:
        name = function.name.rpartition("_")[0]
        if "__global__" in function.source and name.split("_")[-1] == kind:
            of_formula[name].append(function)
    if len(of_formula) < 10:
        return [function for walks in of_formula.values() for function in walks]
    return [walks[i % len(walks)] for i, walks in enumerate(of_formula.values())]


KINDS = sorted({f.name.split("_")[-2] for f in FUNCTIONS if "__global__" in f.source})


@pytest.mark.parametrize(
    ("kind", "architecture"),  # formulas do not depend on the architecture: one kind for all of them is enough
    [
        (kind, one)
        for kind in KINDS
        for one in nvrtc.ARCHITECTURES
        if one == nvrtc.ARCHITECTURES[-1] or kind == "signed"
    ],
)
def test_generated_functions(kind, architecture):
    chosen = formulas(kind)
    assert chosen
    variants = first if architecture != nvrtc.ARCHITECTURES[-1] else nvrtc.covering(chosen)
    assert nvrtc.compile_all(chosen, architecture, variants, OPTIONS[architecture]) >= len(chosen)


def resources_of(file):
    """What the functions of a file take on the newest architecture, in every variant."""
    chosen = [function for function in FUNCTIONS if function.source == f'#include "{file}"']
    return list(cuda_resources.table(chosen, architectures=nvrtc.ARCHITECTURES[-1:]))


def spilling(rows):
    return [row for *row, taken in rows if taken.stored or taken.loaded]


@pytest.mark.parametrize("file", ["attention/attention_half.cu", "attention/attention_backward_half.cu"])
def test_attention_by_tensor_cores_keeps_its_sums_in_registers(file):
    rows = resources_of(file)
    assert len(rows) >= 5 and all(taken.registers > 100 for *_, taken in rows)
    assert not spilling(rows)


@pytest.mark.parametrize(
    "file", ["normalization/normalize.cu", "normalization/moments.cu", "convolution/convolution_tensor.cu"]
)
def test_groups_and_tiles_stay_in_registers(file):
    assert not spilling(resources_of(file))


def test_the_largest_tile_of_single_precision_hardly_spills():
    """Its 64 sums and the 16 elements on their way are most of the 128 registers that two blocks leave a thread."""
    variant = {"T": "float32", "TILE": "Tile<128, 128, 2>"}
    found = cuda_resources.resources(text('#include "convolution/convolution_tensor.cu"', variant), "sm_90")
    assert found.keys() == {"convolve", "weight_gradient"}
    assert all(taken.stored <= 8 and taken.loaded <= 8 for taken in found.values())


def test_the_table_of_resources_has_every_function_of_the_sources():
    """`python -m tests.cuda_resources > benchmarks/results/cuda-resources.tsv` writes it again, in ten minutes."""
    lines = TABLE.read_text().splitlines()[1:]
    rows = [line.split("\t") for line in lines if not line.startswith("formulas\t")]
    chosen = [function for function in FUNCTIONS if "__global__" not in function.source]
    assert {(file, name) for file, name, *_ in rows} == {(f.source.split('"')[1], f.name) for f in chosen}
    variants = {
        (file.split('"')[1], " ".join(f"{macro}={value}" for macro, value in definitions), architecture)
        for file, definitions in nvrtc.units(chosen, cuda_resources.sample)
        for architecture in nvrtc.ARCHITECTURES
    }
    assert {(file, variant, architecture) for file, _, variant, architecture, *_ in rows} == variants


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


@pytest.mark.parametrize("options", [OPTIMIZED, nvrtc.QUICK])
@pytest.mark.parametrize(
    ("body", "complaint"),
    [("x[0] = y;", "undefined"), ("__shared__ float own[20000]; own[threadIdx.x] = *x; *x = *own;", "shared data")],
)
def test_a_faulty_source_is_refused(body, complaint, options):
    with pytest.raises(RuntimeError, match=complaint):
        compiled(f'extern "C" __global__ void wrong(float *x) {{ {body} }}', "sm_90", options)
