"""The layers' computations as functions, under PyTorch's names."""

from __future__ import annotations

import warnings as _warnings

from corefw.dispatch.declare import ops as _ops
from corefw.dispatch.names import published as _published
from corefw.dispatch.registry import registry as _registry
from corefw.dtypes import dtype as _dtype
from corefw.tensor import Tensor

_OPS = """
    adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
    adaptive_max_pool3d alpha_dropout avg_pool1d avg_pool2d avg_pool3d bilinear binary_cross_entropy
    binary_cross_entropy_with_logits celu channel_shuffle conv1d conv2d conv3d conv_transpose1d conv_transpose2d
    conv_transpose3d cosine_embedding_loss cosine_similarity cross_entropy dropout dropout1d dropout2d dropout3d elu
    feature_alpha_dropout fold gaussian_nll_loss gelu glu group_norm gumbel_softmax hardshrink hardsigmoid hardswish
    hardtanh hinge_embedding_loss huber_loss interpolate kl_div l1_loss layer_norm leaky_relu linear logsigmoid
    lp_pool1d lp_pool2d lp_pool3d margin_ranking_loss max_pool1d max_pool2d max_pool3d max_unpool1d max_unpool2d
    max_unpool3d mish mse_loss multi_head_attention_forward multilabel_soft_margin_loss nll_loss normalize one_hot
    pad pairwise_distance pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu6 rms_norm
    scaled_dot_product_attention selu sigmoid silu smooth_l1_loss soft_margin_loss softplus softshrink softsign tanh
    tanhshrink threshold triplet_margin_loss triplet_margin_with_distance_loss upsample upsample_bilinear
    upsample_nearest
"""
#: functions with other arguments than their namesakes in the main namespace or among the methods
_REORDERED = ("batch_norm", "embedding", "instance_norm", "unfold")
_INPLACE = ("celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "selu_", "threshold_")
_FUNCTIONS = {
    **{_name: _registry.declared[_name].function for _name in _OPS.split()},
    **{_name: _registry.declared[f"functional_{_name}"].function for _name in _REORDERED},
    **{_name: _registry.declared[_name[:-1]].inplace_function for _name in _INPLACE},
}
globals().update(_published("corefw.nn.functional", _FUNCTIONS))


def _chosen(name: str, dim: int | None, input: Tensor, stacklevel: int) -> int:
    """The dimension that PyTorch takes where none is given: 0 for 0-, 1- and 3-d inputs, else 1."""
    if dim is not None:
        return dim
    _warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        UserWarning,
        stacklevel=stacklevel,
    )
    return 0 if input.ndim in (0, 1, 3) else 1


def softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _dtype | None = None) -> Tensor:
    """Exponentials of the elements, scaled so that they sum to one along `dim`; see `corefw.softmax`.

    Args:
        input: any shape.
        dim: the dimension to scale along; without it one is chosen, with a warning.
        dtype: convert the elements to this dtype first.

    >>> import corefw as torch
    >>> torch.nn.functional.softmax(torch.zeros(2, 2), dim=1)
    tensor([[0.5000, 0.5000],
            [0.5000, 0.5000]])
    """
    return _ops.softmax(input, _chosen("softmax", dim, input, _stacklevel), dtype)


def log_softmax(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _dtype | None = None) -> Tensor:
    """The logarithm of `softmax`; see `corefw.log_softmax`. Arguments as for `softmax`."""
    return _ops.log_softmax(input, _chosen("log_softmax", dim, input, _stacklevel), dtype)


def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: _dtype | None = None) -> Tensor:
    """The softmax of the negated input. Arguments as for `softmax`."""
    return _ops.softmin(input, _chosen("softmin", dim, input, _stacklevel), dtype)


__all__ = [*_OPS.split(), *_REORDERED, *_INPLACE, "log_softmax", "softmax", "softmin"]
