"""The whole state of sharded models and of their optimizers, and each process's part of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

from corefw.distributed.fsdp.flats import Flat, ShardParameter, part_of, whole_of
from corefw.distributed.fsdp.units import Unit, units_of
from corefw.graph.grad_mode import no_recording
from corefw.nn.modules.module import Module
from corefw.nn.parameter import Parameter
from corefw.optim.optimizer import Optimizer
from corefw.tensor import Tensor

WRAPPED = "_fsdp_wrapped_module"  # the name of a model in its FullyShardedDataParallel


def clean(name: str) -> str:
    """The path of a parameter without the wrappers."""
    return name.replace(f"{WRAPPED}.", "")


def place_of(piece: ShardParameter) -> tuple[Flat, int]:
    """The parameters that a piece lies together with, and its number among them."""
    return piece.across, next(i for i, other in enumerate(piece.across.pieces) if other is piece)


def pieces_of(model: Module) -> dict[str, ShardParameter]:
    """{path: piece} of all parameters that lie in parts; shared ones by each of their paths."""
    for unit in units_of(model):
        unit.settle()
    named = model.named_parameters(remove_duplicate=False)
    return {clean(name): p for name, p in named if isinstance(p, ShardParameter)}


@contextmanager
def whole_unit(unit: Unit, writeback: bool, with_grads: bool = False, is_shown: bool = True) -> Iterator[None]:
    """A block in which the modules of a unit have whole parameters, whose changes are taken over afterwards."""
    shown = []
    for flat in unit.flats:
        values: list[Tensor] = [Parameter(v, p.requires_grad) for v, p in zip(flat.dressed(flat.whole()), flat.pieces)]
        if with_grads and any(p.grad is not None for p in flat.pieces):
            for value, grad in zip(values, flat.dressed(flat.whole([_grad_of(p) for p in flat.pieces]))):
                value.grad = grad
        shown.append(values)
    if is_shown:
        unit.show(shown)
    try:
        yield
    finally:
        unit.show_pieces()
        if writeback:
            with no_recording():
                for flat, values in zip(unit.flats, shown):
                    for i, (piece, value) in enumerate(zip(flat.pieces, values)):
                        piece.detach().copy_(flat.own(i, value))
                        if with_grads and piece.grad is not None and value.grad is not None:
                            piece.grad.copy_(flat.own(i, value.grad))


def _grad_of(piece: Tensor) -> Tensor:
    return piece.new_zeros(piece.shape) if piece.grad is None else piece.grad


@contextmanager
def whole(model: Module, writeback: bool, with_grads: bool = False, is_shown: bool = True) -> Iterator[None]:
    """As `whole_unit`, of all units of a model."""
    with ExitStack() as stack:
        for unit in units_of(model):
            stack.enter_context(whole_unit(unit, writeback, with_grads, is_shown))
        yield


@contextmanager
def units_with(model: Module, name: str, value: bool) -> Iterator[None]:
    """A block in which an attribute of all units of a model has a value."""
    before = [(unit, getattr(unit, name)) for unit in units_of(model)]
    for unit, _ in before:
        setattr(unit, name, value)
    try:
        yield
    finally:
        for unit, was in before:
            setattr(unit, name, was)


def as_it_lies(model: Module) -> AbstractContextManager[None]:
    """A block in which state dicts hold this process's pieces, whatever they were set to hold."""
    return units_with(model, "is_plain", True)


# -- of models --------------------------------------------------------------------------------------------------------
def full_state(model: Module, to_cpu: bool = False, is_kept: bool = True) -> dict[str, Any]:
    """The state dict of the model as if it were not sharded; one unit at a time is whole. All processes call this.

    Args:
        model: sharded, or with sharded modules.
        to_cpu: whether tensors are brought to the CPU.
        is_kept: whether this process wants it; else it is empty.
    """
    with as_it_lies(model):
        state = {clean(name): value for name, value in model.state_dict().items()}
    wholes: dict[int, Sequence[Tensor]] = {}
    for name, piece in pieces_of(model).items():
        flat, index = place_of(piece)
        if id(flat) not in wholes:
            values = [whole_of(value) for value in flat.dressed(flat.whole())]
            wholes[id(flat)] = [value.clone() for value in values] if is_kept else flat.pieces
        state[name] = wholes[id(flat)][index]
    state = {name: whole_of(value) for name, value in state.items()}
    if not is_kept:
        return {}
    return {name: v.cpu() if to_cpu and isinstance(v, Tensor) else v for name, v in state.items()}


