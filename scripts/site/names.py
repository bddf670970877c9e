"""Public names and what they stand for."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import corefw
from corefw.dispatch import plugins
from corefw.dispatch.op import Op
from corefw.dispatch.registry import registry
from corefw.dtypes import ALL

ROOT = Path(__file__).resolve().parents[2]


@cache
def sections() -> dict[str, list[str]]:
    """{namespace, as "corefw.nn": its public names, in order}."""
    plugins.load(None)
    text = re.sub(r"^#.*", "", (ROOT / "tests/public_names.txt").read_text(encoding="utf-8"), flags=re.MULTILINE)
    parts = re.split(r"^\[(.+)\]$", text, flags=re.MULTILINE)[1:]
    found: dict[str, list[str]] = {}
    for heading, body in zip(parts[::2], parts[1::2], strict=True):
        found.setdefault(re.sub(r"^torch\b", "corefw", heading), []).extend(body.split())
    return {heading: sorted(dict.fromkeys(names), key=str.lower) for heading, names in found.items()}


def owner_of(namespace: str) -> Any:
    """The module or class of a namespace."""
    return corefw.Tensor if namespace == "corefw.Tensor" else importlib.import_module(namespace)


def object_of(namespace: str, name: str) -> Any:
    """What a public name stands for; None if it leads nowhere."""
    found: Any = owner_of(namespace)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


@cache
def _ops() -> dict[Any, Op]:
    return {op.function: op for op in registry.declared.values()}


def op_of(thing: Any) -> Op | None:
    """The op that a function computes, if it is one."""
    try:
        return _ops().get(thing)
    except TypeError:
        return None


def kernels_of(op: Op) -> dict[str, str]:
    """{backend that has kernels of an op: for which dtypes, "" for all that the op takes}."""
    taken = [d for d in ALL if op.rule is None or d.category in op.rule.categories]
    found = {}
    for backend in registry.backends.values():
        offered = {d for ks in backend.kernels.values() for k in ks if k.op == op.name for d in k.dtypes}
        if offered:
            lacking = any(d not in offered for d in taken)
            found[backend.name] = ", ".join(d.name for d in taken if d in offered) if lacking else ""
    return found
