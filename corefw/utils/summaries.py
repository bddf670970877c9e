"""The table of a model's layers, by the sizes of what it is given: the call that users of torchinfo know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from corefw.dispatch.declare import ops
from corefw.dtypes import dtype
from corefw.nn.modules.module import Module
from corefw.nn.summary import Summary

__all__ = ["summary"]


def summary(
    model: Module, input_size: Sequence[int] | Sequence[Sequence[int]] | None = None, input_data: Any = None,
    batch_dim: int | None = None, depth: int | None = None, device: Any = None, dtypes: Sequence[dtype] | None = None,
    **kwargs: Any,
) -> Summary:  # fmt: skip
    """A table of the layers: what came in and went out, parameters, memory; see `Module.summary`.

    Args:
        model: what is run once, without gradients and in evaluation mode.
        input_size: the shape of its argument, or those of several; they are filled with zeros.
        input_data: the arguments themselves, instead: a tensor, or a sequence of them.
        batch_dim: where a dimension of size 1 is put into each shape, for the batch.
        depth: how many levels of layers within layers are listed; all by default. Totals are of all layers.
        device: where the arguments are made; by default where the model's parameters are.
        dtypes: theirs, one for each shape; by default that of the model's parameters.
        kwargs: other arguments of the model.

    Raises:
        ValueError: neither shapes nor arguments are given, or both.

    >>> import corefw as torch
    >>> from corefw import nn
    >>> print(torch.utils.summary(nn.Sequential(nn.Linear(4, 3), nn.ReLU()), (2, 4), depth=1))
    layer    kind        input   output  parameters  bytes  output bytes
    0        Linear      (2, 4)  (2, 3)          15     60            24
    1        ReLU        (2, 3)  (2, 3)           0      0            24
    (model)  Sequential  (2, 4)  (2, 3)           0      0             0
    15 parameters (15 trainable), 60 bytes; outputs of all layers 48 bytes
    """
    if (input_size is None) == (input_data is None):
        raise ValueError("summary: expected input_size, as (1, 3, 224, 224), or input_data, the arguments themselves")
    if input_data is not None:
        inputs = tuple(input_data) if isinstance(input_data, list | tuple) else (input_data,)
    else:
        assert input_size is not None
        inputs = _zeros(model, input_size, batch_dim, device, dtypes)
    return replace(model.summary(*inputs, **kwargs), depth=depth)


def _zeros(model: Module, input_size: Any, batch_dim: int | None, device: Any, dtypes: Any) -> tuple:
    """Tensors of the given shapes."""
    sizes = [input_size] if all(isinstance(size, int) for size in input_size) else [*input_size]
    first = next(iter(model.parameters()), None)
    if dtypes is None:
        dtypes = [None if first is None else first.dtype] * len(sizes)
    if len(dtypes) != len(sizes):
        raise ValueError(f"summary: {len(sizes)} shapes of arguments, and {len(dtypes)} dtypes")
    if batch_dim is not None:
        sizes = [(*size[:batch_dim], 1, *size[batch_dim:]) for size in sizes]
    if device is None and first is not None:
        device = first.device
    return tuple(ops.zeros(size, dtype=d, device=device) for size, d in zip(sizes, dtypes, strict=True))
