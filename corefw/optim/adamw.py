"""AdamW, under the path that PyTorch's has."""

from corefw.optim.adam import AdamW, adamw

__all__ = ["AdamW", "adamw"]
