"""The profiler in PyTorch's form: schedules, what is kept beside times, tables and files, and the older profiler."""

import gzip
import importlib
import json

import pytest

import corefw as torch
from corefw.dispatch.registry import registry
from corefw.profiler import ProfilerAction, ProfilerActivity, profile, record_function, schedule
from tests.parity import import_torch

SCHEDULES = [
    {"wait": 1, "warmup": 1, "active": 2},
    {"wait": 1, "warmup": 0, "active": 1, "repeat": 2},
    {"wait": 2, "warmup": 1, "active": 2, "repeat": 1, "skip_first": 3},
    {"wait": 2, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 1, "skip_first_wait": 1},
]


def work():
    return torch.ones(2, 3) @ torch.ones(3, 4)


@pytest.mark.oracle
@pytest.mark.parametrize("plan", SCHEDULES)
@pytest.mark.filterwarnings("ignore:Profiler won")
def test_schedules_are_pytorchs(plan):
    theirs = import_torch().profiler.schedule(**plan)
    assert [schedule(**plan)(n).name for n in range(20)] == [theirs(n).name for n in range(20)]


def test_a_schedule_without_active_steps_is_refused():
    with pytest.raises(AssertionError, match="active=0"):
        schedule(wait=1, warmup=1, active=0)


def test_steps_are_recorded_by_the_schedule():
    seen = []
    with profile(
        schedule=schedule(wait=1, warmup=1, active=2, repeat=2),
        on_trace_ready=lambda prof: seen.append((prof.step_num, [event.name for event in prof.events()])),
    ) as prof:
        for _ in range(10):
            work()
            prof.step()
    assert [step for step, _ in seen] == [4, 8]
    for step, names in seen:
        assert [name for name in names if name == "matmul"] == ["matmul"] * 2
        assert [name for name in names if "Step" in name] == [f"ProfilerStep#{step - 2}", f"ProfilerStep#{step - 1}"]
    assert prof.current_action is ProfilerAction.NONE and not torch.dispatch.registry.registry.modes


def test_events_of_all_cycles_can_be_kept():
    plan, kept = schedule(wait=0, warmup=0, active=1), []
    for acc_events in (False, True):
        with profile(schedule=plan, acc_events=acc_events) as prof:
            for _ in range(3):
                work()
                prof.step()
        kept.append(sum(event.name == "matmul" for event in prof.events()))
    assert kept == [0, 3]


def test_without_a_schedule_the_block_is_recorded():
    ready = []
    prof = profile(on_trace_ready=ready.append, activities=[ProfilerActivity.CPU])
    prof.start()
    work()
    prof.toggle_collection_dynamic(False, [ProfilerActivity.CPU])
    work()
    prof.toggle_collection_dynamic(True, [ProfilerActivity.CPU])
    prof.stop()
    assert ready == [prof] and sum(event.name == "matmul" for event in prof.events()) == 1


def test_memory_operations_and_lines():
    x, w = torch.ones(1, 2, 5, 5), torch.ones(2, 2, 3, 3)
    prof = profile(profile_memory=True, with_flops=True, with_stack=True, record_shapes=True)
    with prof, record_function("block"):
        work().view(-1)
        torch.nn.functional.conv2d(x, w)
        torch.nn.functional.conv_transpose2d(x, w)
    rows = {row.key: row for row in prof.key_averages()}
    assert rows["matmul"].flops == 2 * 2 * 3 * 4 and rows["matmul"].cpu_memory_usage == 2 * 4 * 4
    assert rows["convolution"].flops == 2 * 9 * 4 * 9 + 2 * 50 * 18
    whole = sum(row.self_cpu_memory_usage for row in rows.values())
    assert rows["block"].cpu_memory_usage == whole > 0 == rows["block"].self_cpu_memory_usage
    (event,) = (event for event in prof.events() if event.name == "matmul")
    assert "in work" not in event.stack[0] and event.stack[0].endswith("): work") and "test_memory" in event.stack[1]
    assert event.cpu_parent.name == "block" and event in event.cpu_parent.cpu_children
    lines = prof.key_averages(group_by_stack_n=1, group_by_input_shape=True).table(sort_by="flops").splitlines()
    for title in ("Self CPU Mem", "Input Shapes", "Source Location", "Total MFLOPs", "# of Calls"):
        assert title in lines[1]
    assert "convolution" in lines[3]


