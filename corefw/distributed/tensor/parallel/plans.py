"""`parallelize_module`, and losses of what it leaves in parts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatch

from corefw.distributed.device_mesh import DeviceMesh, chosen_mesh
from corefw.distributed.tensor.parallel.styles import ParallelStyle
from corefw.distributed.tensor.rules.networks import by_classes
from corefw.nn.modules.module import Module
from corefw.tracebacks import warn


def parallelize_module(
    module: Module, device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None, *, src_data_rank: int | None = 0,
) -> Module:  # fmt: skip
    """A module whose submodules compute in parts. All processes of the mesh call this.

    Args:
        module: changed in place, and returned.
        device_mesh: of one dimension; the mesh of the with-block if missing.
        parallelize_plan: a style for the module, or styles by the paths of submodules, in which ``*`` and ``?`` stand
            for any names.
        src_data_rank: whose parameters count, by its place in the mesh; None for each its own.

    >>> import corefw as torch
    >>> from corefw.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    >>> mesh = torch.distributed.device_mesh.init_device_mesh("cpu", (1,))
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    >>> model = parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    >>> model[0].weight.placements, model[2].weight.placements, model(torch.ones(1, 2)).shape
    ((Shard(dim=0),), (Shard(dim=1),), torch.Size([1, 2]))
    >>> torch.distributed.destroy_process_group()
    """
    mesh = chosen_mesh(device_mesh)
    if mesh.ndim != 1:
        raise ValueError(f'parallelize_module: expected a mesh of one dimension, such as mesh["tp"], but got {mesh}')
    if parallelize_plan is None:
        warn("No parallelize_plan is provided, so this parallelize_module call will do nothing.")
    elif isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    elif isinstance(parallelize_plan, dict):
        for path, style in parallelize_plan.items():
            _apply(module, mesh, path, style, src_data_rank)
    else:
        raise TypeError(f"parallelize_plan: expected a ParallelStyle or a dict, but got {type(parallelize_plan)}")
    return module


def _apply(module: Module, mesh: DeviceMesh, path: str, style: ParallelStyle, source: int | None) -> None:
    first, _, rest = path.partition(".")
    found = [child for name, child in module.named_children() if fnmatch(name, first)] if path else [module]
    if not found:
        warn(
            f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{first}' in module "
            f"{type(module).__name__}, skipping this plan entry."
        )
    for child in found:
        parallelize_module(child, mesh, {rest: style} if rest else style, src_data_rank=source)


@contextmanager
def loss_parallel() -> Iterator[None]:
    """A context in which `nn.functional.cross_entropy` takes logits that are cut along the classes as they are: of them
    the processes exchange a maximum, a sum and the target's logit of each sample."""
    token = by_classes.set(True)
    try:
        yield
    finally:
        by_classes.reset(token)
