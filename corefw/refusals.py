"""PyTorch's public names that corefw leaves out on purpose, with the reasons; docs/refusals.md shows them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

_MASKED = (
    "a second class of tensors, of which every op would need a second meaning; the functions of corefw.masked take a "
    "tensor and its mask"
)
_PLANNED = (
    "there are no plans to change: each process writes its own parts, the first one what is whole, and load reads what "
    "the state dict asks for; rename, leave out or convert entries in the state dict"
)
_STORED = (
    "a checkpoint is a folder, whose files appear whole or not at all; FileSystemWriter and FileSystemReader name it"
)
_TABLES = (
    "serialization.save_file and load_file write and read safetensors; state_dict.get_model_state_dict with "
    "full_state_dict=True gives and set_model_state_dict takes whole tensors"
)
_INSTRUCTIONS = (
    "instructions are not counted from inside a program; `valgrind --tool=callgrind` counts them, from outside"
)

#: {dotted name, seen from the package: the reason and what to use instead}
REFUSALS = {
    "Tensor.index": "binds dimensions to the objects of functorch.dim, which has no counterpart; tensor[...] indexes",
    "func.functionalize": (
        "it rewrites in-place operations for a tracer, and nothing traces functions here: in-place operations work in "
        "every transform as they are, so that the function itself gives the same values"
    ),
    "utils.benchmark.CallgrindStats": _INSTRUCTIONS,
    "utils.benchmark.CopyIfCallgrind": _INSTRUCTIONS,
    "utils.benchmark.FunctionCount": _INSTRUCTIONS,
    "utils.benchmark.FunctionCounts": _INSTRUCTIONS,
    "utils.benchmark.FuzzedSparseTensor": (
        "FuzzedTensor makes dense tensors; its tensor_constructor may give sparse ones of the same sizes"
    ),
    "profiler.ExecutionTraceObserver": (
        "it writes the graph of a run for tools that replay it op by op with PyTorch's kernels; "
        "profiler.profile(record_shapes=True).export_chrome_trace writes what ran with which shapes"
    ),
    "distributed.ProcessGroupGloo": (
        'gloo is PyTorch\'s own engine; init_process_group("gloo") takes the installed one for the CPU, such as "mpi"'
    ),
    "distributed.checkpoint.HuggingFaceStorageReader": _TABLES,
    "distributed.checkpoint.HuggingFaceStorageWriter": _TABLES,
    "distributed.checkpoint.LoadPlan": _PLANNED,
    "distributed.checkpoint.LoadPlanner": _PLANNED,
    "distributed.checkpoint.QuantizedHuggingFaceStorageReader": _TABLES,
    "distributed.checkpoint.ReadItem": _PLANNED,
    "distributed.checkpoint.SavePlan": _PLANNED,
    "distributed.checkpoint.SavePlanner": _PLANNED,
    "distributed.checkpoint.StorageReader": _STORED,
    "distributed.checkpoint.StorageWriter": _STORED,
    "distributed.checkpoint.WriteItem": _PLANNED,
    "distributed.checkpoint.load_sharded_optimizer_state_dict": (
        "it reads states of ShardedTensors, which are not there; state_dict.get_optimizer_state_dict, load and "
        "state_dict.set_optimizer_state_dict read a state for any number of processes"
    ),
    "distributed.fsdp.DataParallelMeshDims": (
        "it names the dimensions of a mesh that all parallel ways share; fully_shard takes the part of the mesh, or "
        "the process group, over which it cuts"
    ),
    "distributed.optim.DistributedOptimizer": (
        "it steps parameters that lie in other processes, over remote references, and there are no remote procedure "
        "calls here; ZeroRedundancyOptimizer and fully_shard spread states over processes"
    ),
    "distributed.optim.as_functional_optim": (
        "it makes the optimizers of remote parameters, for scripts without Python, and nothing scripts functions here; "
        "optimizers of corefw.optim take their parameters as they are"
    ),
    "masked.MaskedTensor": _MASKED,
    "masked.as_masked_tensor": _MASKED,
    "masked.is_masked_tensor": _MASKED,
    "masked.masked_tensor": _MASKED,
}


def refusal(name: str) -> AttributeError:
    """The error that says why there is nothing of a refused name."""
    return AttributeError(f"corefw.{name} is left out on purpose: {REFUSALS[name]}")


def refusing(module: str) -> Callable[[str], NoReturn]:
    """The ``__getattr__`` of a module with refused names."""
    inside = module.removeprefix("corefw.")

    def missing(name: str) -> NoReturn:
        if (path := f"{inside}.{name}") in REFUSALS:
            raise refusal(path)
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    return missing


class Refused:
    """A refused attribute of a class: `name` is its dotted name."""

    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __get__(self, instance, owner) -> NoReturn:
        raise refusal(self._name)
