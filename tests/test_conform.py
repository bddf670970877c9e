"""`corefw conform`: every kind of wrong kernel is caught and named, and the report is what came of the checks."""

import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import corefw_numpy
from corefw import dtypes
from corefw.devices import device
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.registry import registry
from corefw.testing.behaviours import BEHAVIOURS
from corefw.testing.conform.evidence import claims
from corefw.testing.conform.execution import Alone
from corefw.testing.conform.items import items
from corefw.testing.conform.matrix import Matrix, html, markdown, text
from corefw.testing.conform.outcomes import Outcome, Result
from corefw.testing.conform.report import Journal, Report
from corefw.testing.families import Families, kit_families
from corefw.testing.targets import Target, targets
from corefw.testing.without_row import WITHOUT_ROW
from corefw_numpy.runtime import NumpyRuntime
from tests import loopback
from tests.plugins import install
from tests.ranks import threads

ROOT = Path(__file__).resolve().parent.parent


def conform(folder: Path, *arguments, plugins: Path | None = None):
    """What the command came to: (exit status, what it said, the report)."""
    path = os.pathsep.join([*([str(plugins)] if plugins else []), *filter(None, sys.path)])
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COREFW_")}
    command = [sys.executable, "-m", "corefw", "conform", *map(str, arguments), "--output", str(folder), "--jobs", "1"]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**environment, "PYTHONPATH": path}, cwd=folder.parent, check=False
    )
    file = folder / "report.json"
    return done.returncode, done.stdout + done.stderr, json.loads(file.read_text()) if file.exists() else None


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """The folder in which the plug-in with wrong kernels is installed."""
    return install(tmp_path_factory.mktemp("planted"), "cpu.planted")


#: the check that must find each planted fault, its outcome, and what it says
FAULTS = {
    "value": ("exp-forward-float32", Outcome.WRONG, "not close"),
    "dtype": ("sqrt-forward-float32", Outcome.WRONG, "float64"),
    "dtype of what is made": ("arange_at-ascending-float64", Outcome.WRONG, "float16, float64 was asked for"),
    "shape": ("neg-forward-float32", Outcome.WRONG, "'shape' do not match"),
    "aliasing": ("conj_physical-memory-float32", Outcome.WRONG, "memory"),
    "changed input": ("sin-forward-float32", Outcome.WRONG, "an input was changed"),
    "gradient kernel": ("softmax_backward-forward-float64", Outcome.WRONG, "not close"),
    "gradient": ("softmax-second_gradient-float64", Outcome.WRONG, "gradient of input 0: along a random direction"),
    "optimizer step": ("sgd_step-update-float32", Outcome.WRONG, "not close"),
    "random stream": ("uniform_at-stream_of_uniform-float32", Outcome.WRONG, "not close"),
    "declared error": ("log2-forward-float32", Outcome.WRONG, "not close"),
    "kernel that never runs": (
        "acos-claimed",
        Outcome.UNPROVEN,
        "no check that passed has run the kernel of 'planted'",
    ),
    "hang": ("cos-forward-float32", Outcome.RAISES, "hangs: no answer within 10 seconds"),
    "crash": ("tan-forward-float64", Outcome.RAISES, "crashes: SIGSEGV"),
}


@pytest.mark.slow
def test_every_planted_fault_is_caught_and_named(planted, tmp_path):
    selected = [option for check, *_ in FAULTS.values() for option in ("--select", f"{check}-*")]
    selected += ["--select", "log-forward-*", "--select", "log10-forward-float32-*"]
    status, said, report = conform(tmp_path / "found", "planted", *selected, "--timeout", "10", plugins=planted)
    assert status == 1 and "planted does not conform" in said, said
    found = {result["check"].removesuffix("-planted@cpu"): result for result in report["results"]}
    for fault, (check, outcome, reason) in FAULTS.items():
        assert found[check]["outcome"] == outcome and reason in found[check]["reason"], (fault, found[check])
        assert f"{outcome}: {check}-planted@cpu: " in said
    right = [found[check] for check in ("log-forward-float32", "log-forward-float64", "log10-forward-float32")]
    assert all(result["outcome"] == Outcome.PASS for result in right), right


