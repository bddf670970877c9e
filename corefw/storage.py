"""The memory of tensors under PyTorch's name: `TypedStorage` shows numbers, `UntypedStorage` bytes."""

from corefw.tensor_api import TypedStorage, UntypedStorage, is_storage

__all__ = ["TypedStorage", "UntypedStorage", "is_storage"]
