"""`export`: a model's program written as an ONNX graph."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Any, BinaryIO

import numpy as np

from corefw.capture.program import Line, Program, Value
from corefw.export import Dim
from corefw.nn.modules.module import Module
from corefw.onnx import operators as _entries  # noqa: F401  they fill the table
from corefw.onnx.errors import OnnxExporterError, UnsupportedOperatorError
from corefw.onnx.graph import Graph
from corefw.onnx.program import ONNXProgram, imported
from corefw.onnx.sizes import Size, Unknown
from corefw.onnx.table import TABLE
from corefw.onnx.tracing import Axes, Call, Exporting, traced

#: the versions of ONNX's operators that the table is written for
OLDEST, DEFAULT, NEWEST = 18, 20, 23


class TrainingMode(IntEnum):
    """The mode in which a model is exported: as in evaluation, as it is, or as in training."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


def is_in_onnx_export() -> bool:
    """Whether an export is running the model now.

    >>> import corefw as torch
    >>> torch.onnx.is_in_onnx_export()
    False
    """
    return Exporting.active


@contextmanager
def select_model_mode_for_export(model: Any, mode: TrainingMode) -> Iterator[None]:
    """A with-block in which `model` is in the mode of the export; each module is as it was afterwards.

    >>> import corefw as torch
    >>> model = torch.nn.Dropout()
    >>> with torch.onnx.select_model_mode_for_export(model, torch.onnx.TrainingMode.EVAL):
    ...     inside = model.training
    >>> inside, model.training
    (False, True)
    """
    before = [(m, m.training) for m in model.modules()] if isinstance(model, Module) else []
    try:
        if before and mode != TrainingMode.PRESERVE:
            model.train(mode == TrainingMode.TRAINING)
        yield
    finally:
        for module, training in before:
            module.training = training


#: PyTorch's further options, with the values that change nothing here
_OPTIONS: dict[str, tuple] = {
    "artifacts_dir": (".",),
    "autograd_inlining": (True,),
    "custom_opsets": (None, {}),
    "custom_translation_table": (None, {}),
    "dump_exported_program": (False,),
    "export_modules_as_functions": (False,),
    "operator_export_type": (None, 0),
    "profile": (False,),
    "report": (False,),
}


def export(
    model: Callable, args: Any = (), f: str | os.PathLike | BinaryIO | None = None, *,
    kwargs: Mapping[str, Any] | None = None, verbose: bool | None = None, input_names: Sequence[str] | None = None,
    output_names: Sequence[str] | None = None, opset_version: int | None = None, dynamo: bool = True,
    external_data: bool = True, dynamic_shapes: Mapping[str, Any] | Sequence[Any] | None = None, optimize: bool = True,
    verify: bool = False, export_params: bool = True, keep_initializers_as_inputs: bool = False,
    dynamic_axes: Mapping[str, Any] | None = None, training: TrainingMode = TrainingMode.EVAL,
    do_constant_folding: bool = True, **options: Any,
) -> ONNXProgram:  # fmt: skip
    """The model as an ONNX graph: it runs once on the arguments, and the ops that ran are written down.

    Branches and loops are those that this run takes, and numbers that the program computes from elements are the run's.
    Needs the package onnx.

    Args:
        model: a module or a function of tensors.
        args: its arguments, a tuple or one tensor; the tensors in them are the graph's inputs.
        f: a path or a binary file to write to; None for the result alone.
        kwargs: its arguments by keyword.
        verbose: whether the graph is printed.
        input_names, output_names: names of the first inputs and outputs; others are called as the parameters of
            `forward`, and "output_0", "output_1", ...
        opset_version: the version of ONNX's operators, from 18 to 23; 20 if missing.
        dynamo: PyTorch's choice between two exporters; both mean this one.
        external_data: whether elements may go to a second file, "<f>.data", where one cannot hold them (2 GB).
        dynamic_shapes: for each argument by name, or in order, which axes may have other sizes:
            ``{"x": {0: "batch"}}``, with names, ``export.Dim`` or None.
        optimize, do_constant_folding: whether what depends on no input is computed now (both are).
        verify: whether the graph is run by onnxruntime and compared with the model.
        export_params: whether parameters are written with their elements, or as inputs.
        keep_initializers_as_inputs: whether parameters are inputs too, whose elements may be replaced.
        dynamic_axes: by the name of an input, ``{"x": {0: "batch"}}`` or ``{"x": [0]}``.
        training: the mode of the model during the run.
        options: PyTorch's further options, refused where they would change something.

    Returns: the graph, which can be called.

    Raises:
        UnsupportedOperatorError: an op has no entry in the table; the text names the line that called it.
        OnnxExporterError: another reason why the model has no such graph.

    >>> import corefw as torch
    >>> model = torch.nn.Linear(3, 2)
    >>> program = torch.onnx.export(model, (torch.ones(4, 3),), dynamic_axes={"input": {0: "batch"}})
    >>> program
    ONNXProgram(input -> output_0; 1 nodes)
    >>> program(torch.ones(5, 3))[0].shape
    torch.Size([5, 2])
    """
    imported("onnx", "onnx.export")
    _check_options(options)
    opset = DEFAULT if opset_version is None else opset_version
    if not OLDEST <= opset <= NEWEST:
        raise OnnxExporterError(f"onnx.export: opset_version={opset}: {OLDEST} to {NEWEST} are written")
    args = args if isinstance(args, tuple) else (args,)
    call = Call.of(model, args, kwargs or {})
    own = call.names()
    names = _named("input", input_names, own)
    axes = _axes(call, own, names, output_names or (), dynamic_axes, dynamic_shapes)
    with select_model_mode_for_export(model, training):
        program, numbers = traced(call, axes)
    outputs = [f"output_{i}" for i in range(len(program.outputs))]
    outputs = _named("output", output_names, outputs)
    g = Graph(opset, {symbol: (names[i], axis) for i, named in axes.items() for axis, symbol in named.items()}, numbers)
    made = _written(g, program, names, outputs, optimize and do_constant_folding, export_params)
    result = ONNXProgram(made, names)
    if verbose:
        print(imported("onnx.printer", "onnx.export").to_text(made))
    if verify:
        _verify(result, call, training)
    if f is not None:
        result.save(
            f,
            keep_initializers_as_inputs=keep_initializers_as_inputs,
            external_data=None if external_data else False,
        )
    return result


