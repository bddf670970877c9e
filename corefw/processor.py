"""What the system says about the processor."""

from __future__ import annotations

import platform


def cpuinfo(field: str) -> str:
    """The first line of /proc/cpuinfo that begins with `field`, "" where there is none."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith(field)), "")
    except OSError:
        return ""


def processor() -> str:
    """The name of the processor."""
    return cpuinfo("model name") or platform.processor() or platform.machine()
