"""Index tensors of the examples of a `func.vmap`: the batching rules of reading and writing at positions, and masks."""

from __future__ import annotations

from corefw import dtypes
from corefw.declarations._shared.batching import example_dims, full
from corefw.dispatch.batching.arrays import array_dims
from corefw.dispatch.batching.calls import aligned, data_dependent, one_by_one
from corefw.dispatch.declare import ops


def index_batching(call, examples, input, indices):
    """The rule of reading at positions."""
    if any(is_mask([one]) for one in indices):
        raise data_dependent("index with a mask")
    if not any(one is not None for one in indices):
        return call(input, [None])
    places, start, n, given = _of_examples(examples, indices)
    if given[0] is None and places[-1] - places[0] < len(places):
        return call(input, [None if one is None else one[0] for one in (None, *indices)])
    behind = tuple(range(1, len(places) + 1))
    result = call(full(input, examples).movedim([p + 1 for p in places], behind), given)
    return result.movedim(tuple(range(1, n + 1)), tuple(range(start + 1, start + n + 1)))


def _of_examples(examples: int, indices) -> tuple[list[int], int, int, list]:
    """Index tensors for the first dimensions of all examples: which dimensions those are in an example, behind how many
    others the tensors' common shape goes, how many dimensions it has, and the tensors behind one for the examples, None
    where they are the same for all."""
    places = [i for i, one in enumerate(indices) if one is not None]
    given = aligned(*(indices[i] for i in places))
    n = array_dims(given[0].array) - 1
    start = places[0] if places[-1] - places[0] < len(places) else 0
    if all(one.shape[0] == 1 for one in given):
        return places, start, n, [None, *(one[0] for one in given)]
    counts = ops.arange(examples, device=given[0].device)
    return places, start, n, [counts.reshape(-1, *(1,) * n), *given]


def index_put_batching(call, examples, input, indices, values, accumulate):
    """The rule of writing to positions, or to the places of a mask."""
    if any(is_mask([one]) for one in indices):
        return _put_by_mask(call, examples, input, indices, values, accumulate)
    if not any(one is not None for one in indices):
        return one_by_one(call, examples, input, indices, values, accumulate)
    places, start, n, given = _of_examples(examples, indices)
    missing = example_dims(input) - len(places) + n - example_dims(values)
    values = values.reshape(values.shape[0], *(1,) * missing, *values.shape[1 + max(-missing, 0) :])
    values = values.movedim(tuple(range(start + 1, start + n + 1)), tuple(range(1, n + 1)))
    before, behind = tuple(p + 1 for p in places), tuple(range(1, len(places) + 1))
    return call(full(input, examples).movedim(before, behind), given, values, accumulate).movedim(behind, before)


def _put_by_mask(call, examples, input, indices, values, accumulate):
    """What goes to all places of a mask is chosen there; how many values go to each example only its mask tells."""
    at, mask = next((i, one) for i, one in enumerate(indices) if one is not None)
    behind = at + example_dims(mask)
    rest = example_dims(input) - behind
    fits = is_mask(indices) and mask.shape[1:] == input.shape[1 + at : 1 + behind]
    if not fits or not is_for_all_places(values.shape[1:], rest):
        return one_by_one(call, examples, input, indices, values, accumulate)
    if example_dims(values) > rest:
        before, after = values.shape[: values.ndim - rest - 1], values.shape[values.ndim - rest :]
        values = values.reshape(*before, *(1,) * (behind - at), *after)
    input, values = aligned(input, values)
    mask = mask.to(dtypes.bool_).reshape(mask.shape[0], *(1,) * at, *mask.shape[1:], *(1,) * rest)
    return ops.choose(mask, input + values if accumulate else values, input)


def is_for_all_places(shape, rest: int) -> bool:
    """Whether values of this shape do not tell the places of a mask apart, behind which there are `rest` dimensions."""
    return len(shape) <= rest or shape[len(shape) - rest - 1] == 1


def is_mask(indices: list) -> bool:
    """Whether the index tensors are one mask."""
    given = [item for item in indices if item is not None]
    return len(given) == 1 and given[0].dispatch_key.dtype in (dtypes.bool_, dtypes.uint8)
