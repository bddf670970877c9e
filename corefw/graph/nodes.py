"""Nodes of tensors: accumulators of leaves, outputs of several, and the errors of saved values."""

from __future__ import annotations

import weakref

from corefw.errors import GradientError
from corefw.tensor import AccumulateGrad, Node, Output, Tensor, new, next_sequence


def leaf_node(tensor: Tensor) -> AccumulateGrad:
    """The node that adds gradients to `tensor`, a leaf."""
    node = new(AccumulateGrad)
    node.inputs = node.saved = ()
    node.shape = tensor.array.shape
    node.dispatch_key = tensor.dispatch_key
    node.hooks = None
    node.sequence = next_sequence()
    node.leaf = weakref.ref(tensor)
    return node


def output_node(parent: Node, index: int, array, dispatch_key) -> Output:
    """The node of one of several outputs of `parent`."""
    node = new(Output)
    node.inputs = (parent,)
    node.saved = ()
    node.shape = array.shape
    node.dispatch_key = dispatch_key
    node.hooks = None
    node.sequence = next_sequence()
    node.index = index
    return node


def stale(name: str, shape, dispatch_key, expected: int, version: int) -> GradientError:
    """The error for a saved tensor that was changed before its gradient was computed."""
    return GradientError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{dispatch_key.dtype!r} {list(shape)}], saved for {name}, is at version {version}; expected version "
        f"{expected} instead. Hint: enable anomaly detection to find the operation that failed to compute its "
        "gradient, with corefw.autograd.set_detect_anomaly(True)."
    )


def freed(node: Node) -> GradientError:
    """The error for a second backward through a graph whose saved tensors are gone."""
    return GradientError(
        f"Trying to backward through the graph a second time (at {node.name()}): its saved tensors were freed by the "
        "first backward. Specify retain_graph=True the first time if you need to do it again."
    )
