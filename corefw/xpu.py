"""PyTorch's questions about Intel's GPUs, which no backend serves."""

from corefw.unserved import device_count, is_available, manual_seed, manual_seed_all

__all__ = ["device_count", "is_available", "manual_seed", "manual_seed_all"]