def _check_options(options: dict[str, Any]) -> None:
    for name, value in options.items():
        if name not in _OPTIONS:
            raise TypeError(f"export() got an unexpected keyword argument '{name}'")
        if value not in _OPTIONS[name]:
            raise OnnxExporterError(f"onnx.export: {name}={value!r} is not done here; leave it out")


def _named(kind: str, given: Sequence[str] | None, own: list[str]) -> list[str]:
    """The names of inputs or outputs: the given ones first."""
    given = list(given or ())
    if len(given) > len(own):
        raise OnnxExporterError(f"onnx.export: {len(given)} {kind}_names for {len(own)} {kind}s")
    names = given + own[len(given) :]
    if len(set(names)) < len(names):
        raise OnnxExporterError(f"onnx.export: {kind}s need names of their own, got {', '.join(names)}")
    return names


# -- dynamic axes -----------------------------------------------------------------------------------------------------
def _axes(call: Call, own, names, outputs, dynamic_axes, dynamic_shapes) -> Axes:
    """The dynamic axes of each input, from either of PyTorch's forms."""
    if dynamic_axes and dynamic_shapes:
        raise OnnxExporterError("onnx.export: dynamic_axes and dynamic_shapes say the same: give one")
    given: list[tuple[str, Any]] = list((dynamic_axes or {}).items())
    if isinstance(dynamic_shapes, Mapping):
        given = list(dynamic_shapes.items())
    elif dynamic_shapes is not None:
        given = list(zip(own, dynamic_shapes, strict=True))
    axes: Axes = {}
    for name, wanted in given:
        if name in outputs and name not in names:
            continue  # the sizes of outputs follow from those of inputs
        if name not in names and name not in own:
            raise OnnxExporterError(f"onnx.export: no input is called {name!r}: there are {', '.join(names)}")
        position = names.index(name) if name in names else own.index(name)
        found: dict[int, str] = {}
        if isinstance(wanted, Mapping):
            items = [*wanted.items()]
        elif isinstance(wanted, tuple):  # of dynamic_shapes: a name or None for each axis
            items = [*enumerate(wanted)]
        else:
            items = [(axis, None) for axis in wanted or ()]
        ndim = call.inputs[position].ndim
        for axis, symbol in items:
            if not -ndim <= axis < ndim:
                raise OnnxExporterError(f"onnx.export: input {name!r} of {ndim} dimensions has no axis {axis}")
            if symbol is Dim.STATIC or (symbol is None and dynamic_shapes is not None):
                continue
            title = symbol if isinstance(symbol, str) else getattr(symbol, "__name__", None)
            found[axis % ndim] = title or f"{name}_dim_{axis % ndim}"
        axes[position] = found
    return axes


