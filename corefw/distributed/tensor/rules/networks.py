"""Attention, normalisation, embeddings and losses."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache
from typing import Any

from corefw.dispatch.declare import ops
from corefw.dispatch.registry import registry
from corefw.distributed.tensor.calls import meaning, rule, whole_beside
from corefw.distributed.tensor.parts import in_parts, placed, whole_of
from corefw.distributed.tensor.placements import WHOLE, Shard
from corefw.distributed.tensor.rules.reductions import letters
from corefw.distributed.tensor.shardings import Sharding, parsed

#: whether losses may be computed of logits in parts along the classes, as `loss_parallel` lets them
by_classes: ContextVar[bool] = ContextVar("by_classes", default=False)


@rule("attention")
def _attention(query, key, value, bias=None, is_causal=False, scale=1.0):
    q = "Q" if is_causal else "q"  # a query's place is what it may attend to
    return f"~...{q}D ~...KD ~...KV ~...{q}K -> ...{q}V ...{q}"


@rule("layer_normalization")
def _layer(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    names = "".join(letters(len(normalized_shape), range(len(normalized_shape))))
    return f"~...{names} ~{names} ~{names} -> ...{names} ...{'1' * len(names)} ...{'1' * len(names)}"


@rule("rms_normalization")
def _root_mean_square(input, normalized_shape, weight=None, eps=0.0):
    names = "".join(letters(len(normalized_shape), range(len(normalized_shape))))
    return f"~...{names} ~{names} -> ...{names} ...{'1' * len(names)}"


@rule("convolution")
def _convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    space = "".join(letters(input.ndim - 2, range(input.ndim - 2)))
    if transposed or groups != 1 or not _suffice(weight.shape[0], input, weight, bias):
        return f"~nI{space} ~IO{space} ~O -> nO{space}"
    return f"~nI{space} ~oI{space} ~o -> no{space}"


@rule("max_pool", "adaptive_max_pool")
def _greatest_of_windows(input, size, *attributes):
    said = _windows(input, size)
    return f"{said} {said.partition('-> ')[2]}"


@rule("avg_pool", "adaptive_avg_pool")
def _windows(input, size, *attributes):
    channels = input.ndim - len(size) - 1
    whole = range(channels + _suffice(input.shape[channels], input), input.ndim)
    names = "".join(letters(input.ndim, whole))
    return f"~{names} -> {names}"


def _suffice(channels: int, *tensors: Any) -> bool:
    """Whether there are channels for all processes of the mesh: kernels want some."""
    count = next(t.array.spec.mesh.size() for t in tensors if in_parts(t))
    return Shard.local_shard_size_and_offset(channels, count, count - 1)[0] > 0


# -- rows of tables in parts ------------------------------------------------------------------------------------------
def _places(positions: Any, table: Any, dim: int) -> tuple[Any, Any]:
    """Positions along a dimension of a table as those in this process's part, and which of them are not there."""
    spec = table.array.spec
    first, count = spec.extent(table.shape)[1][dim], table.array.local.shape[dim]
    places = positions - first
    elsewhere = ops.logical_or(places < 0, places >= count)
    return places.masked_fill(elsewhere, 0), elsewhere


def _filled(table: Any, dim: int) -> Any:
    """A part with at least one element along a dimension."""
    if table.shape[dim]:
        return table
    shape = list(table.shape)
    shape[dim] = 1
    return ops.cat([table, table.new_zeros(shape)], dim)


def _rows_of_parts(moved, weight, indices, padding_idx=-1, scale_grad_by_freq=False):
    places, elsewhere = _places(indices, moved[0], 0)
    first = moved[0].array.spec.extent(moved[0].shape)[1][0]
    padding = padding_idx - first if first <= padding_idx < first + weight.shape[0] else -1
    rows = ops.pick_rows(_filled(weight, 0), places, padding, scale_grad_by_freq)
    return rows.masked_fill(elsewhere.unsqueeze(-1), 0)


@rule("pick_rows")
def _rows(weight, indices, padding_idx=-1, scale_grad_by_freq=False):
    return _of_table("vd ~... -> ...d", "v", _rows_of_parts, (tuple(weight.shape), tuple(indices.shape)))


def _gathered_of_parts(moved, input, dim, index, sparse_grad=False):
    places, elsewhere = _places(index, moved[0], dim)
    return _filled(input, dim).gather(dim, places).masked_fill(elsewhere, 0)


@rule("gather")
def _gathered(input, dim, index, sparse_grad=False):
    if index.ndim != input.ndim or not input.ndim:
        return None
    names = [
        name if n == m or d == dim else name.upper()
        for d, (name, n, m) in enumerate(zip(letters(input.ndim), input.shape, index.shape))
    ]
    table, chosen = "".join(names), "".join(name if d != dim else name.upper() for d, name in enumerate(names))
    shapes = tuple(input.shape), tuple(index.shape)
    return _of_table(f"{table} ~{chosen} -> {chosen}", names[dim], _gathered_of_parts, shapes)


@lru_cache(1024)
def _of_table(said: str, label: str, of_parts: Callable, shapes: tuple) -> Sharding:
    """A rule by which a table may be cut where it is looked up, with a function of its own for that."""
    found = parsed(said, shapes)
    found.local[label] = of_parts
    return found


# -- losses -----------------------------------------------------------------------------------------------------------
def _cross_entropy(input: Any, target: Any, ignore_index: int, reduction: str) -> tuple[Any, None]:
    """The logarithms of the softmax's denominators without the targets' scores, both whole, so that nothing is sent for
    the gradient; and no normalizer, which is for the gradient of the op."""
    dim = 0 if input.ndim == 1 else 1
    relative, ignored = input - input.detach().amax(dim, True), target == ignore_index
    denominators = relative.exp().sum(dim).log().masked_fill(ignored, 0)
    loss = ops.class_nll(relative, target, ignore_index, "none") + denominators
    if reduction == "none":
        return loss, None
    return loss.sum() if reduction == "sum" else loss.sum() / ignored.logical_not().sum(), None


def _loss(name: str, of_parts: Callable) -> None:
    op = registry.declared[name]

    @meaning(name)
    def loss(input: Any, target: Any, *attributes: Any) -> Any:
        """In ops that have rules, where something is cut: classes within `loss_parallel` alone, where the target may be
        a plain tensor."""
        if not in_parts(input):
            return NotImplemented
        if not in_parts(target) and by_classes.get():
            return op.function(input, whole_of(target, input.array.spec.mesh), *attributes)
        placements, dim = input.array.spec.placements, 0 if input.ndim == 1 else 1
        if any(p.is_shard(dim) for p in placements) and not by_classes.get():
            input = placed(input, input.array.spec.replaced([WHOLE if p.is_shard(dim) else p for p in placements]))
        if not in_parts(target) or not any(p.is_shard() for t in (input, target) for p in t.array.spec.placements):
            return NotImplemented
        with whole_beside():
            return of_parts(input, target, *attributes)


_loss("class_cross_entropy", _cross_entropy)
_loss("class_nll", registry.declared["class_nll"].body)


# -- chance -----------------------------------------------------------------------------------------------------------
@meaning("masked_dropout")
def _dropout(input, p, seed, offset):
    """Each process draws for the whole and keeps its part, so that the numbers are those of one process."""
    if input.array.spec.is_whole:
        return NotImplemented
    with whole_beside():
        return registry.declared["masked_dropout"].body(input, p, seed, offset)