@pytest.mark.slow
def test_what_a_backend_does_right_conforms(tmp_path):
    folder = tmp_path / "numpy"
    selected = ("--select", "add-*", "--select", "views-*", "--select", "perceptron-*")
    status, said, report = conform(folder, "numpy", *selected, "--exclude", "add-out-*=to try it", "--matrix")
    assert status == 0 and "numpy conforms" in said, said
    outcomes = {result["check"]: (result["outcome"], result["reason"]) for result in report["results"]}
    assert outcomes.pop("add-out-float32-numpy@cpu") == ("EXCLUDED", "to try it")
    assert {outcome for outcome, _ in outcomes.values()} == {"PASS"}, outcomes
    assert "views" in said and "pointwise  add" in said
    (folder / "journal.jsonl").write_text("\n".join((folder / "journal.jsonl").read_text().split("\n")[:4]) + "\n{torn")
    again = conform(folder, "numpy", *selected, "--resume")[2]
    assert [r["check"] for r in again["results"]] == [r["check"] for r in report["results"]]
    assert [r["seconds"] for r in again["results"]][:3] == [r["seconds"] for r in report["results"]][:3]


@pytest.fixture
def serve(monkeypatch):
    """A function giving the target of a device with a runtime and kernels, for this test."""
    monkeypatch.setattr(registry, "backends", dict(registry.backends))
    monkeypatch.setattr(registry, "runtimes", dict(registry.runtimes))
    monkeypatch.setattr(registry, "kernels", {key: list(offers) for key, offers in registry.kernels.items()})

    def served(runtime, kernels):
        name = runtime.device_type
        serves = {"devices": (name,), "kernels": {name: kernels}, "runtimes": {name: runtime}}
        registry.add_backend(Backend(name=name, version="1", **serves))
        return Target(name, name)

    yield served
    for made in device._interned.values():
        if made.type in ("narrow", "faulty"):
            made._keys.clear()
    registry.forget()


@pytest.fixture
def narrow(serve):
    """A device that stores no numbers of double precision: its target."""
    wide = (dtypes.float64, dtypes.complex128)

    class NarrowRuntime(loopback.LoopbackRuntime):
        device_type = "narrow"
        dtypes = frozenset(dtypes.ALL) - {*wide}

    kernels = {kernel.op: loopback.opaque(kernel) for kernel in corefw_numpy.table(np)}
    kernels["tanh_backward"] = Kernel("tanh_backward", lambda grad, out: grad)
    kernels["sinh"] = replace(kernels["sinh"], dtypes=frozenset(wide))
    return serve(NarrowRuntime(), kernels.values())


class Faulty(NumpyRuntime):
    """Memory with a device of its own, for those that get something of it wrong."""

    device_type = "faulty"

    def current_device(self):
        return 0

    def device_count(self):
        return 1


class InTheOrderOfC(Faulty):
    def as_strided(self, array, shape, strides, offset, dtype=None):
        return super().as_strided(array if array.flags.forc else array.copy(), shape, strides, offset, dtype)


class Narrowing(Faulty):
    def upload(self, host, index):
        return host.astype("float32") if host.dtype == "float64" else host


class BoolsOfAnyBytes(Faulty):
    def cast(self, array, dtype):
        return array.astype("uint8").view(bool) if dtype is dtypes.bool_ else super().cast(array, dtype)


class SharedMemory(Faulty):
    def clone(self, array):
        return array


@pytest.mark.parametrize(
    ("fault", "check", "words"),
    [
        (InTheOrderOfC, "views-float32", "as_strided of memory in an order of its own: "),
        (Narrowing, "upload_and_download-float64", "the array says float32"),
        (BoolsOfAnyBytes, "casts-bool", "cast from uint8: "),
        (SharedMemory, "copies-float32", "what was cloned, after its clone was written to: "),
    ],
)
def test_faults_of_memory_are_caught_and_named(serve, fault, check, words):
    target = serve(fault(), [])
    with Alone() as alone:
        (found,) = [alone.run(item) for item in items(target) if str(item) == f"{check}-faulty@faulty"]
    assert found.outcome is Outcome.WRONG and found.reason.startswith(words), found


