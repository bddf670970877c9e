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

from corefw import declarations as _ops
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
from corefw.dispatch.constants import set_default_dtype
from corefw.dispatch.inspect import backend, explain
from corefw.dispatch.modes import ledger
from corefw.dispatch.names import published as _published
from corefw.dispatch.random_generator import Generator
from corefw.dispatch.registry import registry as _registry
from corefw.dtypes import (
    bfloat16,
    can_cast,
    complex32,
    complex64,
    complex128,
    dtype,
    finfo,
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
    uint8,
    uint16,
    uint32,
    uint64,
)
from corefw.layouts import (
    channels_last,
    channels_last_3d,
    contiguous_format,
    layout,
    memory_format,
    preserve_format,
    strided,
)
from corefw.printing import set_printoptions
from corefw.random import default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state
from corefw.settings import (
    are_deterministic_algorithms_enabled,
    get_float32_matmul_precision,
    get_num_threads,
    set_float32_matmul_precision,
    set_num_threads,
    use_deterministic_algorithms,
)
from corefw.shapes import Size
from corefw.tensor import Tensor
from corefw.tensor_api import (
    as_tensor,
    asarray,
    broadcast_shapes,
    from_dlpack,
    from_numpy,
    frombuffer,
    get_device,
    is_inference,
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

#: the ops that are functions of this namespace
_OPS = """
    abs absolute acos acosh adaptive_avg_pool1d adaptive_max_pool1d add addbmm addcdiv addcmul addmm addmv addr all
    allclose alpha_dropout amax amin aminmax angle any arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh
    argmax argmin argsort argwhere as_strided as_strided_scatter
    asin asinh atan atan2 atanh atleast_1d atleast_2d atleast_3d
    avg_pool1d baddbmm batch_norm bernoulli bilinear bincount bitwise_and bitwise_left_shift bitwise_not bitwise_or
    bitwise_right_shift bitwise_xor block_diag bmm broadcast_tensors broadcast_to bucketize cartesian_prod cat
    cdist ceil celu chain_matmul channel_shuffle cholesky cholesky_solve chunk clamp clamp_max clamp_min clip clone
    column_stack combinations complex concat concatenate conj conj_physical constant_pad_nd conv1d conv2d conv3d
    conv_transpose1d conv_transpose2d conv_transpose3d copysign cos cosh cosine_similarity count_nonzero cross
    cummax cummin cumprod cumsum cumulative_trapezoid deg2rad det detach diag diag_embed diagflat diagonal
    diagonal_scatter diff dist div divide dot dropout dsplit dstack einsum embedding embedding_renorm_ empty
    empty_like empty_permuted empty_strided eq equal erf erfc erfinv exp exp2 expm1 eye feature_alpha_dropout
    feature_dropout fill fix flatten flip fliplr flipud float_power floor floor_divide fmax fmin fmod frac full
    full_like gather gcd ge ger greater greater_equal group_norm gru gru_cell gt hardshrink heaviside histc hsplit
    hstack hypot imag index_add index_copy index_fill index_put index_select inner instance_norm inverse is_complex
    is_conj is_floating_point is_nonzero is_signed isclose isfinite isin isinf isnan isneginf isposinf isreal kl_div
    kron kthvalue layer_norm lcm ldexp le lerp less less_equal linspace log log10 log1p log2 log_softmax logaddexp
    logaddexp2 logcumsumexp logdet logical_and logical_not logical_or logical_xor logit logspace logsumexp lstm
    lstm_cell lt masked_fill masked_scatter masked_select matmul matrix_power max max_pool1d max_pool2d max_pool3d
    maximum mean median meshgrid min minimum mm mode moveaxis movedim msort mul multinomial multiply mv nan_to_num
    nanmean nanmedian nanquantile nansum narrow narrow_copy native_dropout ne neg negative nextafter nonzero norm
    normal not_equal ones ones_like outer pairwise_distance permute pinverse pixel_shuffle pixel_unshuffle polar
    positive pow prelu prod put qr quantile rad2deg rand rand_like randint randint_like randn randn_like randperm
    range ravel real reciprocal relu remainder repeat_interleave reshape resolve_conj rms_norm rnn_relu
    rnn_relu_cell rnn_tanh rnn_tanh_cell roll rot90 round row_stack rsqrt rsub scalar_tensor scatter scatter_add
    scatter_reduce searchsorted select select_scatter selu sgn sigmoid sign signbit sin sinc sinh slice_scatter
    slogdet softmax sort split split_with_sizes sqrt square squeeze stack std std_mean sub subtract sum svd
    swapaxes swapdims t take take_along_dim tan tanh tensor_split tensordot threshold tile topk trace
    transpose trapezoid trapz tril tril_indices triu triu_indices true_divide trunc unbind unflatten unique
    unique_consecutive unsqueeze var var_mean vdot view_as_complex view_as_real vsplit vstack where xlogy
    zeros zeros_like
"""
#: the in-place forms that PyTorch has as functions
_INPLACE = ("alpha_dropout_", "dropout_", "feature_alpha_dropout_", "feature_dropout_", "relu_", "selu_", "threshold_")
globals().update(_published("corefw", {_name: _registry.declared[_name].function for _name in _OPS.split()}))
globals().update(_published("corefw", {_name: _registry.declared[_name[:-1]].inplace_function for _name in _INPLACE}))

_methods.attach_ops()
_methods.attach_operators()

#: imported when first asked for: half of what importing all of them at once takes
_LATER = {
    **{name: name for name in ("backends", "cuda", "distributions", "fft", "linalg", "nn", "optim", "profiler")},
    **{name: name for name in ("return_types", "serialization", "special", "utils")},
    **{"load": "serialization", "save": "serialization"},
}


def __getattr__(name: str):
    """The namespaces, and what stands in them under this name too."""
    if name not in _LATER:
        raise AttributeError(f"module 'corefw' has no attribute {name!r}")
    module = _import_module(f"corefw.{_LATER[name]}")
    value = module if _LATER[name] == name else getattr(module, name)
    globals()[name] = value
    return value


_hidden = {_name for _name, _value in globals().items() if isinstance(_value, type(_math))} - {"autograd", "random"}
__all__ = sorted(
    {_name for _name in globals() if not _name.startswith("_")} - _hidden - {"annotations"} | {"__version__", *_LATER}
)


def __dir__():
    return __all__
