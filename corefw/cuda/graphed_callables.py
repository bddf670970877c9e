"""Modules and functions whose forward and backward are each replayed from a graph, within programs that are not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from corefw.autograd.differentiate import grad
from corefw.autograd.function import Function, once_differentiable
from corefw.cuda._runtime import runtime
from corefw.cuda.graphs import CUDAGraph, graph, graph_pool_handle
from corefw.nn.modules.module import Module
from corefw.sequences import alike
from corefw.tensor import Tensor

Tensors = tuple[Tensor, ...]


# -- structures of tensors --------------------------------------------------------------------------------------------
def _leaves(structure: Any) -> list:
    """What lies in nested tuples, lists and dicts, in order."""
    if isinstance(structure, dict):
        structure = list(structure.values())
    return (
        [leaf for part in structure for leaf in _leaves(part)] if isinstance(structure, tuple | list) else [structure]
    )


def _filled(structure: Any, leaves: Iterator) -> Any:
    """Such a structure with other leaves."""
    if isinstance(structure, dict):
        return type(structure)((key, _filled(part, leaves)) for key, part in structure.items())
    if isinstance(structure, tuple | list):
        parts = [_filled(part, leaves) for part in structure]
        return alike(structure, parts)
    return next(leaves)


# -- what is captured -------------------------------------------------------------------------------------------------
class _Inputs(NamedTuple):
    """Where the graphs of a callable find their inputs: the sample arguments, and the parameters."""

    arguments: Tensors
    parameters: Tensors

    def trained(self) -> Tensors:
        """Those that gradients are computed for."""
        return tuple(tensor for tensor in (*self.arguments, *self.parameters) if tensor.requires_grad)


class _Forward(NamedTuple):
    """A captured forward: its graph, what it returned, and the tensors in that."""

    graph: CUDAGraph
    result: Any
    outputs: Tensors


class _Backward(NamedTuple):
    """A captured backward: its graph, and the gradients that it reads and writes, None where there are none."""

    graph: CUDAGraph
    of_outputs: tuple[Tensor | None, ...]
    of_inputs: tuple[Tensor | None, ...]


def _inputs_of(function: Callable, arguments: tuple) -> _Inputs:
    """The inputs of a callable; AssertionError, as PyTorch's, for one that cannot be captured."""
    parameters: Tensors = ()
    if isinstance(function, Module):
        if any(function._hook_list(kind) for kind in ("forward_pre", "forward", "full_backward_pre", "full_backward")):
            raise AssertionError(
                "make_graphed_callables: Modules must not have hooks registered at the time they are passed. However, "
                "registering hooks on modules after passing them through make_graphed_callables is allowed."
            )
        if any(buffer.requires_grad for buffer in function.buffers()):
            raise AssertionError(
                "make_graphed_callables: only parameters of a module may be trainable. All buffers must have "
                "requires_grad=False."
            )
        parameters = tuple(function.parameters())
    leaves = tuple(_leaves(tuple(arguments)))
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise AssertionError(
                "make_graphed_callables: sample_args for each callable must contain only Tensors, got "
                f"{type(leaf).__name__}: bind other arguments with functools.partial"
            )
    return _Inputs(leaves, parameters)


def _gradients(outputs: Tensors, given: Tensors, inputs: _Inputs, allow_unused: bool) -> tuple[Tensor | None, ...]:
    """The gradients of all inputs that are trained."""
    return grad(outputs, inputs.trained(), given, allow_unused=allow_unused)


def _trainable(outputs: Sequence[Tensor]) -> Tensors:
    return tuple(output for output in outputs if output.requires_grad)


def _warm_up(function: Callable, arguments: tuple, inputs: _Inputs, allow_unused: bool) -> None:
    """A step that is not captured: what is made once, such as plans, is made."""
    outputs = _trainable(_leaves(function(*arguments)))
    if outputs:
        _gradients(outputs, tuple(output.detach().new_empty(output.shape) for output in outputs), inputs, allow_unused)


def _captured_forward(function: Callable, arguments: tuple, pool: Any) -> _Forward:
    made = CUDAGraph()
    with graph(made, pool=pool):
        result = function(*arguments)
    return _Forward(made, result, tuple(_leaves(result)))


