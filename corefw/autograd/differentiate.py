"""What users ask of the engine: `backward`, which fills ``.grad``, and `grad`, which returns gradients."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from corefw.autograd.engine import run
from corefw.dispatch.batching.arrays import LevelDevice
from corefw.dispatch.batching.tensors import current_root
from corefw.dispatch.declare import ops
from corefw.errors import GradientError
from corefw.graph.grad_mode import mode, no_recording
from corefw.graph.views import node_of
from corefw.tensor import Node, Output, Tensor, wrap
from corefw.tracebacks import ends_at_caller


class GradientEdge(NamedTuple):
    """One output of a node, as a place in the graph to differentiate from or to.

    Attributes: ``node``; ``output_nr`` which of its outputs; ``target`` the node that collects that output's gradient.
    """

    node: Node
    output_nr: int
    target: Node


Differentiable = Tensor | GradientEdge


def edge_of(tensor: Tensor) -> GradientEdge:
    """Where `tensor` comes from in the graph; GradientError if it does not require a gradient."""
    node = node_of(tensor)
    if node is None:
        raise GradientError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    return GradientEdge(node.inputs[0], node.index, node) if node.__class__ is Output else GradientEdge(node, 0, node)


def _as_tuple(values) -> tuple:
    return (
        (values,) if isinstance(values, Tensor) or values.__class__ is GradientEdge or values is None else tuple(values)
    )


def _one(shape: tuple[int, ...], dispatch_key) -> Tensor:
    """The gradient of a scalar with respect to itself."""
    if shape and any(size != 1 for size in shape):
        raise GradientError("grad can be implicitly created only for scalar outputs")
    if not dispatch_key.dtype.is_floating_point:
        raise GradientError(
            f"grad can be implicitly created only for real scalar outputs but got {dispatch_key.dtype!r}"
        )
    if shape:
        return ops.ones(shape, dtype=dispatch_key.dtype, device=dispatch_key.device)
    runtime = dispatch_key.runtime
    return wrap(runtime.clone(runtime.constant(1.0, dispatch_key.dtype, dispatch_key.device.index)), dispatch_key)


def _first_gradient(shape: tuple[int, ...], dispatch_key, gradient: Tensor | None, batched: bool = False) -> Tensor:
    """The gradient to start from, of an output of this shape and dispatch key: the given one, or one for a scalar."""
    if gradient is None:
        return _one(shape, dispatch_key)
    if not isinstance(gradient, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(gradient).__name__}")
    given = gradient.array.shape[1:] if batched else gradient.array.shape
    if given != shape:
        what = "grad_output of a batch" if batched else "grad_output"
        raise GradientError(
            f"Mismatch in shape: {what} has a shape of {tuple(gradient.array.shape)} and output has a shape of "
            f"{tuple(shape)}."
        )
    if gradient.dispatch_key is dispatch_key:
        return gradient
    if gradient.dispatch_key.dtype.is_complex != dispatch_key.dtype.is_complex:
        raise GradientError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
            f"grad_output has a dtype of {gradient.dispatch_key.dtype!r} and output has a dtype of "
            f"{dispatch_key.dtype!r}."
        )
    return gradient.to(device=dispatch_key.device, dtype=dispatch_key.dtype)


def _roots(
    outputs: Sequence[Differentiable], gradients: Sequence[Tensor | None], batched: bool = False
) -> list[tuple[Node, Tensor]]:
    """Nodes and first gradients of what is differentiated; GradientError for a tensor without a history."""
    if len(gradients) != len(outputs):
        raise GradientError(f"got {len(outputs)} tensors and {len(gradients)} gradients")
    return [_root(i, *pair, batched) for i, pair in enumerate(zip(outputs, gradients))]


def _root(i: int, output: Differentiable, gradient: Tensor | None, batched: bool = False) -> tuple[Node, Tensor]:
    """Node and first gradient of the i-th of what is differentiated."""
    node: Node | None
    if LevelDevice.made and isinstance(output, Tensor):
        output = current_root(output)
    if isinstance(output, GradientEdge):
        node, shape, dispatch_key = output.target, output.target.shape, output.target.dispatch_key
    else:
        node, shape, dispatch_key = node_of(output), output.array.shape, output.dispatch_key
    if node is None:
        raise GradientError(f"element {i} of tensors does not require grad and does not have a grad_fn")
    return node, _first_gradient(shape, dispatch_key, gradient, batched)


@ends_at_caller
def backward(
    tensors,
    grad_tensors=None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables=None,
    inputs=None,
) -> None:
    """Compute the gradients of `tensors` with respect to the leaves they come from, and add them to the leaves'
    ``.grad``.

    Args:
        tensors: a tensor or several.
        grad_tensors: the vector of the vector-Jacobian product for each; None for scalars.
        retain_graph: keep what the graph saved, for another backward; by default `create_graph`.
        create_graph: record the computation of the gradients, for derivatives of them.
        grad_variables: the former name of `grad_tensors`.
        inputs: the tensors whose ``.grad`` is wanted, instead of all leaves.

    Raises:
        RuntimeError: a tensor has no history, is no scalar and got no gradient, or its graph was freed.

    >>> import corefw as torch
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> torch.autograd.backward((x * x).sum())
    >>> x.grad
    tensor([2., 4.])
    """
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Use only "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    retain_graph = create_graph if retain_graph is None else retain_graph
    if inputs is None and grad_tensors is None and isinstance(tensors, Tensor):  # the step of a training loop
        run([_root(0, tensors, None)], retain_graph=retain_graph, create_graph=create_graph)
        return
    outputs = _as_tuple(tensors)
    gradients = (None,) * len(outputs) if grad_tensors is None else _as_tuple(grad_tensors)
    if inputs is None:
        run(_roots(outputs, gradients), retain_graph=retain_graph, create_graph=create_graph)
        return
    inputs = _as_tuple(inputs)
    if not inputs:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    targets = _targets(inputs)
    for tensor in inputs:
        if isinstance(tensor, Tensor):
            tensor.retain_grad()
    roots = _roots(outputs, gradients)
    _run_targeted(roots, retain_graph=retain_graph, create_graph=create_graph, targets=targets)


def _run_targeted(roots, **options) -> dict[Node, Tensor]:
    """Run for some gradients only, and let this be known (a checkpoint within the graph may have to refuse)."""
    before, mode.targeted = mode.targeted, True
    try:
        return run(roots, **options)
    finally:
        mode.targeted = before


def _targets(inputs: Sequence[Differentiable]) -> list[Node]:
    nodes = []
    for value in inputs:
        node = value.target if isinstance(value, GradientEdge) else node_of(value)
        if node is None:
            raise GradientError("One of the differentiated Tensors does not require grad")
        nodes.append(node)
    return nodes


@ends_at_caller
def grad(
    outputs, inputs, grad_outputs=None, retain_graph: bool | None = None, create_graph: bool = False,
    only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Tensor, ...]:  # fmt: skip
    """The gradients of `outputs` with respect to `inputs`; nothing is added to any ``.grad``.

    Args:
        outputs: a tensor or several.
        inputs: the tensors, leaves or not, to differentiate with respect to.
        grad_outputs: the vector of the vector-Jacobian product for each output; None for scalars.
        retain_graph: keep what the graph saved, for another run; by default `create_graph`.
        create_graph: record the computation of the gradients, for derivatives of them.
        only_inputs: must be True.
        allow_unused: give None for inputs that the outputs do not depend on, instead of raising.
        is_grads_batched: each of `grad_outputs` holds several vectors, along a first dimension that the results have
            too.
        materialize_grads: give zeros instead of None; sets `allow_unused`.

    Returns:
        One gradient per input.

    >>> import corefw as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> (first,) = torch.autograd.grad(x * x * x, x, create_graph=True)
    >>> first, torch.autograd.grad(first, x)
    (tensor(27., grad_fn=...), (tensor(18.),))
    """
    if not only_inputs:
        raise ValueError("grad: only_inputs=False is no longer supported; use backward() to accumulate into leaves")
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    retain_graph = create_graph if retain_graph is None else retain_graph
    outputs, inputs = _as_tuple(outputs), _as_tuple(inputs)
    if not outputs:
        raise ValueError("grad requires non-empty outputs.")
    if not inputs:
        raise ValueError("grad requires non-empty inputs.")
    gradients = (None,) * len(outputs) if grad_outputs is None else _as_tuple(grad_outputs)
    roots = _roots(outputs, gradients, is_grads_batched)
    targets = _targets(inputs)
    results: list[Any]  # None for what was not used
    if is_grads_batched:
        results = _batched(roots, targets, retain_graph, create_graph)
    else:
        found = _run_targeted(
            roots, retain_graph=retain_graph, create_graph=create_graph, targets=targets, into_leaves=False
        )
        results = [found.get(node) for node in targets]
    if not allow_unused and any(result is None for result in results):
        raise GradientError(
            "One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if "
            "this is the desired behavior."
        )
    if materialize_grads:
        results = [zeros(node) if result is None else result for node, result in zip(targets, results)]
    return tuple(results)


def zeros(node: Node) -> Tensor:
    """A gradient of zeros for the output of `node`."""
    return ops.zeros(node.shape, dtype=node.dispatch_key.dtype, device=node.dispatch_key.device)


def _batched(roots, targets, retain_graph: bool, create_graph: bool) -> list[Tensor | None]:
    """One run per vector; the results stacked."""
    count = roots[0][1].array.shape[0]
    rows = []
    for i in range(count):
        found = _run_targeted(
            [(node, gradients[i]) for node, gradients in roots],
            retain_graph=retain_graph or i < count - 1,
            create_graph=create_graph,
            targets=targets,
            into_leaves=False,
        )
        rows.append([found.get(node) for node in targets])
    with nullcontext() if create_graph else no_recording():
        return [None if column[0] is None else ops.stack(column) for column in zip(*rows, strict=True)]


__all__ = ["GradientEdge", "backward", "edge_of", "grad"]


def recorded_gradients(
    outputs: Iterable[Tensor], inputs: Sequence[Tensor], starts: Iterable[Tensor], create_graph: bool, retain=True
) -> Sequence[Tensor | None]:
    """The vector-Jacobian product of the outputs that have a history; None for inputs on which none of them depends."""
    used = [(output, start) for output, start in zip(outputs, starts) if output.requires_grad]
    if not used:
        return [None] * len(inputs)
    recorded, vectors = zip(*used)
    return grad(recorded, inputs, vectors, retain_graph=retain, create_graph=create_graph, allow_unused=True)
