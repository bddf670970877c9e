"""Discovery, preference and failure of backend plugins: each test runs a program beside plugins that are really
installed."""

import ast
import re
from pathlib import Path

import pytest

from tests.plugins import SOURCES


@pytest.fixture
def run(beside_plugins):
    return beside_plugins


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
        import corefw
        for attempt in range(2):
            try:
                corefw.ones(1)
            except RuntimeError as error:
                print(error)
    """
    line, again = run(program, COREFW_BACKENDS="cpu:numpy")
    assert line == again and "COREFW_BACKENDS" in line and "cpu:numpy" in line and "device=backend" in line


WARNED = """
    import warnings
    import corefw
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        corefw.ones(1), corefw.ones(1, device="acme")
    print([str(w.message) for w in said])
"""


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("COREFW_BACKEND", "cpu=numpy", "no setting is called COREFW_BACKEND (did you mean 'COREFW_BACKENDS'?)"),
        ("COREFW_DISABLED", "numpy", "no setting is called COREFW_DISABLED (did you mean 'COREFW_DISABLE'?)"),
        ("COREFW_DISABLE", "fast, fats", "backend 'fats' is not installed (did you mean 'fast'?)"),
        ("COREFW_FAST_LEVEL", "3", ""),  # a backend's own
        ("COREFW_FAST_LEVL", "3", "no setting is called COREFW_FAST_LEVL (did you mean 'COREFW_FAST_LEVEL'?)"),
        ("COREFW_LEVEL", "3", "no setting is called COREFW_LEVEL (did you mean 'COREFW_FAST_LEVEL'?)"),
        ("COREFW_ACME_CACH", "3", ""),  # of a backend that does not tell its own
        ("COREFW_DISABLE", "fast,broken", ""),
    ],
)
def test_what_has_no_effect_is_told_once(run, variable, value, words):
    (said,) = run(WARNED, "cpu.fast", "cpu.broken", "acme.acme", **{variable: value})
    warned = ast.literal_eval(said)
    assert len(warned) == bool(words) and words in "".join(warned)


TRY = """
    import corefw as torch
    for attempt in range(2):
        try:
            print((torch.ones(2) + 1).tolist())
        except RuntimeError as error:
            print(type(error).__name__, error)