def _captured_backward(forward: _Forward, inputs: _Inputs, pool: Any, allow_unused: bool) -> _Backward:
    made = CUDAGraph()
    given = tuple(o.detach().new_empty(o.shape) if o.requires_grad else None for o in forward.outputs)
    outputs = _trainable(forward.outputs)
    found: Iterator[Tensor | None] = iter(())
    if outputs:
        with graph(made, pool=pool):
            found = iter(_gradients(outputs, tuple(g for g in given if g is not None), inputs, allow_unused))
    everything = (*inputs.arguments, *inputs.parameters)
    return _Backward(made, given, tuple(next(found, None) if tensor.requires_grad else None for tensor in everything))


# -- what is called ---------------------------------------------------------------------------------------------------
def _graphed(inputs: _Inputs, forward: _Forward, backward: _Backward) -> Callable:
    """What replays the graphs, on arguments of the sample's structure."""

    class Graphed(Function):
        """The forward's replay, whose gradient is the backward's."""

        @staticmethod
        def forward(ctx, *tensors):
            for place, tensor in zip(inputs.arguments, tensors):  # parameters are read where they are
                _write(place, tensor)
            forward.graph.replay()
            return tuple(output.detach() for output in forward.outputs)

        @staticmethod
        @once_differentiable
        def backward(ctx, *gradients):
            for place, gradient in zip(backward.of_outputs, gradients):
                if place is not None:
                    _write(place, gradient)
            backward.graph.replay()
            return tuple(None if gradient is None else gradient.detach() for gradient in backward.of_inputs)

    def call(*arguments):
        leaves = _leaves(arguments)
        if len(leaves) != len(inputs.arguments):
            wanted = len(inputs.arguments)
            raise TypeError(f"a graphed callable was captured with {wanted} tensors as arguments, got {len(leaves)}")
        return _filled(forward.result, iter(Graphed.apply(*leaves, *inputs.parameters)))

    return call


def _write(place: Tensor, tensor: Tensor) -> None:
    """Let a graph read a tensor's elements."""
    if place.shape != tensor.shape:
        raise ValueError(f"a graphed callable was captured for shape {tuple(place.shape)}, got {tuple(tensor.shape)}")
    if place.data_ptr() != tensor.data_ptr():
        place.detach().copy_(tensor)


def _replacing(module: Module, graphed: Callable) -> Module:
    """The module, whose forward is the graphs' in the mode (training or not) in which it was captured."""
    captured_in, plain = module.training, module.forward

    def forward(*arguments):
        return (graphed if module.training == captured_in else plain)(*arguments)

    vars(module)["forward"] = forward
    return module


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """Capture the forward and the backward of modules or functions; calls then replay them, as a part of any program.

    A module is given back with another `forward`, a function as a new function; several as a tuple. Their arguments
    must have the sample's shapes and order, and what they return is overwritten by the next call. Backward passes must
    come in the reverse order of the forward ones, and cannot be differentiated again. In the mode (`train`, `eval`) in
    which it was not captured, a module computes as before.

    Args:
        callables: one, or a tuple of them, in the order in which they will be called.
        sample_args: a tuple of tensors, or a tuple of these for a tuple of callables. Those of later calls are copied
            into them; as there, they require gradients or not.
        num_warmup_iters: how many steps are done before the capture.
        allow_unused_input: whether inputs that do not matter to the outputs are permitted; they have no gradient.
        pool: memory to share, from `graph_pool_handle` or a graph's `pool`.
    """
    single = not isinstance(callables, tuple)
    functions = (callables,) if single else callables
    samples = (sample_args,) if single else tuple(sample_args)
    if len(samples) != len(functions):
        raise ValueError(f"make_graphed_callables: {len(functions)} callables and sample_args for {len(samples)}")
    inputs = [_inputs_of(function, arguments) for function, arguments in zip(functions, samples)]
    device = runtime()
    device.synchronize()
    with device.new_stream(device.current_device(), 0):
        for function, arguments, own in zip(functions, samples, inputs):
            for _ in range(num_warmup_iters):
                _warm_up(function, arguments, own, allow_unused_input)
    device.synchronize()
    pool = graph_pool_handle() if pool is None else pool
    forwards = [_captured_forward(function, arguments, pool) for function, arguments in zip(functions, samples)]
    backwards = [
        _captured_backward(forward, own, pool, allow_unused_input)
        for forward, own in zip(reversed(forwards), reversed(inputs))
    ]  # in the order in which they will run, since they share memory
    made = []
    for function, own, forward, backward in zip(functions, inputs, forwards, reversed(backwards)):
        graphed = _graphed(own, forward, backward)
        made.append(_replacing(function, graphed) if isinstance(function, Module) else graphed)
    return made[0] if single else tuple(made)
