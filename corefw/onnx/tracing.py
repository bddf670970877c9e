"""A model's program for an export: recorded once, or twice where axes are dynamic."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from corefw.autograd.grad_mode import no_grad
from corefw.capture.program import Program, Value
from corefw.capture.record import record
from corefw.dispatch.declare import ops
from corefw.nn.modules.module import Module
from corefw.onnx.errors import OnnxExporterError, OnnxExporterWarning
from corefw.onnx.graph import host
from corefw.onnx.sizes import Size, Symbols, generalize
from corefw.onnx.table import TABLE
from corefw.tensor import Tensor
from corefw.tracebacks import warn
from corefw.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

#: {position of an input: {axis: symbol}}
Axes = dict[int, dict[int, str]]


class Exporting:
    """Whether an export is recording now."""

    active = False


@dataclass
class Call:
    """A model with the arguments that it is recorded with: `leaves` of (args, kwargs), of which tensors are inputs."""

    model: Callable
    leaves: list[Any]
    structure: TreeSpec

    @classmethod
    def of(cls, model: Callable, args: tuple, kwargs: Mapping[str, Any]) -> Call:
        """The call of `model` with these arguments."""
        return cls(model, *tree_flatten((args, dict(kwargs))))

    @property
    def inputs(self) -> list[Tensor]:
        """The tensors among the arguments."""
        return [leaf for leaf in self.leaves if isinstance(leaf, Tensor)]

    def with_inputs(self, tensors: list[Tensor]) -> Call:
        """The call with other tensors."""
        rest = iter(tensors)
        leaves = [next(rest) if isinstance(leaf, Tensor) else leaf for leaf in self.leaves]
        return Call(self.model, leaves, self.structure)

    def run(self) -> list[Tensor]:
        """The model's outputs."""
        args, kwargs = tree_unflatten(self.leaves, self.structure)
        with no_grad():
            result = self.model(*args, **kwargs)
        outputs = [leaf for leaf in tree_flatten(result)[0] if leaf is not None]
        for leaf in outputs:
            if not isinstance(leaf, Tensor):
                raise OnnxExporterError(f"onnx.export: outputs are tensors, the model returned a {type(leaf).__name__}")
        if not outputs:
            raise OnnxExporterError("onnx.export: the model returned no tensor")
        return outputs

    def states(self) -> dict[str, Tensor]:
        """The model's parameters and buffers by name."""
        if not isinstance(self.model, Module):
            return {}
        return {**dict(self.model.named_parameters()), **dict(self.model.named_buffers())}

    def names(self) -> list[str]:
        """A name for each input: that of the parameter of `forward` it is given for, numbered inside of containers."""
        function = self.model.forward if isinstance(self.model, Module) else self.model
        args, kwargs = tree_unflatten([*map(_Mark, range(len(self.leaves)))], self.structure)
        try:
            given = inspect.signature(function).bind(*args, **kwargs).arguments
        except (TypeError, ValueError):
            given = {**{f"input_{i}": value for i, value in enumerate(args)}, **kwargs}
        named: dict[int, str] = {}
        for name, value in given.items():
            marks = tree_flatten(value)[0]
            named |= {m.position: name if len(marks) == 1 else f"{name}_{i}" for i, m in enumerate(marks)}
        return [named[i] for i, leaf in enumerate(self.leaves) if isinstance(leaf, Tensor)]


@dataclass(frozen=True)
class _Mark:
    """Stands for a leaf of the arguments."""

    position: int


def _record(call: Call) -> Program:
    """The model's program; states that it changes are afterwards as they were."""
    states, inputs = call.states(), [tensor.detach().clone() for tensor in call.inputs]
    before, Exporting.active = Exporting.active, True
    try:
        program = record(
            lambda *tensors: call.with_inputs([*tensors]).run(), *inputs, states=states,
            whole=lambda op: op.name in TABLE,
        )  # fmt: skip
    finally:
        Exporting.active = before
    for value in program.changed:
        if value.kind == "state":
            tensor = states[value.name]
            tensor.dispatch_key.runtime.copy(tensor.array, value.array)
    following = program.following()
    for value, where in program.read.items():
        if value in following:
            warn(
                f"onnx.export: the model takes elements of a tensor ({value.type}) at {where}: what it makes of them, "
                "such as branches, sizes and numbers, is in the graph as it was in this run",
                OnnxExporterWarning,
            )
    program.changed.clear()  # a graph has no states that change
    program.prune()
    return program


def traced(call: Call, axes: Axes) -> tuple[Program, dict[Value, Size]]:
    """The model's program, in which sizes that follow those of the dynamic axes say so, and the constants that do.

    Raises:
        OnnxExporterError: the model does something else with other sizes, or does not take them.
    """
    if not any(axes.values()):
        return _record(call), {}
    sizes: dict[str, int] = {}
    for position, named in axes.items():
        for axis, symbol in named.items():
            size = call.inputs[position].shape[axis]
            if sizes.setdefault(symbol, size) != size:
                raise OnnxExporterError(f"onnx.export: axes called {symbol!r} have sizes {sizes[symbol]} and {size}")
    first = {symbol: max(size, 2) for symbol, size in sizes.items()}  # a size of 1 would broadcast
    program = _record(_resized(call, axes, first))
    failure: Exception | None = None
    for second in _others(first):
        try:
            other = _record(_resized(call, axes, second))
        except OnnxExporterError:
            raise
        except Exception as error:
            failure = failure or error
            continue
        symbols: Symbols = {symbol: (first[symbol], second[symbol]) for symbol in first}
        return program, generalize(program, other, symbols, host)
    raise OnnxExporterError(
        f"onnx.export: the model does not take other sizes of the dynamic axes {', '.join(first)}: with "
        f"{next(_others(first))} it raises {type(failure).__name__}: {failure}"
    ) from failure


_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23)


def _others(first: dict[str, int]):
    """Other sizes to record with: no two symbols grow by the same number, or by the same factor."""
    steps = [_PRIMES[i % len(_PRIMES)] + i // len(_PRIMES) for i in range(len(first))]
    yield {symbol: size + step for (symbol, size), step in zip(first.items(), steps)}
    yield {symbol: size * (step - 1) for (symbol, size), step in zip(first.items(), steps)}
    yield {symbol: max(size - 1 - i, 1) for i, (symbol, size) in enumerate(first.items())}


def _resized(call: Call, axes: Axes, sizes: dict[str, int]) -> Call:
    """The call with inputs of other sizes along the dynamic axes, filled with their elements over again."""
    tensors = call.inputs
    for position, named in axes.items():
        for axis, symbol in named.items():
            tensor = tensors[position]
            if tensor.shape[axis] != sizes[symbol]:
                index = ops.arange(sizes[symbol], device=tensor.device) % tensor.shape[axis]
                tensors[position] = tensor.detach().index_select(axis, index)
    return call.with_inputs(tensors)
