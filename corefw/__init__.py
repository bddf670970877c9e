"""corefw: a deep-learning framework with PyTorch's Python API whose every kernel is a plug-in.

>>> import corefw as torch
>>> x = torch.tensor([1.0, 2.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4.])
"""

from __future__ import annotations

__version__ = "0.1.0"

import math as _math
from importlib import import_module as _import_module

from corefw import declarations as _declarations
from corefw import dtypes as _dtypes
from corefw import tensor_api as _tensor_api
from corefw.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from corefw.devices import device, get_default_device, set_default_device
from corefw.dispatch.checking import checking
from corefw.dispatch.constants import set_default_dtype
from corefw.dispatch.inspect import backend, explain
from corefw.dispatch.modes import ledger
from corefw.dispatch.names import published as _published
from corefw.dispatch.random_generator import Generator
from corefw.dtypes import (
    bfloat16,
    can_cast,
    complex32,
    complex64,
    complex128,
    dtype,
    finfo,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    get_default_dtype,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    promote_types,
    qint8,
    uint8,
    uint16,
    uint32,
    uint64,
)
from corefw.eigenpairs import lobpcg
from corefw.errors import OutOfMemoryError
from corefw.layouts import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from corefw.low_rank import pca_lowrank, svd_lowrank
from corefw.printing import set_printoptions
from corefw.random import default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from corefw.settings import (
    are_deterministic_algorithms_enabled,
    get_deterministic_debug_mode,
    get_device_module,
    get_float32_matmul_precision,
    get_num_interop_threads,
    get_num_threads,
    is_deterministic_algorithms_warn_only_enabled,
    is_warn_always_enabled,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_flush_denormal,
    set_num_interop_threads,
    set_num_threads,
    set_warn_always,
    use_deterministic_algorithms,
)
from corefw.shapes import Size
from corefw.sparse import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
    spmm,
)
from corefw.tensor import Tensor
from corefw.tensor_api import (
    TypedStorage,
    UntypedStorage,
    as_tensor,
    asarray,
    broadcast_shapes,
    from_dlpack,
    from_numpy,
    frombuffer,
    get_device,
    is_inference,
    is_storage,
    is_tensor,
    numel,
    result_type,
    tensor,
    tensor_types,
    to_dlpack,
    typename,
)
from corefw.tensor_api import methods as _methods

bool, float, double, half, chalf = _dtypes.bool_, float32, float64, float16, complex32
int, long, short, cfloat, cdouble = int32, int64, int16, complex64, complex128
e, inf, nan, pi, newaxis = _math.e, _math.inf, _math.nan, _math.pi, None

globals().update(tensor_types("cpu"))
globals().update(_tensor_api.STORAGES)
globals().update(_published(__name__))

_methods.attach_ops()
_methods.attach_operators()
as_strided_, detach_, resize_as_ = Tensor.as_strided_, Tensor.detach_, Tensor.resize_as_

_AUTOCAST = """
    autocast autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache get_autocast_cpu_dtype
    get_autocast_dtype get_autocast_gpu_dtype is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled
    set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_dtype set_autocast_enabled
    set_autocast_gpu_dtype
"""
_SYMBOLIC = "sym_float sym_int sym_ite sym_max sym_min sym_not sym_sqrt sym_sum"
#: imported when first asked for: half of what importing all of them at once takes
_LATER = {
    **{name: name for name in ("accelerator", "backends", "cpu", "cuda", "distributions", "fft", "func", "linalg")},
    **{name: name for name in ("ao", "masked", "nn", "optim", "quantization")},
    **{name: name for name in ("amp", "compiler", "distributed", "export", "futures", "fx", "hub", "jit", "library")},
    **{name: name for name in ("functional", "mps", "mtia", "xpu")},
    **{name: name for name in ("multiprocessing", "onnx", "overrides", "storage", "types", "utils", "version")},
    **{
        "_C": "_C",
        "__config__": "__config__",
        "_tensor_str": "_tensor_str",
        "_utils": "_utils",
        **dict.fromkeys(
            ("_convert_indices_from_coo_to_csr", "_convert_indices_from_csr_to_coo", "_shape_as_tensor"), "_utils"
        ),
        "_dynamo": "_dynamo",
        **dict.fromkeys(
            ("_assert", "_assert_async", "_check", "_check_is_size", "_check_tensor_all", "_check_with"), "assertions"
        ),
        "ops": "_ops",
        "Future": "futures",
        "ScriptFunction": "jit",
        "Stream": "cuda",
        "ScriptModule": "jit",
        **dict.fromkeys(("SymBool", "SymFloat", "SymInt"), "types"),
        **dict.fromkeys(_SYMBOLIC.split(), "symbolic"),
        "GradScaler": "amp.grad_scaler",
        "PyTorchFileReader": "serialization.file_reader",
        **dict.fromkeys(_AUTOCAST.split(), "amp.autocast_mode"),
        **dict.fromkeys(("_amp_foreach_non_finite_check_and_unscale_", "_amp_update_scale_"), "amp.grad_scaler"),
        "compile": "compiler",
        "set_default_tensor_type": "default_type",
    },
    **{name: name for name in ("profiler", "return_types", "serialization", "signal", "special", "testing")},
    "vmap": "func",
    **{"load": "serialization", "save": "serialization", "shadow": "debugging.shadowing"},
}


def __getattr__(name: str):
    """The namespaces, and what stands in them under this name too."""
    if name.startswith("_foreach_"):
        return getattr(_import_module("corefw.foreach"), name)
    if name not in _LATER:
        raise AttributeError(f"module 'corefw' has no attribute {name!r}")
    module = _import_module(f"corefw.{_LATER[name]}")
    value = module if _LATER[name] == name else getattr(module, name)
    globals()[name] = value
    return value


_hidden = {_name for _name, _value in globals().items() if isinstance(_value, type(_math))} - {
    "autograd",
    "random",
    "sparse",
}
__all__ = sorted(
    {_name for _name in globals() if not _name.startswith("_")} - _hidden - {"annotations"}
    | {"__version__", *_LATER} - {_name for _name in _LATER if _name.startswith("_")}
)


def __dir__():
    return __all__
