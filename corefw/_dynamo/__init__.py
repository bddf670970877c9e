"""PyTorch's compiler as libraries touch it: nothing is captured or compiled, so its switches have no effect."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from corefw._dynamo import eval_frame, exc
from corefw.compiler import OptimizedModule as OptimizedModule
from corefw.compiler import (
    allow_in_graph,
    assume_constant_result,
    disable,
    is_compiling,
    list_backends,
    reset,
)
from corefw.compiler import compile as optimize_model

__all__ = [
    "allow_in_graph",
    "assume_constant_result",
    "config",
    "disable",
    "disallow_in_graph",
    "eval_frame",
    "exc",
    "graph_break",
    "is_compiling",
    "list_backends",
    "mark_dynamic",
    "mark_static",
    "mark_static_address",
    "maybe_mark_dynamic",
    "optimize",
    "reset",
]

#: the compiler's settings, which may be changed and change nothing
config = SimpleNamespace(
    cache_size_limit=8,
    capture_scalar_outputs=False,
    recompile_limit=8,
    skip_fwd_side_effects_in_bwd_under_checkpoint=False,
    suppress_errors=False,
)


def optimize(backend: str = "inductor", **options: Any) -> Any:
    """A decorator of modules and functions, as `corefw.compile` without a model."""
    return optimize_model(backend=backend)


def graph_break(msg: str = "") -> None:
    """Nothing: there is no graph to break."""


def mark_static_address(t: Any, guard: bool = False) -> None:
    """Nothing: no address is compiled in."""


def mark_dynamic(t: Any, index: Any, **options: Any) -> None:
    """Nothing: no size is compiled in."""


mark_static = maybe_mark_dynamic = mark_dynamic
disallow_in_graph = allow_in_graph
