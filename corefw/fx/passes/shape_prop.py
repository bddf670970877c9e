"""ShapeProp: runs a graph on an example and notes the shape and dtype of each value on its node."""

from __future__ import annotations

from typing import Any, NamedTuple

from corefw.dtypes import dtype
from corefw.fx.interpreter import Interpreter
from corefw.fx.node import Node, map_aggregate
from corefw.layouts import channels_last, channels_last_3d, contiguous_format, memory_format
from corefw.shapes import Size
from corefw.tensor import Tensor

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor before it is computed."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def _extract_tensor_metadata(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    formats = [contiguous_format, *({4: [channels_last], 5: [channels_last_3d]}.get(result.ndim, []))]
    found = next((form for form in formats if result.is_contiguous(memory_format=form)), None)
    kept = found if include_contiguity else None
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), kept, False, {})


class ShapeProp(Interpreter):
    """Runs a graph and gives each node whose value is a tensor, or holds some, ``meta["tensor_meta"]``.

    >>> import corefw as torch
    >>> from corefw.fx.passes.shape_prop import ShapeProp
    >>> traced = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(3, 2)))
    >>> _ = ShapeProp(traced).propagate(torch.ones(4, 3))
    >>> [tuple(node.meta["tensor_meta"].shape) for node in traced.graph.nodes]
    [(4, 3), (4, 2), (4, 2)]
    """

    def run_node(self, n: Node) -> Any:
        """The value of a node, noted on it."""
        result = super().run_node(n)
        found = []

        def note(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor):
                return leaf
            found.append(leaf)
            return _extract_tensor_metadata(leaf)

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """The output for example inputs, with all nodes noted."""
        return self.run(*args)