@pytest.mark.oracle
def test_operations_are_counted_as_in_pytorch():
    theirs = import_torch()

    def count(t):
        with t.profiler.profile(with_flops=True) as prof:
            t.nn.functional.conv2d(t.ones(1, 2, 5, 5), t.ones(4, 2, 3, 3))
            t.ones(2, 3).mm(t.ones(3, 4))
        return prof.key_averages().total_average().flops if t is theirs else sum(e.flops for e in prof.events())

    assert count(torch) == count(theirs)


def test_tables():
    with profile() as prof, record_function("a" * 80):
        work()
    table = prof.key_averages().table(header="Header", time_unit="s", max_name_column_width=10)
    assert table.startswith("Header\n-") and "aaaaaaa..." in table and table.endswith("s") and "us" not in table
    top = prof.events().table(top_level_events_only=True)
    assert "aaa" in top and "matmul" not in top
    assert "matmul" not in prof.key_averages().table(sort_by="cuda_time_total", row_limit=0)
    with pytest.raises(AttributeError, match="nonsense"):
        prof.key_averages().table(sort_by="nonsense")


def test_files_for_other_programs(tmp_path):
    write = torch.profiler.tensorboard_trace_handler(tmp_path / "logs", worker_name="worker", use_gzip=True)
    with profile(on_trace_ready=write, with_stack=True) as prof:
        prof.add_metadata("run", "first")
        prof.add_metadata_json("options", '{"rate": 0.5}')
        work()
    (path,) = (tmp_path / "logs").iterdir()
    trace = json.loads(gzip.decompress(path.read_bytes()))
    assert path.name.startswith("worker.") and path.name.endswith(".pt.trace.json.gz")
    assert trace["run"] == "first" and trace["options"] == {"rate": 0.5}
    assert "matmul" in [event["name"] for event in trace["traceEvents"]]
    prof.export_stacks(tmp_path / "stacks")
    stack, _, microseconds = (tmp_path / "stacks").read_text().splitlines()[-1].rpartition(" ")
    assert stack.split(";")[-1] == "matmul" and "test_profiler.py" in stack and int(microseconds) > 0
    with pytest.raises(ValueError, match="metric"):
        prof.export_stacks(tmp_path / "stacks", "count")


def test_the_older_profiler(tmp_path):
    older = torch.autograd.profiler

    @older.record_function("decorated")
    def labelled():
        return work()

    with older.profile(record_shapes=True) as prof:
        labelled()
    assert {event.name for event in prof.function_events} >= {"decorated", "matmul"}
    assert prof.total_average().count == len(prof.function_events) and prof.self_cpu_time_total > 0
    assert "decorated" in prof.table(sort_by="cpu_time_total") and "matmul" in str(prof)
    prof.export_chrome_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    with pytest.raises(RuntimeError, match="not reentrant"):
        prof.__enter__()
    with older.profile(enabled=False) as off:
        work()
    assert not off.function_events and not off.key_averages()
    with pytest.raises(RuntimeError, match="didn't finish"):
        older.profile().table()


def test_marks_for_vendors_are_refused():
    for emit in (torch.autograd.profiler.emit_nvtx, torch.autograd.profiler.emit_itt):
        with emit(enabled=False):
            pass
    with pytest.raises(NotImplementedError, match="export_chrome_trace"):
        torch.autograd.profiler.emit_itt()
    assert torch.profiler.kineto_available() and ProfilerActivity.CUDA in torch.profiler.supported_activities()
    with pytest.raises(NotImplementedError, match="execution_trace_observer"):
        profile(execution_trace_observer=object())


class _Tools:
    """CuPy's module of marks, which notes what it is told."""

    def __init__(self):
        self.said = []

    def __getattr__(self, name):
        return lambda *arguments: self.said.append((name, *arguments)) or 7


class _Marking:
    """A runtime whose profiler is `_Tools`."""

    def __init__(self, ranges):
        self.ranges = lambda: ranges


