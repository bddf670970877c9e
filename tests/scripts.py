"""The programs of scripts/ as modules."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parent.parent / "scripts"


def load(name: str) -> ModuleType:
    """The program scripts/`name` as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(FOLDER / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    before, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # no cache file in scripts/
    try:
        loader.exec_module(module)
    finally:
        sys.dont_write_bytecode = before
    return module
