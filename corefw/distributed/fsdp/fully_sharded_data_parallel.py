"""`FullyShardedDataParallel`: the older form of `fully_shard`, a module around a model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from corefw.distributed.collectives import broadcast
from corefw.distributed.fsdp.api import (
    BackwardPrefetch,
    CPUOffload,
    FullOptimStateDictConfig,
    FullStateDictConfig,
    LocalStateDictConfig,
    MixedPrecision,
    OptimStateDictConfig,
    OptimStateKeyType,
    ShardedStateDictConfig,
    ShardingStrategy,
    StateDictConfig,
    StateDictSettings,
    StateDictType,
)
from corefw.distributed.fsdp.flats import ShardParameter
from corefw.distributed.fsdp.modules import groups_of
from corefw.distributed.fsdp.policies import MixedPrecisionPolicy
from corefw.distributed.fsdp.states import (
    WRAPPED,
    clean,
    full_optimizer_state,
    full_state,
    own_optimizer_state,
    place_of,
    units_with,
    whole,
    whole_unit,
)
from corefw.distributed.fsdp.units import Unit, units_of
from corefw.distributed.fsdp.wrap import wrap_below
from corefw.graph.grad_mode import no_recording
from corefw.nn.modules.module import Module
from corefw.nn.parallel.buckets import flattened
from corefw.nn.utils.clip_grad import clip_grad_norm_
from corefw.optim.optimizer import Optimizer
from corefw.tensor import Tensor

_CONFIGS: dict[StateDictType, type[StateDictConfig]] = {
    StateDictType.FULL_STATE_DICT: FullStateDictConfig,
    StateDictType.LOCAL_STATE_DICT: LocalStateDictConfig,
    StateDictType.SHARDED_STATE_DICT: ShardedStateDictConfig,
}


class FullyShardedDataParallel(Module):
    """A model whose parameters lie in parts on several processes, gathered for the time of its forward and of its
    backward (Rajbhandari et al. 2020, stage 3).

    The parameters keep their names and become this process's elements, in one dimension, as with `use_orig_params`.

    Args:
        module: the model; its parameters are the same in all processes, or `sync_module_states` makes them so.
        process_group: the processes; all if missing; for the HYBRID strategies a pair of groups, of which the second
            one holds copies.
        sharding_strategy: what lies in parts; all if missing.
        cpu_offload: must not offload.
        auto_wrap_policy: which modules below become units of their own; see `corefw.distributed.fsdp.wrap`.
        backward_prefetch: None so that the backward gathers no unit ahead.
        mixed_precision: the dtypes of computing and averaging.
        ignored_modules, ignored_states: modules and parameters that are left as they are.
        param_init_fn: must be missing.
        device_id, limit_all_gathers, use_orig_params: accepted for PyTorch's sake.
        sync_module_states: whether parameters and buffers of the first process replace the others'.
        forward_prefetch: whether the next unit is gathered while one computes.
        device_mesh: a mesh in the place of `process_group`; of two dimensions for the HYBRID strategies, with copies
            along the first one.
    """

    def __init__(
        self, module: Module, process_group: Any = None, sharding_strategy: ShardingStrategy | None = None,
        cpu_offload: CPUOffload | None = None, auto_wrap_policy: Callable[..., Any] | None = None,
        backward_prefetch: BackwardPrefetch | None = BackwardPrefetch.BACKWARD_PRE,
        mixed_precision: MixedPrecision | None = None, ignored_modules: Iterable[Module] | None = None,
        param_init_fn: Any = None, device_id: Any = None, sync_module_states: bool = False,
        forward_prefetch: bool = False, limit_all_gathers: bool = True, use_orig_params: bool = False,
        ignored_states: Iterable[Any] | None = None, device_mesh: Any = None,
    ):  # fmt: skip
        super().__init__()
        strategy = sharding_strategy or ShardingStrategy.FULL_SHARD
        refused = {
            "cpu_offload": cpu_offload is not None and cpu_offload.offload_params,
            "param_init_fn": param_init_fn is not None,
        }
        if any(refused.values()):
            what = ", ".join(name for name, given in refused.items() if given)
            raise NotImplementedError(f"FullyShardedDataParallel: {what}: not there; leave it out")
        group, copies = groups_of(process_group if device_mesh is None else device_mesh)
        if (copies is not None) != ("HYBRID" in strategy.name):
            wanted = "one group" if copies is not None else "a device_mesh of two dimensions, or two groups"
            raise ValueError(f"FullyShardedDataParallel: {strategy} goes with {wanted}")
        listed = [*(ignored_modules or ()), *(ignored_states or ())]
        modules = {below for m in listed if isinstance(m, Module) for below in m.modules()}
        ignored = [p for m in modules for p in m._parameters.values() if p is not None]
        ignored += [p for p in listed if isinstance(p, Tensor)]
        if sync_module_states:
            _send([*module.parameters(), *module.buffers()], group)
        if auto_wrap_policy is not None:
            options = {
                "process_group": process_group, "device_mesh": device_mesh, "sharding_strategy": strategy,
                "backward_prefetch": backward_prefetch,
                "mixed_precision": mixed_precision, "forward_prefetch": forward_prefetch, "ignored_states": listed,
            }  # fmt: skip
            wrap_below(module, auto_wrap_policy, lambda m, **own: type(self)(m, **{**options, **own}), modules)
        given = mixed_precision or MixedPrecision()
        if given.buffer_dtype is not None:
            _cast_buffers(module, given.buffer_dtype)
        is_cast = given.cast_forward_inputs or given.cast_root_forward_inputs
        policy = MixedPrecisionPolicy(given.param_dtype, given.reduce_dtype, None, is_cast)
        unit = Unit(
            module, group, strategy in (ShardingStrategy.FULL_SHARD, ShardingStrategy.HYBRID_SHARD), policy,
            strategy is not ShardingStrategy.NO_SHARD, ignored, (forward_prefetch, backward_prefetch is not None),
            copies,
        )  # fmt: skip
        unit.module = self
        self.__dict__["_fsdp_unit"] = unit
        self.add_module(WRAPPED, module)
        self.process_group, self.sharding_strategy, self.mixed_precision = group, strategy, given
        self.__dict__["_settings"] = StateDictSettings(
            StateDictType.FULL_STATE_DICT, FullStateDictConfig(), FullOptimStateDictConfig()
        )

    @property
    def _unit(self) -> Unit:
        return self.__dict__["_fsdp_unit"]

    @property
    def module(self) -> Module:
        """The model."""
        return self._modules[WRAPPED]

    def __getattr__(self, name: str) -> Any:
        wrapped = self.__dict__.get("_modules", {}).get(WRAPPED)
        if wrapped is None:
            return super().__getattr__(name)
        return getattr(wrapped, name)

    def __getitem__(self, key: Any) -> Any:
        return self.module.__getitem__(key)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The model's result, computed with whole parameters."""
        return self._unit.call(self.module, args, kwargs)

    def named_parameters(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Any]]:
        """The parameters' pieces, by their paths in the model."""
        for name, parameter in super().named_parameters(*args, **kwargs):
            yield clean(name), parameter

    def named_buffers(self, *args: Any, **kwargs: Any) -> Iterator[tuple[str, Tensor]]:
        """The buffers, by their paths in the model."""
        for name, buffer in super().named_buffers(*args, **kwargs):
            yield clean(name), buffer

    @staticmethod
    def fsdp_modules(module: Module, root_only: bool = False) -> list[FullyShardedDataParallel]:
        """The modules of this class in a model, or the outermost of them."""
        found = [m for m in module.modules() if isinstance(m, FullyShardedDataParallel)]
        return found[:1] if root_only else found

    # -- training ------------------------------------------------------------------------------------------------
    def no_sync(self) -> AbstractContextManager[None]:
        """A block whose backwards add whole gradients up in each process, to be averaged by one after it."""
        return units_with(self, "sync", False)

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale all gradients so that their norm, over all processes, is at most `max_norm`; returns what it was."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    @staticmethod
    @contextmanager
    def summon_full_params(
        module: Module, recurse: bool = True, writeback: bool = True, rank0_only: bool = False,
        offload_to_cpu: bool = False, with_grads: bool = False,
    ) -> Iterator[None]:  # fmt: skip
        """A block in which the model has whole parameters.

        Args:
            module: a model with modules of this class.
            recurse: whether units below the outermost have them too.
            writeback: whether changes are kept.
            rank0_only: whether the other processes keep their pieces; not together with `writeback`.
            offload_to_cpu: must be False.
            with_grads: whether the gradients are whole too.
        """
        if offload_to_cpu or (rank0_only and writeback):
            raise NotImplementedError(
                "summon_full_params: offload_to_cpu, and rank0_only together with writeback, are not there"
            )
        outermost = units_of(module)[0]
        is_shown = not rank0_only or outermost.group.rank() == 0
        block = (
            whole(module, writeback, with_grads, is_shown)
            if recurse
            else whole_unit(outermost, writeback, with_grads, is_shown)
        )
        with block:
            yield

    # -- states --------------------------------------------------------------------------------------------------
    @staticmethod
    def set_state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> StateDictSettings:  # fmt: skip
        """Set what state dicts of a model hold; returns what was set before."""
        before = FullyShardedDataParallel.get_state_dict_type(module)
        config = _CONFIGS[state_dict_type]() if state_dict_config is None else state_dict_config
        if not isinstance(config, _CONFIGS[state_dict_type]):
            raise RuntimeError(f"Expected a {_CONFIGS[state_dict_type].__name__}, but got {type(config).__name__}")
        settings = StateDictSettings(state_dict_type, config, optim_state_dict_config or FullOptimStateDictConfig())
        for sharded in FullyShardedDataParallel.fsdp_modules(module):
            sharded.__dict__["_settings"] = settings
        return before

    @staticmethod
    def get_state_dict_type(module: Module) -> StateDictSettings:
        """What state dicts of a model hold."""
        found = FullyShardedDataParallel.fsdp_modules(module, root_only=True)
        if not found:
            raise ValueError("there is no FullyShardedDataParallel in this model")
        return found[0].__dict__["_settings"]

    @staticmethod
    @contextmanager
    def state_dict_type(
        module: Module, state_dict_type: StateDictType, state_dict_config: StateDictConfig | None = None,
        optim_state_dict_config: OptimStateDictConfig | None = None,
    ) -> Iterator[None]:  # fmt: skip
        """A block in which `set_state_dict_type` holds."""
        set_type = FullyShardedDataParallel.set_state_dict_type
        before = set_type(module, state_dict_type, state_dict_config, optim_state_dict_config)
        try:
            yield
        finally:
            set_type(module, before.state_dict_type, before.state_dict_config, before.optim_state_dict_config)

    def _is_whole(self) -> bool:
        """Whether state dicts hold whole tensors."""
        return self.__dict__["_settings"].state_dict_type is StateDictType.FULL_STATE_DICT and not self._unit.is_plain

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """The state of the model: whole, by the paths of the model that is not sharded, or this process's part."""
        if args:
            destination, prefix, keep_vars = args + (destination, prefix, keep_vars)[len(args) :]
        config = self.__dict__["_settings"].state_dict_config
        if self._is_whole():
            is_kept = not config.rank0_only or self.process_group.rank() == 0
            found = full_state(self, config.offload_to_cpu, is_kept)
        else:
            found = {clean(name): value for name, value in super().state_dict(keep_vars=keep_vars).items()}
        destination = {} if destination is None else destination
        destination.update((prefix + name, value) for name, value in found.items())
        return destination

    def _load_from_state_dict(
        self, state_dict: Any, prefix: str, local_metadata: Any, strict: bool, missing_keys: Any, unexpected_keys: Any,
        error_msgs: Any,
    ) -> None:  # fmt: skip
        """The keys are those of the model; of whole tensors this process takes its part."""
        for name in [name for name in state_dict if name.startswith(prefix)]:
            rest = name[len(prefix) :]
            if not rest.startswith(WRAPPED):
                state_dict[f"{prefix}{WRAPPED}.{rest}"] = state_dict.pop(name)
        if self._is_whole():
            self._cut(state_dict, f"{prefix}{WRAPPED}.", error_msgs)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )

    def _cut(self, state_dict: Any, prefix: str, errors: list[str]) -> None:
        """Let this process's pieces take the place of the whole parameters of this unit."""
        for name, piece in self.module.named_parameters(remove_duplicate=False):
            key = prefix + name
            if key in state_dict and isinstance(piece, ShardParameter) and isinstance(state_dict[key], Tensor):
                flat, index = place_of(piece)
                value, shape = state_dict[key], flat.shapes[index]
                if tuple(value.shape) == tuple(shape):
                    state_dict[key] = flat.own(index, value)
                else:
                    state_dict[key] = piece.detach()
                    errors.append(
                        f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape "
                        f"in current model is {shape}."
                    )

    @staticmethod
    def optim_state_dict(
        model: Module, optim: Optimizer, optim_state_dict: dict[str, Any] | None = None, group: Any = None
    ) -> dict[str, Any]:
        """The whole state of an optimizer, with the parameters' paths in the place of their numbers. All processes call
        this; with `FullOptimStateDictConfig(rank0_only=True)` the others get an empty one."""
        config = FullyShardedDataParallel.get_state_dict_type(model).optim_state_dict_config
        is_kept = not getattr(config, "rank0_only", False) or units_of(model)[0].group.rank() == 0
        return full_optimizer_state(model, optim, config.offload_to_cpu, is_kept)

    @staticmethod
    def full_optim_state_dict(
        model: Module, optim: Optimizer, optim_input: Any = None, rank0_only: bool = True, group: Any = None
    ) -> dict[str, Any]:
        """As `optim_state_dict`."""
        return full_optimizer_state(model, optim, True, not rank0_only or units_of(model)[0].group.rank() == 0)

    @staticmethod
    def optim_state_dict_to_load(
        model: Module, optim: Optimizer, optim_state_dict: dict[str, Any], is_named_optimizer: bool = False,
        load_directly: bool = False, group: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """What `optim.load_state_dict` takes of a whole state.

        Args:
            load_directly: whether to load it too.
        """
        own = own_optimizer_state(model, optim, optim_state_dict)
        if load_directly:
            optim.load_state_dict(own)
        return own

    @staticmethod
    def rekey_optim_state_dict(
        optim_state_dict: dict[str, Any], optim_state_key_type: OptimStateKeyType, model: Module
    ) -> dict[str, Any]:
        """The state of an optimizer with the parameters' paths in the place of their numbers, or the other way round.

        Args:
            optim_state_dict: of an optimizer that was made of ``model.parameters()``.
            optim_state_key_type: what is wanted.
            model: whose parameters they are.
        """
        paths = [clean(name) for name, _ in model.named_parameters()]
        to_paths = optim_state_key_type is OptimStateKeyType.PARAM_NAME
        new: dict[Any, Any] = dict(enumerate(paths)) if to_paths else {path: i for i, path in enumerate(paths)}
        if lost := [key for key in optim_state_dict["state"] if key not in new]:
            raise ValueError(f"rekey_optim_state_dict: the model has no parameter {lost[0]!r}")
        groups = [{**g, "params": sorted(new[key] for key in g["params"])} for g in optim_state_dict["param_groups"]]
        return {"state": {new[key]: value for key, value in optim_state_dict["state"].items()}, "param_groups": groups}


def _send(tensors: list[Tensor], group: Any) -> None:
    """Tensors become those of the group's first process."""
    for members, flat in flattened(tensors):
        broadcast(flat, group=group, group_src=0)
        with no_recording():
            for tensor, part in zip(members, flat.split([t.numel() for t in members])):
                tensor.detach().copy_(part.view(tensor.shape))


def _cast_buffers(module: Module, kind: Any) -> None:
    for below in module.modules():
        for name, buffer in below._buffers.items():
            if buffer is not None and buffer.dtype.is_floating_point:
                below._buffers[name] = buffer.to(kind)
