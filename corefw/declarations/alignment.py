"""The loss of sequences of labels whose places in time are not known: connectionist temporal classification.

The source is Graves et al., "Connectionist temporal classification", 2006, with its names: a path through time visits
the states of a target, which are its labels with a blank before, between and behind them; it stays, goes on to the next
state, or passes over a blank between two labels that differ. What is added up are logarithms of probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from corefw import dtypes
from corefw.declarations._shared.factories import ArgumentError
from corefw.declarations._shared.reductions import meant_reduction, reduced_loss
from corefw.dispatch.declare import Index, composite, ops
from corefw.dispatch.registry import dispatch_key_of
from corefw.dispatch.rules import real_floats
from corefw.errors import KernelNotFoundError, ShapeError
from corefw.tensor import Tensor, wrap

#: the logarithm that stands for that of 0: sums of it are numbers
IMPOSSIBLE = -1e30


# -- the paths --------------------------------------------------------------------------------------------------------
def _states(targets, blank: int):
    """The states of each target, shape (N, 2 S + 1), and whether a path may enter them past a blank."""
    batch, length = targets.shape
    blanks = ops.full_like(targets, blank)
    states = ops.constant_pad_nd(ops.stack([blanks, targets], -1).reshape(batch, 2 * length), (0, 1), blank)
    before = ops.constant_pad_nd(states, (2, 0), blank).narrow(1, 0, states.shape[1])
    return states, (states != blank).logical_and(states != before)


def _entered(paths, passing):
    """The logarithms of the sums over the states that a path may come from."""
    count = paths.shape[1]
    earlier = ops.constant_pad_nd(paths, (2, 0), IMPOSSIBLE)
    return paths.logaddexp(earlier.narrow(1, 1, count)).logaddexp(earlier.narrow(1, 0, count) + passing)


def _left(paths, passing):
    """The logarithms of the sums over the states that a path may go to."""
    count = paths.shape[1]
    later = ops.constant_pad_nd(paths, (0, 1), IMPOSSIBLE).narrow(1, 1, count)
    past = ops.constant_pad_nd(paths + passing, (0, 2), IMPOSSIBLE).narrow(1, 2, count)
    return paths.logaddexp(later).logaddexp(past)


class _Paths:
    """What forward and backward have in common, with the names of the source."""

    def __init__(self, log_probs, targets, input_lengths, target_lengths, blank: int):
        self.states, may_pass = _states(targets, blank)
        batch, count = self.states.shape
        self.steps, self.lengths = log_probs.shape[0], input_lengths.unsqueeze(1)
        possible = log_probs.clamp_min(IMPOSSIBLE)
        self.emitted = possible.gather(2, self.states.unsqueeze(0).expand(self.steps, batch, count))
        nothing = ops.zeros_like(possible[0, :, :1]).expand(batch, count)
        self.passing = nothing.masked_fill(may_pass.logical_not(), IMPOSSIBLE)
        place = ops.arange(count, device=log_probs.device)
        self.first = nothing.masked_fill(place != 0, IMPOSSIBLE)
        last = 2 * target_lengths.unsqueeze(1)
        self.final = nothing.masked_fill((place != last).logical_and(place != last - 1), IMPOSSIBLE)

    def alphas(self) -> list:
        """For each time from the beginning on, before the first step too, the paths that lead to each state."""
        found = [self.first]
        for t in range(self.steps):
            following = _entered(found[-1], self.passing) + self.emitted[t]
            found.append(ops.where(self.lengths > t, following, found[-1]))
        return found

    def betas(self) -> list:
        """For each time the paths that lead from each state to the end."""
        found = [self.final]
        for t in range(self.steps - 1, 0, -1):
            preceding = _left(found[-1] + self.emitted[t], self.passing)
            found.append(ops.where(self.lengths > t, preceding, found[-1]))
        return found[::-1]

    def total(self, alpha):
        """The logarithm of the probability of the target."""
        return (alpha + self.final).logsumexp(1)


def _check(log_probs, targets, input_lengths, target_lengths) -> None:
    batch = log_probs[1:2]
    if (
        len(log_probs) != 3
        or len(targets) != 2
        or any(x != batch for x in (targets[:1], input_lengths, target_lengths))
    ):
        raise ShapeError(
            f"ctc_loss: expected shapes (T, N, C), (N, S), (N) and (N), got {list(log_probs)}, {list(targets)}, "
            f"{list(input_lengths)} and {list(target_lengths)}"
        )


def _costs_shape(log_probs, targets, input_lengths, target_lengths, *options):
    _check(log_probs, targets, input_lengths, target_lengths)
    return log_probs[1:2]


@composite(dtype=real_floats, shape=_costs_shape, public="", grad_name="CtcLoss")
def ctc_costs(log_probs, targets: Index, input_lengths: Index, target_lengths: Index, blank: int, zero_infinity: bool):
    """The negative logarithms of the probabilities of targets (N, S), infinite, or 0, where no path is."""
    _check(log_probs.shape, targets.shape, input_lengths.shape, target_lengths.shape)
    paths = _Paths(log_probs, targets, input_lengths, target_lengths, blank)
    total = paths.total(paths.alphas()[-1])
    return (-total).masked_fill(total <= IMPOSSIBLE / 2, 0 if zero_infinity else float("inf"))


@ctc_costs.gradient("log_probs")
def ctc_costs_vjp(grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    return ops.ctc_costs_backward(grad, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity)


def _gradient_shape(grad, log_probs, *rest):
    if grad != _costs_shape(log_probs, *rest):
        raise ShapeError(f"ctc_loss: expected a gradient of shape {list(log_probs[1:2])}, got {list(grad)}")
    return log_probs


@composite(dtype=real_floats, shape=_gradient_shape, public="")
def ctc_costs_backward(
    grad, log_probs, targets: Index, input_lengths: Index, target_lengths: Index, blank: int, zero_infinity: bool
):
    """The gradient of ctc_costs: the probability of each class less the share of the target's paths that are there.

    As PyTorch's, it is that of scores whose log_softmax the `log_probs` are.
    """
    _gradient_shape(grad.shape, log_probs.shape, targets.shape, input_lengths.shape, target_lengths.shape)
    paths = _Paths(log_probs, targets, input_lengths, target_lengths, blank)
    alphas = paths.alphas()
    total = paths.total(alphas[-1])
    result = log_probs.exp()
    if alphas[1:]:
        share = (ops.stack(alphas[1:]) + ops.stack(paths.betas()) - total.unsqueeze(1)).exp()
        result = result.scatter_add(2, paths.states.unsqueeze(0).expand(share.shape), -share)
    none = (total <= IMPOSSIBLE / 2).unsqueeze(1)
    result = (result * grad.unsqueeze(1)).masked_fill(none, 0 if zero_infinity else float("nan"))
    over = ops.arange(paths.steps, device=log_probs.device).reshape(-1, 1, 1) >= paths.lengths
    return result.masked_fill(over, 0)


# -- the loss ---------------------------------------------------------------------------------------------------------
def _numbers(name: str, lengths, batch: int, most: int) -> list[int]:
    """Lengths as numbers, of which there is one for each sample, none above `most`."""
    if isinstance(lengths, Tensor):
        if lengths.dispatch_key.dtype.category != dtypes.INTEGER:
            raise ArgumentError(f"{name} must be integral, got {lengths.dispatch_key.dtype.name}")
        lengths = lengths.reshape(-1).tolist()
    found = [int(length) for length in ((lengths,) if isinstance(lengths, int) else lengths)]
    if len(found) != batch:
        raise ShapeError(f"{name} must be of size batch_size, {batch}, but has {len(found)} elements")
    for length in found:
        if not 0 <= length <= most:
            raise ShapeError(f"Expected {name} to have values from 0 to {most}, but got value {length}")
    return found


def _placed(numbers: list[int], like) -> Tensor:
    """Numbers as a tensor on the device of another."""
    dispatch_key = dispatch_key_of(like.dispatch_key.device, dtypes.int64)
    host = np.array(numbers, np.int64)
    return wrap(dispatch_key.runtime.upload(host, dispatch_key.device.index), dispatch_key)


def _padded(targets, target_lengths, lengths: list[int], blank: int):
    """The targets as rows, with blanks behind them."""
    longest = max(lengths)
    places = ops.arange(longest, device=targets.device)
    if targets.ndim == 1:  # one behind the other
        if targets.shape[0] != sum(lengths):
            raise ShapeError(
                f"ctc_loss: expected targets of the target lengths' sum {sum(lengths)}, got {targets.shape[0]} elements"
            )
        begins = (target_lengths.cumsum(0) - target_lengths).unsqueeze(1)
        rows = targets[(begins + places).clamp_max(max(targets.shape[0] - 1, 0))] if longest else targets.reshape(0, 0)
        rows = rows.reshape(len(lengths), longest)
    elif targets.ndim == 2:
        if targets.shape[0] != len(lengths) or targets.shape[1] < longest:
            raise ShapeError(
                f"ctc_loss: expected targets of {len(lengths)} rows of at least {longest} labels, got shape "
                f"{list(targets.shape)}"
            )
        rows = targets.narrow(1, 0, longest)
    else:
        raise ShapeError(f"ctc_loss: expected targets of 1 or 2 dimensions, got shape {list(targets.shape)}")
    return rows.to(dtypes.int64).masked_fill(places >= target_lengths.unsqueeze(1), blank)


@composite(public="nn.functional")
def ctc_loss(
    log_probs, targets: Index, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
):  # fmt: skip
    """The negative logarithms of the probabilities of sequences of labels, whose places in time are not known
    (connectionist temporal classification, Graves et al. 2006).

    Args:
        log_probs: logarithms of the probabilities of C classes at each time, shape (T, N, C) or (T, C), float32 or
            float64.
        targets: labels, shape (N, S), or one behind the other, shape (sum of target_lengths,).
        input_lengths: how many times of each sample count, a tensor or a sequence of N numbers, at most T.
        target_lengths: how many labels each sample has.
        blank: the class that stands for no label.
        reduction: "none", "mean" (of the losses over the numbers of labels) or "sum".
        zero_infinity: whether the infinite loss of a target that does not fit in the time counts as 0, without a
            gradient.

    The gradient is right for scores of which `log_probs` are the `log_softmax`, as PyTorch's is.

    >>> import corefw as torch
    >>> even = torch.full((3, 1, 2), 0.5).log()
    >>> torch.nn.functional.ctc_loss(even, torch.tensor([[1, 1]]), [3], [2], reduction="none")  # 1 blank 1
    tensor([2.0794])
    """
    found = log_probs.dispatch_key.dtype
    if found not in (dtypes.float32, dtypes.float64):
        raise KernelNotFoundError(f"\"ctc_loss_cpu\" not implemented for '{found.title}'")
    if log_probs.ndim not in (2, 3) or 0 in log_probs.shape[1:]:
        raise ShapeError(
            f"ctc_loss: expected log_probs of shape (T, N, C) or (T, C), not empty, got {list(log_probs.shape)}"
        )
    unbatched = log_probs.ndim == 2
    rows = log_probs.unsqueeze(1) if unbatched else log_probs
    steps, batch, classes = rows.shape
    if not 0 <= blank < classes:
        raise ArgumentError(f"blank must be in label range, from 0 to {classes - 1}, but got {blank}")
    reduction = meant_reduction(reduction)
    times = _placed(_numbers("input_lengths", input_lengths, batch, steps), rows)
    lengths = _numbers("target_lengths", target_lengths, batch, targets.shape[-1] if targets.ndim else 0)
    counts = _placed(lengths, rows)
    labels = _padded(targets, counts, lengths, blank)
    loss = ops.ctc_costs(rows, labels, times, counts, blank, zero_infinity)
    if reduction == "mean":
        loss = loss / counts.clamp_min(1).to(loss.dtype)
    elif unbatched:
        loss = loss.squeeze(0)
    return reduced_loss(loss, reduction)
