"""Transforms that give whole matrices of derivatives: Jacobians by rows and by columns, and Hessians."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from corefw.dispatch.declare import ops
from corefw.func.arguments import Chosen, call, output_leaves
from corefw.func.batches import vmap
from corefw.func.forward import Pushforward
from corefw.func.level import Level, vector_jacobian
from corefw.func.trees import unflatten
from corefw.tensor import Tensor

_RANDOMNESS = ("error", "different", "same")


def units(tensors: Sequence[Tensor], index: int) -> Iterator[list[Tensor]]:
    """For each element of ``tensors[index]`` zeros like all tensors, but a one there."""
    for element in range(tensors[index].numel()):
        vectors = [one.detach().new_zeros(one.shape) for one in tensors]  # contiguous
        vectors[index].view(-1)[element] = 1
        yield vectors


def _rows(
    outputs: list[Tensor], i: int, inputs: list[Tensor], again: bool, chunk_size: int | None, preallocated: bool
) -> list[Tensor]:
    """For each input the derivatives of the elements of ``outputs[i]`` by it: one backward for each chunk of these,
    recorded to be differentiated `again`."""
    one = outputs[i]
    vectors = [other.detach().new_zeros(other.shape) for other in outputs]

    def row(unit: Tensor) -> tuple[Tensor, ...]:
        return tuple(vector_jacobian(outputs, inputs, [*vectors[:i], unit, *vectors[i + 1 :]], again))

    count = one.numel()
    size = min(chunk_size or count, count)
    found = [x.detach().new_empty((count, *x.shape)) for x in inputs] if preallocated or not count else []
    parts: list[tuple[Tensor, ...]] = []
    for start in range(0, count, size or 1):
        places = ops.arange(start, min(start + size, count), device=one.device).unsqueeze(1)
        chunk = vectors[i].new_zeros((places.shape[0], count)).scatter(1, places, value=1).reshape((-1, *one.shape))
        rows = tuple(r.unsqueeze(0) for r in row(chunk[0])) if chunk_size == 1 else vmap(row)(chunk)
        if preallocated:
            for whole, part in zip(found, rows, strict=True):
                whole.narrow(0, start, part.shape[0]).copy_(part)
        else:
            parts.append(rows)
    if parts:
        found = [part[0] if len(part) == 1 else ops.cat(part) for part in zip(*parts, strict=True)]
    return [whole.reshape((*one.shape, *x.shape)) for whole, x in zip(found, inputs, strict=True)]


def _columns(columns: list[Tensor], output: Tensor, input: Tensor) -> Tensor:
    """The derivatives of `output` by the elements of `input`, one after the other, as one tensor of both shapes."""
    shape = (*output.shape, *input.shape)
    if not columns:
        return output.detach().new_zeros(shape)
    return ops.stack([column.reshape(-1) for column in columns], -1).reshape(shape)


def jacrev(
    func: Callable,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable:
    """The function that gives the Jacobian of `func` by rows: one for each element of the output, by a `vmap` of the
    backward.

    Args:
        func: returns tensors, in tuples, lists and dictionaries if several; with `has_aux` a tuple of them and of
            tensors that are handed on.
        argnums: the position of the argument to differentiate with respect to, or a tuple of several.
        has_aux: whether `func` returns something beside its output.
        chunk_size: how many rows are computed at once; None for all those of an output, which takes the most memory.
            With 1 there is no `vmap`.
        _preallocate_and_copy: whether chunks are copied into the Jacobian as they come instead of being joined at the
            end, when they and the whole take memory together.

    Returns:
        A function with `func`'s arguments. For each output, in the output's form, it gives for each input, in the
        input's form, a tensor of the output's shape followed by the input's; or (Jacobian, aux).

    >>> import corefw as torch
    >>> torch.func.jacrev(lambda x: x * x)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")
    who = "vjp(f, *primals)"

    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        with Level() as level:
            chosen = Chosen(level, args, argnums)
            output, aux = call(who, func, chosen.args, kwargs, has_aux)
            outputs, structure = output_leaves(who, output)
            again = level.recorded and level.leads_out(outputs)
            blocks = [
                chosen.tree(_rows(outputs, i, chosen.leaves, again, chunk_size, _preallocate_and_copy))
                for i in range(len(outputs))
            ]
        found = level.leave(unflatten(blocks, structure))
        return (found, level.leave(aux)) if has_aux else found

    return jacobian


def jacfwd(
    func: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable:
    """The function that gives the Jacobian of `func`, column by column: one product with a unit vector per element of
    the input.

    Args:
        func, argnums, has_aux: as for `jacrev`.
        randomness: "error", "different" or "same"; `func` is called once, so that its random numbers are the same for
            all columns.

    Returns:
        As `jacrev`.

    >>> import corefw as torch
    >>> torch.func.jacfwd(lambda x: x * x)(torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if randomness not in _RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")

    @functools.wraps(func)
    def jacobian(*args, **kwargs):
        linear = Pushforward("jvp(f, primals, tangents)", func, args, argnums, has_aux, kwargs)
        inputs = linear.chosen.leaves
        columns = [[linear.push(v) for v in units(inputs, j)] for j in range(len(inputs))]
        blocks: list[Any] = []
        for i, one in enumerate(linear.outputs):
            of_inputs = [_columns([column[i] for column in columns[j]], one, x) for j, x in enumerate(inputs)]
            blocks.append(linear.chosen.tree(of_inputs))
        found = unflatten(blocks, linear.structure)
        return (found, linear.aux) if has_aux else found

    return jacobian


def hessian(func: Callable, argnums: int | tuple[int, ...] = 0) -> Callable:
    """The function that gives the Hessian of `func`: the Jacobian, by columns, of its Jacobian by rows.

    Args:
        func, argnums: as for `jacrev`.

    Returns:
        A function with `func`'s arguments. For each output and pair of inputs it gives a tensor of their three shapes.

    >>> import corefw as torch
    >>> torch.func.hessian(lambda x: (x ** 3).sum())(torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