"""


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("COREFW_BACKENDS", "cpu=nunpy", "'nunpy' is not installed (did you mean 'numpy'?); installed: "),
        ("COREFW_BACKENDS", "cpu=numpy,fats", "'fats' is not installed (did you mean 'fast'?); installed: "),
        ("COREFW_BACKENDS", "cpu=broken", "backend 'broken' is broken: its library is missing"),
        ("COREFW_BACKENDS", "cpu=c", "backend 'c' is disabled by COREFW_DISABLE"),
        ("COREFW_BACKENDS", "cpu=absent", "backend 'absent' cannot be used: no driver for gpu9"),
        ("COREFW_BACKENDS", "cpu=acme", "backend 'acme' serves acme, not cpu"),
        ("COREFW_BACKENDS", "cpuu=numpy", "string: cpuu (did you mean 'cpu'?)"),
        ("COREFW_BACKENDS", "cpu:0=numpy", "name 'cpu', not 'cpu:0'"),
        ("COREFW_OPS", "sofmax@cpu=numpy", "no op is called 'sofmax' (did you mean 'softmax'?)"),
        ("COREFW_OPS", "add@cpuu=numpy", "(did you mean 'cpu'?)"),
        ("COREFW_OPS", "add@cpu=nunpy", "'nunpy' is not installed (did you mean 'numpy'?)"),
        ("COREFW_OPS", "mul@cpu=fast", "fast has no kernel for mul on cpu; backends with one: numpy"),
        ("COREFW_OPS", "conv2d@cpu=numpy", 'convolution, constant_pad_nd (COREFW_OPS="convolution@cpu=numpy")'),
        ("COREFW_OPS", "gelu@cpu=numpy", "a composition of other ops; name those: sigmoid, erfc "),
        ("COREFW_FALLBACK", "cpuu", "string: cpuu (did you mean 'cpu'?)"),
        ("COREFW_FALLBACK", "gpu9", "device 'gpu9' is not available: absent: no driver for gpu9"),
        ("COREFW_FALLBACK", "meta", "no backend computes on 'meta'"),
    ],
)
def test_a_wish_for_what_is_not_there_is_refused_each_time(run, variable, value, words):
    said = run(TRY, "cpu.fast", "cpu.broken", "acme.acme", "gpu9.absent", **{variable: value})
    assert len(said) == 2 and all(line.startswith(f"SettingError {variable}") and words in line for line in said)


def test_wishes_for_devices_that_are_not_used_are_left_alone(run):
    assert run(ADD, "cpu.fast", "gpu9.absent", COREFW_BACKENDS="gpu9=nosuch;cpu=numpy") == ["[2.0, 2.0]"]


def test_another_name_of_an_op_may_be_given(run):
    program = """
        import corefw as torch
        print(torch.explain("abs", torch.ones(2)).splitlines()[-1])
    """
    assert run(program, "cpu.fast", COREFW_OPS="absolute@cpu=numpy") == ["  -> kernel of backend 'numpy' (asked for)"]


def test_a_setting_that_a_plugin_refuses_reaches_the_user_each_time(run):
    assert run(TRY, "cpu.picky") == ["SettingError PICKY=7: expected 8"] * 2


@pytest.mark.parametrize(
    ("name", "words"),
    [("fats", "'fats' is not installed (did you mean 'fast'?)"), ("c", "'c' is disabled"), ("broken", "is missing")],
)
def test_a_scope_of_what_is_not_there_is_refused(run, name, words):
    program = f"""
        import corefw as torch
        torch.ones(1)
        try:
            torch.backend("{name}")
        except torch.dispatch.preferences.SettingError as error:
            print(error)
    """
    (said,) = run(program, "cpu.fast", "cpu.broken")
    assert words in said


def test_the_choice_of_the_readme_is_made(run):
    table = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
    (choice,) = re.findall(r'`COREFW_OPS="([^"]*)"`', table)
    op, _, backend = re.split("[@=]", choice)
    program = f"""
        import corefw as torch
        print(torch.explain("{op}").splitlines()[-1])
        print(torch.explain("conv2d", torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2)))
    """
    first, *lines = run(program, COREFW_OPS=choice)
    assert first == f"  -> kernel of backend '{backend}' (asked for)"
    assert f"  {op} at cpu/float32: kernel of backend '{backend}' (asked for)" in lines


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


def test_the_owner_of_a_device_computes_alone_where_it_is_asked_for(run):
    """A composite is then its body, not a kernel of another backend: the reference is not compared with itself."""
    program = """
        import corefw as torch
        softplus, x = torch.nn.functional.softplus, torch.zeros(1)
        print(softplus(x).item())
        with torch.backend("numpy"):
            print(round(softplus(x).item(), 4))
            print(*torch.explain("softplus", x).splitlines()[2:5], sep="\\n")
        with torch.backend("newer", "numpy"):
            print(softplus(x).item())
    """
    assert run(program, "cpu.newer") == [
        "7.0",
        "0.6931",
        "  newer (priority 7): outranked",
        "  numpy (asked for): no kernel for softplus",
        "  body of the composite: chosen",
        "7.0",
    ]


def test_explain_names_each_backend_once(run):
    program = """
        import corefw as torch
        from corefw.dispatch.registry import registry
        for name in {op.name for op in registry.declared.values() if op.rule is not None}:
            lines = [line for line in torch.explain(name).splitlines()[1:-1] if 'vmap' not in line]
            assert len({line.split()[0] for line in lines}) == len(lines) or "at" in lines[-1].split(), lines
        print(torch.explain("sum", torch.ones(2)))
    """
    assert run(program, "cpu.fast")[1:] == [
        "  dispatch key: cpu/float32, computed in float32",
        "  numpy (priority 0): chosen",
        "  inside of vmap: all examples at once, by its rule",
        "  -> kernel of backend 'numpy' (priority 0)",
    ]


def test_explain_follows_compositions(run):
    program = """
        import corefw as torch
        x, counted = torch.ones(2, 3), torch.ledger()
        state = torch.get_rng_state().tolist()
        with counted:
            print(torch.explain("trapezoid", x))
            print(torch.explain("dropout", x, 0.5))
            print(torch.explain("conv2d", x))
        assert not counted.counts and torch.get_rng_state().tolist() == state
    """
    lines = run(program, "cpu.fast")
    assert "  add at cpu/float32: kernel of backend 'fast' (priority 5)" in lines
    assert "  mul at cpu/float32: kernel of backend 'numpy' (priority 0)" in lines
    assert lines.count("  a composition of other ops; no backend can replace it") == 3
    (unknown,) = [line for line in lines if "cannot be followed" in line]
    assert "missing 1 required positional argument" in unknown and "convolution" in unknown


def test_explain_tells_of_the_fallback(run):
    program = """
        import corefw as torch
        x = torch.ones(2, device="bare")
        print(torch.explain("mul", x, x))
        print(torch.explain("polar", x, x))
    """
    lines = run(program, "bare.bare", COREFW_FALLBACK="cpu")
    assert lines[1:6] == [
        "  dispatch key: bare:0/float32",
        "  no kernel for bare:0/float32; copied to the fallback cpu and back",
        "  numpy (priority 0): chosen",
        "  inside of vmap: all examples in one call, aligned",
        "  -> fallback to cpu: kernel of backend 'numpy' (priority 0)",
    ]
    assert "  mul at bare:0/float32: fallback to cpu: kernel of backend 'numpy' (priority 0)" in lines[6:]
    lines = run(program, "bare.bare")
    assert lines[3].startswith("  -> error: mul: no kernel for bare:0/float32")


def test_explain_tells_that_a_wish_cannot_be_met(run):
    program = """
        import corefw as torch
        with torch.backend("fast"):
            print(torch.explain("mul"))
        try:
            torch.explain("softmaks")
        except ValueError as error:
            print(error)
    """
    lines = run(program, "cpu.fast")
    assert "  fast (asked for): no kernel for mul" in lines and "  numpy (priority 0): chosen" in lines
    assert lines[-1] == "explain: no op is called 'softmaks' (did you mean 'softmax'?)"


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
        ("cpu.future", ("9.1", "1.4", "upgrade corefw")),
        ("cpu.hookless", ("corefw_backend",)),
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
    tests = Path(__file__).parent.glob("test_*.py")
    text = "".join(path.read_text(encoding="utf-8") for path in tests)
    assert all(f'"{entry}"' in text for entry in SOURCES)
