"""The names of PyTorch's classes and functions in checkpoints, and what stands for them here."""

from __future__ import annotations

from typing import Any

from corefw import devices, dtypes, layouts, shapes
from corefw.nn.parameter import Parameter
from corefw.serialization import rebuild
from corefw.serialization.storages import STORAGE_TYPES, UNTYPED
from corefw.tensor import Tensor

Name = tuple[str, str]  # module, name in it

_REBUILDERS = (
    rebuild._rebuild_tensor,
    rebuild._rebuild_tensor_v2,
    rebuild._rebuild_tensor_v3,
    rebuild._rebuild_meta_tensor_no_storage,
    rebuild._rebuild_sparse_tensor,
    rebuild._rebuild_device_tensor_from_cpu_tensor,
    rebuild._rebuild_parameter,
    rebuild._rebuild_parameter_with_state,
)
#: what a checkpoint calls to make tensors
REBUILDERS: dict[Name, Any] = {("torch._utils", function.__name__): function for function in _REBUILDERS}
_FROM_TYPE: dict[Name, Any] = {
    ("torch._tensor", "_rebuild_from_type_v2"): rebuild._rebuild_from_type_v2,
    ("torch._tensor", "_rebuild_from_type"): rebuild._rebuild_from_type_v2,
    ("torch.tensor", "_rebuild_from_type"): rebuild._rebuild_from_type_v2,  # PyTorch 1.6 to 1.8
}
#: small values that checkpoints make by a call
_VALUES: dict[Name, Any] = {
    ("torch", "Size"): shapes.Size,
    ("torch", "device"): devices.device,
    ("torch.serialization", "_get_layout"): rebuild._get_layout,
}
#: what a checkpoint only mentions
_MENTIONED: dict[Name, Any] = {
    **{("torch", d.name): d for d in dtypes.ALL},
    **{("torch", kind.name): kind for kind in STORAGE_TYPES.values()},
    ("torch.storage", UNTYPED.name): UNTYPED,
    ("torch", "Tensor"): Tensor,
    ("torch.nn.parameter", "Parameter"): Parameter,
}
#: other names under which PyTorch has written the same
_FORMERLY: dict[Name, Any] = {
    **{("torch.cuda", kind.name): kind for kind in STORAGE_TYPES.values()},
    ("torch", "UntypedStorage"): UNTYPED,
    ("torch.storage", "_UntypedStorage"): UNTYPED,
    ("torch", "complex32"): dtypes.complex32,
}
_FORMATS: dict[Name, Any] = {
    ("torch", value.name): value
    for value in (
        layouts.contiguous_format,
        layouts.preserve_format,
        layouts.channels_last,
        layouts.channels_last_3d,
        layouts.strided,
    )
}

#: everything that has a name of PyTorch's in checkpoints
KNOWN: dict[Name, Any] = {**REBUILDERS, **_FROM_TYPE, **_VALUES, **_MENTIONED, **_FORMERLY, **_FORMATS}
#: of these, what a restricted load may call
CALLABLE = frozenset(id(value) for value in (*REBUILDERS.values(), *_FROM_TYPE.values(), *_VALUES.values()))
#: the name to write for an object, by its id (all of them live as long as the program)
WRITTEN: dict[int, Name] = {
    id(value): name
    for table in (_FROM_TYPE, REBUILDERS, _VALUES, _MENTIONED, _FORMATS)
    for name, value in reversed(table.items())
}