def test_a_device_without_double_precision(narrow):
    about = {"exp", "tanh", "tanh_backward", "sinh"}
    with Alone() as alone:
        found = [
            alone.run(item) if item.run else item.result(*item.decided) for item in items(narrow) if item.op in about
        ]
    outcomes = {result.check.removesuffix("-narrow@narrow"): result for result in found}
    unsupported = {check for check, result in outcomes.items() if result.outcome is Outcome.UNSUPPORTED}
    assert unsupported == {f"{op}-forward-{d}" for op in about for d in ("float64", "complex128")}
    assert outcomes["exp-forward-float64"].reason == "device 'narrow' does not store float64"
    right = ("exp-forward-float32", "exp-single_gradient-float32", "exp-single_gradient-complex64")
    assert {outcomes[check].outcome for check in right} == {Outcome.PASS}
    for wrong in ("tanh-single_gradient-float32", "tanh_backward-forward-float32"):
        assert outcomes[wrong].outcome is Outcome.WRONG, outcomes[wrong]
    assert "units of the last place from that in double precision" in outcomes["tanh-single_gradient-float32"].reason
    assert outcomes["sinh-forward-float32"].outcome is Outcome.MISSING
    proofs = {result.op: result for result in claims(narrow, found)}
    assert proofs["exp"].outcome is Outcome.PASS and "exp" in outcomes["exp-forward-float32"].ran
    assert proofs["sinh"].outcome is Outcome.UNPROVEN
    assert "UNSUPPORTED DTYPE: device 'narrow' does not store float64" in proofs["sinh"].reason


@pytest.mark.parametrize("op", ["convolution_weight", "col2im"])
def test_calls_whose_attributes_say_shapes_are_compared_at_other_sizes(op):
    with Alone() as alone:
        found = [
            alone.run(item)
            for item in items(Target("c", "cpu"))
            if (item.op, item.property, item.dtype) == (op, "agreement", "float32")
        ]
    assert [(result.outcome, op in result.ran) for result in found] == [(Outcome.PASS, True)], found


def test_kernels_whose_rows_need_a_missing_package_are_not_run(monkeypatch):
    families = Families()
    families.not_run["bessel.py"] = "needs scipy, not installed"
    monkeypatch.setattr("corefw.testing.conform.items.kit_families", lambda: families)
    target = Target("numpy", "cpu")
    results = [item.result(*item.decided) for item in items(target) if item.run is None]
    proofs = {result.op: (result.outcome, result.reason) for result in claims(target, results)}
    assert proofs["i0"] == (Outcome.NOT_RUN, "bessel.py needs scipy, not installed")
    assert proofs["exp"][0] is Outcome.UNPROVEN and not Report("numpy", {}, results).failures()


def test_files_of_rows_require_what_may_be_missing():
    for path in (ROOT / "corefw" / "testing").rglob("*.py"):
        assert not re.search(r"^(import|from) (scipy|opt_einsum)", path.read_text(), re.M), f"{path}: use `require`"


def test_a_row_that_fails_hides_no_other(tmp_path):
    (tmp_path / "rows.py").write_text(
        "from corefw.testing.case import Case\n"
        "def calls(rng, d):\n    raise RuntimeError('no calls')\n"
        "CASES = (Case('expm1', abs, make=calls), Case('exp', abs))\n"
    )
    target = Target("numpy", "cpu")
    wanted = {"exp-forward.2-float32", "expm1-forward.2-float32"}
    with Alone() as alone:
        found = {
            item.result(Outcome.PASS).check.removesuffix("-numpy@cpu"): item for item in items(target, (tmp_path,))
        }
        outcomes = {check: alone.run(found[check]).outcome for check in wanted}
    assert outcomes == {"exp-forward.2-float32": Outcome.WRONG, "expm1-forward.2-float32": Outcome.RAISES}


