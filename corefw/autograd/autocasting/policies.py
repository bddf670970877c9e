"""What autocast casts the arguments of each op to: the lists of PyTorch's documentation, as data and as functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from corefw.autograd.autocasting.state import state
from corefw.dtypes import bfloat16, dtype, float16, float32, float64, promote_types
from corefw.graph.grad_mode import mode
from corefw.tensor import Tensor

#: the lower precision of the types of devices where it is not float16
LOWER = {"cpu": bfloat16, "hpu": bfloat16, "xla": bfloat16}


class Call(NamedTuple):
    """The arguments of a call, and where it is computed."""

    arguments: tuple
    named: dict[str, Any]
    parameters: tuple[str, ...]  # the names of those that may be given by position
    device_type: str

    def get(self, name: str, default: Any = None) -> Any:
        """The argument called `name`."""
        given = dict(zip(self.parameters, self.arguments))
        return (given | self.named).get(name, default)

    def cast(self, to: dtype) -> Call:
        """The call with its tensors in another dtype: floating ones of the device type, but no float64."""
        device_type = self.device_type
        arguments = tuple([_cast(value, device_type, to) for value in self.arguments])
        named = self.named and {name: _cast(value, device_type, to) for name, value in self.named.items()}
        return Call(arguments, named, self.parameters, device_type)


def lower_dtype(device_type: str) -> dtype:
    """The lower precision of a type of devices, in this thread."""
    return state.dtypes.get(device_type) or LOWER.get(device_type, float16)


# -- casts ------------------------------------------------------------------------------------------------------------
def eligible(tensor: Tensor, device_type: str) -> bool:
    """Whether autocast may change the dtype of a tensor."""
    key = tensor.dispatch_key
    return key.device.type == device_type and key.dtype.is_floating_point and key.dtype is not float64


def _cast(value: Any, device_type: str, to: dtype) -> Any:
    if isinstance(value, Tensor):
        if value.dispatch_key.dtype is to or not eligible(value, device_type):
            return value
        return _weight(value, to) if _is_weight(value, device_type, to) else value.to(to)
    if value.__class__ in (list, tuple):
        return value.__class__(_cast(one, device_type, to) for one in value)
    return value


def _is_weight(tensor: Tensor, device_type: str, to: dtype) -> bool:
    """Whether the cast of a tensor is kept until the outermost block ends: a leaf in float32 that wants a gradient."""
    return (
        state.caching
        and state.nesting > 0
        and tensor.dispatch_key.dtype is float32
        and to is lower_dtype(device_type)
        and tensor.requires_grad
        and tensor.is_leaf
        and tensor.view_info is None
    )


def _weight(tensor: Tensor, to: dtype) -> Tensor:
    """The cast of a weight, made once: again if the weight has changed, and apart for calls that record nothing."""
    key = id(tensor), to, bool(mode.recording)
    held, version, cast = state.cache.get(key, (None, 0, None))
    if held is not tensor or version != tensor.version[0]:
        cast = tensor.to(to)
        state.cache[key] = tensor, +tensor.version[0], cast
    return cast


def tensors_in(values: Any) -> Iterator[Tensor]:
    """The tensors among arguments, and in lists among them."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif value.__class__ in (list, tuple):
            yield from tensors_in(value)


# -- policies ---------------------------------------------------------------------------------------------------------
def lower(name: str, call: Call) -> Call:
    """In the lower precision: products, where it is fast."""
    return call.cast(lower_dtype(call.device_type))


def wide(name: str, call: Call) -> Call:
    """In float32: what leaves the range of half types or adds up errors."""
    return call.cast(float32)


def wide_result(name: str, call: Call) -> Call:
    """With a result in float32, unless the call names a dtype: sums of half types are taken in float32 anyway."""
    first = next(tensors_in((*call.arguments, *call.named.values())))
    if call.get("dtype") is not None or not eligible(first, call.device_type):
        return call
    if "dtype" not in call.parameters[: len(call.arguments)]:
        return call._replace(named={**call.named, "dtype": float32})
    place = call.parameters.index("dtype")
    return call._replace(arguments=(*call.arguments[:place], float32, *call.arguments[place + 1 :]))


def widest(name: str, call: Call) -> Call:
    """In the widest dtype of the operands, of the lower precision and float32."""
    low = lower_dtype(call.device_type)
    to = low
    for tensor in tensors_in((*call.arguments, *call.named.values())):
        if eligible(tensor, call.device_type):
            if tensor.dispatch_key.dtype not in (low, float32):
                raise RuntimeError(
                    f"{name}: Unexpected floating ScalarType in autocast: {tensor.dispatch_key.dtype.name}, where "
                    f"{low.name} and float32 meet. Convert it with .to(torch.{low.name})."
                )
            to = promote_types(to, tensor.dispatch_key.dtype)
    return call.cast(to)


