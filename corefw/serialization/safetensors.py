"""Tables of tensors in safetensors files: names and plain memory, no pickle."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from corefw import dtypes
from corefw.devices import device as _device
from corefw.dispatch.registry import dispatch_key_of
from corefw.errors import DtypeError
from corefw.files import replacing
from corefw.tensor import Tensor, wrap
from corefw.tensor_api.interchange import host_array

#: the dtypes by the names that safetensors files have for them
_DTYPES = {
    **{"BOOL": dtypes.bool_, "F16": dtypes.float16, "BF16": dtypes.bfloat16, "F32": dtypes.float32},
    **{"F64": dtypes.float64, "C64": dtypes.complex64},
    **{"I8": dtypes.int8, "I16": dtypes.int16, "I32": dtypes.int32, "I64": dtypes.int64},
    **{"U8": dtypes.uint8, "U16": dtypes.uint16, "U32": dtypes.uint32, "U64": dtypes.uint64},
}
_SAVED = frozenset(_DTYPES.values())


def save_file(
    tensors: Mapping[str, Tensor], filename: str | os.PathLike, metadata: dict[str, str] | None = None
) -> None:
    """Save named tensors as a safetensors file, which other frameworks read too and which can hold no code.

    Every tensor is saved alone and contiguous: tensors that share memory do not when loaded. A crash leaves an old file
    whole.

    Args:
        tensors: tensors by name, e.g. a module's `state_dict`.
        filename: the path.
        metadata: text for the file's header.

    Raises DtypeError for complex128, which the format lacks.

    >>> import corefw as torch, tempfile, os
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> torch.serialization.save_file({"x": torch.eye(2).bfloat16()}, path)
    >>> torch.serialization.load_file(path)
    {'x': tensor([[1., 0.],
            [0., 1.]], dtype=torch.bfloat16)}
    """
    from safetensors.numpy import save

    arrays = {}
    for name, tensor in tensors.items():
        if not isinstance(tensor, Tensor):
            raise TypeError(f"save_file: {name!r} must be a Tensor, not {type(tensor).__name__}")
        if tensor.dispatch_key.dtype not in _SAVED:
            raise DtypeError(
                f"save_file: {name!r} is {tensor.dispatch_key.dtype!r}, which safetensors files cannot hold"
            )
        host = host_array(tensor)
        arrays[name] = host if host.flags.c_contiguous else host.copy("C")
    with replacing(filename) as file:
        file.write(save(arrays, metadata=metadata))


def load_file(filename: str | os.PathLike, device: str | _device | int = "cpu") -> dict[str, Tensor]:
    """The named tensors of a safetensors file.

    Args:
        filename: the path.
        device: where the tensors go.

    Raises RuntimeError if the file is damaged, DtypeError for element types that corefw lacks (float8).
    """
    from safetensors import SafetensorError, deserialize

    with open(filename, "rb") as file:
        content = file.read()
    try:
        table = deserialize(content)
    except SafetensorError as error:
        raise RuntimeError(f"load_file: {os.fspath(filename)!r} is no safetensors file or damaged: {error}") from None
    return {name: _tensor(name, entry, _device(device)) for name, entry in sorted(table)}


def _tensor(name: str, entry: dict, where: _device) -> Tensor:
    d = _DTYPES.get(entry["dtype"])
    if d is None:
        raise DtypeError(f"load_file: {name!r} has the element type {entry['dtype']}, which corefw lacks")
    array = np.frombuffer(entry["data"], d.numpy).reshape(entry["shape"])
    dispatch_key = dispatch_key_of(where, d)
    return wrap(
        dispatch_key.runtime.upload(array if array.flags.writeable else array.copy(), dispatch_key.device.index),
        dispatch_key,
    )