# -- the graph --------------------------------------------------------------------------------------------------------
def _written(
    g: Graph, program: Program, names: list[str], outputs: list[str], folding: bool, export_params: bool
) -> Any:
    """The program as an ``onnx.ModelProto``."""
    helper = g.helper
    g.used = {value for line in program.lines for value in line.values()} | set(program.outputs)
    g.taken.update(names, outputs)
    g.names.update(zip(program.inputs, names))
    given = [] if export_params else [value for value in program.given() if value.kind == "state"]
    for value in given:
        g.names[value] = g.unique(value.name)
    if folding:
        g.fixed = {value for value in program.given() if value not in given and value.array is not None}
    for line in program.lines:
        if folding and _folds(line, g.fixed):
            g.fixed.update(line.results)
        else:
            _write(g, line)
    _name_outputs(g, program, outputs)
    nodes = _needed(g.nodes, set(outputs))
    read = {name for node in nodes for name in node.input}
    states = [(g.names[value], value) for value in given]
    graph = helper.make_graph(
        nodes,
        "model",
        [_described(g, name, value) for name, value in [*zip(names, program.inputs), *states]],
        [_described(g, name, value) for name, value in zip(outputs, program.outputs)],
        [tensor for name, tensor in g.initializers.items() if name in read],
    )
    version = helper.make_opsetid("", g.opset)
    ir_version = helper.find_min_ir_version_for([version])
    return helper.make_model(graph, opset_imports=[version], producer_name="corefw", ir_version=ir_version)


def _folds(line: Line, fixed: set[Value]) -> bool:
    """Whether a line's results are constants: what it is given is known, and so are they, and not much larger. Random
    numbers are none."""
    values = [*line.values()]
    if not fixed.issuperset(values) or any(value.array is None for value in line.results):
        return False
    if any(p.name == "seed" for p in line.op.kernel_parameters):
        return False
    before, after = (sum(value.array.size for value in side) for side in (values, line.results))
    return after <= max(before, 2**16)


def _write(g: Graph, line: Line) -> None:
    """Write a line as nodes, and remember the names of its results."""
    g.line = line
    entry = TABLE.get(line.op.name)
    if entry is None:
        raise UnsupportedOperatorError(
            f"onnx.export: {line.op.name} at {line.where} has no entry in the table of ONNX operators; write it with "
            f"other ops, or add an entry (corefw.onnx.table.written_as({line.op.name!r}))"
        )
    try:
        found = entry(g, *line.arguments)
    except TypeError as error:
        if not any(isinstance(size, Size | Unknown) for value in line.values() for size in value.shape):
            raise
        raise OnnxExporterError(
            f"onnx.export: {line.op.name} at {line.where} computes with a size that is dynamic: {error}"
        ) from error
    results = found if isinstance(found, tuple) else (found,)
    for value, name in zip(line.results, results):
        if name is not None:
            g.names[value] = g.name(name)
        elif value in g.used:
            g.refuse(f"its result {line.op.outputs[line.results.index(value)]!r} has no ONNX form")


def _name_outputs(g: Graph, program: Program, outputs: list[str]) -> None:
    """Give the outputs their names: each a node's result that had another one, or a copy."""
    renamed: dict[str, str] = {}
    computed = {name for node in g.nodes for name in node.output}
    for name, value in zip(outputs, program.outputs):
        now = g.name(value)
        if now in computed and now not in renamed:
            renamed[now] = name
        else:
            g.nodes.append(g.helper.make_node("Identity", [now], [name], name))
    for node in g.nodes:
        for names in (node.input, node.output):
            for i, name in enumerate(names):
                names[i] = renamed.get(name, name)


def _needed(nodes: list, wanted: set[str]) -> list:
    """The nodes that the wanted names need, in order."""
    kept = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.output):
            kept.append(node)
            wanted.update(node.input)
    return kept[::-1]


def _described(g: Graph, name: str, value: Value) -> Any:
    """An input or output with its element type and shape; sizes that depend on inputs are named."""
    sizes = [n if isinstance(n, int) else str(n) if isinstance(n, Size) else None for n in value.shape]
    return g.helper.make_tensor_value_info(name, g.element_type(value.dtype), sizes)


def _verify(result: ONNXProgram, call: Call, training: TrainingMode) -> None:
    """Run the graph and the model, and compare."""
    with select_model_mode_for_export(call.model, training):
        expected = call.run()
    for i, (found, wanted) in enumerate(zip(result(*call.inputs), expected)):
        a, b = (t.detach().cpu().numpy() for t in (found, wanted))
        if a.shape != b.shape or not np.allclose(a, b, rtol=1e-3, atol=1e-4, equal_nan=True):
            raise OnnxExporterError(f"onnx.export: output {i} by onnxruntime differs from the model's")


__all__ = ["TrainingMode", "export", "is_in_onnx_export", "select_model_mode_for_export"]
