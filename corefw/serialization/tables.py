"""Tables of tensors in safetensors files: names and plain memory, no pickle."""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping

import numpy as np

from corefw import dtypes
from corefw.devices import device as _device
from corefw.dispatch.registry import place_of
from corefw.files import replacing
from corefw.surface.interchange import host_array
from corefw.tensor import Tensor, wrap

#: safetensors' names of the dtypes
_CODES = {
    **{dtypes.bool_: "BOOL", dtypes.float16: "F16", dtypes.bfloat16: "BF16", dtypes.complex64: "C64"},
    **{d: f"{'FIU'[i]}{8 * d.itemsize}" for i, kinds in enumerate((
        (dtypes.float32, dtypes.float64),
        (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
        (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
    )) for d in kinds},
}
