"""Tensor beside its ops: its other methods and attributes, and tensors from Python and NumPy values."""

from corefw.tensor_api import conversion, copying, interchange, legacy, memory, notebooks, properties, scalars
from corefw.tensor_api.construction import as_tensor, asarray, frombuffer, tensor
from corefw.tensor_api.interchange import from_dlpack, from_numpy, to_dlpack
from corefw.tensor_api.legacy import tensor_types, typename
from corefw.tensor_api.memory import UntypedStorage, is_storage
from corefw.tensor_api.properties import broadcast_shapes, get_device, is_inference, is_tensor, numel, result_type
from corefw.tensor_api.typed_storage import STORAGES, TypedStorage

__all__ = [
    "STORAGES",
    "TypedStorage",
    "UntypedStorage",
    "as_tensor",
    "asarray",
    "broadcast_shapes",
    "conversion",
    "copying",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "get_device",
    "interchange",
    "is_inference",
    "is_storage",
    "is_tensor",
    "legacy",
    "memory",
    "notebooks",
    "numel",
    "properties",
    "result_type",
    "scalars",
    "tensor",
    "tensor_types",
    "to_dlpack",
    "typename",
]
