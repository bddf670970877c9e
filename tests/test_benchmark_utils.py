"""corefw.utils.benchmark: what is measured, its statistics, tables, and random cases."""

import itertools

import numpy as np
import pytest

import corefw as torch
from corefw.utils import benchmark
from corefw.utils.benchmark import Compare, FuzzedParameter, FuzzedTensor, Fuzzer, Measurement, TaskSpec, Timer
from tests.parity import import_torch

TIMES = [[1e-5, 1.1e-5, 1.05e-5, 2e-5], [1e-3, 1.001e-3, 1.002e-3, 0.999e-3] * 5, [3.0], [2.0, 2.5, 2.4]]


def measured(times, module=benchmark, stmt="x + y", **task):
    return module.Measurement(10, times, module.TaskSpec(stmt, "pass", **task))


class Clock:
    """Seconds that a statement advances."""

    now = 0.0

    def __call__(self):
        Clock.now += 1e-9
        return Clock.now


def spend(seconds):
    Clock.now += seconds


def test_statistics():
    found = measured([1e-5, 3e-5, 2e-5, 9e-5, 2e-5])
    times = np.array([1, 3, 2, 9, 2]) * 1e-6
    assert found.times == pytest.approx(times) and found.mean == pytest.approx(times.mean())
    assert found.median == pytest.approx(2e-6) and found.iqr == pytest.approx(1e-6) and found.has_warnings
    assert "Interquartile range is 50.0% of the median" in repr(found) and "5 measurements, 10 runs" in repr(found)
    assert not found.meets_confidence(0.4) and found.meets_confidence(0.6) and found.significant_figures == 1
    assert measured([1.0, 1.0001] * 20).significant_figures == 4
    with pytest.raises(ValueError, match="empty"):
        measured([]).median
    with pytest.raises(AttributeError, match="nonsense"):
        found.nonsense


@pytest.mark.oracle
@pytest.mark.parametrize("times", TIMES)
def test_statistics_are_pytorchs(times):
    import_torch()
    theirs = pytest.importorskip("torch.utils.benchmark")
    a, b = measured(times), measured(times, theirs)
    for name in ("mean", "median", "iqr", "significant_figures", "has_warnings", "title", "as_row_name"):
        assert getattr(a, name) == pytest.approx(getattr(b, name)) if name[0] != "t" else a.title == b.title
    assert len(repr(a).splitlines()) == len(repr(b).splitlines())


def test_measurements_of_a_task_are_merged():
    merged = Measurement.merge([measured([1e-5]), measured([3e-5]), measured([1e-5], label="other")])
    assert [len(m.times) for m in merged] == [2, 1] and merged[0].median == pytest.approx(2e-6)
    task = TaskSpec("x", "a = 1\nb = 2", description="d", sub_label="s")
    assert task.title == "x: s" and task.summarize() == "x: s\nd\nsetup:\n  a = 1\n  b = 2"


def test_timing_by_a_clock():
    made = Timer("spend(1e-3)", timer=Clock(), globals={"spend": spend}, num_threads=2, label="work")
    found = made.timeit(100)
    assert found.number_per_run == 100 and found.median == pytest.approx(1e-3, rel=1e-5) and found.num_threads == 2
    blocks = []
    found = made.blocked_autorange(callback=lambda number, seconds: blocks.append(number), min_run_time=0.1)
    assert sum(found.raw_times) >= 0.1 and {*blocks} == {found.number_per_run} and len(blocks) == len(found.times)
    found = made.adaptive_autorange(min_run_time=0.01)
    assert found.meets_confidence(0.1) and found.median == pytest.approx(1e-3, rel=1e-5)


def test_what_changes_is_measured_until_the_time_is_up():
    amounts = itertools.cycle([1e-3, 9e-3])
    made = Timer("spend(next(amounts))", timer=Clock(), globals={"spend": spend, "amounts": amounts})
    assert made.adaptive_autorange(max_run_time=0.5).iqr > 0


def test_statements():
    x, threads = torch.ones(3), []
    made = Timer(
        """
        y = x + one
        seen.append(torch.get_num_threads())
        """,
        "one = torch.ones(3)",
        globals={"x": x, "seen": threads},
        num_threads=3,
    )
    made.timeit(5)
    assert {*threads} == {3} != {torch.get_num_threads()} or torch.get_num_threads() == 3
    for wrong, error in (
        ({"language": "c++"}, NotImplementedError),
        ({"global_setup": "#include <x>"}, ValueError),
        ({"stmt": print}, ValueError),
        ({"stmt": "import"}, SyntaxError),
    ):
        with pytest.raises(error):
            Timer(**{"stmt": "pass", **wrong})
    for refused in (made.repeat, made.autorange, made.collect_callgrind):
        with pytest.raises(NotImplementedError):
            refused()


