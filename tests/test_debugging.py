"""Checking and shadow execution: planted faults of real plug-ins are found and named, and right kernels pass."""

import linecache
import re

import numpy as np
import pytest

import corefw as torch
from corefw.debugging.differences import ulp, worst
from corefw.dispatch.backend import Backend, Kernel
from corefw.dispatch.registry import registry
from tests.models import resnet

CHECKED = """
    import corefw as torch
    x = torch.tensor([-1.0, 2.0])
    with torch.checking():
        try:
            torch.{op}(x)
        except RuntimeError as error:
            print("RuntimeError")
        except TypeError as error:
            print(error)
    torch.neg(x)
"""


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("type", "returned list; wanted: an array, ndarray"),
        ("dtype", "returned float16; wanted: float32"),
        ("shape", "returned the shape [1, 2]; wanted: [2]"),
        ("alias", "returned memory of its argument 'input'; wanted: a result in memory of its own"),
        ("argument", "changed its argument 'input'; wanted: arguments as they were"),
    ],
)
def test_checking_names_op_backend_fault_and_line(beside_plugins, fault, words):
    (said,) = beside_plugins(CHECKED.format(op="relu"), "cpu.faulty", FAULTS=f"relu={fault}")
    assert said == (
        f"relu: the kernel of backend 'faulty' {words}. Called as relu(input=float32[2]) on cpu, at <string>:6, "
        "in <module>"
    )


def test_checking_for_a_whole_program(beside_plugins):
    program = """
        import corefw as torch
        try:
            torch.ones(2, requires_grad=True).relu().sum().backward()
        except TypeError as error:
            print(error)
    """
    (said,) = beside_plugins(program, "cpu.faulty", FAULTS="relu_backward=dtype", COREFW_CHECK="1")
    assert said.startswith("relu_backward: the kernel of backend 'faulty' returned float16; wanted: float32.")
    assert said.endswith("at <string>:4, in <module>")
    assert beside_plugins(program, "cpu.faulty", FAULTS="relu_backward=dtype", COREFW_CHECK="0") == []


def test_a_setting_that_checks_perhaps_is_refused(beside_plugins):
    program = """
        import corefw as torch
        try:
            torch.ones(1)
        except torch.dispatch.preferences.SettingError as error:
            print(error)
    """
    assert beside_plugins(program, COREFW_CHECK="maybe") == [
        "COREFW_CHECK='maybe': expected 1 to check all results, or 0"
    ]


def step(model, optimizer, images, targets, shadow):
    optimizer.zero_grad()
    with shadow:
        loss, _ = resnet.evaluate(torch, model, images, targets)
        loss.backward()
        optimizer.step()


def prepared(dtype):
    torch.manual_seed(0)
    images, targets = (torch.tensor(array) for array in resnet.arrays(np.random.default_rng(0)))
    model = resnet.build(torch).to(dtype)
    return model, torch.optim.Adam(model.parameters()), images.to(dtype), targets


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_right_step_is_compared_and_nothing_found(dtype):
    shadow = torch.shadow("numpy", grads=True)
    with torch.checking():
        step(*prepared(dtype), shadow)
    assert shadow.differences == []
    others = {b.name for b in torch.backends() if b.usable and "cpu" in b.devices and b.priority >= 0} - {"numpy"}
    if others:  # what the reference computes itself is not compared
        assert {"convolution", "relu_backward"} <= shadow.compared.keys()
        assert str(shadow).endswith("compared with numpy: 0 differ")


RESNET = """
    import corefw as torch
    from tests.test_debugging import prepared, step
    from corefw.errors import DifferenceError
    shadow = torch.shadow("numpy", grads={grads})
    try:
        step(*prepared(torch.float32), shadow)
        print("nothing found")
    except DifferenceError as error:
        print(error)
"""


@pytest.mark.parametrize(
    ("op", "words", "statement"),
    [
        (
            "relu",
            r"relu: 'result' by faulty is .*: off by .* ulp; 1 elements .*float32\[10, 8, 16, 16\]",
            "model(images)",
        ),
        (
            "relu_backward",
            r"relu_backward: 'result' by .* in the gradient of ReluBackward0 of .*resnet\.py:\d+, in evaluate",
            "loss.backward()",
        ),
        (
            "adam_step",
            r"adam_step: 'params\[0\]' by .* as adam_step\(params=\[float32\[8, 3, 3, 3\], .* eps=1e-08, ",
            "optimizer.step()",
        ),
    ],
)
def test_shadow_finds_a_fault_inside_of_a_resnet_step(beside_plugins, op, words, statement):
    (said,) = beside_plugins(RESNET.format(grads=True), "cpu.faulty", FAULTS=f"{op}=value")
    assert re.match(words, said), said
    path, line = re.search(r"at (/\S+):(\d+), in ", said).groups()
    assert statement in linecache.getline(path, int(line))


