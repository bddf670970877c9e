"""Modules as functions of their tensors: called with others, stacked into ensembles, without running statistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from corefw.dispatch.declare import ops
from corefw.graph.grad_mode import no_recording
from corefw.nn.modules.module import Module
from corefw.nn.modules.normalization import _BatchNorm
from corefw.nn.utils import stateless
from corefw.tensor import Tensor


def functional_call(
    module: Module, parameter_and_buffer_dicts: Mapping[str, Tensor] | Sequence[Mapping[str, Tensor]], args: Any = None,
    kwargs: dict[str, Any] | None = None, *, tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """What a module gives with these tensors in the place of its own.

    Args:
        module: what is called.
        parameter_and_buffer_dicts: {path: tensor}, or several of them without common paths; the others are the
            module's own.
        args: the arguments, a tuple, or one alone.
        kwargs: the arguments by keyword.
        tie_weights: whether a tensor that the module has under several paths is replaced under all.
        strict: whether all the module's tensors are to be given.

    Raises:
        ValueError: a path stands in several dictionaries, or something else than dictionaries was given.
        RuntimeError: with `strict` a path is missing or unknown.

    >>> import corefw as torch
    >>> layer = torch.nn.Linear(1, 1)
    >>> tensors = {"weight": torch.tensor([[2.0]])}, {"bias": torch.tensor([1.0])}
    >>> torch.func.functional_call(layer, tensors, torch.tensor([[3.0]]))
    tensor([[7.]])
    """
    given = parameter_and_buffer_dicts
    several = [given] if isinstance(given, Mapping) else given
    if not isinstance(several, list | tuple) or not all(isinstance(one, Mapping) for one in several):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(given)}"
        )
    repeated = [path for path, count in Counter(path for one in several for path in one).items() if count > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    tensors = {path: tensor for one in several for path, tensor in one.items()}
    return stateless.functional_call(module, tensors, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters and the buffers of several modules of one class, each stacked along a new first dimension.

    Args:
        models: at least one, all in the same mode, training or not.

    Returns:
        ({path: stacked parameter}, {path: stacked buffer}). The parameters are new leaves that require gradients where
        those of the modules do.

    Raises:
        RuntimeError: the modules are of several classes or modes, or of different shapes, or a parameter requires
            gradients in some of them only.

    >>> import corefw as torch
    >>> parameters, buffers = torch.func.stack_module_state([torch.nn.Linear(3, 2) for _ in range(5)])
    >>> parameters["weight"].shape
    torch.Size([5, 2, 3])
    """
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(model.training != models[0].training for model in models):
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if any(type(model) is not type(models[0]) for model in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = _stacked([dict(model.named_parameters()) for model in models])
    return parameters, _stacked([dict(model.named_buffers()) for model in models])


def _stacked(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {path: _stack(path, [state[path] for state in states]) for path in states[0]}


def _stack(path: str, tensors: list[Tensor]) -> Tensor:
    """The tensors of one path, stacked: a leaf."""
    wanted = {tensor.requires_grad for tensor in tensors}
    if len(wanted) > 1:
        raise RuntimeError(f"Expected {path} from each model to have the same .requires_grad")
    with no_recording():
        stacked = ops.stack(tensors)
    return stacked.requires_grad_(wanted.pop())


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Take the running statistics from every batch normalisation of a module, in place: they then use those of the
    batch, and change nothing when they are called.

    Args:
        root: the module.

    Returns:
        `root`.

    >>> import corefw as torch
    >>> torch.func.replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(2)).running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm):
            module.track_running_stats = False
            module.running_mean = module.running_var = module.num_batches_tracked = None
    return root
