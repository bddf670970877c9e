"""What docstrings and pages tell: an example shows the function that it stands with, code is what the sources say; and
files short enough to be read."""

import ast
import doctest
import importlib
import pkgutil
import re
import types
from pathlib import Path

import pytest

import corefw


def public_modules() -> list[types.ModuleType]:
    """The package and all modules of it."""
    found = pkgutil.walk_packages(corefw.__path__, "corefw.")
    names = [module.name for module in found if not module.name.endswith("__main__")]
    return [corefw, *map(importlib.import_module, names)]


def documented() -> dict[str, object]:
    """All public functions and classes of corefw with their public methods, by a dotted name; aliases once."""
    found: dict[int, tuple[str, object]] = {}

    def note(path: str, value: object) -> None:
        if isinstance(value, types.FunctionType | type) and str(value.__module__).startswith("corefw"):
            found.setdefault(id(value), (path, value))

    for module in public_modules():
        for name, value in vars(module).items():
            if name.startswith("_") or (hasattr(value, "op") and module.__name__.startswith("corefw.declarations.")):
                continue  # an op has the name under which it is public
            note(f"{module.__name__}.{name}", value)
            if isinstance(value, type) and str(value.__module__).startswith("corefw"):
                for member, function in vars(value).items():
                    if not member.startswith("_") and isinstance(function, types.FunctionType):
                        note(f"{module.__name__}.{name}.{member}", function)
    return dict(found.values())


def shows_itself(path: str, value) -> bool:
    """Whether the examples in a docstring, if there are any, name what it documents."""
    examples = "".join(example.source for example in doctest.DocTestParser().get_examples(value.__doc__ or ""))
    names = {path.rpartition(".")[2], value.__name__}
    return not examples or any(re.search(rf"\b{name}\b", examples) for name in names)


def test_examples_show_the_function_that_they_document():
    found = documented()
    assert len(found) > 1500
    assert [path for path, value in found.items() if not shows_itself(path, value)] == []


@pytest.mark.parametrize(("example", "right"), [("sort(x)", True), ("argsort(x)", False), ("sorted(x)", False)])
def test_a_misplaced_example_is_found(example, right):
    def sort():
        pass

    sort.__doc__ = f">>> {example}"
    assert shows_itself("torch.sort", sort) is right


@pytest.mark.parametrize("page, backend", [("writing_a_c_kernel", "c"), ("writing_a_cuda_kernel", "cupy")])
def test_code_of_the_pages_on_kernels_is_real(page, backend):
    root = Path(__file__).resolve().parent.parent
    package = root / "backends" / f"{backend}_backend" / f"corefw_{backend}"
    files = [path for path in package.rglob("*") if path.suffix in (".c", ".h", ".inc", ".cu", ".cuh", ".py")]
    written = {line.strip() for path in files for line in path.read_text().splitlines()}
    blocks = re.findall(r"```(?:c|cuda|python)\n(.*?)```", (root / "docs" / f"{page}.md").read_text(), re.DOTALL)
    shown = [line.strip() for block in blocks for line in block.splitlines() if line.strip()]
    assert len(shown) > 5
    assert not [line for line in shown if line not in written]


#: of code in a Python file; a longer one is split by theme
MOST_LINES = 500


def lines_of_code(text: str) -> int:
    """The lines of a Python file apart from its docstrings."""
    count = len(text.splitlines())
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if isinstance(first, ast.Expr) and ast.get_docstring(node, clean=False) is not None:
                count -= (first.end_lineno or first.lineno) - first.lineno + 1
    return count


def test_lines_of_docstrings_are_not_counted():
    text = (
        '"""A file\n\nand more."""\n\nclass A:\n    """One."""\n\n    def f(self):\n        """Two\n        lines."""\n'
    )
    assert lines_of_code(text) == len(text.splitlines()) - 3 - 1 - 2 == 4


def test_files_are_short():
    root = Path(__file__).resolve().parent.parent
    folders = ("corefw", "backends", "tests", "scripts", "benchmarks")
    files = [path for folder in folders for path in (root / folder).rglob("*.py") if "build" not in path.parts]
    files += [path for path in (root / "scripts").iterdir() if path.is_file() and b"python" in path.read_bytes()[:30]]
    lines = {str(path.relative_to(root)): lines_of_code(path.read_text()) for path in files}
    assert len(lines) > 300
    long = {path: count for path, count in lines.items() if count > MOST_LINES}
    assert not long, f"{long}: split a file by theme"
