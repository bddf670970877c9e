"""The type stubs: current, complete, and what a type checker says of a user's program."""

import re
import subprocess
import sys
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import pytest

import corefw
from corefw.dispatch.registry import registry
from corefw.tensor import Tensor
from corefw.testing.checks import given, representative
from corefw.testing.families import kit_families
from corefw.testing.samples import samples
from corefw.testing.targets import Target
from tests import scripts

ROOT = Path(corefw.__file__).parents[1]
PROGRAM = """\
import corefw as torch
from corefw import nn
from corefw.nn import functional as F

x = torch.zeros(2, 3)
{lines}
"""
TENSOR = "corefw.tensor.Tensor"
TYPES = {
    "torch.zeros(2, 3)": TENSOR,
    "torch.rand((2, 3), dtype=torch.float64, device='cpu')": TENSOR,
    "torch.tensor([1.0])": TENSOR,
    "torch.arange(3)": TENSOR,
    "torch.add(x, 1)": TENSOR,
    "torch.add(x, x, alpha=2, out=x)": TENSOR,
    "torch.where(x > 0, x, 0.0)": TENSOR,
    "torch.where(x > 0)": f"tuple[{TENSOR}, ...]",
    "torch.cat([x, x], dim=1)": TENSOR,
    "torch.einsum('ij,kj->ik', x, x)": TENSOR,
    "torch.max(x)": TENSOR,
    "torch.max(x, x)": TENSOR,
    "torch.max(x, 0).indices": TENSOR,
    "torch.max(x, 0)": f"tuple[{TENSOR}, {TENSOR}, fallback=corefw.return_types.max]",
    "torch.allclose(x, x)": "bool",
    "torch.float32": "corefw.dtypes.dtype",
    "torch.float32.is_complex": "bool",
    "x.sum(0)": TENSOR,
    "x.sum((0, 1), keepdim=True, dtype=torch.float64)": TENSOR,
    "x.view(2, 3)": TENSOR,
    "x.view((3, 2))": TENSOR,
    "x.view(torch.int32)": TENSOR,
    "x.reshape(-1)": TENSOR,
    "x.new_zeros(2, 3)": TENSOR,
    "x.to('cpu', torch.float64)": TENSOR,
    "x.float()": TENSOR,
    "x.add_(x)": TENSOR,
    "x.fill_(1.0)": TENSOR,
    "x.masked_fill(x > 0, 1.0)": TENSOR,
    "x.split(2)": f"tuple[{TENSOR}, ...]",
    "x.size()": "corefw.shapes.Size",
    "x.size(0)": "int",
    "x.stride()": "tuple[int, ...]",
    "x.type()": "str",
    "x.type(torch.int64)": TENSOR,
    "x.shape": "corefw.shapes.Size",
    "x.shape[0]": "int",
    "x.dtype": "corefw.dtypes.dtype",
    "x.device": "corefw.devices.device",
    "x.ndim": "int",
    "x.grad": f"{TENSOR} | None",
    "x.T": TENSOR,
    "x.requires_grad_()": TENSOR,
    "x.backward()": "None",
    "x.numpy().dtype.name": "str",
    "x + 1": TENSOR,
    "2 - x": TENSOR,
    "x @ x": TENSOR,
    "-x ** 2": TENSOR,
    "x == x": TENSOR,
    "x[0]": TENSOR,
    "x[:, None, ..., x > 0]": TENSOR,
    "[row for row in x]": f"list[{TENSOR}]",
    "nn.Parameter(x)": "corefw.nn.parameter.Parameter",
    "nn.Linear(2, 3)(x)": "Any",
    "nn.Linear(2, 3).weight": "corefw.nn.parameter.Parameter",
    "F.relu(x, inplace=True)": TENSOR,
    "F.cross_entropy(x, x, reduction='sum')": TENSOR,
    "torch.special.entr(x)": TENSOR,
    "torch.fft.rfft(x, dim=0)": TENSOR,
    "torch.linalg.qr(x).Q": TENSOR,
    "torch.backends()": "list[corefw.dispatch.inspect.BackendInfo]",
    "torch.backends.cudnn.benchmark": "Any",
}
WRONG = (
    "torch.zeros('2')",
    "torch.add(x)",
    "torch.no_such_function(x)",
    "x.no_such_method()",
    "x.sum(dimension=0)",
    "x @ 2",
    "x + 'a'",
    "torch.allclose(x, x) @ x",
)


@pytest.fixture(scope="module")
def generator():
    """scripts/make_stubs as a module."""
    pytest.importorskip("ruff", reason="the generator formats what it writes")
    return scripts.load("make_stubs")


def test_the_stubs_are_current(generator):
    stale = [path.name for path, text in generator.stubs().items() if not path.exists() or path.read_text() != text]
    assert not stale, "run scripts/make_stubs"


def fits(value, kind) -> bool:
    """Whether a value is of a type, as far as it can be told at run time."""
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return True
    if origin in (Union, UnionType):
        return any(fits(value, part) for part in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and (... in arguments or len(arguments) == len(value))
    return isinstance(value, origin or kind)


@pytest.mark.parametrize("case", kit_families().cases(), ids=lambda case: case.op)
def test_results_are_what_the_stub_says(generator, case):
    op, target = registry.declared[case.op], Target("corefw", "cpu")
    kinds = [generator.annotated(form, "return") for form in generator.forms_of(op.body)]
    kinds = kinds or [generator.returned(op, op.body)]
    for sample in samples(case, representative(case, op))[:3]:
        tensors = given(op.function, sample, target)
        result = op.function(*tensors.arguments, **tensors.keywords)
        assert any(fits(result, kind) for kind in kinds), f"{type(result)} is none of {kinds}"


def names_in(path: Path, indent: str = "") -> set[str]:
    """What a stub defines or re-exports at one level."""
    text = path.read_text()
    defined = re.findall(rf"^{indent}(?:def|class) (\w+)|^{indent}(\w+)(?::| =)", text, re.M)
    return {name for pair in defined for name in pair if name} | set(re.findall(r" as (\w+),?$", text, re.M))


def test_every_public_name_is_in_the_stub():
    assert set(corefw.__all__) <= names_in(Path(corefw.__file__).with_suffix(".pyi"))


def test_every_attribute_of_a_tensor_is_in_the_stub():
    public = {name for name in vars(Tensor) if not name.startswith("_")}
    assert public <= names_in(Path(corefw.__file__).with_name("tensor.pyi"), "    ")


def checked(directory: Path, lines) -> list[str]:
    """What mypy says of a user's program: one message per line of it."""
    pytest.importorskip("mypy")
    path = directory / "program.py"
    path.write_text(PROGRAM.format(lines="\n".join(lines)))
    first = PROGRAM.split("{lines}")[0].count("\n") + 1
    command = [sys.executable, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--no-pretty", str(path)]
    out = subprocess.run(command, capture_output=True, text=True, cwd=ROOT).stdout
    found = {}
    for number, message in re.findall(r"program\.py:(\d+): (.*)", out):
        found.setdefault(int(number) - first, message)
    return [found.get(i, "") for i in range(len(lines))]


@pytest.mark.slow
def test_a_type_checker_knows_results_and_mistakes(tmp_path):
    lines = [f"reveal_type({text})" for text in TYPES] + list(WRONG)
    said = checked(tmp_path, lines)
    revealed = [re.sub(r"builtins\.", "", m.partition('Revealed type is "')[2].rstrip('"')) for m in said[: len(TYPES)]]
    assert dict(zip(TYPES, revealed)) == TYPES
    assert [text for text, message in zip(WRONG, said[len(TYPES) :]) if not message.startswith("error")] == []
