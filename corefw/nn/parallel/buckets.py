"""Buckets of gradients: what processes that train together average, while the backward goes on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from corefw.dispatch.declare import ops
from corefw.distributed.collectives import all_reduce
from corefw.distributed.groups import ProcessGroup
from corefw.futures import Future
from corefw.graph.grad_mode import no_recording
from corefw.tensor import Tensor


class Bucket:
    """Parameters of one device and dtype whose gradients lie one after another in `flat`.

    Args:
        parameters: those that need gradients, in the order in which the backward is to come to them.
    """

    def __init__(self, parameters: Sequence[Tensor]):
        self.parameters = list(parameters)
        with no_recording():
            self.flat = self.parameters[0].new_zeros(sum(p.numel() for p in self.parameters))
            parts = self.flat.split([p.numel() for p in self.parameters])
            self.views = [part.view(p.shape) for part, p in zip(parts, self.parameters)]
        self.missing = len(self.parameters)
        self.future: Future | None = None

    def restart(self) -> None:
        """No gradient is there."""
        self.missing, self.future = len(self.parameters), None


def parted(parameters: Sequence[Tensor], sizes: Sequence[int]) -> list[Bucket]:
    """Buckets of parameters, the last ones first, since their gradients come first.

    Args:
        parameters: in the order in which the model has them.
        sizes: how many bytes the buckets may have; the last one is that of all others.
    """
    found: list[Bucket] = []
    open_buckets: dict[Any, list[Tensor]] = {}
    for parameter in reversed(parameters):
        held = open_buckets.setdefault(parameter.dispatch_key, [])
        held.append(parameter)
        if sum(p.array.nbytes for p in held) >= sizes[min(len(found), len(sizes) - 1)]:
            found.append(Bucket(open_buckets.pop(parameter.dispatch_key)))
    return found + [Bucket(held) for held in open_buckets.values()]


class GradBucket:
    """What a communication hook is given: the gradients of a bucket, not yet divided by the number of processes."""

    def __init__(self, bucket: Bucket, index: int, is_last: bool):
        self._bucket, self._index, self._is_last = bucket, index, is_last
        self._flat, self._views = bucket.flat, bucket.views

    @classmethod
    def of(cls, flat: Tensor, other: GradBucket) -> GradBucket:
        """The bucket `other` with its gradients in another tensor, such as one of another dtype."""
        made = cls(other._bucket, other._index, other._is_last)
        parts = flat.split([view.numel() for view in other._views])
        made._flat, made._views = flat, [part.view(v.shape) for part, v in zip(parts, other._views)]
        return made

    def index(self) -> int:
        """Its number, in the order in which buckets are reduced."""
        return self._index

    def buffer(self) -> Tensor:
        """All its gradients, one after another."""
        return self._flat

    def gradients(self) -> list[Tensor]:
        """Its gradients, parts of the buffer."""
        return list(self._views)

    def parameters(self) -> list[Tensor]:
        """Whose gradients they are."""
        return list(self._bucket.parameters)

    def is_last(self) -> bool:
        """Whether no other bucket comes after it in this backward."""
        return self._is_last

    def set_buffer(self, buffer: Tensor) -> None:
        """Take another tensor of the same size for the buffer."""
        with no_recording():
            self._flat.copy_(buffer)


class Reducer:
    """Averages gradients over the processes of a group: a bucket is on its way as soon as its gradients, and the
    buckets before it, are there.

    Args:
        named: the parameters that need gradients.
        group: the processes.
        sizes: bytes of the buckets, the last one that of all others.
        as_views: whether gradients become parts of the buckets, so that nothing is copied back.
    """

    def __init__(self, named: dict[str, Tensor], group: ProcessGroup, sizes: Sequence[int], as_views: bool):
        self.group, self.as_views = group, as_views
        self.divisor = group.size()  # what sums are divided by
        parameters = list(named.values())
        self._names = {id(p): name for name, p in named.items()}
        self.buckets = parted(parameters, sizes)
        self.hook: Callable[[GradBucket], Future] | None = None
        self.active = False  # whether this backward is one whose gradients are averaged
        self._next = 0
        self._ready: set[int] = set()
        self._places = {id(p): (bucket, i) for bucket in self.buckets for i, p in enumerate(bucket.parameters)}
        for parameter in parameters:
            parameter.register_post_accumulate_grad_hook(self._arrived)

    # -- a backward ----------------------------------------------------------------------------------------------
    def prepare(self, unused: Sequence[Tensor] = ()) -> None:
        """Before a backward: expect gradients of all parameters but `unused`.

        Raises:
            RuntimeError: the last backward left some out.
        """
        if self.active and self._ready:
            left = [self._names[i] for i in self._names if i not in self._ready]
            raise RuntimeError(
                "Expected to have finished reduction in the prior iteration before starting a new one. These "
                f"parameters got no gradient: {', '.join(left)}. Pass find_unused_parameters=True to "
                "DistributedDataParallel, and make sure that all outputs of the forward take part in the loss"
            )
        for bucket in self.buckets:
            bucket.restart()
        self.active, self._next, self._ready = True, 0, set()
        for parameter in unused:
            self._mark(parameter)

    def _arrived(self, parameter: Tensor) -> None:
        if self.active and id(parameter) not in self._ready:
            self._mark(parameter)

    def _mark(self, parameter: Tensor) -> None:
        if self.group.going:
            self.group.advance()
        bucket, i = self._places[id(parameter)]
        self._ready.add(id(parameter))
        with no_recording():
            view, grad = bucket.views[i], parameter.grad
            if grad is None:
                view.zero_()
            elif grad.array is not view.array:
                view.copy_(grad)
        bucket.missing -= 1
        while self._next < len(self.buckets) and not self.buckets[self._next].missing:
            self._start(self._next)
            self._next += 1
        if self._next == len(self.buckets):
            self._finish()

    def _start(self, index: int) -> None:
        bucket = self.buckets[index]
        if self.hook is not None:
            bucket.future = self.hook(GradBucket(bucket, index, index == len(self.buckets) - 1))
            return
        with no_recording():
            bucket.flat.div_(self.divisor)
        work = all_reduce(bucket.flat, group=self.group, async_op=True)
        assert work is not None
        bucket.future = work.get_future()

    def answer(self) -> None:
        """Take part in a backward of the others, with gradients that are zero."""
        for index, bucket in enumerate(self.buckets):
            with no_recording():
                bucket.flat.zero_()
            self._start(index)
        self._finish()

    def _finish(self) -> None:
        self.active = False
        with no_recording():
            for bucket in self.buckets:
                assert bucket.future is not None
                result = bucket.future.wait()
                result = result[0] if isinstance(result, (list, tuple)) else result
                if result is not bucket.flat:
                    bucket.flat.copy_(result.view(bucket.flat.shape))
                for parameter, view in zip(bucket.parameters, bucket.views):
                    self._give(parameter, view)

    def _give(self, parameter: Tensor, view: Tensor) -> None:
        """A parameter's gradient becomes the average."""
        if self.as_views:
            parameter.grad = view
        elif parameter.grad is None:
            parameter.grad = view.clone()
        else:
            parameter.grad.copy_(view)


def flattened(tensors: Sequence[Tensor]) -> list[tuple[list[Tensor], Tensor]]:
    """Tensors grouped by device and dtype, with the elements of each group in one tensor."""
    groups: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        groups.setdefault(tensor.dispatch_key, []).append(tensor)
    with no_recording():
        return [(group, ops.cat([tensor.detach().reshape(-1) for tensor in group])) for group in groups.values()]
