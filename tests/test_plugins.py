"""Discovery, preference and failure of backend plugins: each test runs a program beside plugins that are really
installed."""

import os
import subprocess
import sys
import textwrap

import pytest

from tests.plugins import SOURCES, install


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A function giving the folder in which the named plugins are installed."""
    made = {}

    def installed(*entries):
        if entries not in made:
            made[entries] = install(tmp_path_factory.mktemp("plugins"), *entries)
        return made[entries]

    return installed


@pytest.fixture
def run(site):
    """Run a program beside the named plugins; returns what it printed, line by line."""

    def run(program, *entries, **environment):
        env = {k: v for k, v in os.environ.items() if not k.startswith("COREFW_")}
        env |= {"PYTHONPATH": str(site(*entries)), "COREFW_DISABLE": "c"} | environment  # it outranks those tried here
        command = [sys.executable, "-W", "error", "-c", textwrap.dedent(program)]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


ADD = """
    import corefw as torch
    print((torch.ones(2) + 1).tolist())
"""


def test_nothing_of_a_plugin_runs_at_import(run):
    program = """
        import sys
        import corefw
        print([m for m in sys.modules if m.startswith(("corefw_", "pluggy"))])
        corefw.ones(1)
        print("corefw_plugin_fast" in sys.modules, "corefw_plugin_acme" in sys.modules)
    """
    assert run(program, "cpu.fast", "acme.acme") == ["[]", "True False"]


def test_an_installed_backend_is_used_at_once(run):
    assert run(ADD, "cpu.fast") == ["[102.0, 102.0]"]


def test_in_place_and_out_use_it_too(run):
    program = """
        import corefw as torch
        x = torch.ones(2)
        x += 1
        y = torch.empty(2)
        torch.add(x, x, out=y)
        print(x.tolist(), y.tolist())
    """
    assert run(program, "cpu.fast") == ["[102.0, 102.0] [304.0, 304.0]"]


@pytest.mark.parametrize(
    ("environment", "result"),
    [
        ({"COREFW_BACKENDS": "cpu=numpy"}, "[2.0, 2.0]"),
        ({"COREFW_BACKENDS": "cpu=fast,numpy"}, "[102.0, 102.0]"),
        ({"COREFW_OPS": "add@cpu=numpy"}, "[2.0, 2.0]"),
        ({"COREFW_OPS": "mul@cpu=numpy"}, "[102.0, 102.0]"),
        ({"COREFW_BACKENDS": "cpu=numpy", "COREFW_OPS": "add@cpu=fast"}, "[102.0, 102.0]"),
        ({"COREFW_DISABLE": "fast"}, "[2.0, 2.0]"),
    ],
)
def test_environment_chooses(run, environment, result):
    assert run(ADD, "cpu.fast", **environment) == [result]


def test_a_malformed_preference_is_refused(run):
    program = """
        try:
            import corefw
        except RuntimeError as error:
            print(error)
    """
    (line,) = run(program, COREFW_BACKENDS="cpu:numpy")
    assert "COREFW_BACKENDS" in line and "cpu:numpy" in line and "device=backend" in line


def test_scopes_nest_and_end(run):
    program = """
        import corefw as torch
        one = torch.ones(1)
        add = lambda: print((one + 1).item())
        add()
        with torch.backend("numpy"):
            add()
            with torch.backend("fast"):
                add()
            add()
        add()
    """
    assert run(program, "cpu.fast") == ["102.0", "2.0", "102.0", "2.0", "102.0"]


def test_explain_shows_every_candidate(run):
    program = """
        import corefw as torch
        print(torch.explain(torch.add, torch.ones(2), 1))
        with torch.backend("numpy"):
            print(torch.explain("add", torch.ones(2), 1).splitlines()[-1])
    """
    lines = run(program, "cpu.fast")
    assert any("fast (priority 5): chosen" in line for line in lines)
    assert any("numpy (priority 0): outranked" in line for line in lines)
    assert lines[-1] == "  -> kernel of backend 'numpy' (asked for)"


def test_ledger_says_who_ran(run):
    program = """
        import corefw as torch
        with torch.ledger() as book:
            (torch.ones(2) + 1) * 2
        print(book.count("add"), book.count("add", "fast"), book.count("mul", "numpy"), book.count("mul", "fast"))
        torch.ones(2) + 1
        print(book.count("add"))
    """
    assert run(program, "cpu.fast") == ["1 1 1 0", "1"]


def test_two_devices_of_two_plugins_in_one_process(run):
    program = """
        import corefw as torch
        a, z = torch.ones(2, device="acme"), torch.ones(2, device="zeta:1", requires_grad=True)
        ((z * 3).sum() * 2).backward()
        print((a + a).device, z.grad.tolist(), z.grad.device)
        try:
            a + z
        except RuntimeError as error:
            print("acme:0 and zeta:1" in str(error))
        print(a.to("zeta").device, a.cpu().device, torch.ones(1).device)
        try:
            torch.ones(1, device="acme:7")
        except RuntimeError as error:
            print(error)
    """
    assert run(program, "acme.acme", "zeta.zeta") == [
        "acme:0 [6.0, 6.0] zeta:1",
        "True",
        "zeta:0 cpu cpu",
        "device acme:7 does not exist: there are 2 of type 'acme'",
    ]


def test_a_broken_plugin_is_listed_and_harms_nobody(run):
    program = """
        import corefw as torch
        print((torch.ones(2) + 1).tolist())
        print(next(b.reason for b in torch.backends() if b.name == "broken"))
        try:
            torch.backend("broken")
        except RuntimeError as error:
            print(error, "<-", type(error.__cause__).__name__)
    """
    assert run(program, "cpu.broken") == [
        "[2.0, 2.0]",
        "OSError: its library is missing",
        "backend 'broken' is broken: its library is missing <- OSError",
    ]


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("cpu.future", ("9.1", "1.0", "upgrade corefw")),
        ("cpu.hookless", ("corefw_backend",)),
        ("cpu.twin", ("'numpy' and 'twin' both offer add on cpu", "priority 0")),
    ],
)
def test_a_plugin_that_cannot_be_registered_is_listed_with_the_reason(run, entry, words):
    program = """
        import corefw as torch
        print((torch.ones(2) + 1).tolist())
        print(*(b.reason for b in torch.backends() if not b.usable))
    """
    result, reason = run(program, entry)
    assert result == "[2.0, 2.0]"
    assert all(word in reason for word in words), reason


def test_an_unusable_backend_names_its_reason(run):
    program = """
        import corefw as torch
        print([(b.name, b.usable, b.reason) for b in torch.backends() if b.name == "absent"])
        try:
            torch.ones(1, device="gpu9")
        except RuntimeError as error:
            print(error)
    """
    listed, error = run(program, "gpu9.absent")
    assert listed == "[('absent', False, 'no driver for gpu9')]"
    assert "gpu9" in error and "absent: no driver for gpu9" in error


def test_a_missing_kernel_is_an_error_and_never_a_silent_copy(run):
    program = """
        import corefw as torch
        x = torch.ones(2, device="bare")
        try:
            x * 2
        except NotImplementedError as error:
            print(error)
    """
    (error,) = run(program, "bare.bare")
    assert "mul" in error and "bare:0/float32" in error and "COREFW_FALLBACK=cpu" in error


def test_the_fallback_is_opt_in_and_counted(run):
    program = """
        import corefw as torch
        x = torch.ones(2, device="bare")
        with torch.ledger() as book:
            y = x * 2
        print(y.device, y.tolist(), book.count("mul", "fallback to cpu"))
    """
    assert run(program, "bare.bare", COREFW_FALLBACK="cpu") == ["bare:0 [2.0, 2.0] 1"]


def test_a_plugin_may_be_imported_before_corefw(run):
    program = """
        import corefw_plugin_fast
        import corefw as torch
        print((torch.ones(2) + 1).tolist())
    """
    assert run(program, "cpu.fast") == ["[102.0, 102.0]"]


def test_an_unknown_device_is_refused(run):
    program = """
        import corefw as torch
        try:
            torch.device("nowhere")
        except RuntimeError as error:
            print("nowhere" in str(error), "cpu" in str(error))
    """
    assert run(program) == ["True True"]


def test_every_plugin_is_tested():
    with open(__file__, encoding="utf-8") as file:
        text = file.read()
    assert all(f'"{entry}"' in text for entry in SOURCES)
