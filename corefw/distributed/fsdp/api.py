"""The options of `FullyShardedDataParallel`."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto

from corefw.dtypes import dtype


class ShardingStrategy(Enum):
    """What lies in parts: FULL_SHARD parameters, gradients and states, SHARD_GRAD_OP the same but with whole parameters
    from the forward to the backward, NO_SHARD nothing. The HYBRID ones are as the first
    two, with copies of the parts on several groups of processes."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When the backward begins to gather the unit that comes next; both mean: as this one's begins."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass
class MixedPrecision:
    """Dtypes: of computing, of averaging, of buffers; the parts keep theirs.

    Args:
        param_dtype: of gathered parameters.
        reduce_dtype: in which gradients are averaged; `param_dtype` if missing.
        buffer_dtype: of floating-point buffers.
        keep_low_precision_grads: must be False: gradients have the parts' dtype.
        cast_forward_inputs: whether each unit brings its inputs to `param_dtype`.
        cast_root_forward_inputs: whether the outermost does.
    """

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True

    def __post_init__(self) -> None:
        if self.keep_low_precision_grads:
            raise NotImplementedError(
                "MixedPrecision: keep_low_precision_grads is not there; gradients have the parts' dtype"
            )


@dataclass
class CPUOffload:
    """Whether parts lie on the CPU between uses; only False."""

    offload_params: bool = False


class StateDictType(Enum):
    """What `state_dict` of a sharded model holds: whole tensors, or this process's parts of them."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class StateDictConfig:
    """Options of state dicts.

    Args:
        offload_to_cpu: whether tensors are brought to the CPU.
    """

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """Options of whole state dicts.

    Args:
        rank0_only: whether the others get an empty one.
    """

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Options of `LOCAL_STATE_DICT`."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Options of `SHARDED_STATE_DICT`."""


@dataclass
class OptimStateDictConfig:
    """Options of optimizers' state dicts.

    Args:
        offload_to_cpu: whether tensors are brought to the CPU.
    """

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """Options of whole ones.

    Args:
        rank0_only: whether the others get an empty one.
    """

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Options of this process's parts as they lie.

    Args:
        offload_to_cpu: must be False.

    Raises:
        NotImplementedError: `offload_to_cpu` is True.
    """

    offload_to_cpu: bool = False

    def __post_init__(self) -> None:
        if self.offload_to_cpu:
            raise NotImplementedError(
                "LocalOptimStateDictConfig: parts lie where they are; FullOptimStateDictConfig brings whole states to "
                "the CPU"
            )


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Options of parts that know where they belong."""

    _use_dtensor: bool = False


class OptimStateKeyType(Enum):
    """What names parameters in the state dict of an optimizer: their paths, or their numbers."""

    PARAM_NAME = auto()
    PARAM_ID = auto()


@dataclass
class StateDictSettings:
    """What `FullyShardedDataParallel.get_state_dict_type` returns."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig
