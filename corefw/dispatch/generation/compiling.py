"""An op's functions: their source is written and compiled on the first call, and runs on what stands here."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from types import FunctionType
from typing import Any

from corefw import dtypes
from corefw.dispatch.constants import operand_of
from corefw.dispatch.flags import NAMELESS
from corefw.dispatch.generation.functions import backward, forward, inplace, plain, update
from corefw.dispatch.generation.naming import variant
from corefw.dispatch.generation.recording import Recording
from corefw.dispatch.op import REQUIRED, Op
from corefw.dispatch.out import write_out
from corefw.dispatch.overriding import functions, operators, put_code
from corefw.dispatch.promotion import mixed, mixed_into
from corefw.dispatch.slow_path import slow_path, slow_path_body, slow_path_into, slow_path_operator
from corefw.dispatch.spelling import respelled
from corefw.dispatch.updates import as_rate, by_dispatch_key
from corefw.graph.grad_mode import mode
from corefw.graph.inplace import check_memory, check_overlap, check_unrecorded, check_writable, rebase
from corefw.graph.nodes import freed, output_node, stale
from corefw.graph.views import base_recorded, history
from corefw.shapes import as_shape, canonical_dim, canonical_dims
from corefw.tensor import Node, Tensor, ViewInfo, new, next_sequence, wrap
from corefw.tracebacks import hide_internal_frames, op_file
from corefw.versions import fresh_version, inferring

_HELPERS = {
    "Tensor": Tensor,
    "ViewInfo": ViewInfo,
    "as_rate": as_rate,
    "as_shape": as_shape,
    "by_dispatch_key": by_dispatch_key,
    "canonical_dim": canonical_dim,
    "canonical_dims": canonical_dims,
    "base_recorded": base_recorded,
    "check_memory": check_memory,
    "check_overlap": check_overlap,
    "check_unrecorded": check_unrecorded,
    "check_writable": check_writable,
    "fresh_version": fresh_version,
    "freed": freed,
    "history": history,
    "inferring": inferring,
    "mixed": mixed,
    "mixed_into": mixed_into,
    "grad_mode": mode,
    "hide_internal_frames": hide_internal_frames,
    "new": new,
    "next_sequence": next_sequence,
    "output_node": output_node,
    "REQUIRED": REQUIRED,
    "rebase": rebase,
    "respelled": respelled,
    "slow_path": slow_path,
    "slow_path_body": slow_path_body,
    "slow_path_into": slow_path_into,
    "stale": stale,
    "tuple_of": tuple.__new__,
    "wrap": wrap,
    "write_out": write_out,
}


#: names of the generated code, which a parameter of an op would hide
RESERVED = {
    *_HELPERS,
    "operand",
    "array",
    "array_type",
    "arrays",
    "kernel",
    "node",
    "dispatch_keys",
    "recorder",
    "result",
    "table",
    "version",
}


# -- functions that compile themselves on the first call --------------------------------------------------------------
def _stub(*args, **kwargs):
    try:
        BUILD()  # type: ignore[name-defined]  # noqa: F821  (gives this very function its real code)
        return THIS(*args, **kwargs)  # type: ignore[name-defined]  # noqa: F821
    except Exception as error:
        hide_internal_frames(error)
        raise


def lazy_function(
    name: str, write_source: Callable[[], str], scope: dict[str, Any], declared: Callable
) -> FunctionType:
    """A function whose source is written and compiled on its first call, into the same function object."""
    globals_ = {**_HELPERS, **scope, **NAMELESS}
    function = FunctionType(_stub.__code__, globals_, name)

    def build() -> None:
        source = write_source()
        globals_.update(scope)
        compiled = compile_source(name, op_file(name), source, globals_)
        function.__defaults__ = compiled.__defaults__
        function.__kwdefaults__ = compiled.__kwdefaults__
        put_code(function, compiled.__code__)

    globals_["BUILD"] = build
    globals_["THIS"] = function
    function.__doc__ = declared.__doc__
    function.__module__, function.__qualname__ = "corefw", name
    function.__wrapped__ = declared  # type: ignore[attr-defined]  # what inspect.signature shows
    functions.append(function)
    return function


def compile_source(name: str, filename: str, source: str, scope: dict[str, Any]) -> FunctionType:
    """Compile generated source and register it, so that tracebacks and `inspect.getsource` show it."""
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    local: dict[str, Any] = {}
    exec(compile(source, filename, "exec"), scope, local)
    return local[name]


# -- assembly ---------------------------------------------------------------------------------------------------------
def node_class(op: Op) -> type[Node]:
    """The op's Node subclass, made once; its ``backward`` compiles itself on first use."""
    if op.node_class is None:

        def compile_backward(node, grad):
            scope = {**_HELPERS, **{f"G{i}": formula for i, formula in enumerate(op.gradients.values())}}
            file = op_file(f"{op.name}: backward")
            cls.backward = compile_source("backward", file, backward(op), scope)  # type: ignore[method-assign]
            return cls.backward(node, grad)

        recording = Recording(op)
        options = {
            "__slots__": (),
            "__module__": "corefw",
            "backward": compile_backward,
            "saves_tensors": recording.saves_tensors(),
            "saved_kinds": recording.saved_kinds(),
            "output_names": op.outputs,
            "outputs": len(op.outputs) or 1,
            "variant": variant(op, recording),
            "part": op.table if op.shows_part else None,
            "by_formulas": all(kind != "output" for _, kind in recording.saved_kinds()),  # which are given the node
        }
        cls: type[Node] = type(op.node_name, (Node,), options)
        op.node_class = cls
    return op.node_class