def test_shadow_leaves_gradients_alone_unless_asked(beside_plugins):
    assert beside_plugins(RESNET.format(grads=False), "cpu.faulty", FAULTS="relu_backward=value") == ["nothing found"]


def test_shadow_lists_what_differs(beside_plugins):
    program = """
        import warnings
        import corefw as torch
        warnings.simplefilter("ignore")  # of the planted shape, to which out= is resized
        torch.manual_seed(0)
        with torch.shadow("numpy", stop=False) as found:
            x = torch.rand(4)
            x.relu_().exp()
            y = torch.zeros(4)
            torch.neg(x, out=y)
        print([(d.op, d.backend, d.worst.index, d.line) for d in found.differences])
        print(found.compared["exp"], str(found).splitlines()[-1])
    """
    assert beside_plugins(program, "cpu.faulty", FAULTS="relu=value,uniform_at=value,exp=value,neg=shape") == [
        "[('uniform_at', 'faulty', (3,), '<string>:7, in <module>'), ('relu', 'faulty', (3,), '<string>:8, in "
        "<module>'), ('exp', 'faulty', (3,), '<string>:8, in <module>'), ('neg', 'faulty', (), '<string>:10, in "
        "<module>')]",
        "1 4 calls of 4 ops compared with numpy: 4 differ",
    ]


@pytest.mark.parametrize(("declared", "differences"), [(None, 1), (100.0, 1), (1e5, 0)])
def test_shadow_allows_what_a_kernel_declares(monkeypatch, declared, differences):
    rough = Kernel("cosh", lambda a: np.cosh(a) * np.float32(1.001), max_ulp=declared)  # 8,400 units of the last place
    backend = Backend("rough", "1", ("cpu",), {"cpu": [rough]}, priority=99)
    monkeypatch.setattr(registry, "backends", {**registry.backends, "rough": backend})
    offers = [(backend, rough), *registry.kernels["cosh", "cpu"]]
    monkeypatch.setattr(registry, "kernels", {**registry.kernels, ("cosh", "cpu"): offers})
    with torch.shadow("numpy", stop=False) as shadow:
        torch.ones(3).cosh()
    registry.forget()
    assert shadow.compared["cosh"] == 1 and len(shadow.differences) == differences


def test_shadow_of_a_device_copies_to_the_reference(beside_plugins):
    program = """
        import corefw as torch
        x = torch.tensor([-1.0, 2.0], device="odd")
        with torch.shadow("numpy", stop=False) as found:
            (x + 1) * 2
            x.relu()
        print(*found.differences)
        print(sorted(found.compared))
    """
    assert beside_plugins(program, "odd.odd") == [
        "relu: 'result' by odd is 1.0 at [0] where numpy gives 0.0: off by 7.136e+44 ulp; 1 elements differ. Called as "
        "relu(input=float32[2]) on odd:0, at <string>:6, in <module>",
        "['add', 'mul', 'relu']",
    ]


def test_a_reference_that_is_not_there_is_refused():
    with pytest.raises(RuntimeError, match=r"backend 'nunpy' is not installed.*did you mean 'numpy'"):
        torch.shadow("nunpy")


def test_nothing_stays_behind():
    with torch.checking(), torch.shadow("numpy", grads=True):
        torch.ones(2, requires_grad=True).exp().sum().backward()
    assert registry.modes == []
    assert not any(op.table for op in registry.declared.values())


@pytest.mark.parametrize(
    ("actual", "expected", "index", "ulps"),
    [
        ([1.0, np.nan], [1.0, np.nan], None, None),
        ([np.inf, 1.0], [1.0, 1.0], (0,), np.inf),
        ([0.0], [-0.0], None, None),
        ([1 + 2**-23, 4.0], [1.0, 4.0], (0,), 1.0),
        ([1, 2], [1, 5], (1,), 3.0),
        ([[True, False]], [[True, True]], (0, 1), 1.0),
    ],
)
def test_the_worst_element(actual, expected, index, ulps):
    as_given = [np.array(a, np.float32 if isinstance(expected[0], float) else None) for a in (actual, expected)]
    found = worst(*as_given)
    assert (found and (found.index, found.ulps)) == (index and (index, ulps))


def test_units_in_the_last_place_are_those_of_numpy():
    x = np.array([1.0, 3.5, 1e-30, 2e30, 0.0], np.float32)
    assert ulp(x, torch.float32)[:4].tolist() == np.spacing(x)[:4].tolist()
