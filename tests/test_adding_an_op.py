"""docs/adding_an_op.md, followed to the letter in a copy of the checkout: the ops are there in all forms, they conform,
and no file changed but those that the page names."""

import filecmp
import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from corefw.dispatch.registry import registry

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("corefw", "backends/numpy_backend", "backends/cupy_backend", "scripts", "tests")
BLOCK = re.compile(r"^```python\n# (?P<file>\S+), behind: (?P<place>.*)\n(?P<text>(?:.*\n)*?)```$", re.M)
OPS = ("cbrt", "softcap")
STUBS = {"corefw/__init__.pyi", "corefw/tensor.pyi"}
FORMS = """
    import corefw as torch

    print(torch.__file__)
    x = torch.tensor([8.0, -1.0], requires_grad=True)
    torch.cbrt(x).sum().backward()
    print([round(slope, 4) for slope in x.grad.tolist()], torch.cbrt(x).grad_fn.name())
    y, out = x.detach(), torch.empty(2)
    print(torch.cbrt(y, out=out) is out, out.tolist(), y.cbrt().tolist(), y.cbrt_() is y, y.tolist())
    print(y.softcap(1e6).tolist(), torch.autograd.grad(torch.softcap(x, cap=1e6).sum(), x)[0].tolist())
"""


def blocks() -> list[tuple[str, str, str]]:
    """The blocks of the page: file, the line behind which the text goes, and the text."""
    page = (ROOT / "docs" / "adding_an_op.md").read_text()
    found = BLOCK.findall(page)
    assert len(found) == page.count("```python"), "a block does not begin with the name of its file and a place"
    return found


def insert(path: Path, place: str, text: str) -> None:
    """Add the text of a block below a line."""
    lines = path.read_text().splitlines(keepends=True)
    found = [i for i, line in enumerate(lines) if line.strip() == place]
    assert len(found) == 1, f"{path}: {place!r} stands there {len(found)} times"
    lines.insert(found[0] + 1, text)
    path.write_text("".join(lines))


def run(copy: Path, *arguments: str) -> str:
    """What Python prints that runs on the copy, where the C backend is not built, instead of what is installed."""
    path = os.pathsep.join(str(copy / part) for part in ("", "backends/numpy_backend", "backends/cupy_backend"))
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COREFW_", "PYTEST_"))}
    environment |= {"PYTHONPATH": path, "COREFW_DISABLE": "c", "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of the checkout to which the ops of the page were added, with its generated files."""
    pytest.importorskip("ruff", reason="the generator formats what it writes")
    copy = tmp_path_factory.mktemp("checkout")
    for part in PARTS:
        shutil.copytree(ROOT / part, copy / part, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info", "build"))
    for file in ("pyproject.toml", "pytest_corefw.py"):
        shutil.copy(ROOT / file, copy)
    for file, place, text in blocks():
        insert(copy / file, place, text)
    run(copy, "scripts/make_stubs")
    return copy


def test_the_ops_of_the_page_are_new():
    assert not registry.declared.keys() & set(OPS), "the page should add an op that does not exist"


def test_the_ops_have_all_forms(copy):
    place, slopes, forms, composite = run(copy, "-c", textwrap.dedent(FORMS)).splitlines()
    assert Path(place) == copy / "corefw" / "__init__.py"
    assert slopes == f"{[round(1 / 12, 4), round(1 / 3, 4)]} CbrtBackward0"
    assert forms == "True [2.0, -1.0] [2.0, -1.0] True [2.0, -1.0]"
    assert composite == "[2.0, -1.0] [1.0, 1.0]"


def test_the_stubs_have_the_ops(copy):
    functions, methods = ((copy / "corefw" / name).read_text() for name in ("__init__.pyi", "tensor.pyi"))
    assert "def cbrt(input: Tensor, *, out: Tensor | None = None) -> Tensor:" in functions
    assert "def softcap(input: Tensor, cap: builtins.float) -> Tensor:" in functions
    for line in ("cbrt(self)", "cbrt_(self)", "softcap(self, cap: builtins.float)"):
        assert f"    def {line} -> Tensor:" in methods


@pytest.mark.slow
def test_the_ops_conform(copy):
    chosen = f"({' or '.join(OPS)}) and (not emulated or second_gradient) or every_op_has_a_row"  # emulation compiles
    said = run(copy, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", "tests/test_ops.py", "-k", chosen)
    assert int(re.search(r"(\d+) passed", said)[1]) > 50, said


def test_the_linter_has_nothing_to_say(copy):
    files = sorted({file for file, _, _ in blocks()})
    run(copy, "-m", "ruff", "check", "--no-cache", *files)
    run(copy, "-m", "ruff", "format", "--no-cache", "--check", *files)


def test_nothing_else_changed(copy):
    files = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file()}
    changed = {file for file in files if not (ROOT / file).exists() or not filecmp.cmp(ROOT / file, copy / file, False)}
    assert changed == {file for file, _, _ in blocks()} | STUBS
