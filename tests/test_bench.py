"""`corefw bench`, as its user runs it, and the figures that it works with."""

import copy
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest

import corefw as torch
from corefw import cli
from corefw.benchmarks import machine
from corefw.benchmarks.chart import MOST, draw
from corefw.benchmarks.columns import BackendColumn, column, names
from corefw.benchmarks.comparison import VERSION, change, helped, mean, rates, speed, summary
from corefw.benchmarks.larger import LARGER
from corefw.benchmarks.ops import OPS
from corefw.benchmarks.overhead import OVERHEAD
from corefw.benchmarks.page import page
from corefw.benchmarks.table import cells, header, notes
from corefw.benchmarks.training import TRAINING
from corefw.benchmarks.work import Work
from corefw.nn import functional as F

ROOT = Path(__file__).resolve().parent.parent
PATH = os.pathsep.join(sys.path)
FILE = """
def bench_softmax(torch, size):
    x = torch.randn(4, size)
    return lambda: x.softmax(1)


def bench_broken(torch):
    raise ValueError("not here")


def bench_late(torch):
    return [1, 2, 3].pop


def bench_stopped(torch):
    raise KeyboardInterrupt


bench_softmax.sizes = 10, 100
"""


def bench(folder, *arguments, check=True):
    command = [sys.executable, "-m", "corefw", "bench", *arguments]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "PYTHONPATH": PATH}, capture_output=True, text=True)
    assert not check or done.returncode == 0, done.stdout + done.stderr
    return done


def test_ops_are_compared_and_written(tmp_path):
    pytest.importorskip("matplotlib")
    backends = ",".join(name for name in names() if not name.startswith("c-"))
    files = ("--json", "a.json", "--html", "a.html", "--chart", "a.svg")
    said = bench(tmp_path, "ops", "--backends", backends, "--seconds", "0.5", "-k", "relu-1e+04", *files).stdout
    table = said.splitlines()
    assert table[0].split()[:2] == ["op", backends.split(",")[0]]
    assert [line.split()[0] for line in table[1:3]] == ["relu-1e+04", "leaky_relu-1e+04"]
    assert "GFLOP/s in a product" in said
    written = json.loads((tmp_path / "a.json").read_text())
    assert list(written["columns"]) == backends.split(",") and written["version"] == VERSION
    row = written["rows"]["relu-1e+04"]
    assert row["bytes"] == 2 * 4 * 10**4 and row["ran"]["numpy"] == {"numpy": 1}
    assert all(0 < least <= median for least, median in row["seconds"].values())
    ElementTree.fromstring((tmp_path / "a.svg").read_text())
    html = (tmp_path / "a.html").read_text()
    assert "<svg" in html and "relu-1e+04" in html and not re.search(r"<(script|link|img)\b|src=", html)


def test_a_file_is_measured_and_compared_with_an_earlier_run(tmp_path):
    (tmp_path / "mine.py").write_text(FILE)
    limited = ("mine.py", "--seconds", "0.3", "--backends", "numpy")
    said = bench(tmp_path, *limited, "-k", "soft broken late", "--json", "old.json", check=False)
    assert said.returncode == 1 and "failed: numpy: broken: ValueError: not here" in said.stdout
    assert "failed: numpy: late: IndexError: pop from empty list" in said.stdout
    assert re.search(r"^softmax-10 +[\d.]+ .s", said.stdout, re.MULTILINE)
    said = bench(tmp_path, *limited, "-k", "softmax", "--compare", "old.json", "--html", "new.html").stdout
    assert said.splitlines()[0].endswith("numpy then/now")
    assert re.search(r"^softmax-100 .* \d+\.\d\d$", said, re.MULTILINE)
    assert "a comparison of" in (tmp_path / "new.html").read_text()