def test_zero_checks_are_no_success(tmp_path):
    status, said, _ = conform(tmp_path / "none", "numpy", "--select", "no-such-check")
    assert status == 1 and "numpy does not conform: no check passed" in said
    status, said, _ = conform(tmp_path / "none", "nunpy")
    assert status == 2 and "no backend or device is called 'nunpy' (did you mean 'numpy'?)" in said
    (tmp_path / "wrong.py").write_text("import no_such_module")
    status, said, _ = conform(tmp_path / "none", "numpy", "--cases", tmp_path)
    assert status != 0 and "no_such_module" in said


def _result(op: str, dtype: str, outcome: Outcome, reason: str = "", ulp: float = 0.0) -> Result:
    about = (f"{op}-forward-{dtype}-x@cpu", "ops", op, "elementary", dtype, "forward", "x@cpu")
    return Result(*about, outcome, reason, ulp)


def test_the_matrix_shows_the_worst_outcome_and_the_greatest_error():
    results = [
        _result("exp", "float32", Outcome.PASS, ulp=0.5),
        _result("exp", "float32", Outcome.PASS, ulp=2.0001),
        _result("exp", "float64", Outcome.NOT_RUN, "no SciPy"),
        _result("sin", "float32", Outcome.PASS),
        _result("sin", "float32", Outcome.WRONG, "a < b | c", ulp=np.inf),
        _result("sin", "float64", Outcome.PASS, ulp=12.4),
        _result("sin", "complex64", Outcome.PASS, ulp=0.01),
        _result("sin", "complex128", Outcome.PASS, ulp=8410356115555709.0),
        _result("sin", "float16", Outcome.UNSUPPORTED, "not stored"),
    ]
    lines = [line.split() for line in text(Matrix(results)).splitlines()]
    assert lines[0] == ["family", "op", "float16", "float32", "float64", "complex64", "complex128"]
    assert lines[1] == ["elementary", "exp", "ok", "2", "not", "run"]
    assert lines[2] == ["elementary", "sin", "-", "WRONG", "ok", "12", "ok", "ok", "8e+15"]
    report = Report("x", {"corefw": "1"}, results)
    assert "| elementary | sin | - | WRONG | ok 12 | ok | ok 8e+15 |" in markdown(report)
    assert "a < b | c" in markdown(report)
    assert "in units of the last place" in markdown(report) and "in units of the last place" in html(report)
    assert 'class="WRONG" title="forward: WRONG a &lt; b | c"' in html(report)
    assert not report.conformant() and Report("x", {}, results[:3]).conformant() and not Report("x", {}).conformant()


def test_a_journal_of_other_versions_is_not_resumed(tmp_path):
    path = tmp_path / "journal.jsonl"
    Journal(path, {"corefw": "1"}, resume=False).add(_result("exp", "float32", Outcome.PASS))
    assert [*Journal(path, {"corefw": "1"}, resume=True).known] == ["exp-forward-float32-x@cpu"]
    assert not Journal(path, {"corefw": "2"}, resume=True).known


def test_every_op_is_checked():
    checked = {case.op for case in kit_families().cases()} | {op for op, _ in BEHAVIOURS}
    unchecked = {
        op.name for op in registry.declared.values() if not {op.name, op.family} & WITHOUT_ROW.keys()
    } - checked
    assert not unchecked, f"{len(unchecked)} ops have neither a row nor a reason: {', '.join(sorted(unchecked))}"
    declared = {name for op in registry.declared.values() for name in (op.name, op.family)}
    assert not WITHOUT_ROW.keys() - declared, "an exception names what is not declared"
    assert not WITHOUT_ROW.keys() & checked, "an exception names what is checked"


def test_engines_of_collectives_are_no_targets():
    threads.run(2, lambda rank: None)
    assert "threads" in registry.backends
    assert {target.backend for target in targets()} & {"numpy", "threads"} == {"numpy"}
