"""`corefw new-backend`."""

from __future__ import annotations

import argparse
import keyword
import os
from importlib.resources import files
from pathlib import Path
from string import Template

from corefw.commands.parsing import Commands, UsageError
from corefw.dispatch import plugins

#: by kind: what the package is, and two of the ops that it has kernels for, which its tests begin with
KINDS = {
    "cpu-guest": ("Kernels of $name for the device cpu", ("rsqrt", "square")),
    "numpy-like": ("$name as a device, over a library with NumPy's functions", ("exp", "softmax")),
    "functional": ("$name as a device, over a library of immutable arrays", ("exp", "tanh")),
}


def add(commands: Commands) -> None:
    """Its parser."""
    command = commands.add(
        "new-backend",
        new_backend,
        "write the package of a new backend, which works at once",
        "corefw new-backend acme --kind functional",
    )
    command.add_argument("name", help="of the backend and, but for a guest, of its device")
    command.add_argument("--kind", choices=[*KINDS], required=True, help="a guest on cpu, or a device over a library")
    command.add_argument("--folder", type=Path, help="where to write it (default: corefw-NAME)")


def new_backend(arguments: argparse.Namespace) -> int:
    """Write the package."""
    name, folder = arguments.name, arguments.folder or Path(f"corefw-{arguments.name}")
    if not (name.isidentifier() and name.islower() and name.isascii()) or keyword.iskeyword(name):
        raise UsageError(f"'{name}' cannot name a module: letters a-z, digits and _ are possible, as in my_device")
    if name in plugins.names():
        raise UsageError(f"a backend called '{name}' is installed already")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} is there already, and not empty")
    for path, text in package(name, arguments.kind).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")
        print(f"wrote {folder / path}")
    print(f"next: pip install --editable {os.path.join(os.curdir, folder)} && python -m pytest {folder}")
    return 0


def package(name: str, kind: str) -> dict[str, str]:
    """The files of a new backend's package, by path."""
    summary, ops = KINDS[kind]
    words = {
        "name": name,
        "Name": "".join(part.capitalize() for part in name.split("_")),
        "device": "cpu" if kind == "cpu-guest" else name,
        "summary": Template(summary).substitute(name=name),
        "ops": ", ".join(f'"{op}"' for op in ops),
    }
    sources = {
        "pyproject.toml": "pyproject.toml",
        "README.md": "README.md",
        f"corefw_{name}/__init__.py": f"{kind}.py",
        f"tests/test_{name}.py": "tests.py",
    }
    templates = files("corefw") / "templates" / "new_backend"
    return {
        path: Template((templates / f"{source}.template").read_text(encoding="utf-8")).substitute(words)
        for path, source in sources.items()
    }
