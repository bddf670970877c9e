"""Signals: their windows."""

from corefw.signal import windows

__all__ = ["windows"]
