"""Utilities: data loading, checkpointing, handles of hooks; timing and logs, imported when first asked for."""

from importlib import import_module as _import_module

from corefw.utils import checkpoint, data, hooks

_LATER = ("benchmark", "dlpack", "flop_counter", "model_zoo", "summary", "tensorboard")
__all__ = ["checkpoint", "data", "hooks", *_LATER]


def __getattr__(name: str):
    """What is seldom needed."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "summary":
        return _import_module(f"{__name__}.summaries").summary
    return _import_module(f"{__name__}.{name}")
