"""Averages of gradients as they are, or in half precision on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from corefw.distributed.collectives import all_reduce
from corefw.distributed.groups import ProcessGroup, chosen_group
from corefw.dtypes import bfloat16, dtype, float16
from corefw.futures import Future
from corefw.nn.parallel.buckets import GradBucket
from corefw.tensor import Tensor

Hook = Callable[[Any, GradBucket], Future]


def averaged(group: Any, tensor: Tensor) -> Future[Tensor]:
    """The average of a tensor, in place, over the processes of a group."""
    found = chosen_group(group)
    assert found is not None
    tensor.div_(found.size())
    work = all_reduce(tensor, group=found, async_op=True)
    assert work is not None
    return work.get_future().then(lambda future: future.value()[0])


def allreduce_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """The averages, as without a hook."""
    return averaged(process_group, bucket.buffer())


def _compressed(group: Any, bucket: GradBucket, kind: dtype) -> Future[Tensor]:
    whole = bucket.buffer()
    return averaged(group, whole.to(kind)).then(lambda future: whole.copy_(future.value()))


def fp16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """The averages, sent as float16."""
    return _compressed(process_group, bucket, float16)


def bf16_compress_hook(process_group: ProcessGroup | None, bucket: GradBucket) -> Future[Tensor]:
    """The averages, sent as bfloat16."""
    return _compressed(process_group, bucket, bfloat16)


def _wrapper(hook: Hook, kind: dtype) -> Hook:
    def wrapped(state: Any, bucket: GradBucket) -> Future[Tensor]:
        whole = bucket.buffer()
        narrow = GradBucket.of(whole.to(kind), bucket)
        return hook(state, narrow).then(lambda future: whole.copy_(future.value()))

    return wrapped


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Another hook that is given the gradients as float16."""
    return _wrapper(hook, float16)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Another hook that is given the gradients as bfloat16."""
    return _wrapper(hook, bfloat16)
