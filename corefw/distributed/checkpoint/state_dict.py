"""State dicts of models and optimizers, whole or in parts, by the paths of the model that is not sharded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from corefw.distributed.fsdp.states import (
    as_it_lies,
    clean,
    full_optimizer_state,
    full_state,
    load_full_state,
    own_optimizer_state,
    paths_of,
    pieces_of,
)
from corefw.distributed.fsdp.units import units_of
from corefw.distributed.groups import is_initialized
from corefw.distributed.objects import broadcast_object_list
from corefw.graph.grad_mode import no_recording
from corefw.nn.modules.module import Module
from corefw.optim.optimizer import Optimizer
from corefw.tensor import Tensor


@dataclass
class StateDictOptions:
    """How state dicts are taken and given.

    Args:
        full_state_dict: whole tensors, rather than each process's parts.
        cpu_offload: tensors on the CPU; together with `full_state_dict`, on the first process alone.
        strict: whether keys must be those of the model.
        broadcast_from_rank0: what is loaded is on the first process alone.
    """

    full_state_dict: bool = False
    cpu_offload: bool = False
    strict: bool = True
    broadcast_from_rank0: bool = False


def _is_kept(model: Module, options: StateDictOptions) -> bool:
    """Whether this process wants a whole state."""
    units = units_of(model)
    return not (options.cpu_offload and units) or units[0].group.rank() == 0


def _given(state: dict[str, Any], options: StateDictOptions) -> dict[str, Any]:
    if not options.broadcast_from_rank0:
        return state
    if not options.full_state_dict:
        raise ValueError("full_state_dict must be True when broadcast_from_rank0 is True")
    held = [state]
    if is_initialized():
        broadcast_object_list(held, 0)
    return held[0]


def get_model_state_dict(
    model: Module, *, submodules: Any = None, options: StateDictOptions | None = None
) -> dict[str, Any]:
    """The state of a model, by the paths of the model that is not sharded. All processes call this.

    Args:
        model: sharded, with sharded modules, or plain.
        submodules: must be missing.
        options: whether tensors are whole.
    """
    _refuse(submodules)
    options = options or StateDictOptions()
    if options.full_state_dict:
        return full_state(model, options.cpu_offload, _is_kept(model, options))
    with as_it_lies(model):
        return {clean(name): value for name, value in model.state_dict().items()}


def set_model_state_dict(
    model: Module, model_state_dict: dict[str, Any], *, options: StateDictOptions | None = None
) -> Any:
    """Take over what `get_model_state_dict` gave with the same options; a whole one on any number of processes."""
    options = options or StateDictOptions()
    state = _given(model_state_dict, options)
    if options.full_state_dict:
        return load_full_state(model, state, options.strict)
    with as_it_lies(model):
        return model.load_state_dict(state, options.strict)


def get_optimizer_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: Any = None,
    options: StateDictOptions | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The states of optimizers, by the paths of the parameters; those of an optimizer that made no step are created.
    All processes call this.

    Args:
        model: whose parameters they have.
        optimizers: one or several, made after the model was sharded.
        submodules: must be missing.
        options: whether tensors are whole.
    """
    _refuse(submodules)
    options = options or StateDictOptions()
    pieces = pieces_of(model)
    found: dict[str, Any] = {"state": {}, "param_groups": []}
    for optimizer in _listed(optimizers):
        _begin(optimizer)
        if options.full_state_dict:
            part = full_optimizer_state(model, optimizer, options.cpu_offload, _is_kept(model, options))
        else:
            part = _in_parts(model, optimizer, pieces)
        found["state"].update(part.get("state", {}))
        found["param_groups"] += part.get("param_groups", [])
    return found if found["param_groups"] else {}


def _in_parts(model: Module, optimizer: Optimizer, pieces: dict[str, Any]) -> dict[str, Any]:
    """A state dict with paths, whose tensors know which parameter they lie as."""
    names, own = paths_of(model, optimizer), optimizer.state_dict()
    states = {}
    for number, state in own["state"].items():
        piece = pieces.get(names[number])
        states[names[number]] = dict(state)
        for key, value in state.items():
            if piece is not None and isinstance(value, Tensor) and value.ndim and value.shape == piece.shape:
                states[names[number]][key] = shown = value.detach()
                shown.piece = piece  # type: ignore[attr-defined]
    groups = [{**group, "params": [names[number] for number in group["params"]]} for group in own["param_groups"]]
    return {"state": states, "param_groups": groups}


def set_optimizer_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], optim_state_dict: dict[str, Any], *,
    options: StateDictOptions | None = None,
) -> None:  # fmt: skip
    """Take over what `get_optimizer_state_dict` gave with the same options."""
    options = options or StateDictOptions()
    state = _given(optim_state_dict, options)
    groups = list(state["param_groups"])
    for optimizer in _listed(optimizers):
        own, groups = groups[: len(optimizer.param_groups)], groups[len(optimizer.param_groups) :]
        names = {name for group in own for name in group["params"]}
        part: dict[str, Any] = {"state": {n: s for n, s in state["state"].items() if n in names}, "param_groups": own}
        if not options.full_state_dict:
            numbers = {name: number for number, name in paths_of(model, optimizer).items()}
            part = {
                "state": {numbers[name]: values for name, values in part["state"].items()},
                "param_groups": [{**group, "params": [numbers[n] for n in group["params"]]} for group in own],
            }
        else:
            part = own_optimizer_state(model, optimizer, part)
        optimizer.load_state_dict(part)


def get_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, submodules: Any = None,
    options: StateDictOptions | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:  # fmt: skip
    """The states of a model and of its optimizers."""
    return (
        get_model_state_dict(model, submodules=submodules, options=options),
        get_optimizer_state_dict(model, optimizers, submodules=submodules, options=options),
    )


def set_state_dict(
    model: Module, optimizers: Optimizer | Iterable[Optimizer], *, model_state_dict: dict[str, Any],
    optim_state_dict: dict[str, Any], options: StateDictOptions | None = None,
) -> Any:  # fmt: skip
    """Take over what `get_state_dict` gave with the same options."""
    found = set_model_state_dict(model, model_state_dict, options=options)
    set_optimizer_state_dict(model, optimizers, optim_state_dict, options=options)
    return found


def _refuse(submodules: Any) -> None:
    if submodules is not None:
        raise NotImplementedError("submodules: not there; take the state of the whole model")


def _listed(optimizers: Optimizer | Iterable[Optimizer]) -> list[Optimizer]:
    return [optimizers] if isinstance(optimizers, Optimizer) else list(optimizers)


def _begin(optimizer: Optimizer) -> None:
    """Let an optimizer that made no step have its states: a step of the length zero makes them."""
    if optimizer.state:
        return
    parameters = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    kept, rates = [p.grad for p in parameters], [group["lr"] for group in optimizer.param_groups]
    with no_recording():
        for p in parameters:
            p.grad = p.new_zeros(p.shape)
    for group in optimizer.param_groups:
        group["lr"] = 0.0
    optimizer.step()
    for group, rate in zip(optimizer.param_groups, rates):
        group["lr"] = rate
    for p, grad in zip(parameters, kept):
        p.grad = grad
