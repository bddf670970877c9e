"""Automatic differentiation: backward, custom functions, grad modes, and tools to check and inspect gradients."""

from importlib import import_module as _import_module

from corefw.autograd import anomaly_mode, function, functional, grad_mode, graph
from corefw.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from corefw.autograd.attributes import attach_autograd
from corefw.autograd.differentiate import backward, grad
from corefw.autograd.function import Function
from corefw.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from corefw.autograd.gradcheck import gradcheck, gradgradcheck
from corefw.autograd.variable import Variable

attach_autograd()


def __getattr__(name: str):
    """What is imported when first asked for."""
    if name not in ("forward_ad", "profiler"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _import_module(f"{__name__}.{name}")


__all__ = [
    "Function",
    "Variable",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "forward_ad",
    "function",
    "functional",
    "grad",
    "grad_mode",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "no_grad",
    "profiler",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]
