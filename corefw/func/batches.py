"""`vmap`: a function of one example as a function of a batch of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from corefw.dispatch.batching.arrays import Level, levels
from corefw.dispatch.batching.tensors import all_examples, enter, is_batched, leave
from corefw.dispatch.declare import ops
from corefw.func.trees import LEAF, flatten, unflatten
from corefw.tensor import Tensor, next_sequence

_RANDOMNESS = ("error", "different", "same")


def vmap(
    func: Callable,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable:
    """The function that computes `func` for each example of a batch, all examples at once.

    Inside of `func` tensors have the shape of one example. Its elements cannot be looked at there (`item`, `if` on a
    tensor), nor may shapes depend on them.

    Args:
        func: takes tensors, in tuples, lists and dictionaries too, and returns tensors in such.
        in_dims: the dimension along which the examples of each argument lie, possibly negative; None for an argument
            that is the same for all. One for all arguments, or a tuple of one for each, where an argument that is a
            tree may have a tree of them. Keyword arguments are the same for all examples.
        out_dims: the dimension along which the examples of each output are to lie; one for all, or as many as outputs.
            None for an output that is the same for all.
        randomness: random numbers inside are refused by "error", are others for each example by "different", and the
            same for all by "same".
        chunk_size: the number of examples that are computed at once; None for all.

    Returns:
        A function with `func`'s arguments that returns what `func` does, with a dimension of examples.

    Raises:
        ValueError: `in_dims` or `out_dims` does not fit, sizes differ, or `func` returned other things than tensors.
        RuntimeError: what `func` does cannot be done for all examples at once.

    >>> import corefw as torch
    >>> torch.func.vmap(torch.dot)(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.ones(2, 2))
    tensor([3., 7.])
    >>> torch.func.vmap(torch.func.grad(lambda x: x**3))(torch.tensor([1.0, 2.0]))
    tensor([ 3., 12.])
    """
    if randomness not in _RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")
    if chunk_size is not None and not (chunk_size == chunk_size // 1 and chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def batched(*args, **kwargs):
        leaves, dims, structure, size = _examples(func, in_dims, args)
        starts = [0] if chunk_size is None else list(range(0, size, chunk_size)) or [0]
        parts: list = []
        found: Any = None
        outs: list = []
        for start in starts:
            count = size if chunk_size is None else min(chunk_size, size - start)
            some = leaves if len(starts) == 1 else [
                leaf if dim is None else leaf.narrow(dim, start, count) for leaf, dim in zip(leaves, dims)
            ]  # fmt: skip
            results, found, outs = _run(
                func, some, dims, structure, kwargs, Level(count, randomness, next_sequence()), out_dims
            )
            parts.append(results)
        results = parts[0] if len(parts) == 1 else [
            part[0] if out is None else ops.cat(list(part), out) for part, out in zip(zip(*parts), outs)
        ]  # fmt: skip
        return unflatten(results, found)

    return batched


def _run(
    func: Callable, leaves: list, dims: list, structure: Any, kwargs: dict, level: Level, out_dims: Any
) -> tuple[list, Any, list]:
    """The outputs of `func` for a batch, their structure, and the dimension of the examples in each."""
    depth = max(levels.running, default=0) + 1
    inputs = [x if d is None else enter(x if d == 0 else x.movedim(d, 0), depth) for x, d in zip(leaves, dims)]
    levels.running[depth] = level
    try:
        output = func(*unflatten(inputs, structure), **kwargs)
    finally:
        del levels.running[depth]
    found, out_structure = flatten(output)
    for one in found:
        if not isinstance(one, Tensor):
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` must only return Tensors, got type {type(one)}."
            )
    outs = [0] * len(found) if out_dims == 0 else _spread_over_outputs(func, out_dims, out_structure)
    return [_left(func, one, depth, level.size, d) for one, d in zip(found, outs)], out_structure, outs


def _left(func: Callable, output: Tensor, depth: int, size: int, dim: int | None) -> Tensor:
    """An output as it is seen outside, its examples along `dim`."""
    inside = is_batched(output) and output.dispatch_key.device.depth == depth
    if dim is None:
        if inside:
            raise ValueError(
                f"vmap({_name(func)}, ...): `{_name(func)}` can not return a batched tensor when out_dim is None"
            )
        return output
    count = len(output.shape) + 1
    if not -count <= dim < count:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-count}, {count - 1}], but got {dim})")
    result = leave(output) if inside else output.unsqueeze(0).expand(size, *output.shape)
    return result if dim == 0 else result.movedim(0, dim)


def _name(func: Callable) -> str:
    return getattr(func, "__name__", repr(func))


def _examples(func: Callable, in_dims: Any, args: tuple) -> tuple[list, list, Any, int]:
    """The leaves of the arguments, the dimension of the examples in each, their structure, and the number of
    examples."""
    who = f"vmap({_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple, list)) or isinstance(in_dims, bool):
        raise ValueError(
            f"{who}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(f"{who}: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a "
                         "function with no inputs. The latter is unsupported.")  # fmt: skip
    leaves, structure = flatten(args)
    dims: list = []
    if not _spread(tuple(in_dims) if isinstance(in_dims, list) else in_dims, structure, dims):
        raise ValueError(
            f"{who}: in_dims is not compatible with the structure of inputs: it has structure {flatten(in_dims)[1]} "
            f"but inputs has structure {structure}."
        )
    sizes = []
    for i, (leaf, dim) in enumerate(zip(leaves, dims)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(f"{who}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or "
                             "None.")  # fmt: skip
        if not isinstance(leaf, Tensor):
            raise ValueError(f"{who}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot "
                             "vmap over non-Tensor arguments, please use None as the respective in_dim")  # fmt: skip
        count = len(leaf.shape)
        if not -count <= dim < count:
            raise ValueError(f"{who}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                             f"{count} so expected in_dim to satisfy -{count} <= in_dim < {count}.")  # fmt: skip
        dims[i] = dim % count
        sizes.append(leaf.shape[dims[i]])
    if not sizes:
        raise ValueError(f"{who}: at least one in_dim must be an integer: no argument has examples")
    if len(set(sizes)) > 1:
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} "
                         "for the mapped dimension")  # fmt: skip
    return leaves, dims, structure, sizes[0]


def _spread(prefix: Any, structure: Any, dims: list) -> bool:
    """Give each leaf of a structure what the tree `prefix` has for it or for a branch with it; whether they fit."""
    if prefix is None or isinstance(prefix, int):
        if structure == LEAF:
            dims.append(prefix)
            return True
        return all(_spread(prefix, branch, dims) for branch in structure[2])
    if structure == LEAF:
        if isinstance(prefix, (tuple, list, dict)):
            return False
        dims.append(prefix)
        return True
    _, keys, branches = structure
    if isinstance(prefix, dict):
        return keys is not None and set(prefix) == set(keys) and all(
            _spread(prefix[key], branch, dims) for key, branch in zip(keys, branches)
        )  # fmt: skip
    if keys is not None or not isinstance(prefix, (tuple, list)) or len(prefix) != len(branches):
        return False
    return all(_spread(one, branch, dims) for one, branch in zip(prefix, branches))


def _spread_over_outputs(func: Callable, out_dims: Any, structure: Any) -> list:
    dims: list = []
    one = isinstance(out_dims, (tuple, list)) and len(out_dims) == 1 and structure == LEAF
    if not _spread(out_dims[0] if one else out_dims, structure, dims):
        raise ValueError(
            f"vmap({_name(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure "
            f"of outputs, {structure}."
        )
    for dim in dims:
        if dim is not None and not isinstance(dim, int):
            raise ValueError(f"vmap({_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a "
                             "python collection of them")  # fmt: skip
    return dims


def debug_unwrap(tensor: Tensor, *, recurse: bool = True) -> Tensor:
    """What a tensor inside of `vmap` stands for: the tensor with all examples, to print while debugging.

    Args:
        tensor: any; one outside of `vmap` is returned as it is.
        recurse: whether all `vmap`s around are seen through, or the innermost one alone.

    Returns:
        A tensor without history over the same memory, the examples along its first dimensions.

    >>> import corefw as torch
    >>> def show(x):
    ...     print(torch.func.debug_unwrap(x))
    ...     return x
    >>> _ = torch.func.vmap(show)(torch.tensor([1.0, 2.0]))
    tensor([1., 2.])
    """
    if not is_batched(tensor):
        return tensor
    return all_examples(tensor) if recurse else leave(tensor.detach())