def test_ranges_of_the_gpu(monkeypatch):
    ranges = importlib.import_module("corefw_cupy.profiler_marks")
    nvtx, tools = torch.cuda.nvtx, _Tools()
    made = ranges.Ranges(tools)
    monkeypatch.setattr(nvtx, "runtime", lambda: _Marking(made))
    nvtx.mark("here")
    assert (nvtx.range_push("outer"), nvtx.range_push("inner"), nvtx.range_pop(), nvtx.range_pop()) == (0, 1, 1, 0)
    handle = nvtx.range_start("wide")
    nvtx.range_end(handle)
    with nvtx.range("step {}", 3):
        pass
    nvtx.range("called")(lambda: None)()
    assert tools.said == [
        *(("Mark", "here"), ("RangePush", "outer"), ("RangePush", "inner"), ("RangePop",), ("RangePop",)),
        *(("RangeStart", "wide"), ("RangeEnd", 7), ("RangePush", "step 3"), ("RangePop",)),
        *(("RangePush", "called"), ("RangePop",)),
    ]


def test_kernels_as_ranges(monkeypatch):
    ranges = importlib.import_module("corefw_cupy.profiler_marks")
    tools = _Tools()
    runtime = _Marking(ranges.Ranges(tools))
    monkeypatch.setattr(type(registry), "runtime", lambda self, kind: runtime)
    emit = torch.autograd.profiler.emit_nvtx(record_shapes=True)
    monkeypatch.undo()
    x = torch.ones(2)
    with emit:
        x.exp()
    x.exp()
    assert tools.said == [("RangePush", "exp, sizes = [(2,)]"), ("RangePop",)]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_ranges_without_a_gpu():
    with pytest.raises(RuntimeError, match="NVTX functions not installed"):
        torch.cuda.nvtx.range_push("x")
    with pytest.raises(RuntimeError, match="cuda"):
        torch.autograd.profiler.emit_nvtx()


def test_operations_of_modules():
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Sequential(torch.nn.Linear(4, 2, bias=False)))
    counter = torch.utils.flop_counter.FlopCounterMode(model, depth=2, display=False)
    with counter:
        model(torch.ones(5, 3)).sum().backward()
    counts = counter.get_flop_counts()
    assert counts["Sequential.0"] == {"linear": 120} and sum(counts["Sequential.1"].values()) == 80
    assert counter.get_total_flops() == 200 + 80 + 80 + 120  # gradients of both weights and of one input
    lines = counter.get_table().splitlines()
    assert lines[2].split() == ["Global", "480", "100.00%"] and not any("1.0" in line for line in lines)
    assert not model._forward_hooks and counter.get_table(depth=3).count("Sequential.1.0") == 1


@pytest.mark.oracle
def test_operations_of_gradients_are_pytorchs():
    import_torch()
    theirs = pytest.importorskip("torch.utils.flop_counter")

    def count(t, mode):
        net = t.nn.Sequential(t.nn.Conv2d(2, 4, 3), t.nn.ReLU(), t.nn.Flatten(), t.nn.Linear(36, 3))
        with mode:
            net(t.ones(2, 2, 5, 5)).sum().backward()
        return mode.get_total_flops()

    modes = (module.FlopCounterMode(display=False) for module in (torch.utils.flop_counter, theirs))
    ours, wanted = map(count, (torch, import_torch()), modes)
    assert ours == wanted


def test_operations_of_attention():
    q, counter = torch.ones(1, 2, 5, 8, requires_grad=True), torch.utils.flop_counter.FlopCounterMode(display=False)
    with counter:
        torch.nn.functional.scaled_dot_product_attention(q, q, q).sum().backward()
    assert counter.get_total_flops() == (2 + 5) * 2 * 2 * 5 * 5 * 8


def test_operations_of_ones_own(capsys):
    with torch.utils.flop_counter.FlopCounterMode(custom_mapping={"exp": lambda result, x: x.size}) as counter:
        torch.ones(7).exp()
    assert counter.get_total_flops() == 7 and "exp" in capsys.readouterr().out
