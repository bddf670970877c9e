"""Anomaly mode: says which line of the forward computation a failing gradient belongs to, and finds NaN gradients."""

from __future__ import annotations

import traceback
import warnings

from corefw.autograd.recorder import exchange_step
from corefw.dispatch.declare import ops
from corefw.errors import GradientError
from corefw.graph.grad_mode import mode
from corefw.tensor import Node
from corefw.tracebacks import is_internal


def _remember_line(node: Node) -> None:
    """Keep the forward call's traceback, up to the line that called the op."""
    frames = traceback.extract_stack()
    while frames and is_internal(frames[-1].filename):
        frames.pop()
    node.metadata["traceback_"] = traceback.format_list(frames)


def _warn(node: Node) -> None:
    lines = node.metadata.get("traceback_")
    found = (
        "Traceback of forward call that caused the error:\n" + "".join(lines)
        if lines
        else "No forward pass information available. Enable detect anomaly during forward pass for more information."
    )
    warnings.warn(f"Error detected in {node.name()}. {found}", UserWarning, stacklevel=3)


def _call(node: Node, gradient):
    try:
        return node.backward(gradient)
    except Exception:
        _warn(node)
        raise


def _call_and_check(node: Node, gradient):
    gradients = _call(node, gradient)
    for i, g in enumerate(gradients):
        if g is not None and ops.isnan(g).any().item():
            _warn(node)
            raise GradientError(f"Function '{node.name()}' returned nan values in its {i}th output.")
    return gradients


class _AnomalyMode:
    """A with-block, or from the call on, with anomaly mode on or off in this thread."""

    def __init__(self, enabled: bool, check_nan: bool):
        self._before = exchange_step("anomaly", _remember_line if enabled else None), mode.call_node
        mode.call_node = (_call_and_check if check_nan else _call) if enabled else None

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        step, mode.call_node = self._before
        exchange_step("anomaly", step)


class set_detect_anomaly(_AnomalyMode):
    """Switch anomaly mode on or off, from the call on; as a context manager until its end.

    Args:
        mode: whether to switch it on.
        check_nan: whether a backward that computes NaN raises.
    """

    def __init__(self, mode: bool, check_nan: bool = True):
        super().__init__(bool(mode), check_nan)


class detect_anomaly(_AnomalyMode):
    """A block in which failures of the backward are explained: a warning shows where the forward op was called, and a
    gradient that is NaN raises. It makes everything slower.

    Args:
        check_nan: whether a backward that computes NaN raises.

    >>> import warnings
    >>> import corefw as torch
    >>> x = torch.tensor([0.0], requires_grad=True)
    >>> with warnings.catch_warnings(action="ignore"), torch.autograd.detect_anomaly():
    ...     (x.sqrt() * 0).sum().backward()
    Traceback (most recent call last):
    corefw.errors.GradientError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, check_nan: bool = True):
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
            "enabled for debugging.",
            stacklevel=2,
        )
        self._check_nan = check_nan

    def __enter__(self) -> None:
        super().__init__(True, self._check_nan)


def is_anomaly_enabled() -> bool:
    """Whether this thread is in anomaly mode."""
    return mode.call_node is not None


__all__ = ["detect_anomaly", "is_anomaly_enabled", "set_detect_anomaly"]