def test_the_default_clock_waits_for_devices(monkeypatch):
    runtime, waited = x_runtime(), []
    monkeypatch.setattr(runtime, "synchronize", lambda index=None: waited.append(index), raising=False)
    benchmark.timer()
    assert waited == [None]


def x_runtime():
    return torch.ones(1).dispatch_key.runtime


def test_tables():
    found = [
        measured([1e-5] * 3, label="sum", sub_label="small", description="ours"),
        measured([6e-5] * 3, label="sum", sub_label="small", description="theirs"),
        measured([2e-5, 4e-5, 9e-5], label="sum", sub_label="large", description="ours", num_threads=4, env="new"),
        measured([1e-2] * 3, stmt="x * y"),
    ]
    table = Compare(found[:2])
    table.extend_results(found[2:])
    lines = str(table).splitlines()
    assert "[" in lines[0] and " sum " in lines[0] and lines[1].split() == ["|", "ours", "|", "theirs"]
    assert lines[2].startswith("1 threads: -") and lines[3].split() == ["small", "|", "1", "|", "6"]
    assert lines[4].startswith("4 threads: -") and lines[5].split() == ["(new)", "large", "|", "4", "|"]
    assert "Times are in microseconds (us)." in lines and any(" x * y " in line for line in lines)
    table.highlight_warnings()
    assert "4 (! 87%)" in str(table) and "(! XX%)" in str(table)
    table.trim_significant_figures()
    table.colorize(rowwise=True)
    shown = str(table)
    assert "\033[92m\033[1m" in shown and "\033[91m\033[1m" in shown
    with pytest.raises(ValueError, match="Measurement"):
        table.extend_results([1.0])


def test_units():
    assert [benchmark.select_unit(t)[0] for t in (2.0, 2e-3, 2e-6, 2e-9, 0.0)] == ["s", "ms", "us", "ns", "ns"]
    assert benchmark.unit_to_english("ns") == "nanosecond" and benchmark.ordered_unique("abca") == [*"abc"]
    assert benchmark.trim_sigfig(1.2345, 3) == 1.23 and benchmark.trim_sigfig(0.0, 3) == 0
    with benchmark.set_torch_threads(2):
        assert torch.get_num_threads() == 2


def cases(seed=0, **options):
    parameters = [
        FuzzedParameter("dim", distribution={1: 0.5, 2: 0.5}, strict=True),
        [FuzzedParameter("n", 2, 40, "loguniform"), FuzzedParameter("m", distribution={"any": 0.5, "n": 0.5})],
        FuzzedParameter("any", 2, 40, "uniform"),
    ]
    parameters[1][1] = FuzzedParameter("m", distribution={benchmark.ParameterAlias("n"): 0.5, 7: 0.5})
    tensor = FuzzedTensor("x", ("n", "m"), steps=(1, 2), dim_parameter="dim", probability_contiguous=0.3, **options)
    return Fuzzer(parameters, [tensor], constraints=[lambda n, any, **others: n < any], seed=seed)


def test_random_cases():
    fuzzer = cases(min_elements=6, max_elements=300)
    seen = [*fuzzer.take(30)]
    for tensors, facts, parameters in seen:
        x = tensors["x"]
        assert x.shape == (parameters["n"], parameters["m"])[: parameters["dim"]] and 6 <= x.numel() <= 300
        assert facts["x"]["is_contiguous"] is x.is_contiguous() and parameters["n"] < parameters["any"]
    orders = {tuple(facts["x"]["order"]) for _, facts, _ in seen}
    assert orders == {(0,), (0, 1), (1, 0)} and 0 < fuzzer.rejection_rate < 1
    assert [p for *_, p in cases(min_elements=6, max_elements=300).take(30)] == [p for *_, p in seen]
    with pytest.raises(RuntimeError, match="constraints"):
        next(cases(min_elements=10**9).take(1))
    integers = FuzzedTensor("i", (2, 3), dtype=torch.int64, roll_parameter="r", max_allocation_bytes=48)
    ((tensors, _, _),) = Fuzzer([FuzzedParameter("r", 1, 1, "uniform")], [integers], seed=1).take(1)
    assert tensors["i"].shape == (3, 2) and tensors["i"].dtype is torch.int64


@pytest.mark.parametrize(
    "options", [{}, {"distribution": {1: 0.5}}, {"minval": 3, "maxval": 2, "distribution": "uniform"},
                {"minval": 0, "maxval": 2, "distribution": "loguniform"}, {"minval": 1, "distribution": {1: 1.0}}]
)  # fmt: skip
def test_wrong_parameters_are_refused(options):
    with pytest.raises(ValueError, match="'n'"):
        FuzzedParameter("n", **options)
    with pytest.raises(ValueError, match="twice"):
        Fuzzer([FuzzedParameter("n", 1, 2, "uniform")] * 2, [])
