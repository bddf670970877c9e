"""Averages of gradients as products of narrow matrices: PowerSGD (Vogels, Karimireddy and Jaggi, 2019).

A gradient, seen as a matrix M (n x m), becomes P Q^T of rank r by one step of power iteration: P is the average of M Q,
orthogonalized, and Q the average of M^T P; (n + m) r numbers are sent in the place of n m. What a process loses so, it
adds to its next gradient (error feedback), and the Q of one step is where the next begins (warm start).
"""

from __future__ import annotations

import logging
import math
from typing import Any

from corefw.dispatch.declare import ops
from corefw.dispatch.random_generator import Generator
from corefw.distributed.algorithms.ddp_comm_hooks.default_hooks import averaged
from corefw.distributed.collectives import all_reduce
from corefw.distributed.groups import chosen_group
from corefw.dtypes import bfloat16, float16
from corefw.futures import Future
from corefw.graph.grad_mode import no_recording
from corefw.nn.parallel.buckets import GradBucket
from corefw.tensor import Tensor

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

_log = logging.getLogger("corefw.distributed")


class PowerSGDState:
    """What `powerSGD_hook` keeps between steps.

    Args:
        process_group: the processes; all if None.
        matrix_approximation_rank: r, the columns of P and Q: the larger, the closer, and the more is sent.
        start_powerSGD_iter: the step from which gradients are compressed; before, they are averaged as they are.
        min_compression_rate: a gradient is compressed if that sends less than its size divided by this.
        use_error_feedback: whether what is lost is added to the next gradient.
        warm_start: whether Q begins as it was; else at random in each step.
        orthogonalization_epsilon: added to the norms of columns; with 0 columns are orthogonalized by a QR
            decomposition, but for half types.
        random_seed: of the first Q, the same in all processes.
        compression_stats_logging_frequency: how many steps there are between two lines of the log on what was saved.
        batch_tensors_with_same_shape: whether gradients of one shape are multiplied together.

    Raises:
        ValueError: compression would begin in the first two steps, with error feedback or warm start.
    """

    def __init__(
        self, process_group: Any, matrix_approximation_rank: int = 1, start_powerSGD_iter: int = 1000,
        min_compression_rate: float = 2, use_error_feedback: bool = True, warm_start: bool = True,
        orthogonalization_epsilon: float = 0, random_seed: int = 0, compression_stats_logging_frequency: int = 10000,
        batch_tensors_with_same_shape: bool = False,
    ):  # fmt: skip
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD "
                "can only be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank, self.start_powerSGD_iter = matrix_approximation_rank, start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape
        self.rng = Generator().manual_seed(random_seed)
        self.error_dict: dict[int, Tensor] = {}  # by number of the bucket
        self.q_memory_dict: dict[int, list[Tensor]] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Count a step at its last bucket."""
        self.iter += bucket.is_last()
        if bucket.is_last() and not self.iter % self.compression_stats_logging_frequency:
            rate, before, after = self.compression_stats()
            _log.info(
                "PowerSGD, step %d: %d elements were sent as %d, %.1f times fewer", self.iter, before, after, rate
            )

    def compression_stats(self) -> tuple[float, int, int]:
        """How many times fewer elements were sent; the gradients' elements; those sent."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0.0), before, after

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, process_group=None)

    def columns(self, matrix: Tensor) -> int:
        """r of a matrix, at most its rank; 0 if it is sent as it is."""
        n, m = matrix.shape
        r = min(n, m, self.matrix_approximation_rank)
        return r if (n + m) * r * self.min_compression_rate < n * m else 0

    def first(self, index: int, batches: list[Tensor], ranks: list[int]) -> list[Tensor]:
        """The Q of each batch of matrices (k, n, m) with which a step begins: (k, m, r), with orthonormal columns."""
        if self.warm_start and index in self.q_memory_dict:
            kept = self.q_memory_dict[index]
        else:
            sizes = [(batch.shape[0], batch.shape[2], r) for batch, r in zip(batches, ranks)]
            kept = [ops.randn(*size, generator=self.rng, device="cpu") for size in sizes]
        return [self.orthogonal(q.to(batch.device).to(batch.dtype)) for q, batch in zip(kept, batches)]

    def orthogonal(self, matrices: Tensor) -> Tensor:
        """Matrices (k, n, r) with orthonormal columns that span the same spaces."""
        if not self.orthogonalization_epsilon and matrices.dtype not in (float16, bfloat16):
            return ops.linalg_qr(matrices)[0]
        columns: list[Tensor] = []
        for column in matrices.unbind(-1):
            for other in columns:
                column = column - (column * other).sum(-1, keepdim=True) * other
            norm = column.square().sum(-1, keepdim=True).sqrt()
            columns.append(column / (norm + self.orthogonalization_epsilon))
        return ops.stack(columns, -1)


def powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """The averages of a bucket's gradients, each of which is compressed if that saves enough.

    Args:
        state: a `PowerSGDState`.
        bucket: the gradients.
    """
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return averaged(state.process_group, bucket.buffer())
    with no_recording():
        whole = bucket.buffer()
        _add_error(state, bucket.index(), whole)
        matrices = [grad.view(grad.shape[0], -1) if grad.ndim else grad.view(1, 1) for grad in bucket.gradients()]
        chosen = [matrix for matrix in matrices if state.columns(matrix)]
        others = [matrix for matrix in matrices if not state.columns(matrix)]
        groups: dict[Any, list[Tensor]] = {}
        for number, matrix in enumerate(chosen):
            key = tuple(matrix.shape) if state.batch_tensors_with_same_shape else number
            groups.setdefault(key, []).append(matrix)
        return _compressed(state, bucket, whole, list(groups.values()), others)


def batched_powerSGD_hook(state: PowerSGDState, bucket: GradBucket) -> Future[Tensor]:
    """The averages of a bucket's gradients, all of them together as one square matrix: faster than `powerSGD_hook`, and
    less accurate.

    Args:
        state: a `PowerSGDState`.
        bucket: the gradients.
    """
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return averaged(state.process_group, bucket.buffer())
    with no_recording():
        whole = bucket.buffer()
        _add_error(state, bucket.index(), whole)
        side = math.isqrt(whole.numel() - 1) + 1
        square = whole.new_zeros(side * side)
        square[: whole.numel()] = whole
        return _compressed(state, bucket, whole, [[square.view(side, side)]], [], square[: whole.numel()])


def _add_error(state: PowerSGDState, index: int, whole: Tensor) -> None:
    """What was lost in the last step is a part of the gradients of this one."""
    if state.use_error_feedback and index in state.error_dict:
        whole.add_(state.error_dict[index])


def _compressed(
    state: PowerSGDState, bucket: GradBucket, whole: Tensor, groups: list[list[Tensor]], others: list[Tensor],
    result: Tensor | None = None,
) -> Future[Tensor]:  # fmt: skip
    """The averages of matrices, in place: groups of them compressed, others as they are.

    Args:
        whole: the bucket's gradients.
        groups: matrices of one shape each, parts of `whole` or of a copy.
        others: parts of `whole`.
        result: the part of that copy that `whole` becomes.
    """
    group = chosen_group(state.process_group)
    assert group is not None
    index, size = bucket.index(), group.size()
    before = whole.clone() if state.use_error_feedback else None
    batches = [ops.stack(matrices) for matrices in groups]
    ranks = [min(*batch.shape[1:], state.matrix_approximation_rank) for batch in batches]
    ps = [batch @ q for batch, q in zip(batches, state.first(index, batches, ranks))]
    # The first of two messages: all P, and what is not compressed.
    sent = ops.cat([t.reshape(-1) for t in (*ps, *others)]) / size
    state.total_numel_before_compression += whole.numel()
    state.total_numel_after_compression += sent.numel() + sum(
        b.shape[0] * b.shape[2] * r for b, r in zip(batches, ranks)
    )
    state.maybe_increase_iter(bucket)
    work = all_reduce(sent, group=group, async_op=True)
    assert work is not None

    def finish(_: Future) -> Tensor:
        with no_recording():
            parts = sent.split([t.numel() for t in (*ps, *others)])
            for other, part in zip(others, parts[len(ps) :]):
                other.copy_(part.view(other.shape))
            if ps:
                decompress([state.orthogonal(part.view(p.shape)) for p, part in zip(ps, parts)])
            if result is not None:
                whole.copy_(result)
            if before is not None:
                state.error_dict[index] = before - whole
                for other in others:  # nothing was lost
                    _part_of(state.error_dict[index], whole, other).zero_()
            return whole

    def decompress(ps: list[Tensor]) -> None:
        qs = [batch.mT @ p for batch, p in zip(batches, ps)]
        sums = ops.cat([q.reshape(-1) for q in qs]) / size
        all_reduce(sums, group=group)
        averages = [part.view(q.shape) for q, part in zip(qs, sums.split([q.numel() for q in qs]))]
        if state.warm_start:
            state.q_memory_dict[index] = averages
        for matrices, p, q in zip(groups, ps, averages):
            for matrix, product in zip(matrices, p @ q.mT):
                matrix.copy_(product)

    return work.get_future().then(finish)


def _part_of(other: Tensor, whole: Tensor, part: Tensor) -> Tensor:
    """The elements of one tensor that lie as those of a part do in another."""
    start = part.storage_offset() - whole.storage_offset()
    return other[start : start + part.numel()]
