"""What an export gives: a model in ONNX's form, which can be saved and run."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

from corefw.files import replacing
from corefw.nn.modules.module import Module
from corefw.onnx.errors import OnnxExporterError
from corefw.tensor import Tensor
from corefw.tensor_api import from_numpy
from corefw.utils._pytree import tree_flatten

#: what protobuf can hold in one file
_LARGEST = 2**31 - 2**20


def imported(name: str, purpose: str) -> Any:
    """An optional package; ImportError that says what to install where it is missing."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError as error:
        raise ImportError(f"{purpose} needs the package '{name}': install it with pip install {name}") from error


class ONNXProgram:
    """A model in ONNX's form.

    Attributes:
        model_proto: the ``onnx.ModelProto``.

    Called with the model's arguments it computes the outputs, a tuple of tensors, through the package onnxruntime.
    """

    def __init__(self, model_proto: Any, inputs: list[str]):
        self.model_proto = model_proto
        self._inputs = inputs  # the names of the inputs, in the order of the tensors among the arguments
        self._session: Any = None

    def save(
        self, destination: str | os.PathLike | BinaryIO, *, include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False, external_data: bool | None = None,
    ) -> None:  # fmt: skip
        """Write the model; a file of that name appears whole or not at all.

        Args:
            destination: a path, or a file opened for binary writing.
            include_initializers: whether parameters and constants are written, or inputs in their place.
            keep_initializers_as_inputs: whether those that are written can be replaced by inputs.
            external_data: whether their elements are written to a second file, "<destination>.data"; None where one
                file could not hold them (2 GB).

        Raises:
            OnnxExporterError: the model is too large for one file, and there is to be no other.
        """
        model = self.model_proto
        if keep_initializers_as_inputs or not include_initializers:
            model = _with_inputs(model, drop=not include_initializers)
        size = model.ByteSize()
        path = destination if isinstance(destination, str | os.PathLike) else None
        if external_data or (external_data is None and size > _LARGEST):
            if path is None:
                raise OnnxExporterError("onnx: a second file with the elements needs a path, not a file object")
            model = _moved_out(model, os.fspath(path) + ".data")
        elif size > _LARGEST:
            raise OnnxExporterError(f"onnx: {size} bytes are too many for one file: save with external_data=True")
        if path is None:
            destination.write(model.SerializeToString())  # type: ignore[union-attr]
            return
        with replacing(path) as file:
            file.write(model.SerializeToString())

    def initialize_inference_session(self) -> Any:
        """The ``onnxruntime.InferenceSession`` that calls run, made once."""
        if self._session is None:
            runtime = imported("onnxruntime", "running an ONNX model")
            options = runtime.SessionOptions()
            options.log_severity_level = 3
            contents = self.model_proto.SerializeToString()
            self._session = runtime.InferenceSession(contents, options, providers=["CPUExecutionProvider"])
        return self._session

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Tensor, ...]:
        """The model's outputs for these arguments, given as to the model that was exported."""
        session = self.initialize_inference_session()
        tensors = [leaf for leaf in tree_flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
        if len(tensors) != len(self._inputs):
            names = ", ".join(self._inputs)
            raise OnnxExporterError(f"the ONNX program takes {len(self._inputs)} tensors ({names}), got {len(tensors)}")
        wanted = {node.name for node in session.get_inputs()}
        given = {n: t.detach().cpu().numpy() for n, t in zip(self._inputs, tensors) if n in wanted}
        return tuple(from_numpy(array) for array in session.run(None, given))

    def __repr__(self) -> str:
        graph = self.model_proto.graph
        names = [", ".join(value.name for value in values) for values in (graph.input, graph.output)]
        return f"ONNXProgram({names[0]} -> {names[1]}; {len(graph.node)} nodes)"


class ExportableModule(Module):
    """PyTorch's base of modules that tell their own example inputs; nothing here asks for them."""


def _with_inputs(model: Any, drop: bool) -> Any:
    """The model with each initializer as an input too, or alone."""
    from onnx import ModelProto, helper

    changed = ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    taken = {value.name for value in graph.input}
    for tensor in graph.initializer:
        if tensor.name not in taken:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims))
    if drop:
        del graph.initializer[:]
    return changed


def _moved_out(model: Any, path: str) -> Any:
    """The model with the elements of its larger initializers in the file at `path`."""
    from onnx import ModelProto, TensorProto

    changed = ModelProto()
    changed.CopyFrom(model)
    with replacing(path) as file:
        for tensor in changed.graph.initializer:
            if len(tensor.raw_data) < 1024:
                continue
            where = {"location": os.path.basename(path), "offset": file.tell(), "length": len(tensor.raw_data)}
            file.write(tensor.raw_data)
            tensor.ClearField("raw_data")
            tensor.data_location = TensorProto.EXTERNAL
            for key, value in where.items():
                tensor.external_data.add(key=key, value=str(value))
    return changed