def _scope(op: Op) -> dict[str, Any]:
    """What the generated functions of `op` name."""
    return {
        "OP": op,
        "table": op.table,
        "inplace_table": op.inplace_table,
        "BODY": op.body,
        "operand": operand_of(op.rule),
        "DEFAULTS": [p.default for p in op.parameters],
        "RESULT": op.result_type,
        "PART": _part_function(op),
    }


def build_functions(op: Op) -> None:
    """Give `op` its generated functions; nothing is written or compiled before the first call."""
    scope = _scope(op)

    def source(write: Callable[[Op], str]) -> str:
        scope["NODE"] = node_class(op)
        scope["INPLACE"] = op.inplace_function
        scope["INPLACE_BODY"] = op.inplace_body or _inplace_body(op)
        return write(op)

    write = update if op.update else forward
    op.function = lazy_function(op.name, lambda: source(write), scope, op.body)
    if op.inplace and not op.view:
        op.inplace_function = lazy_function(op.name + "_", lambda: source(inplace), scope, op.body)
        op.inplace_function.__doc__ = f"In-place form of `{op.name}`: the result is left in `input`."


def operator_function(op: Op) -> Callable:
    """The op as a Python operator: its function, but an operand of a foreign type is left to that type."""
    if op.rule is None:
        return op.function
    scope = _scope(op)
    scope["slow_path"] = slow_path_operator

    def source() -> str:
        scope["NODE"] = node_class(op)
        return forward(op)

    function = lazy_function(op.name, source, scope, op.body)
    operators.add(function)
    return function


def _inplace_body(op: Op):
    """The in-place form for keyword options that only the body knows."""

    def inplace_body(input, *arguments, **options):
        before = input.clone() if input.requires_grad else input  # what the gradient needs of it must not change
        result = op.body(before, *arguments, **options)
        dtypes.check_castable(result.dispatch_key.dtype, input.dispatch_key.dtype)
        return input.copy_(result)

    return inplace_body


def _part_function(op: Op):
    """The view function of one of several outputs: takes all of them and picks one."""

    def part(input, index, *attributes):
        return op.function(input, *attributes)[index]

    part.several = op.node_name.partition("Backward")[0]  # type: ignore[attr-defined]
    return part


def plain_function(op: Op) -> FunctionType:
    """The function of a composite without kernels: its body, with ``out=`` and other names of arguments."""
    scope = {"OP": op, "BODY": op.body, "DEFAULTS": [p.default for p in op.parameters]}
    return lazy_function(op.name, lambda: plain(op), scope, op.body)