def load_full_state(model: Module, state: dict[str, Any], strict: bool = True) -> Any:
    """Take over a state dict of the model as if it were not sharded: each process takes its part.

    Raises:
        RuntimeError: keys or shapes differ.
    """
    given, pieces = {clean(name): value for name, value in state.items()}, pieces_of(model)
    errors = []
    for name, piece in pieces.items():
        flat, index = place_of(piece)
        value = given.get(name)
        if value is not None and tuple(value.shape) != tuple(flat.whole_shapes[index]):
            errors.append(f"{name}: {list(value.shape)} is given, the model has {list(flat.whole_shapes[index])}")
        elif value is not None:
            given[name] = flat.own(index, value)
    if errors:
        raise RuntimeError(f"Error(s) in loading state_dict for {type(model).__name__}: size mismatch for "
                           + "; ".join(errors))  # fmt: skip
    with as_it_lies(model):
        for name, own in model.state_dict().items():
            if clean(name) in given:
                given[clean(name)] = _as_it_lies(given[clean(name)], own)
        return model.load_state_dict(given, strict)


def _as_it_lies(value: Any, own: Any) -> Any:
    """A whole tensor as a DTensor, where the model has one of its shape."""
    spec = getattr(own, "_spec", None)
    if spec is None or not isinstance(value, Tensor) or value.shape != own.shape or hasattr(value, "_spec"):
        return value
    return own.of_part(part_of(value, spec).clone(), own.shape, spec)


# -- of optimizers ----------------------------------------------------------------------------------------------------
def paths_of(model: Module, optimizer: Optimizer) -> dict[int, str]:
    """{number of a parameter in an optimizer's state dict: its path in the model}."""
    paths = {id(p): clean(name) for name, p in model.named_parameters()}
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    lost = sum(id(p) not in paths for p in parameters)
    if lost:
        raise ValueError(f"{lost} parameters of the optimizer are none of the model's: make it after sharding")
    return {i: paths[id(p)] for i, p in enumerate(parameters)}


def full_optimizer_state(
    model: Module, optimizer: Optimizer, to_cpu: bool = False, is_kept: bool = True
) -> dict[str, Any]:
    """The state dict of an optimizer of the model as if it were not sharded, with the parameters' paths in the place of
    their numbers. All processes call this."""
    names, pieces, own = paths_of(model, optimizer), pieces_of(model), optimizer.state_dict()
    by_name = {names[number]: state for number, state in own["state"].items()}
    states: dict[str, dict[str, Any]] = {}
    for name, state in by_name.items():
        piece = pieces.get(name)
        states[name] = {
            key: _whole_of(piece, value) if piece is not None and _lies_as(value, piece) else value
            for key, value in state.items()
        }
        if not is_kept:
            states[name] = {}
    if not is_kept:
        return {}
    if to_cpu:
        states = {n: {k: v.cpu() if isinstance(v, Tensor) else v for k, v in s.items()} for n, s in states.items()}
    groups = [{**group, "params": [names[number] for number in group["params"]]} for group in own["param_groups"]]
    return {"state": states, "param_groups": groups}


def own_optimizer_state(model: Module, optimizer: Optimizer, state: dict[str, Any]) -> dict[str, Any]:
    """What `optimizer.load_state_dict` takes of a whole state: this process's part, with numbers."""
    names, pieces = paths_of(model, optimizer), pieces_of(model)
    numbers = {name: number for number, name in names.items()}
    states = {}
    for name, values in state["state"].items():
        piece = pieces.get(name)
        flat, index = place_of(piece) if piece is not None else (None, 0)
        states[numbers[name]] = {
            key: flat.own(index, value).clone()
            if flat is not None
            and isinstance(value, Tensor)
            and key != "step"
            and value.shape == flat.whole_shapes[index]
            else value
            for key, value in values.items()
        }
    groups = [{**group, "params": [numbers[name] for name in group["params"]]} for group in state["param_groups"]]
    return {"state": states, "param_groups": groups}


def _lies_as(value: Any, piece: Tensor) -> bool:
    """Whether a state lies in parts as its parameter does; counts are the same everywhere."""
    return isinstance(value, Tensor) and value.ndim > 0 and value.shape == piece.shape


def _whole_of(piece: ShardParameter, value: Tensor) -> Tensor:
    flat, index = place_of(piece)
    shards = [value if i == index else p.new_zeros(p.shape, dtype=value.dtype) for i, p in enumerate(flat.pieces)]
    return whole_of(flat.dressed(flat.whole(shards))[index]).clone()
