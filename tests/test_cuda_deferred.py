"""The emulated device with launches that run later, as a GPU's do: what a kernel finds wrong comes late."""

import os
import subprocess
import sys
import textwrap

import pytest

from corefw.dispatch.registry import registry

if "emulated" not in registry.runtimes:
    pytest.skip("there is no emulated device", allow_module_level=True)

DEFERRED = {**os.environ, "COREFW_EMULATED": "deferred"}


def run(*parts):
    """Run a program, given in parts, in a process of its own."""
    command = [sys.executable, "-c", "".join(map(textwrap.dedent, parts))]
    found = subprocess.run(command, env=DEFERRED, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_what_is_refused_late_is_attributed_to_its_check():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "tests/test_ops.py"]
    ops = "(wrong_shapes or forward) and (scatter or index or take or put or class_)"  # one after the other of each op
    selected = ["--corefw-backend", "emulated", "-k", ops]
    found = subprocess.run([*command, *selected], env=DEFERRED, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout[-4000:]
    assert " passed" in found.stdout


def test_launches_run_in_order_at_the_next_wait():
    program = """
        import corefw as torch
        from tests.emulation import device, queue
        device.install()
        x = torch.zeros(3, device="emulated")
        for i in range(4):
            x += i
        assert not queue.is_empty(), "nothing has run"
        assert x.tolist() == [6, 6, 6] and queue.is_empty()
        x[torch.tensor([7], device="emulated")] = 1.0
        y = x + 1
        try:
            torch.manual_seed(0)
            y.tolist()
        except IndexError as error:
            assert "index 7 is out of bounds" in str(error), error
        else:
            raise AssertionError("nothing was reported")
        assert y.tolist() == [7, 7, 7], "a wrong index is left alone, and reported once"
    """
    run(program)


#: one is added to zeros on a stream of its own
ADDED_ASIDE = """
    import corefw as torch
    from corefw.dispatch.registry import registry
    from tests.emulation import device
    device.install()
    runtime = registry.runtimes["emulated"][1]
    x = torch.zeros(64, device="emulated")
    runtime.synchronize()
    first, side = runtime.current_stream(0), runtime.new_stream(0, 0)
    with side:
        x.add_(1)
"""


@pytest.mark.parametrize("waits", [False, True])
def test_streams_wait_for_events_alone(waits):
    """A stream that does not wait for the work of another one reads what is not there yet."""
    program = f"""
        if {waits}:
            first.wait_stream(side)
        y = x * 2
        if {waits}:
            side.wait_event(first.record_event())
        with side:
            x.mul_(5)
            y.add_(3)
            assert (y.tolist() == [5.0] * 64) == {waits}, y
        assert first.query() == {waits}, "a stream's work is waited for alone"
    """
    run(ADDED_ASIDE, program)


@pytest.mark.parametrize(
    "wait", ["", "first.wait_stream(side)", "first.wait_event(side.record_event())", "side.record_event().wait(first)"]
)
def test_a_stream_waits_for_another_however_it_is_told(wait):
    program = f"""
        {wait}
        assert (x * 2).tolist() == [2.0 if {wait!r} else 0.0] * 64
    """
    run(ADDED_ASIDE, program)
