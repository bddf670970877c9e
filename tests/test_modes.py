"""Modes: the ledger, the profiler, and that nothing of them stays behind."""

import json

import pytest

import corefw as torch
from corefw.dispatch.registry import registry
from corefw.profiler import profile, record_function


def work():
    x = torch.ones(3, 4, requires_grad=True)
    return (x @ x.t()).softmax(1).sum()


def test_ledger_counts_kernels_and_backward_ops():
    with torch.ledger() as book:
        work().backward()
    assert book.count("sum") == 1
    assert book.count("softmax") == 1
    assert "softmax" in str(book) and "calls" in str(book)


def test_nothing_is_counted_after_the_block():
    with torch.ledger() as book:
        work()
    before = dict(book.counts)
    work()
    assert book.counts == before
    assert registry.modes == []


def test_what_was_resolved_is_dropped_when_a_choice_of_backends_ends():
    work()
    assert registry.declared["softmax"].table
    with torch.backend("numpy"):
        assert not any(op.table or op.number_table or op.inplace_table for op in registry.declared.values())
        torch.ones(2).add_(1)
        torch.ones(2, dtype=torch.float16) * 0.1
    assert not any(op.table or op.number_table or op.inplace_table for op in registry.declared.values())


def test_modes_stack_and_end_after_an_error():
    with pytest.raises(ZeroDivisionError), torch.ledger() as outer, torch.ledger() as inner:
        torch.ones(2).exp()
        raise ZeroDivisionError
    assert outer.count("exp") == inner.count("exp") == 1
    assert registry.modes == []


def test_profiler_sums_calls_with_shapes():
    with profile(record_shapes=True) as prof:
        for _ in range(3):
            torch.ones(2, 5).exp()
        torch.ones(7).exp()
    (averages,) = [a for a in prof.key_averages() if a.key == "exp"]
    assert averages.count == 4 and averages.self_cpu_time_total > 0
    by_shape = {a.shapes: a.count for a in prof.key_averages(group_by_input_shape=True) if a.key == "exp"}
    assert by_shape == {((2, 5),): 3, ((7,),): 1}
    table = prof.key_averages().table(sort_by="count", row_limit=1)
    rule, header, _, row, _, total = table.splitlines()
    assert {*rule} == {"-", " "} and header.split()[:2] == ["Name", "Backend"] and row.split()[-1] == "4"
    assert total.startswith("Self CPU time total: ")


def test_self_time_excludes_what_runs_inside():
    with profile() as prof, record_function("block"):
        torch.ones(1000).exp().sum()
    events = {e.name: e for e in prof.events()}
    block = events["block"]
    inside = sum(e.duration for e in prof.events() if e.name != "block")
    assert block.self_time == block.duration - inside
    assert block.duration >= inside


@pytest.mark.parametrize(("synchronize", "capturing", "waits"), [(True, False, 1), (False, False, 0), (True, True, 0)])
def test_a_profiler_waits_for_the_device_unless_told_or_capturing(monkeypatch, synchronize, capturing, waits):
    x, waited = torch.ones(3), []
    runtime = x.dispatch_key.runtime
    monkeypatch.setattr(runtime, "synchronize", waited.append, raising=False)
    monkeypatch.setattr(runtime, "is_capturing", lambda: capturing, raising=False)
    with profile(synchronize=synchronize) as prof:
        x.exp()
    assert [event.name for event in prof.events()] == ["exp"] and len(waited) == waits


def test_chrome_trace(tmp_path):
    path = tmp_path / "trace.json"
    with torch.backend("numpy"), profile(record_shapes=True) as prof:
        torch.ones(2).exp()
    prof.export_chrome_trace(path)
    events = json.loads(path.read_text())["traceEvents"]
    exp = next(e for e in events if e["name"] == "exp")
    assert exp["ph"] == "X" and exp["dur"] >= 0 and exp["args"] == {"shapes": [[2]], "backend": "numpy"}
    assert list(tmp_path.iterdir()) == [path]


def test_in_place_forms_are_seen():
    with torch.ledger() as book:
        x = torch.ones(3)
        x.mul_(2).add_(1)
    assert book.count("mul") == 1 and book.count("add") == 1
    assert x.tolist() == [3.0, 3.0, 3.0]


def test_a_failed_save_leaves_the_old_file_whole(tmp_path):
    from corefw.files import replacing

    path = tmp_path / "kept"
    path.write_bytes(b"old")
    with pytest.raises(OSError), replacing(path) as file:
        file.write(b"half of the n")
        raise OSError("the disk is full")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
