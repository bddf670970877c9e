"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf, isinf, sqrt
from typing import Any, NamedTuple

from corefw.dispatch.declare import ops
from corefw.graph.grad_mode import no_recording
from corefw.optim.optimizer import Optimizer, options_of
from corefw.tensor import Tensor


class Point(NamedTuple):
    """A point on the line searched: its distance, and the loss, gradient and slope there."""

    t: float
    loss: float
    gradient: Tensor
    slope: float


class LBFGS(Optimizer):
    """Limited-memory BFGS (Nocedal & Wright, Numerical Optimization, algorithms 7.4 and 7.5).

    Takes all parameters as one vector; there is one group only. A step calls its closure many times.

    Args:
        params: the parameters.
        lr: length of the first trial step; the step itself without line search.
        max_iter: iterations per call of ``step``.
        max_eval: evaluations of the closure per call of ``step``; ``max_iter * 5 // 4`` if None.
        tolerance_grad: stop when the largest absolute gradient is at most this.
        tolerance_change: stop when the parameters or the loss change by less than this.
        history_size: how many past steps describe the curvature.
        line_search_fn: "strong_wolfe" or None.

    >>> import corefw as torch
    >>> w = torch.zeros(2, requires_grad=True)
    >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = ((w - torch.tensor([1.0, 2.0])) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    5.0
    >>> w.data
    tensor([1.0000, 2.0000])
    """

    def __init__(
        self, params: Iterable[Any], lr: float = 1, max_iter: int = 20, max_eval: int | None = None,
        tolerance_grad: float = 1e-7, tolerance_change: float = 1e-9, history_size: int = 100,
        line_search_fn: str | None = None,
    ):  # fmt: skip
        max_eval = max_iter * 5 // 4 if max_eval is None else max_eval
        super().__init__(params, options_of(locals()))
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Callable[[], Any]) -> Any:
        """Iterate until the limits or tolerances are met.

        Args:
            closure: recomputes the loss and its gradients, and returns the loss.

        Returns: the loss before the first iteration.
        """
        with no_recording():
            return self._minimize(closure)

    def _minimize(self, closure):
        group = self.param_groups[0]
        max_iter, max_eval, lr = group["max_iter"], group["max_eval"], float(group["lr"])
        search = group["line_search_fn"]
        if search not in (None, "strong_wolfe"):
            raise RuntimeError("only 'strong_wolfe' is supported")
        # one state for all parameters, under the first, so that loading it finds a device and dtype
        state = self.state[group["params"][0]]
        for counter in ("func_evals", "n_iter"):
            state.setdefault(counter, 0)

        first_loss = self.evaluate(closure)
        loss, gradient = float(first_loss), self._gradient()
        evaluations = 1
        state["func_evals"] += 1
        if _largest(gradient) <= group["tolerance_grad"]:
            return first_loss

        for iteration in range(1, max_iter + 1):
            state["n_iter"] += 1
            if state["n_iter"] == 1:
                t = min(1.0, 1.0 / gradient.abs().sum().item()) * lr
                state.update(al=[None] * group["history_size"], d=-gradient, t=t)
                state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            else:
                _remember(state, gradient, group["history_size"])
                state["d"] = _direction(state, gradient)
                t = lr
            direction = state["d"]
            state.update(prev_flat_grad=gradient.clone(), prev_loss=loss, t=t)
            slope = gradient.dot(direction).item()
            if slope > -group["tolerance_change"]:
                break

            used = 0
            if search:
                start = Point(0, loss, gradient, slope)
                found, used = self._search_line(closure, start, t, direction, max_eval - evaluations)
                t = state["t"] = found.t
                loss, gradient = found.loss, found.gradient
                self._move(t, direction)
            else:
                self._move(t, direction)
                if iteration != max_iter:  # what the loss is after the last step, the next call of step will find
                    loss, gradient = float(self.evaluate(closure)), self._gradient()
                    used = 1
            evaluations += used
            state["func_evals"] += used
            if (
                evaluations >= max_eval
                or _largest(gradient) <= group["tolerance_grad"]
                or _largest(direction * t) <= group["tolerance_change"]
                or abs(loss - state["prev_loss"]) < group["tolerance_change"]
            ):
                break
        return first_loss

    def _gradient(self) -> Tensor:
        """All gradients as one vector."""
        flat = []
        for p in self.param_groups[0]["params"]:
            grad = ops.zeros_like(p) if p._grad is None else p._grad
            flat.append((ops.view_as_real(grad) if grad.is_complex() else grad).reshape(-1))
        return ops.cat(flat).detach()

    def _move(self, t: float, direction: Tensor) -> None:
        """Add ``t * direction`` to the parameters."""
        begin = 0
        self._refuse_read_only(self.param_groups[0]["params"])
        for p in self.param_groups[0]["params"]:
            real = ops.view_as_real(p) if p.is_complex() else p
            end = begin + real.numel()
            real.add_(direction[begin:end].reshape(real.shape), alpha=t)
            begin = end

    def _search_line(self, closure, start, t, direction, limit):
        params = self.param_groups[0]["params"]
        origin = [p.clone() for p in params]

        def evaluate(t):
            self._move(t, direction)
            loss, gradient = float(self.evaluate(closure)), self._gradient()
            for p, before in zip(params, origin, strict=True):
                p.copy_(before)
            return Point(t, loss, gradient, gradient.dot(direction).item())

        return strong_wolfe(evaluate, start, t, _largest(direction), limit)


