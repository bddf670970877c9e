"""Tests of the architecture: imports go down the floors, stand at the top of a file, and name no backend."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BACKENDS = ROOT / "backends"

#: the floor of a module, by the longest prefix of its name; what is not listed is built on everything below the root
FLOORS = {
    "corefw.errors": 0,
    "corefw.dtypes": 0,
    "corefw.devices": 0,
    "corefw.shapes": 0,
    "corefw.shared_memory": 0,
    "corefw.windows": 0,
    "corefw.layouts": 0,
    "corefw.return_types": 0,
    "corefw.files": 0,
    "corefw.processor": 0,
    "corefw.refusals": 0,
    "corefw.sequences": 0,
    "corefw.tensor": 0,
    "corefw.tracebacks": 0,
    "corefw.versions": 0,
    "corefw.graph": 0.5,
    "corefw.dispatch": 1,
    "corefw.distributed.engine": 1,  # what an engine is: the interface of plug-ins
    "corefw.declarations": 2,
    "corefw.autograd": 3,
    "corefw.": 4,
    "corefw": 5,
    "corefw.array_api": 6,  # uses the public names as a user does
    "corefw.benchmarks": 6,
    "corefw.testing": 6,
    "corefw.vision": 6,
    "corefw.demo": 6,
    "corefw.version": 6,  # tells the root's
    "corefw.__config__": 6,  # as it
    "corefw.__main__": 6,
    "corefw.cli": 6,
    "corefw.commands": 6,
}
#: imported inside functions: optional, or slow and seldom needed
LAZY = {
    *(
        "PIL",
        "difflib",
        "graphviz",
        "importlib",
        "matplotlib",
        "onnx",
        "opt_einsum",
        "pluggy",
        "safetensors",
        "shtab",
        "tabulate",
        "scipy",
        "threadpoolctl",
        "torch",
        "tqdm",
    ),
}
_BACKEND_NAME = re.compile(r"\bcorefw_(?:numpy|c|cupy)\b|\bcupy\b")


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted((ROOT / "corefw").rglob("*.py"))}
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}


def floor(name: str) -> int:
    if name == "corefw":
        return FLOORS["corefw"]
    parts = name.split(".")
    return next(
        (FLOORS[".".join(parts[:n])] for n in range(len(parts), 1, -1) if ".".join(parts[:n]) in FLOORS),
        FLOORS["corefw."],
    )


def _is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def imports(name: str, tree: ast.AST):
    """(imported name, line, whether inside a function) of a module's imports, those for type checkers left out."""
    package = name if MODULES[name].name == "__init__.py" else name.rpartition(".")[0]

    def walk(node, inside):
        for child in ast.iter_child_nodes(node):
            if _is_type_checking(child):
                continue
            if isinstance(child, ast.Import):
                yield from ((alias.name, child.lineno, inside) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    above = package.split(".")[: len(package.split(".")) - child.level + 1]
                    base = ".".join([*above, base] if base else above)
                for alias in child.names:
                    full = f"{base}.{alias.name}"
                    yield (full if full in MODULES else base), child.lineno, inside
            yield from walk(child, inside or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda))

    yield from walk(tree, False)


def internal(name: str) -> list[tuple[str, int]]:
    return [(target, line) for target, line, _ in imports(name, TREES[name]) if target in MODULES]


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_down(name):
    for target, line in internal(name):
        where = f"{MODULES[name].relative_to(ROOT)}:{line} imports {target}"
        assert floor(target) <= floor(name), (
            f"{where}, which stands on a higher floor ({floor(target)} over {floor(name)})"
        )


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("corefw.declarations.")])
def test_families_do_not_import_each_other(name):
    """What several families need stands in `_shared`, whose modules may use each other."""
    others = [target for target, _ in internal(name) if target.startswith("corefw.declarations")]
    others = [target for target in others if not target.startswith("corefw.declarations._shared.")]
    assert not others, f"{name} imports {others}"


def test_imports_have_no_cycles():
    graph = {name: {target for target, _ in internal(name) if target != name} for name in MODULES}
    done: set[str] = set()
    while len(done) < len(graph):
        free = {name for name, targets in graph.items() if name not in done and targets <= done}
        assert free, f"a cycle among {sorted(set(graph) - done)}"
        done |= free


@pytest.mark.parametrize("name", MODULES)
def test_imports_stand_at_the_top(name):
    for target, line, inside in imports(name, TREES[name]):
        if inside:
            where = f"{MODULES[name].relative_to(ROOT)}:{line} imports {target} inside a function"
            assert target.partition(".")[0] in LAZY, (
                f"{where}; move it to the top, or list it as lazy if it is optional"
            )


def _without_docstrings(tree: ast.AST) -> ast.AST:
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if (
            isinstance(body, list)
            and body
            and isinstance(body[0], ast.Expr)
            and isinstance(body[0].value, ast.Constant)
        ):
            node.body = body[1:] or [ast.Pass()]
    return tree


@pytest.mark.parametrize("name", MODULES)
def test_no_backend_is_named(name):
    code = ast.unparse(_without_docstrings(ast.parse(MODULES[name].read_text())))
    assert not (found := _BACKEND_NAME.findall(code)), f"{MODULES[name].relative_to(ROOT)} names {set(found)}"


@pytest.mark.parametrize("path", sorted(BACKENDS.rglob("*.py")), ids=lambda path: path.relative_to(BACKENDS).as_posix())
def test_backends_use_floors_up_to_dispatch(path):
    """A backend fills the table; it does not use what is built on it."""
    found = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom | ast.Import)]
    names = [
        node.module or "" if isinstance(node, ast.ImportFrom) else alias.name for node in found for alias in node.names
    ]
    above = [n for n in names if n.startswith("corefw.") and floor(n) > FLOORS["corefw.dispatch"]]
    assert not above, f"{path.relative_to(ROOT)} imports {above}"


def test_extras_are_for_features_that_exist():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    code = "\n".join(path.read_text() for path in MODULES.values())
    for_tests = ("dev", "docs", "jax", "oracle", "release")
    features = {package for name, packages in extras.items() if name not in for_tests for package in packages}
    assert features and [package for package in sorted(features) if not re.search(rf"\b{package}\b", code)] == []


@pytest.mark.parametrize("name", MODULES)
def test_every_file_says_what_it_is(name):
    assert ast.get_docstring(TREES[name]), f"{MODULES[name].relative_to(ROOT)} does not open with a sentence"
