"""A module called with other parameters than its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from corefw.nn.modules.module import Module
from corefw.tensor import Tensor


def functional_call(
    module: Module, parameters_and_buffers: Mapping[str, Tensor], args: Any = None,
    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """What a module gives with these tensors in the place of its own.

    Args:
        module: what is called.
        parameters_and_buffers: {path: tensor}; the others are the module's own.
        args: the arguments, a tuple, or one alone.
        kwargs: the arguments by keyword.
        tie_weights: whether a tensor that the module has under several paths is replaced under all.
        strict: whether all the module's tensors are to be given.

    Raises:
        RuntimeError: with `strict` a path is missing or unknown.
        ValueError: different tensors were given for one that the module has twice.

    >>> import corefw as torch
    >>> layer = torch.nn.Linear(1, 1)
    >>> tensors = {"weight": torch.tensor([[2.0]]), "bias": torch.tensor([1.0])}
    >>> torch.nn.utils.stateless.functional_call(layer, tensors, torch.tensor([[3.0]]))
    tensor([[7.]])
    """
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, dict(parameters_and_buffers), tie_weights, strict):
        return module(*args, **(kwargs or {}))


def _tensors_of(module: Module) -> dict[str, Tensor]:
    found = dict(module.named_parameters(remove_duplicate=False))
    return found | dict(module.named_buffers(remove_duplicate=False))


@contextmanager
def _replaced(module: Module, given: dict[str, Tensor], tie_weights: bool, strict: bool) -> Iterator[None]:
    """The module with other tensors in it."""
    own = _tensors_of(module)
    if strict and own.keys() != given.keys():
        missing, unknown = sorted(own.keys() - given.keys()), sorted(given.keys() - own.keys())
        raise RuntimeError(f"Missing key(s): {missing}. Unexpected key(s): {unknown}.")
    if tie_weights:
        given = _tied(own, given)
    before = []
    try:
        for path, tensor in given.items():
            *parents, name = path.split(".")
            owner = module.get_submodule(".".join(parents))
            members = owner._parameters if name in owner._parameters else owner._buffers
            if name not in members:
                raise AttributeError(f"{type(owner).__name__} has no parameter or buffer '{name}'")
            before.append((members, name, members[name]))
            members[name] = tensor
        yield
    finally:
        for members, name, tensor in reversed(before):
            members[name] = tensor


def _tied(own: dict[str, Tensor], given: dict[str, Tensor]) -> dict[str, Tensor]:
    """What was given, for all paths of a tensor that has several."""
    paths: dict[int, list[str]] = {}
    for path, tensor in own.items():
        paths.setdefault(id(tensor), []).append(path)
    found = dict(given)
    for several in paths.values():
        replaced = [path for path in several if path in given]
        if len({id(given[path]) for path in replaced}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {replaced}, which are tied. Consider tie_weights=False"
            )
        for path in several if replaced else ():
            found[path] = given[replaced[0]]
    return found
