"""Utilities: data loading, checkpointing, and handles of hooks."""

from corefw.utils import checkpoint, data, hooks

__all__ = ["checkpoint", "data", "hooks"]