def as_state(name: str, call: Call) -> Call:
    """In the dtype of its state, which goes on from step to step."""
    first = next(tensors_in((call.get("hx"),)))
    return call.cast(first.dispatch_key.dtype) if eligible(first, call.device_type) else call


def followed(name: str, call: Call) -> Call:
    """As the ops of its body are."""
    return call


def refused(name: str, call: Call) -> Call:
    """Not at all: probabilities in half precision are too close to 0 and 1 for their logarithms."""
    raise RuntimeError(
        f"{name}: torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast. Leave the "
        "sigmoid before it out and use torch.nn.functional.binary_cross_entropy_with_logits or "
        "torch.nn.BCEWithLogitsLoss, which are safe, or turn autocast off for the loss."
    )


def padded(name: str, call: Call) -> Call:
    """In float32 where elements are repeated, as far as PyTorch's list of paddings goes."""
    mode_, most = call.get("mode", "constant"), len(call.get("pad"))
    return call.cast(float32) if mode_ == "replicate" or (mode_ == "reflect" and most < 6) else call


def pooled(name: str, call: Call) -> Call:
    """In float32, unless positions are asked for too."""
    return call if call.get("return_indices", False) else call.cast(float32)


def resized(name: str, call: Call) -> Call:
    """In float32, unless by means of areas, which is pooling."""
    return call if call.get("mode", "nearest") == "area" else call.cast(float32)


def contracted(name: str, call: Call) -> Call:
    """In the lower precision, unless it is of two vectors, whose product PyTorch's lists leave out."""
    vectors = all(t.ndim == 1 for t in tensors_in((*call.arguments, *call.named.values())))
    return call if vectors else call.cast(lower_dtype(call.device_type))


Policy = Callable[[str, Call], Call]


# -- lists ------------------------------------------------------------------------------------------------------------
def _each(**policies: str) -> dict[str, Policy]:
    return {name: globals()[policy] for policy, names in policies.items() for name in names.split()}


_EVERYWHERE = """
    addbmm addmm baddbmm bmm chain_matmul conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
    conv_transpose3d linalg_multi_dot linalg_vecdot linear lstm matmul mm prelu rnn_relu rnn_tanh
    scaled_dot_product_attention
"""
_LOSSES = """
    binary_cross_entropy_with_logits cdist coded_cosine_embedding_loss coded_hinge_embedding_loss coded_kl_div
    coded_margin_ranking_loss coded_poisson_nll_loss coded_triplet_margin_loss cosine_embedding_loss
    hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss
    multilabel_margin_loss nll_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss
"""
_INSIDE = """
    affine_grid corrcoef cov linalg_matrix_power linear_cross_entropy matrix_power multi_head_attention_forward
"""

#: {op: how it is cast} on the CPU
CPU = _each(
    lower=_EVERYWHERE + "rnn_relu_cell rnn_tanh_cell tensordot",
    wide=_LOSSES
    + """
    adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy cholesky cholesky_inverse cholesky_solve
    coded_ctc_loss cross_entropy ctc_loss fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft
    fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn fractional_max_pool2d fractional_max_pool3d geqrf
    grid_sample inverse linalg_cholesky linalg_cholesky_ex linalg_cond linalg_eig linalg_eigh linalg_eigvals
    linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex linalg_lstsq linalg_matrix_rank linalg_qr
    linalg_solve linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve local_response_norm lu_solve max_unpool2d
    max_unpool3d nanquantile ormqr pinverse polar prod qr quantile stft svd trace view_as_complex
    """,
    widest="cat index_copy stack",
    as_state="gru_cell lstm_cell",
    followed=_INSIDE + "einsum",
    padded="pad",
    pooled="max_pool3d",
    contracted="inner",
)
#: on GPUs, and devices of other kinds
GPU = _each(
    lower=_EVERYWHERE + "addmv addr einsum gru gru_cell lstm_cell mv rnn_relu_cell rnn_tanh_cell",
    wide=_LOSSES
    + """
    acos asin cosh cosine_similarity cross_entropy dist erfinv exp expm1 group_norm layer_norm log log10
    log1p log2 logsumexp pdist pow reciprocal renorm rms_norm rsqrt sinh softplus tan upsample_bilinear upsample_nearest
    """,
    wide_result="cumprod cumsum linalg_matrix_norm linalg_norm linalg_vector_norm log_softmax norm prod softmax sum",
    widest="addcdiv addcmul atan2 bilinear cross dot grid_sample index_put linalg_cross scatter_add tensordot vdot",
    followed=_INSIDE,
    resized="interpolate upsample",
    contracted="inner",
    refused="binary_cross_entropy",
)


def policies(device_type: str) -> dict[str, Policy]:
    """How ops are cast on a type of devices: {op: policy}."""
    return _LISTS.get(device_type, GPU)


_LISTS = {"cpu": CPU}
