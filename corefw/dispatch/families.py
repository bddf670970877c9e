"""Families of ops: a file each, found in the folder of their package."""

from __future__ import annotations

import sys
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType


def modules(package: str) -> list[ModuleType]:
    """The modules of a package in the order of their names, without those whose name begins with an underscore."""
    names = [module.name for module in iter_modules(sys.modules[package].__path__) if module.name[0] != "_"]
    return [import_module(f"{package}.{name}") for name in names]


def families(package: str) -> list[ModuleType]:
    """The modules of a backend's package that offer kernels: all that have a function `kernels`."""
    return [module for module in modules(package) if hasattr(module, "kernels")]