def test_a_run_that_is_stopped_leaves_the_figures_that_it_has(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("corefw.benchmarks.comparison.limits", lambda columns, seconds: {"flops": 0, "bytes": 0})
    (tmp_path / "mine.py").write_text(FILE)
    asked = ("mine.py", "-k", "soft stopped", "--backends", "numpy", "--seconds", "0", "--json", "part.json")
    assert cli.main(["bench", *asked]) == cli.INTERRUPTED
    assert [*json.loads((tmp_path / "part.json").read_text())["rows"]] == ["softmax-10", "softmax-100"]


def test_limits_that_no_column_can_reach():
    class Poor(BackendColumn):
        module = SimpleNamespace(empty=torch.empty)

    limits = machine.limits({"numpy": Poor("numpy", "cpu")}, 0)
    assert limits == {"flops": 0, "bytes": 0}
    unlimited = {**COMPARISON, "limits": limits}
    assert not [*rates(unlimited, COMPARISON["rows"]["a-1"], "acme")]
    assert not any(line.startswith("limits") for line in notes(unlimited))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("opps",), "no suite is called 'opps' (did you mean 'ops'?)"),
        (("ops", "-k", "zzz"), "'ops' has no row whose name holds zzz"),
        (("ops", "--backends", "nunpy"), "backend 'nunpy' is not installed (did you mean 'numpy'?)"),
        (("ops", "--device", "cuda", "--backends", "numpy"), "backend 'numpy' serves cpu, not cuda"),
        (("ops", "--dtype", "int32"), "expected a floating dtype, got 'int32'"),
        (("ops", "--chart", "a.gif"), "a chart ends with .png or .svg, got 'a.gif'"),
        (("empty.py",), "'empty.py' has no functions bench_<op>(torch)"),
        (("ops", "--compare", "empty.py"), "empty.py is no comparison"),
    ],
)
def test_wrong_requests(tmp_path, monkeypatch, capsys, arguments, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.py").write_text("")
    assert cli.main(["bench", *arguments]) == 2
    assert capsys.readouterr().err.startswith(f"corefw bench: {said}")


def test_without_matplotlib_a_report_has_no_chart(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        draw(COMPARISON, "svg")
    assert "pip install matplotlib" in page(COMPARISON)


def test_a_chart_of_many_rows_says_that_it_shows_means():
    pytest.importorskip("matplotlib")
    row = COMPARISON["rows"]["a-1"]
    many = {**COMPARISON, "rows": {f"{op}-{size}": row for op in "ab" for size in range(MOST)}}
    said = "<!-- ops on cpu, float32: means of each op's sizes -->"
    assert [said in draw(shown, "svg").decode() for shown in (COMPARISON, many)] == [False, True]


# -- figures ----------------------------------------------------------------------------------------------------------
COMPARISON = {
    "version": VERSION,
    "suite": "ops",
    "date": "2026-01-01 00:00",
    "machine": {"processor": "p", "cores": 2, "platform": "l", "python": "3", "corefw": "0", "environment": {}},
    "device": "cpu",
    "dtype": "float32",
    "threads": 2,
    "columns": {"acme": "1", "torch": "2"},
    "limits": {"flops": 1e11, "bytes": 1e10},
    "rows": {
        "a-1": {"seconds": {"acme": [1e-3, 2e-3], "torch": [4e-3, 4e-3]}, "bytes": 5e6, "flops": 5e7},
        "a-2": {"seconds": {"acme": [2.0, 2.0], "torch": [1.0, 1.0]}, "bytes": 8, "flops": 0},
    },
}
for found in COMPARISON["rows"].values():
    found |= {"ran": {"acme": {"acme": 2, "numpy": 1}}, "failed": {}}


def test_figures():
    first, second = COMPARISON["rows"].values()
    assert speed(first, "acme", "torch") == 4 and speed(second, "acme", "torch") == 0.5
    assert mean([4, 0.5]) == pytest.approx(2**0.5) and helped(first, "acme") == ["numpy"]
    assert [*rates(COMPARISON, first, "acme")] == [(50, 0.5, "GFLOP/s"), (5, 0.5, "GB/s")]
    assert summary(COMPARISON) == [
        "acme: 1.41 times the speed of torch (geometric mean of 2); slower in a-2 (0.50)",
    ]
    assert header(COMPARISON) == ["", "acme", "torch", "acme/torch", "rate of acme"]
    assert cells(COMPARISON, "a-1") == ["a-1", "1 ms*", "4 ms", "4.00", "50 GFLOP/s (50%), 5 GB/s (50%)"]
    assert "* acme: numpy ran kernels of a-1, a-2" in notes(COMPARISON)


def test_change_since_an_earlier_comparison():
    earlier = copy.deepcopy(COMPARISON)
    earlier["rows"]["a-1"]["seconds"]["acme"] = [3e-3, 3e-3]
    del earlier["rows"]["a-2"]
    assert change(COMPARISON, earlier, "a-1", "acme") == pytest.approx(3)
    assert cells(COMPARISON, "a-1", earlier)[-2:] == ["3.00", "1.00"]
    assert cells(COMPARISON, "a-2", earlier)[-2:] == ["-", "-"]


@pytest.mark.parametrize(
    ("operate", "flops"),
    [
        (lambda: torch.ones(5, 2, 3) @ torch.ones(3, 4), 2 * 5 * 2 * 3 * 4),
        (lambda: F.linear(torch.ones(6, 3), torch.ones(4, 3), torch.ones(4)), 2 * 6 * 3 * 4),
        (
            lambda: F.conv2d(torch.ones(2, 4, 5, 5), torch.ones(6, 2, 3, 3), groups=2),
            2 * 2 * 6 * 9 * 18,
        ),
        (lambda: F.conv_transpose2d(torch.ones(2, 4, 5, 5), torch.ones(4, 3, 2, 2)), 2 * 200 * 12),
        (
            lambda: F.scaled_dot_product_attention(*[torch.ones(1, 2, 8, 4)] * 3),
            2 * 2 * 2 * 8 * 8 * 4,
        ),
        (lambda: torch.nn.LSTM(3, 4)(torch.ones(5, 2, 3)), 2 * 10 * 16 * 3 + 2 * 10 * 16 * 4),
    ],
)
def test_products_are_counted(operate, flops):
    with Work() as work:
        operate()
    assert work.flops == flops


@pytest.mark.oracle
@pytest.mark.parametrize(
    "row",
    ["linear-64x1000x100", "conv1d-32x64x512-64 forward and backward", "bmm-64x128x64x128", "seed_mlp_sgd"],
)
@pytest.mark.parametrize("backend", ["numpy", None])
def test_products_are_counted_as_the_oracle_counts_them(row, backend):
    peer = pytest.importorskip("torch")
    from torch.utils.flop_counter import FlopCounterMode

    make = (OPS | TRAINING)[row]
    with FlopCounterMode(display=False) as counter:
        make(peer)()
    with Work() as work, torch.backend(*[backend] if backend else []):
        make(torch)()
    assert work.flops == counter.get_total_flops()


def test_what_is_broadcast_is_read_once():
    with Work() as work:
        torch.ones(1, 10).expand(10, 10).exp()
    assert work.bytes == 4 * (10 + 10 + 100)  # ones is written, then read


@pytest.mark.parametrize("name", [*TRAINING, *OVERHEAD])
def test_programs_compute(name):
    call = (TRAINING | OVERHEAD)[name](torch)
    if not name.startswith("resnet"):
        call()


GPT2 = {"words": 11, "positions": 8, "width": 8, "heads": 2, "layers": 2}
ENCODER = {"batch": 2, "length": 3, "width": 4, "heads": 2, "inner": 6, "layers": 2}
SMALL = {
    "gpt2_training": {"batch": 2, "length": 7, **GPT2},
    "gpt2_generation": {"prompt": 3, "count": 4, **GPT2},
    "resnet50_training": {"samples": 8, "size": 33, "width": 4, "blocks": (1, 2, 1, 1)},
    "resnet50_inference": {"samples": 2, "size": 33, "width": 2, "blocks": (1, 2, 1, 1)},
    "unet_training": {"samples": 2, "size": 8, "width": 2, "depth": 2},
    "wide_lstm_training": {"features": 3, "units": 5, "steps": 4, "samples": 2},
    "encoder_training": ENCODER,
    "encoder_inference": ENCODER,
}
SMALL |= {name: SMALL[name.rpartition("_")[0]] for name in LARGER if name.endswith(("_autocast", "_bfloat16"))}

#: relative errors of what successive calls return: PyTorch's losses of ResNet-50, whose weights are changed by 1e-7,
#: are as far apart; bfloat16 has 8 bits, of which losses are means
ERRORS = {name: (2e-3,) * 3 for name in LARGER if name.endswith("_autocast")}
ERRORS |= {name: (3e-2,) for name in LARGER if name.endswith("_bfloat16")}
ERRORS |= {"resnet50_training": (1e-4, 3e-3), "resnet50_training_autocast": (2e-3, 2e-2)}


def with_the_same_weights(name, *modules):
    """A larger program, made small, in several modules."""
    calls = [LARGER[name](module, **SMALL[name]) for module in modules]
    state = {key: value.detach().float().numpy().copy() for key, value in calls[0].model.state_dict().items()}
    for call, module in zip(calls, modules, strict=True):
        call.model.load_state_dict({key: module.from_numpy(value) for key, value in state.items()})
    return calls


@pytest.mark.parametrize("name", LARGER)
def test_larger_programs_compute_the_same_on_all_backends(name):
    call, same = with_the_same_weights(name, torch, torch)
    for error in ERRORS.get(name, (1e-4,) * 3):
        found = call().detach().float().numpy().copy()
        with torch.backend("numpy"):
            expected = same().detach().float().numpy()
        assert abs(found - expected).max() <= error * abs(expected).max()


@pytest.mark.oracle
@pytest.mark.parametrize("name", LARGER)
def test_larger_programs_compute_what_the_oracle_computes(name):
    peer = pytest.importorskip("torch")
    theirs, ours = with_the_same_weights(name, peer, torch)
    for error in ERRORS.get(name, (1e-4,) * 3):
        expected, found = (made().detach().float().numpy() for made in (theirs, ours))
        if name == "gpt2_generation_bfloat16":  # of equal scores either may be the greatest
            expected, found = expected[:, :1], found[:, :1]
        assert abs(found - expected).max() <= error * abs(expected).max()


def test_a_column_leaves_everything_as_it_was():
    with column("numpy", "cpu", "float64") as found:
        assert found.module.ones(1).dtype == torch.float64 and str(found) == "numpy"
    assert torch.ones(1).dtype == torch.float32


def test_the_benchmarks_of_this_project_are_collected():
    """Whatever of their columns is installed: JAX, PyTorch, MPI."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("OPENBLAS_", "PYTEST_"))}
    options = ["--collect-only", "-q", "--benchmark-enable", "--benchmark-only", "-p", "no:xdist"]
    command = [sys.executable, "-m", "pytest", "benchmarks", *options]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
    for suite in ("test_training", "test_larger", "test_compile", "test_overhead", "test_ops"):
        assert f"benchmarks/{suite}.py::" in done.stdout
