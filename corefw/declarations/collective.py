"""Collectives: what the processes of a group compute together; the group's engine moves the elements.

The updates write into contiguous tensors, as `corefw.distributed` gives them; the composites are the same as functions
with gradients, which are collectives again. `group` is a process group.
"""

from __future__ import annotations

from typing import Any

from corefw.dispatch.declare import Changed, Tensors, composite, ops, update
from corefw.dispatch.rules import numbers, same
from corefw.layouts import contiguous_format
from corefw.shapes import same_shape


# -- in place ---------------------------------------------------------------------------------------------------------
@update(dtype=same, public="")
def collective_all_reduce(tensors: Changed, operation: str, group: Any):
    """Each tensor becomes the sum (or another reduction) of the tensors of all ranks."""


@update(dtype=same, public="")
def collective_reduce(tensors: Changed, operation: str, root: int, group: Any):
    """As `collective_all_reduce`, on rank `root` alone; what the others hold is undefined."""


@update(dtype=same, public="")
def collective_broadcast(tensors: Changed, root: int, group: Any):
    """Each tensor becomes that of rank `root`."""


@update(dtype=same, public="")
def collective_all_gather(outputs: Changed, inputs: Tensors, group: Any):
    """Each output holds the inputs of all ranks, one after another."""


@update(dtype=same, public="")
def collective_gather(outputs: Changed, inputs: Tensors, root: int, group: Any):
    """As `collective_all_gather`, on rank `root` alone; the others' outputs have no elements."""


@update(dtype=same, public="")
def collective_scatter(outputs: Changed, inputs: Tensors, root: int, group: Any):
    """Each output is this rank's part of the input on rank `root`; the others' inputs have no elements."""


@update(dtype=same, public="")
def collective_reduce_scatter(outputs: Changed, inputs: Tensors, operation: str, group: Any):
    """Each output is this rank's part of the sum (or another reduction) of the inputs of all ranks."""


@update(dtype=same, public="")
def collective_all_to_all(outputs: Changed, inputs: Tensors, received: Any, sent: Any, group: Any):
    """Part i of each input goes to rank i, part i of each output comes from there; `received` and `sent` are the
    parts' numbers of elements."""


@update(dtype=same, public="")
def collective_send(tensors: Tensors, to: int, tag: int, group: Any):
    """Each tensor goes to rank `to`."""


@update(dtype=same, public="")
def collective_receive(tensors: Changed, source: Any, tag: int, group: Any):
    """Each tensor comes from rank `source`, or from any if it is None."""


# -- as functions -----------------------------------------------------------------------------------------------------
def _of_all(input, group):
    return (group.size(), *input)


def _of_one(input, *rest):
    return input[1:]


def _like_output(input, received, sent, group):
    return (sum(received), *input[1:])


@composite(dtype=numbers, shape=same_shape, public="")
def all_reduced(input, operation: str, group: Any):
    """The reduction of the inputs of all ranks; its gradient is that of a sum or an average."""
    result = input.clone(memory_format=contiguous_format)
    group.run("all_reduce", [result], operation)
    return result


@all_reduced.gradient("input")
def all_reduced_vjp(grad, operation, group):
    return ops.all_reduced(grad, group.linear(operation), group)


@composite(dtype=numbers, shape=same_shape, public="")
def reduced(input, operation: str, root: int, group: Any):
    """The reduction of the inputs of all ranks on rank `root`, zeros on the others."""
    result = input.clone(memory_format=contiguous_format)
    group.run("reduce", [result], operation, root)
    return result if group.rank() == root else result.zero_()


reduced.gradients(
    input=lambda grad, operation, root, group: group.scaled(ops.broadcasted(grad, root, group), operation)
)


@composite(dtype=same, shape=same_shape, public="")
def broadcasted(input, root: int, group: Any):
    """The input of rank `root`."""
    result = input.clone(memory_format=contiguous_format)
    group.run("broadcast", [result], root)
    return result


broadcasted.gradients(input=lambda grad, root, group: ops.reduced(grad, "sum", root, group))


@composite(dtype=same, shape=_of_all, public="")
def all_gathered(input, group: Any):
    """The inputs of all ranks along a new first dimension."""
    result = input.new_empty((group.size(), *input.shape))
    group.run("all_gather", [result], [input])
    return result


all_gathered.gradients(input=lambda grad, group: ops.reduce_scattered(grad, "sum", group))


@composite(dtype=same, shape=_of_all, public="")
def gathered(input, root: int, group: Any):
    """The inputs of all ranks along a new first dimension on rank `root`, zeros on the others."""
    result = input.new_zeros((group.size(), *input.shape))
    group.run("gather", [result if group.rank() == root else input.new_empty(0)], [input], root)
    return result


gathered.gradients(input=lambda grad, root, group: ops.scattered(grad, root, group))


@composite(dtype=same, shape=_of_one, public="")
def scattered(input, root: int, group: Any):
    """This rank's row of the input on rank `root`."""
    result = input.new_empty(input.shape[1:])
    group.run("scatter", [result], [input if group.rank() == root else input.new_empty(0)], root)
    return result


scattered.gradients(input=lambda grad, root, group: ops.gathered(grad, root, group))


@composite(dtype=numbers, shape=_of_one, public="")
def reduce_scattered(input, operation: str, group: Any):
    """This rank's row of the reduction of the inputs of all ranks."""
    result = input.new_empty(input.shape[1:])
    group.run("reduce_scatter", [result], [input], operation)
    return result


@reduce_scattered.gradient("input")
def reduce_scattered_vjp(grad, operation, group):
    return group.scaled(ops.all_gathered(grad, group), operation)


@composite(dtype=same, shape=_like_output, public="")
def exchanged(input, received: Any, sent: Any, group: Any):
    """The parts that all ranks have for this one along the first dimension, of the sizes `received`; this one's parts
    for them have the sizes `sent`."""
    row = input.new_empty(input.shape[1:]).numel()
    result = input.new_empty((sum(received), *input.shape[1:]))
    group.run("all_to_all", [result], [input], tuple(row * n for n in received), tuple(row * n for n in sent))
    return result


exchanged.gradients(input=lambda grad, received, sent, group: ops.exchanged(grad, sent, received, group))
