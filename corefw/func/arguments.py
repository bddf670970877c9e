"""What transforms are told: which arguments to differentiate with respect to, and what a function returned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw.func.level import Level
from corefw.func.trees import flatten, unflatten
from corefw.tensor import Tensor


def checked(value: Any) -> Tensor:
    """An argument that a transform differentiates with respect to; ValueError if it is no tensor."""
    if not isinstance(value, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(value)}")
    return value


class Picked:
    """The arguments of a call that a transform differentiates with respect to.

    Attributes: ``leaves`` their tensors.
    """

    def __init__(self, args: tuple, argnums: int | tuple[int, ...]):
        self._args, self._positions = args, _positions(argnums, len(args))
        self._one = isinstance(argnums, int)
        chosen = args[self._positions[0]] if self._one else tuple(args[i] for i in self._positions)
        self.leaves, self._structure = flatten(chosen)

    def tree(self, leaves: list) -> Any:
        """One value per tensor, in the form in which the arguments came."""
        return unflatten(leaves, self._structure)

    def replaced(self, leaves: list) -> tuple:
        """All arguments, with others in the place of these tensors."""
        inputs = self.tree(leaves)
        found = dict(zip(self._positions, (inputs,) if self._one else inputs))
        return tuple(found.get(i, value) for i, value in enumerate(self._args))


class Chosen(Picked):
    """The same as inputs of a level.

    Attributes: ``args`` all arguments, these replaced; ``leaves`` the inputs.
    """

    def __init__(self, level: Level, args: tuple, argnums: int | tuple[int, ...]):
        super().__init__(args, argnums)
        self.leaves = [level.input(leaf) for leaf in self.leaves]
        self.args = self.replaced(self.leaves)


def _positions(argnums: Any, count: int) -> list[int]:
    """The positions, none negative, that `argnums` says among so many arguments."""
    if not isinstance(argnums, int) and not (isinstance(argnums, tuple) and all(isinstance(i, int) for i in argnums)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    given = (argnums,) if isinstance(argnums, int) else argnums
    if not given:
        raise RuntimeError("argnums must be non-empty")
    for i in given:
        if not -count <= i < count:
            raise RuntimeError(f"Got argnum={i}, but only {count} positional inputs")
    positions = [i % count for i in given]
    if len(set(positions)) != len(positions):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return positions


def call(who: str, func: Callable, args: tuple, kwargs: dict[str, Any], has_aux: bool) -> tuple[Any, Any]:
    """The output of the function, and what it returned beside it (None without `has_aux`)."""
    output = func(*args, **kwargs)
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{who}: output of function f should be a tuple: (output, aux) if has_aux is True")
    for leaf in flatten(output[1])[0]:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(leaf)}")
    return output


def output_leaves(who: str, output: Any) -> tuple[list[Tensor], Any]:
    """The tensors that a function returned, and in what structure."""
    leaves, structure = flatten(output)
    if not leaves:
        raise RuntimeError(f"{who}: expected f(*primals) to return at least one tensor, got {output!r}")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{who}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}")
    return leaves, structure
