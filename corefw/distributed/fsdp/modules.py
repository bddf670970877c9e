"""`fully_shard`: a module becomes one whose parameters lie in parts on several processes."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from types import MethodType
from typing import Any, NoReturn

from corefw.distributed.fsdp.policies import MixedPrecisionPolicy, OffloadPolicy
from corefw.distributed.fsdp.units import Unit, units_of
from corefw.distributed.groups import ProcessGroup, chosen_group
from corefw.nn.modules.module import Module
from corefw.tensor import Tensor

_AS_IT_IS, _WHERE_IT_IS = MixedPrecisionPolicy(), OffloadPolicy()


class UnshardHandle:
    """Parameters that are being gathered.

    Args:
        unit: whose they are; None if they are there.
    """

    def __init__(self, unit: Unit | None):
        self._unit = unit

    def wait(self) -> None:
        """Let the module have them."""
        if self._unit is not None:
            self._unit.show_whole()
            self._unit = None


class FSDPModule(Module):
    """What `fully_shard` adds to the class of a module."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._unit.call(super().__call__, args, kwargs)

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise NotImplementedError("a sharded module cannot be copied; make another and load the state dict of this one")

    @property
    def _unit(self) -> Unit:
        return self.__dict__["_fsdp_unit"]

    def _units(self, recurse: bool) -> list[Unit]:
        return units_of(self) if recurse else [self._unit]

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """Let the module, without those below it that are sharded themselves, have its whole parameters until
        `reshard`.

        Args:
            async_op: return a handle to wait for.
        """
        self._unit.begin()
        handle = UnshardHandle(self._unit)
        if async_op:
            return handle
        handle.wait()
        return None

    def reshard(self) -> None:
        """Give the whole parameters back."""
        self._unit.show_pieces()
        self._unit.drop()

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """Whether backwards average gradients. Without it each process adds up its own, whole, until a backward with it
        averages them all."""
        for unit in self._units(recurse):
            unit.sync = requires_gradient_sync

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """Accepted for PyTorch's sake: each backward waits for its own averages."""

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """Whether whole parameters are given back after the forward, and gathered again for the backward."""
        for unit in self._units(recurse):
            unit.reshard_after_forward = reshard_after_forward

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """Whether whole parameters are given back after the backward; a forward after a step gathers anyway."""
        for unit in self._units(recurse):
            unit.reshard_after_backward = reshard_after_backward

    def set_modules_to_forward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Which modules begin to be gathered when this one's forward begins, in the place of the next one."""
        self._unit.following = [module._unit for module in modules]

    def set_modules_to_backward_prefetch(self, modules: list[FSDPModule]) -> None:
        """Which modules begin to be gathered when this one's backward begins, in the place of the one before."""
        self._unit.preceding = [module._unit for module in modules]


def groups_of(mesh: Any) -> tuple[ProcessGroup, ProcessGroup | None]:
    """The processes over which an argument `mesh` cuts, all if it is missing, and those that hold the same parts.

    Args:
        mesh: a group, a mesh of one dimension or, with copies along the first one, of two; or a pair of groups, of
            which the second one holds copies.
    """
    if hasattr(mesh, "get_all_groups"):
        if mesh.ndim > 2:
            raise ValueError(f"fully_shard: expected a mesh of one or two dimensions, but got {mesh}")
        *others, cut = mesh.get_all_groups()
        copies = others[0] if others else None
    else:
        cut, copies = mesh if isinstance(mesh, tuple) else (mesh, None)
    group = chosen_group(cut)
    if group is None:
        raise ValueError("fully_shard: this process is not in the process group")
    return group, copies


def fully_shard(
    module: Module, *, mesh: Any = None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Any = None, mp_policy: MixedPrecisionPolicy = _AS_IT_IS,
    offload_policy: OffloadPolicy = _WHERE_IT_IS, ignored_params: Iterable[Tensor] | None = None,
) -> Module:  # fmt: skip
    """Let the parameters of a module, but for those of modules below that are sharded already, lie in parts on several
    processes; they are gathered for the time of its forward and of its backward. The layers of a model are sharded
    first, then the model.

    The module's parameters become this process's elements of them, in one dimension; optimizers are made afterwards,
    and gradients are averages over the processes. All processes must have the same parameters before.

    Args:
        module: the module, changed in place; its class gets `FSDPModule`'s methods.
        mesh: a device mesh of one dimension, or of two, along the first of which the parts are the same and the
            gradients are averaged; or a process group. All processes if missing.
        reshard_after_forward: whether the whole parameters are given back between forward and backward; if missing, but
            for the outermost module.
        mp_policy: the dtypes of computing and averaging.
        offload_policy: as it is.
        ignored_params: parameters that are left as they are.

    Returns:
        The module.

    Raises:
        ValueError: it is sharded already or has no forward, or a parameter is shared with another unit.
        NotImplementedError: `shard_placement_fn` is given, or `reshard_after_forward` is a number of processes.
    """
    if isinstance(module, (list, tuple)):
        raise NotImplementedError("fully_shard: one module at a time; put the modules into one")
    if shard_placement_fn is not None:
        raise NotImplementedError("fully_shard: shard_placement_fn is not there: parts are cut from all elements")
    if not isinstance(reshard_after_forward, bool | None):
        raise NotImplementedError("fully_shard: reshard_after_forward is True or False; other sizes are not there")
    if type(module).forward is Module.forward:
        raise ValueError(f"fully_shard: {type(module).__name__} has no forward; shard the modules in it")
    if "_fsdp_unit" in module.__dict__:
        raise ValueError("fully_shard: this module is sharded already")
    ignored = ignored_params or ()
    group, copies = groups_of(mesh)
    unit = Unit(module, group, reshard_after_forward, mp_policy, ignored=ignored, copies=copies)
    module.__dict__["_fsdp_unit"] = unit
    kind = type(module)
    module.__class__ = type(f"FSDP{kind.__name__}", (FSDPModule, kind), {"__module__": kind.__module__})
    return module


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let another method of a sharded module compute with the whole parameters, as its forward does. A module that is
    not sharded stays as it is.

    Args:
        module: what `fully_shard` returned.
        method_name: the method's.

    Raises:
        ValueError: the module has no such method.
    """
    if not isinstance(module, FSDPModule):
        return
    method = getattr(module, method_name, None)
    if not callable(method):
        raise ValueError(f"{type(module).__name__} does not have a method {method_name}")

    @functools.wraps(method)
    def whole(self: FSDPModule, *args: Any, **kwargs: Any) -> Any:
        return self._unit.call(method, args, kwargs)

    setattr(module, method_name, MethodType(whole, module))


def share_comm_ctx(modules: list[FSDPModule]) -> None:
    """Accepted for PyTorch's sake: messages are the engine's, and all modules share it.

    Args:
        modules: sharded ones.

    Raises:
        ValueError: one of them is not sharded.
    """
    for module in modules:
        if not isinstance(module, FSDPModule):
            raise ValueError(f"Expects list of FSDPModules but got {type(module).__name__}")
