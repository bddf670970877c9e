"""Averages of gradients over all processes at first, then over neighbours (Lin et al., "Don't use large mini-batches,
use local SGD", 2020)."""

from __future__ import annotations

from typing import Any

from corefw.distributed.algorithms.ddp_comm_hooks.default_hooks import averaged
from corefw.distributed.groups import ProcessGroup, new_subgroups
from corefw.futures import Future
from corefw.nn.parallel.buckets import GradBucket
from corefw.tensor import Tensor

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]


class PostLocalSGDState:
    """What `post_localSGD_hook` keeps between steps.

    Args:
        process_group: the processes; all if None.
        subgroup: this process's neighbours; those of its host, as `new_subgroups` makes them, if None.
        start_localSGD_iter: the step from which neighbours alone average.
        post_local_gradient_allreduce: whether they do; else each process then steps by itself.
    """

    def __init__(
        self, process_group: ProcessGroup | None, subgroup: ProcessGroup | None, start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ):  # fmt: skip
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step at its last bucket."""
        self.iter += bucket.is_last()


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Tensor]:
    """The averages of a bucket's gradients, over the processes whose turn it is. `PostLocalSGDOptimizer` averages the
    parameters of all from time to time.

    Args:
        state: a `PostLocalSGDState`.
        bucket: the gradients.
    """
    group: Any = state.process_group
    if state.iter >= state.start_localSGD_iter:
        if not state.post_local_gradient_allreduce:
            future: Future[Tensor] = Future()
            future.set_result(bucket.buffer())
            return future
        if state.subgroup is None:
            state.subgroup = new_subgroups()[0]
        group = state.subgroup
    state.maybe_increase_iter(bucket)
    return averaged(group, bucket.buffer())
