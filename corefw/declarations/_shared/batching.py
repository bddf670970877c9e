"""The rules by which like ops compute on all examples of a `func.vmap` at once.

A rule is given the op on the device below, the number of examples, and the kernel's arguments; tensors have the
examples along their first dimension, or 1 that stands for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from corefw.dispatch.batching.arrays import array_dims, levels
from corefw.dispatch.batching.calls import aligned, one_by_one
from corefw.tensor import Tensor


def example_dims(tensor) -> int:
    """The number of dimensions of an example."""
    return array_dims(tensor.array) - 1


def full(tensor: Tensor, examples: int) -> Tensor:
    """A tensor with all examples."""
    shape = tensor.array.shape
    return tensor if shape[0] == examples else tensor.expand(examples, *shape[1:])


def dims_shifted(dims: Sequence[int]) -> tuple[int, ...]:
    """Dimensions of an example as those of the batch."""
    return tuple(d + 1 if d >= 0 else d for d in dims)


def _each(found, change):
    """One result changed, or each of several."""
    return tuple(map(change, found)) if isinstance(found, tuple) else change(found)


# -- where the examples may simply stand before -----------------------------------------------------------------------
def from_the_end(call, examples, *values):
    """Of ops that count dimensions from the end, such as those of matrices, or of which the first operand alone is a
    tensor."""
    return call(*values)


def from_the_end_together(call, examples, *values):
    """Of such ops of several tensors, whose first dimensions must be the same."""
    places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
    tensors = (full(one, examples) for one in aligned(*(values[i] for i in places)))
    return call(*(next(tensors) if i in places else value for i, value in enumerate(values)))


# -- along dimensions -------------------------------------------------------------------------------------------------
def reduced(call, examples, input, dim, *rest):
    """Of reductions over some dimensions, or over all."""
    n = example_dims(input)
    if not n:
        return call(input.unsqueeze(1), (1,), *(False for _ in rest))
    dim = (dim,) if isinstance(dim, int) else dim
    return call(input, tuple(range(1, n + 1)) if not dim else dims_shifted(dim), *rest)


def reduced_along_one(call, examples, input, dim, keepdim):
    """Of reductions along a dimension, or over all elements in order."""
    n = example_dims(input)
    if dim is not None and n:
        return call(input, dim + 1, keepdim)
    result = call(input.reshape(input.shape[0], prod(input.shape[1:])), 1, False)
    return result.reshape(-1, *(1,) * n) if keepdim else result


def along(position: int):
    """Of ops whose argument at `position` after the input is a dimension, which the result may lack."""

    def along(call, examples, input, *rest):
        given, n = list(rest), example_dims(input)
        given[position] = dims_shifted((given[position],))[0] if n else 1
        if n:
            return call(input, *given)
        found = call(input.unsqueeze(1), *given)
        return _each(found, lambda one: one.squeeze(1) if array_dims(one.array) > 1 else one)

    return along


def joined(call, examples, tensors, dim):
    """Of ops that join tensors."""
    return call([full(t, examples) for t in tensors], dims_shifted((dim,))[0])


# -- batches of images ------------------------------------------------------------------------------------------------
def folded(tensor):
    """The examples' batches as one."""
    shape = tensor.shape
    return tensor.reshape(shape[0] * shape[1], *shape[2:])


def unfolded(found, count: int):
    """The batches of so many examples of each of what is `folded`."""
    return _each(found, lambda one: one.reshape(count, one.shape[0] // count, *one.shape[1:]))


def on_images(call, examples, input, *rest):
    """Of ops that do the same with each image of a batch."""
    if 0 in input.shape[:2]:
        return one_by_one(call, examples, input, *rest)
    return unfolded(call(folded(input), *rest), input.shape[0])


def to_images(call, examples, grad, shape, *rest):
    """Of gradients of such ops, which are given the images' shape."""
    count = grad.shape[0]
    if 0 in grad.shape[:2]:
        return one_by_one(call, examples, grad, shape, *rest)
    return unfolded(call(folded(grad), (count * shape[0], *shape[1:]), *rest), count)


# -- by size ----------------------------------------------------------------------------------------------------------
def sized(call, examples, size, *rest):
    """Of what fills a shape."""
    return call((examples, *size), *rest)


def the_same(call, examples, *values):
    """Of what is the same for all examples, and may be changed in place for each."""
    return full(call(*values).unsqueeze(0), examples).contiguous()


# -- random numbers ---------------------------------------------------------------------------------------------------
def differ() -> bool:
    """Whether random numbers are to be others for each example."""
    return bool(levels.running) and levels.running[max(levels.running)].randomness == "different"


def drawn(call, examples, size, *rest):
    """Of random numbers that fill a shape."""
    return sized(call, examples, size, *rest) if differ() else the_same(call, examples, size, *rest)
