"""The measured choice of kernels, COREFW_OPS=auto: what is chosen, kept on disk, shown, and what is left alone."""

import json
import os
import re
import subprocess
import sys
import time

import pytest

import corefw as torch
from corefw.dispatch import measurements
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.preferences import configure
from corefw.dispatch.registry import registry

SLOW = 0.002
SMALL = 100  # bytes up to which the kernels of `tardy` are fast


def _tardy(kernel):
    """A kernel that takes longer than any other, except for small operands."""

    def function(*arguments, **options):
        first = arguments[0][0] if isinstance(arguments[0], list) else arguments[0]
        if first.nbytes > SMALL:
            time.sleep(SLOW)
        return kernel.function(*arguments, **options)

    return function


def _slow_below(kernel):
    """A kernel that takes long for small operands."""

    def function(*arguments, **options):
        first = arguments[0][0] if isinstance(arguments[0], list) else arguments[0]
        if first.nbytes <= SMALL:
            time.sleep(SLOW)
        return kernel.function(*arguments, **options)

    return function


OPS = ("exp", "mul", "sgd_step", "softmax", "expand")


@pytest.fixture
def auto(monkeypatch, tmp_path):
    """COREFW_OPS=auto with two backends, of which `small` is fast for small operands and `large` for others."""
    torch.zeros(1)
    kernels = {kernel.op: kernel for kernel in registry.backends["numpy"].kernels["cpu"]}
    own = {name: kernels[name] for name in OPS}
    monkeypatch.setattr(registry, "backends", dict(registry.backends))
    monkeypatch.setattr(registry, "kernels", {key: list(offers) for key, offers in registry.kernels.items()})
    for op in OPS:
        registry.kernels[op, "cpu"].clear()
    for name, made in (("small", _tardy), ("large", _slow_below)):
        offered = [Kernel(op, made(kernel), kernel.dtypes, kernel.out) for op, kernel in own.items()]
        registry.add_backend(Backend(name, "1", ("cpu",), {"cpu": offered}, priority=50 + len(name)))
    monkeypatch.setenv("COREFW_CACHE", str(tmp_path / "cache"))
    start = lambda ops="auto": configure({"COREFW_OPS": ops})
    start()
    yield start
    configure({})


def who(call, op):
    """The backend that runs an op in a call."""
    with torch.ledger() as book:
        call()
    (found,) = {who for name, _, who in book.counts if name == op}
    return found


def test_the_fastest_for_the_size_is_chosen(auto):
    small, large = torch.ones(4), torch.ones(400)
    assert who(small.exp, "exp") == "small" and who(large.exp, "exp") == "large"
    assert who(lambda: small * 2.0, "mul") == "small" and who(lambda: large * large, "mul") == "large"


def test_it_is_measured_once(auto, monkeypatch):
    x = torch.ones(400)
    x.exp()
    before = measurements.measurements().figures
    assert set(before["exp cpu/float32 11"]) == {"small", "large"}
    monkeypatch.setattr("corefw.dispatch.measured.measure", None)
    torch.ones(300).exp()  # of the same size, in powers of two
    registry.forget()
    assert who(x.exp, "exp") == "large"


def test_what_a_kernel_changes_is_changed_once(auto):
    x, p = torch.ones(400), torch.nn.Parameter(torch.ones(400))
    x.mul_(3.0)
    assert x.tolist() == [3.0] * 400
    torch.mul(x, x, out=x)
    assert x.tolist() == [9.0] * 400
    p.grad = torch.ones(400)
    optimizer = torch.optim.SGD([p], lr=0.25)
    assert who(optimizer.step, "sgd_step") == "large"
    assert p.tolist() == [0.75] * 400


def test_preferences_come_before_figures(auto):
    auto("auto;exp@cpu=small")
    x = torch.ones(400)
    assert who(x.exp, "exp") == "small" and who(lambda: x * x, "mul") == "large"
    with torch.backend("small"):
        assert who(lambda: x * x, "mul") == "small"