def _largest(vector: Tensor) -> float:
    return vector.abs().max().item()


def _remember(state, gradient, history_size):
    """Add the last step, and how it changed the gradient, to the history, where the curvature along it is positive."""
    change, step = gradient - state["prev_flat_grad"], state["d"] * state["t"]
    curvature = change.dot(step).item()
    if curvature > 1e-10:
        if len(state["old_dirs"]) == history_size:
            for name in ("old_dirs", "old_stps", "ro"):
                del state[name][0]
        state["old_dirs"].append(change)
        state["old_stps"].append(step)
        state["ro"].append(1.0 / curvature)
        state["H_diag"] = curvature / change.dot(change).item()


def _direction(state, gradient):
    """Minus the approximate inverse Hessian times the gradient, by the two-loop recursion (algorithm 7.4)."""
    history = list(zip(state["old_dirs"], state["old_stps"], map(float, state["ro"]), strict=True))
    q, weights = -gradient, []
    for change, step, scale in reversed(history):
        weights.append(step.dot(q).item() * scale)
        q.add_(change, alpha=-weights[-1])
    state["al"][: len(history)] = reversed(weights)
    r = q * float(state["H_diag"])
    for (change, step, scale), weight in zip(history, reversed(weights), strict=True):
        r.add_(step, alpha=weight - change.dot(r).item() * scale)
    return r


def strong_wolfe(
    evaluate: Callable[[float], Point], start: Point, t: float, norm: float, limit: int, c1: float = 1e-4,
    c2: float = 0.9, tolerance: float = 1e-9,
) -> tuple[Point, int]:  # fmt: skip
    """A point where the loss decreased enough and the slope is flat enough (Nocedal & Wright, algorithms 3.5 and 3.6).

    Args:
        evaluate: the point at a distance.
        start: the point at distance 0.
        t: the first distance to try.
        norm: the largest absolute element of the direction.
        limit: trials beyond the first.
        c1, c2: the constants of the Wolfe conditions.
        tolerance: the smallest bracket, in units of the parameters.

    Returns: the point, or the best one found within the limit; the number of evaluations.
    """

    def too_high(point):
        return point.loss > start.loss + c1 * point.t * start.slope

    def flat(point):
        return abs(point.slope) <= -c2 * start.slope

    previous, trial, trials = start, evaluate(t), 0
    while trials < limit:
        if too_high(trial) or (trials > 1 and trial.loss >= previous.loss):
            bracket = [previous, trial]
            break
        if flat(trial):
            return trial, trials + 1
        if trial.slope >= 0:
            bracket = [previous, trial]
            break
        t = interpolate(previous, trial, trial.t + 0.01 * (trial.t - previous.t), trial.t * 10)
        previous, trial = trial, evaluate(t)
        trials += 1
    else:
        bracket = [start, trial]

    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    stalled = False
    while trials < limit:
        left, right = sorted(point.t for point in bracket)
        if (right - left) * norm < tolerance:
            break
        t = interpolate(bracket[0], bracket[1], left, right)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:  # too near an end to shrink the bracket, twice in a row or beyond it
            if stalled or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stalled = False
            else:
                stalled = True
        else:
            stalled = False
        trial = evaluate(t)
        trials += 1
        if too_high(trial) or trial.loss >= bracket[low].loss:
            bracket[1 - low] = trial
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
        else:
            done = flat(trial)
            if not done and trial.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
                bracket[1 - low] = bracket[low]
            bracket[low] = trial
            if done:
                break
    return bracket[low], trials + 1


def interpolate(a: Point, b: Point, lowest: float, highest: float) -> float:
    """Where the cubic through two points and their slopes is smallest (equation 3.59), kept within the bounds; their
    middle where there is none."""
    left, right = (a, b) if a.t <= b.t else (b, a)
    width = right.t - left.t
    if width:
        d1 = left.slope + right.slope - 3 * (left.loss - right.loss) / (left.t - right.t)
        square = d1 * d1 - left.slope * right.slope
        if 0 <= square < inf:
            d2 = sqrt(square)
            divisor = right.slope - left.slope + 2 * d2
            if divisor and not isinf(divisor):
                return min(max(right.t - width * ((right.slope + d2 - d1) / divisor), lowest), highest)
    return (lowest + highest) / 2
