"""Fusions compiled where they run: the same bits, files that are kept, machines without a compiler."""

import importlib
import shutil
import subprocess
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest

from corefw import dtypes
from corefw.dispatch.expressions import EXPRESSIONS
from corefw.dispatch.fusion import Fusion, Part, Reduction
from tests import scripts
from tests.fusions import FLOATS, chain, random_fusion, random_inputs
from tests.plans import same_bits

fusing = pytest.importorskip("corefw_c.fusion", reason="the C backend is not installed")
library = importlib.import_module("corefw_c.library")
compiler = importlib.import_module("corefw_c.fusing.compiler")
source = importlib.import_module("corefw_c.fusing.source")

BEST = library.levels()[0]
needs_compiler = pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no compiler")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty folder for compiled files, and a compiler, which the tests else do without."""
    monkeypatch.setenv("COREFW_CACHE", str(tmp_path))
    monkeypatch.delenv("COREFW_C_COMPILER", raising=False)
    compiler.command.cache_clear()
    yield tmp_path / "fused"
    compiler.command.cache_clear()


def compiling(fusion):
    """The compilation of a fusion's program, made anew."""
    lib = library.load(BEST)
    return fusing.maker(lib, BEST)(fusion).compiling


def of_many(dtype, number):
    """The expressions of a dtype that are compiled, eight in a fusion, each of a product of its own."""
    products = tuple(Part("mul", (i, 8), (), dtype) for i in range(8))
    found = []
    for e in EXPRESSIONS:
        numbers, result = (0.5, 1.5, 2.0)[: e.numbers], dtypes.bool_ if e.test else dtype
        single = Fusion((dtype,) * 3, (Part(e.name, (0, 1, 2)[: e.tensors], numbers, result),), (3,))
        if "floating" in e.formulas and source.source(single, fusing.program(library.load(BEST), single)):
            at = 9 + len(found) % 8
            found.append(Part(e.name, (at, 0, 1)[: e.tensors], numbers, result))
    parts = found[8 * number : 8 * number + 8]
    return Fusion((dtype,) * 9, (*products, *parts), tuple(range(17, 17 + len(parts)))) if parts else None


@needs_compiler
@pytest.mark.parametrize("number", range(14))
@pytest.mark.parametrize("dtype", FLOATS[:2], ids=str)
def test_compiled_expressions_give_the_same_bits(cache, dtype, number):
    fusion = of_many(dtype, number)
    if fusion is None:
        assert number > 11
        return
    assert compiling(fusion).compile(), str(fusion)


@needs_compiler
@pytest.mark.parametrize("seed", range(6))
def test_compiled_graphs_give_the_same_bits(cache, seed):
    rng = np.random.default_rng(seed)
    while not source.source(fusion := random_fusion(rng), fusing.program(library.load(BEST), fusion)):
        pass
    made = fusing.maker(library.load(BEST), BEST)
    kernel, other = made(fusion), fusing.maker(library.load(BEST), BEST)(fusion)
    assert kernel.compiling.compile()
    inputs = random_inputs(rng, fusion)
    for actual, expected in zip(kernel(*inputs), other(*inputs), strict=True):
        same_bits(actual, expected)


@needs_compiler
def test_a_compiled_sum(cache):
    x = np.random.default_rng(0).normal(size=(300, 301)).astype(np.float32)
    total = Reduction(False, 5, (0,), False, dtypes.float32)
    fusion = replace(chain(dtypes.float32), outputs=(), reduction=total)
    kernel = fusing.maker(library.load(BEST), BEST)(fusion)
    before = kernel(x, x, x)
    assert kernel.compiling.compile()
    same_bits(kernel(x, x, x)[0], before[0])


@needs_compiler
def test_files_are_kept_and_made_again_where_they_are_damaged(cache):
    fusion = chain(dtypes.float32)
    assert compiling(fusion).compile()
    (file,) = cache.iterdir()
    whole, written = file.read_bytes(), file.stat().st_mtime_ns
    assert compiling(fusion).compile() and file.stat().st_mtime_ns == written
    file.unlink()  # a library that is open stays as it is
    for damaged in (b"", whole[:-100], whole[:500] + b"x" + whole[501:]):
        file.write_bytes(damaged)
        assert compiling(fusion).compile()
        assert [f.name for f in cache.iterdir()] == [file.name] and file.stat().st_size == len(whole)
        file.unlink()


@needs_compiler
def test_processes_that_compile_at_once(cache):
    code = (
        "from tests.test_fusion_compiled import chain, compiling, dtypes; "
        "raise SystemExit(not compiling(chain(dtypes.float32)).compile())"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert len([*cache.iterdir()]) == 1


@needs_compiler
def test_other_bits_are_not_used(cache, monkeypatch):
    plain = source.source

    def contracted(fusion, program):
        return plain(fusion, program).replace("^ zero", "")

    monkeypatch.setattr(source, "source", contracted)
    f = dtypes.float32
    parts = Part("mul", (0, 1), (), f), Part("add", (3, 2), (), f)
    if BEST in ("v3", "v4"):  # which have such an instruction
        assert not compiling(Fusion((f,) * 3, parts, (4,))).compile()


def test_without_a_compiler(cache, monkeypatch):
    for named in ("0", "no-such-compiler", "false"):
        monkeypatch.setenv("COREFW_C_COMPILER", named)
        compiler.command.cache_clear()
        assert not compiling(chain(dtypes.float32)).compile()


@needs_compiler
def test_compilation_begins_with_many_elements(cache):
    kernel = fusing.maker(library.load(BEST), BEST)(chain(dtypes.float32))
    few, many = np.ones(100, np.float32), np.ones(1 << 15, np.float32)
    kernel(few, few, few)
    assert kernel.compiling.waits
    kernel(many, many, many)
    assert not kernel.compiling.waits
    done = threading.Event()
    compiler.soon(done.set)
    assert done.wait(60) and [*cache.iterdir()]


def test_flags_are_those_of_the_kernels(monkeypatch):
    monkeypatch.syspath_prepend(str(scripts.FOLDER.parent / "backends" / "c_backend" / "building"))
    levels = scripts.load("../backends/c_backend/building/levels.py")
    assert [flag for flag in levels.FLAGS if flag[:2] != "-W" and flag != "-pthread"] == [*compiler.FLAGS]
    assert {name: (*flags,) for name, flags in levels.X86.items()} == {k: v for k, v in compiler.LEVELS.items() if v}