def test_errors_are_those_of_the_op_and_nothing_is_kept_of_them(auto):
    for _ in range(2):
        with pytest.raises(RuntimeError, match="must match the size"):
            torch.ones(30) * torch.ones(40)
    assert not any(label.startswith("mul cpu/float32 7,8") for label in measurements.measurements().figures)
    assert (torch.ones(30, 1) * torch.ones(1, 40)).shape == (30, 40)


def test_explain_shows_the_figures(auto):
    x = torch.ones(400)
    assert "\n  not measured yet: that is done when operands of a size first come\n" in torch.explain("exp", x)
    x.exp()
    said = torch.explain("exp", x)
    assert "large (priority 55): measured" in said
    assert "measured for operands of less than 2 KiB: " in said and " µs, small " in said
    assert said.endswith("-> the fastest of large, small, measured for each size of operands")
    x * x
    assert "operands of less than 2 KiB and 2 KiB: " in torch.explain("mul", x, x)


def test_explain_shows_figures_by_size_also_of_what_is_inside(auto):
    large, small = torch.ones(400), torch.ones(4)
    for x in (large, small):
        x.softmax(0)
    sizes = re.findall(r"\n    measured for operands of less than (\d+ \w+): ", torch.explain("softmin", small, 0))
    assert sizes == ["32 B", "2 KiB"]


def test_nothing_is_in_the_way_when_it_is_off(auto):
    configure({})
    kernel = registry.declared["exp"].table[torch.ones(1).dispatch_key][0]
    assert kernel in [offer.function for _, offer in registry.kernels["exp", "cpu"]]


def test_auto_is_for_ops_only(auto):
    with pytest.raises(RuntimeError, match="COREFW_BACKENDS: cannot read 'auto'"):
        configure({"COREFW_BACKENDS": "auto"})


PROGRAM = """
import corefw as torch
torch.ones(1000).exp()
print(torch.explain("exp", torch.ones(1000)))
"""


def run(folder, **variables):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COREFW_OPS": "auto", **variables}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**environment, "COREFW_CACHE": str(folder)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.skipif(sum(b.usable and "cpu" in b.devices for b in torch.backends()) < 2, reason="one backend only")
def test_figures_are_kept_for_the_next_process(tmp_path):
    first = run(tmp_path / "new" / "folder").stdout
    (file,) = (tmp_path / "new" / "folder").iterdir()
    kept = json.loads(file.read_text())
    assert kept["about"]["backends"]["numpy"] and kept["about"]["threads"] == torch.get_num_threads()
    kept["figures"]["exp cpu/float32 12"] = dict.fromkeys(kept["figures"]["exp cpu/float32 12"], 0.123)
    file.write_text(json.dumps(kept))
    second = run(file.parent).stdout
    assert "measured for operands of less than 4 KiB: " in first and " 1.23e+05 µs" in second


def test_a_damaged_file_is_measured_again(tmp_path):
    store = measurements.Measurements(tmp_path / "a.json", {"version": 1})
    store.add("exp", {"numpy": 1.0})
    store.write()
    other = measurements.Measurements(tmp_path / "a.json", {"version": 1})
    assert other.figures == {"exp": {"numpy": 1.0}}
    store.add("mul", {"numpy": 2.0})
    other.add("sin", {"numpy": 3.0})
    store.write(), other.write()
    assert measurements.Measurements(tmp_path / "a.json", {"version": 1}).figures.keys() == {"exp", "mul", "sin"}
    assert not measurements.Measurements(tmp_path / "a.json", {"version": 2}).figures
    (tmp_path / "a.json").write_text('{"about"')
    assert not measurements.Measurements(tmp_path / "a.json", {"version": 1}).figures


def test_what_cannot_be_kept_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    store = measurements.Measurements(tmp_path / "file" / "a.json", {})
    store.add("exp", {"numpy": 1.0})
    with pytest.warns(UserWarning, match="what was measured is not kept: "):
        store.write()


@pytest.mark.parametrize(
    ("variables", "expected"),
    [({"COREFW_CACHE": "/a"}, "/a"), ({"XDG_CACHE_HOME": "/x", "COREFW_CACHE": ""}, "/x/corefw")],
)
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the folders of Linux")
def test_where_it_is_kept(monkeypatch, variables, expected):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(measurements.folder()) == expected
