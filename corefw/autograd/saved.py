"""What a node saved for its gradient: read by name, or packed by hooks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from corefw.dtypes import FLOATING
from corefw.errors import GradientError
from corefw.graph.grad_mode import no_recording
from corefw.graph.nodes import freed, output_node
from corefw.graph.views import node_of
from corefw.tensor import Constant, Node, Tensor, named, wrap

_PYTORCH_NAMES = {"input": "self", "out": "result"}  # in `grad_fn._saved_self`


def saved_names(name: str) -> tuple[str, ...]:
    """What a saved value can be read as: by the op's own name, and by PyTorch's where that is another."""
    value = name.removesuffix("_shape")
    theirs = _PYTORCH_NAMES.get(value, value) + ("_sym_sizes" if value != name else "")
    return (name,) if theirs == name else (name, theirs)


def _entries(node: Node, saved) -> Iterator[tuple[str, str, Any, Any]]:
    """(name, kind, value, version) of what is saved."""
    items = iter(saved)
    for name, kind in node.saved_kinds:
        value = next(items)
        yield name, kind, value, next(items) if kind in ("tensor", "tensors") else None


def saved_values(node: Node) -> dict[str, Any]:
    """What the node saved, by name; tensors as tensors with their history, numbers among them as numbers.

    Raises:
        RuntimeError: it was freed by a backward.
    """
    if node.saved is None:
        raise freed(node)
    values = {}
    for name, kind, value, _ in _entries(node, node.saved):
        if kind == "output" and value is not None:
            value = restored_output(node, name, value[0])
        elif value.__class__ is Constant:
            value = value.number
        values.update(dict.fromkeys(saved_names(name), value))
    return values


def restored_output(node: Node, name: str, array) -> Tensor:
    """The node's output called `name` over its saved array; saving the tensor itself would make a cycle."""
    if not node.output_names:
        return wrap(array, node.dispatch_key, node)
    index = node.output_names.index(name)
    dispatch_key = node.dispatch_key[index]
    return wrap(
        array,
        dispatch_key,
        output_node(node, index, array, dispatch_key) if dispatch_key.dtype.category >= FLOATING else None,
    )


class _PackedTensor:
    """One packed tensor; it is unpacked each time it is asked for."""

    __slots__ = ("node", "packed", "unpack")

    def __init__(self, tensor: Tensor, node: Node | None, pack: Callable, unpack: Callable):
        before = tensor.version[0]
        with no_recording():
            self.packed = pack(tensor)
        if tensor.version[0] != before:
            raise GradientError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
                "not be modified by in-place operations as this can lead to unexpected side-effects. Please open an "
                "issue if you need to perform in-place operations on the input to a pack hook."
            )
        self.node = node
        self.unpack = unpack

    def tensor(self) -> Tensor:
        found = self.unpack(self.packed)
        if not isinstance(found, Tensor):
            raise TypeError(
                f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(found).__name__}"
            )
        return wrap(found.array, found.dispatch_key, self.node)


class Packed:
    """What stands in ``node.saved`` for the plain tuple: unpacks while it is iterated over.

    Versions are not checked: changes of what `unpack` returns cannot be followed.
    """

    __slots__ = ("entries",)

    def __init__(self, node: Node, pack: Callable, unpack: Callable):
        self.entries: list[tuple[str, Any, Any]] = []
        for name, kind, value, version in _entries(node, node.saved):
            if kind == "tensor":
                value = _packed(value, pack, unpack)
            elif kind == "tensors":
                value = [_packed(t, pack, unpack) for t in value]
            elif kind == "output" and value is not None:
                value = _PackedTensor(restored_output(node, name, value[0]).detach(), None, pack, unpack)
            self.entries.append((kind, value, version))

    def __iter__(self) -> Iterator[Any]:
        for kind, value, version in self.entries:
            if kind == "tensor":
                tensor = _unpacked(value)
                yield tensor
                yield version if tensor is value else 0
            elif kind == "tensors":
                tensors = tuple(map(_unpacked, value))
                yield tensors
                yield [v if t is packed else 0 for t, packed, v in zip(tensors, value, version, strict=True)]
            elif kind == "output" and value is not None:
                tensor = value.tensor()
                yield tensor.array, tensor.version, 0
            else:
                yield value


def _packed(tensor: Tensor | None, pack: Callable, unpack: Callable):
    """The tensor packed; numbers and what is absent stay as they are."""
    if tensor is None or tensor.__class__ is Constant:
        return tensor
    return _PackedTensor(tensor, node_of(tensor), pack, unpack)


def _unpacked(value):
    return value.tensor() if value.__class__ is _PackedTensor else value


def pack_saved(node: Node, pack: Callable, unpack: Callable) -> None:
    """Let `node` hold what `pack` makes of its saved tensors, until `unpack` gives them back."""
    named(node)  # while what is saved can be read without unpacking it
    if node.saves_tensors and node.saved is not None:
        node.saved = Packed(node, pack, unpack)
