"""PyTorch's questions about Apple's GPUs, which no backend serves."""

from corefw.unserved import device_count, is_available, manual_seed

__all__ = ["device_count", "is_available", "manual_seed"]
