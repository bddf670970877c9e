"""Views, and what joins tensors: dimensions that are kept stay cut; those that are joined or divided where the parts
are equal."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

from corefw.dispatch.declare import ops
from corefw.distributed.tensor.calls import rule
from corefw.distributed.tensor.rules.reductions import dims_of, letters
from corefw.distributed.tensor.shardings import Sharding
from corefw.shapes import as_shape, canonical_dim, infer_size


def _arrow(left: Sequence[str], right: Sequence[str]) -> str:
    return f"{''.join(left) or '...'} -> {''.join(right) or '...'}"


@rule("alias")
def _alias(input):
    return "... -> ..."


@rule("permute")
def _permuted(input, dims):
    names = letters(input.ndim)
    return _arrow(names, [names[d] for d in dims_of(dims, input.ndim)])


@rule("transpose", "swapaxes", "swapdims")
def _transposed(input, dim0, dim1):
    names = letters(input.ndim)
    turned, (a, b) = list(names), dims_of((dim0, dim1), input.ndim)
    turned[a], turned[b] = names[b], names[a]
    return _arrow(names, turned)


@rule("t")
def _turned(input):
    names = letters(input.ndim)
    return _arrow(names, names[::-1])


@rule("squeeze")
def _squeezed(input, dim=None):
    dims = [d for d in dims_of(dim, input.ndim) if input.shape[d] == 1]
    names = letters(input.ndim, dims)
    return _arrow(names, [name for d, name in enumerate(names) if d not in dims])


@rule("unsqueeze")
def _unsqueezed(input, dim):
    names = letters(input.ndim)
    at = canonical_dim(dim, input.ndim + 1)
    return _arrow(names, [*names[:at], "1", *names[at:]])


@rule("expand")
def _expanded(input, size):
    return _expansion(tuple(input.shape), tuple(as_shape(size)))


@lru_cache(1024)
def _expansion(shape: tuple[int, ...], size: tuple[int, ...]) -> Sharding:
    added = len(size) - len(shape)
    labels = [None if n == 1 else name for name, n in zip(letters(len(shape)), shape)]
    whole = tuple(m if m != -1 else n for m, n in zip(size, [*size[:added], *shape]))
    return Sharding([tuple(labels)], [(*[None] * added, *labels)], [[0]], whole, resized=1)


@rule("view_size", "unsafe_view")
def _viewed(input, size):
    return _view(tuple(input.shape), tuple(as_shape(size)))


@lru_cache(1024)
def _view(shape: tuple[int, ...], size: tuple[int, ...]) -> Sharding:
    whole = tuple(infer_size(size, prod(shape)))
    before, after = _matched(shape, whole)
    return Sharding([before], [after], [[0]], whole, resized=1, instead=ops.reshape)  # parts have an order of their own


def _matched(before: Sequence[int], after: Sequence[int]) -> tuple[tuple, tuple]:
    """Labels of the dimensions of two shapes of one tensor: the first of those that become others together may be cut,
    since its parts lie one after another in both.

    >>> _matched((6, 1, 4), (2, 3, 4))
    (('0', None, '1'), ('0', None, '1'))
    """
    labels: tuple[list[Any], list[Any]] = ([None] * len(before), [None] * len(after))
    if 0 in before:
        return tuple(labels[0]), tuple(labels[1])
    i = j = count = 0
    while i < len(before) and j < len(after):
        if before[i] == 1 or after[j] == 1:
            i, j = i + (before[i] == 1), j + (after[j] == 1 and before[i] != 1)
            continue
        labels[0][i] = labels[1][j] = str(count)
        count, size, other, i, j = count + 1, before[i], after[j], i + 1, j + 1
        while size != other:
            if size < other:
                size, i = size * before[i], i + 1
            else:
                other, j = other * after[j], j + 1
    return tuple(labels[0]), tuple(labels[1])


@rule("slice_index", "integer_index", "new_dimension_index")
def _indexed(input, key):
    names = letters(input.ndim)
    left: list[str] = []
    right: list[str] = []
    rest = input.ndim - sum(item is not None and item is not Ellipsis for item in key)
    for item in [*key] if Ellipsis in key else [*key, Ellipsis]:
        if item is None:
            right.append("1")
        elif item is Ellipsis:
            right += names[len(left) : len(left) + rest]
            left += names[len(left) : len(left) + rest]
        else:
            name = names[len(left)]
            is_all = item == slice(None)
            left.append(name if is_all else name.upper())
            right += [name if is_all else "1"] if isinstance(item, slice) else []
    return _arrow(left, right)


@rule("select", "unbind")
def _selected(input, dim, index=None):
    dims = dims_of(dim, input.ndim)
    names = letters(input.ndim, dims)
    return _arrow(names, [name for d, name in enumerate(names) if d not in dims])


@rule("split_with_sizes", "equal_split", "flip")
def _along(input, *attributes):
    names = letters(input.ndim, dims_of(attributes[-1], input.ndim))
    return _arrow(names, names)


@rule("roll")
def _rolled(input, shifts, dims=()):
    return _along(input, dims) if dims else None  # without dimensions all elements are one row


@rule("tril", "triu")
def _triangle(input, diagonal=0):
    return "...AB -> ...AB"


@rule("cat", "concat", "concatenate")
def _joined(tensors, dim=0):
    names = letters(tensors[0].ndim, dims_of(dim, tensors[0].ndim))
    if any(tensor.ndim != len(names) for tensor in tensors):  # an empty one, which PyTorch lets have any shape
        return None
    word = "".join(names)
    return f"{' + '.join([word] * len(tensors))} -> {word}"


@rule("stack")
def _stacked(tensors, dim=0):
    names = letters(tensors[0].ndim)
    at, word = canonical_dim(dim, len(names) + 1), "".join(names) or "..."
    return f"{' + '.join([word] * len(tensors))} -> {''.join(names[:at])}1{''.join(names[at:])}"


@rule("index_select")
def _chosen(input, dim, index):
    names = letters(input.ndim, dims_of(dim, input.ndim))
    return f"{''.join(names)} ~I -> {''.join(names)}"
