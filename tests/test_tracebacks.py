"""Tests of tracebacks: they end at the user's line, and show everything when asked."""

import os
import re
import subprocess
import sys
import traceback

import pytest

import corefw as torch
from corefw import nn
from corefw.tracebacks import ends_at_caller


def raised(function, kind=Exception):
    """The error that `function` raises, its traceback from the line of `function` on."""
    with pytest.raises(kind) as caught:
        function()
    error = caught.value
    return error.with_traceback(error.__traceback__.tb_next.tb_next if error.__traceback__.tb_next else None)


def frames(error) -> list[str]:
    """The names of the functions in the traceback of `error`."""
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def shown(error) -> str:
    return "".join(traceback.format_exception(error))


x, y = torch.ones(3), torch.ones(4)
FAILURES = {
    "operator": lambda: x + y,
    "function": lambda: torch.add(x, y),
    "in place": lambda: x.add_(y),
    "number in place": lambda: torch.ones(3, dtype=torch.int64).add_(1.5),
    "out": lambda: torch.add(x, y, out=torch.empty(3)),
    "matmul": lambda: x.reshape(1, 3) @ y.reshape(1, 4),
    "integer": lambda: x[7],
    "too many": lambda: x[0, 1],
    "assignment": lambda: x.__setitem__(7, 1.0),
    "positions": lambda: x[torch.tensor([9])],
    "cat": lambda: torch.cat([x.reshape(1, 3), y.reshape(1, 4)]),
    "dimension": lambda: x.softmax(3),
    "kind": lambda: torch.add(x, "a"),
    "layer": lambda: nn.Linear(3, 4)(y),
    "layers": lambda: nn.Sequential(nn.Linear(3, 4), nn.Sequential(nn.Conv2d(1, 2, 3)))(x),
    "no gradient": lambda: x.backward(),
    "autograd": lambda: torch.autograd.grad(x.sum(), x),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("call", ["first", "second"])
def test_traceback_ends_at_the_line_that_called(failure, call):
    error = raised(failure)
    assert frames(error) == [], shown(error)
    assert "The above exception" not in shown(error) and "During handling" not in shown(error)


def test_frames_of_users_between_frames_of_layers_stay():
    class Outer(nn.Module):
        def forward(self, x):
            return self.helper(x)

        def helper(self, x):
            return x + y

    error = raised(lambda: nn.Sequential(Outer())(x))
    assert frames(error) == ["forward", "helper"]
    assert "in Sequential.0 (Outer()): got (3,)" in shown(error)


def test_errors_of_hooks_keep_their_frames():
    def pack(tensor):
        raise KeyError("packed")

    def failing():
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
            torch.ones(3, requires_grad=True).exp()

    assert frames(raised(failing, KeyError)) == ["pack"]


def test_an_error_handled_by_the_user_stays_the_context():
    def failing():
        try:
            {}["missing"]
        except KeyError:
            x + y

    assert "KeyError: 'missing'" in shown(raised(failing))


def test_backward_shows_the_op_and_its_source():
    a = torch.ones(3, requires_grad=True)
    b = a.exp()
    c = a.tanh()
    torch.autograd.grad((b * 2 + c * 2).sum(), a, retain_graph=True)  # compiles the backward of both ops
    b.add_(1)
    error = raised(lambda: b.sum().backward())
    assert frames(error) == ["backward"]
    text = shown(error)
    assert 'File "<corefw op exp: backward>"' in text and "raise stale(" in text


def test_all_frames_on_request(monkeypatch):
    monkeypatch.setenv("COREFW_FULL_TRACEBACK", "1")
    error = raised(lambda: x + y)
    assert "slow_path" in frames(error) and "During handling of the above exception" in shown(error)


def test_a_failure_that_nothing_explains_says_how_to_see_more():
    program = """
        import corefw as torch
        from corefw.dispatch.backend import Backend, Kernel
        from corefw.dispatch.registry import registry

        def broken(input):
            raise KeyError("nothing of the kind")

        registry.add_backend(Backend("broken", "1", ("cpu",), {"cpu": [Kernel("exp", broken)]}, priority=99))
        torch.ones(3).exp()
    """
    program = "\n".join(line[8:] for line in program.split("\n"))
    hidden, full = (
        subprocess.run(
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            env={**os.environ, "COREFW_FULL_TRACEBACK": value},
        ).stderr
        for value in ("", "1")
    )
    assert "exp(float32[3]): KeyError: 'nothing of the kind'" in hidden and "COREFW_FULL_TRACEBACK=1" in hidden
    assert hidden.count("File ") == 1 and "in broken" not in hidden
    assert "in broken" in full


def test_ends_at_caller():
    @ends_at_caller
    def failing():
        raise ValueError("mine")

    assert frames(raised(lambda: failing(), ValueError)) == ["failing"]  # a frame of this file is no internal one


@pytest.mark.parametrize(
    "call",
    [
        "torch.add(torch.ones(3), 1, out=torch.ones(2))",
        "torch.nn.MSELoss()(torch.ones(3), torch.ones(1, 3))",
        "torch.range(0, 3)",
        "torch.ones(2, dtype=torch.complex64).to(torch.float32)",
    ],
)
def test_warnings_are_of_the_users_line_from_the_first_call(call):
    """The first call of an op compiles it: there is a frame more."""
    program = f"import corefw as torch\n{call}\n\n{call}\n"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert re.findall(r"<string>:(\d): UserWarning", done.stderr) == ["2", "4"], done.stderr
