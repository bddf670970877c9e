"""The device `xla`: PyTorch programs on whatever JAX runs on."""

from dataclasses import replace

import pluggy

from corefw import dtypes
from corefw.dispatch.backend import Backend

FLOATS = frozenset({dtypes.float32, dtypes.float64})
INTEGERS = frozenset({dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64})
HALF = {dtypes.float16: dtypes.float32, dtypes.bfloat16: dtypes.float32}  # computed in float32
#: ops whose functions take more shapes than the op does: their rules are asked first
LENIENT = {"convolution_weight", "gather", "masked_fill"}
TRUTH = frozenset({dtypes.bool_})
COMPLEX = frozenset({dtypes.complex64, dtypes.complex128})


def claims():
    """The kernels: [({op: function of JAX's arrays}, the dtypes that it takes)]."""
    import jax.numpy as jnp
    from jax import lax, scipy

    from corefw_xla.layers import convolution, convolution_weight, max_pool
    from corefw_xla.positions import gather, scatter_add, scatter_src
    from corefw_xla.steps import adam_step, sgd_step

    def reduced(function):
        return lambda input, dim, keepdim: function(input, axis=dim, keepdims=keepdim)

    def product(input, other):
        return jnp.matmul(input, other, precision=lax.Precision.HIGHEST)

    def cat(tensors, dim):
        return jnp.concatenate([one for one in tensors if one.shape != (0,)] or tensors, axis=dim)

    def arange_at(start, step, count, dtype):
        wide = jnp.int64 if dtype.kind in "iu" else jnp.float64
        return (jnp.arange(count, dtype=wide) * step + start).astype(dtype)

    same = "acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh deg2rad exp exp2 expm1 floor fmax fmin hypot"
    same += " log log10 log1p log2 logaddexp logaddexp2 rad2deg sin sinh sqrt tan tanh trunc"
    inexact = {name: getattr(jnp, name) for name in same.split()} | {
        "adam_step": adam_step,
        "adjoint_matmul": lambda input, other: product(jnp.matrix_transpose(input), other),
        "convolution": convolution,
        "convolution_weight": convolution_weight,
        "div": jnp.divide,
        "erf": scipy.special.erf,
        "erfc": scipy.special.erfc,
        "lgamma": scipy.special.gammaln,
        "matmul": product,
        "matmul_adjoint": lambda input, other: product(input, jnp.matrix_transpose(other)),
        "mean": reduced(jnp.mean),
        "reciprocal": jnp.reciprocal,
        "rsqrt": lambda input: 1 / jnp.sqrt(input),
        "sgd_step": sgd_step,
        "sigmoid": lambda input: 1 / (1 + jnp.exp(-input)),
    }
    numbers = {name: getattr(jnp, name) for name in ("abs", "maximum", "minimum", "square")} | {
        "add": jnp.add,
        "amax": reduced(jnp.max),
        "amin": reduced(jnp.min),
        "clamp_max": jnp.minimum,
        "clamp_min": jnp.maximum,
        "ge": jnp.greater_equal,
        "gt": jnp.greater,
        "le": jnp.less_equal,
        "lt": jnp.less,
        "max_pool": max_pool,
        "mul": jnp.multiply,
        "neg": jnp.negative,
        "sub": jnp.subtract,
    }
    everything = {
        "arange_at": arange_at,
        "cat": cat,
        "choose": jnp.where,
        "eq": jnp.equal,
        "flip": lambda input, dims: jnp.flip(input, dims),
        "gather": gather,
        "masked_fill": lambda input, mask, value: jnp.where(mask, value, input),
        "ne": jnp.not_equal,
        "roll": lambda input, shifts, dims: jnp.roll(input, shifts, dims),
        "scatter_src": scatter_src,
        "stack": lambda tensors, dim: jnp.stack(tensors, axis=dim),
        "tril": lambda input, diagonal: jnp.tril(input, diagonal),
        "triu": lambda input, diagonal: jnp.triu(input, diagonal),
    }
    logical = {f"logical_{name}": getattr(jnp, f"logical_{name}") for name in ("and", "not", "or", "xor")}
    return [
        (inexact, FLOATS),
        ({"sum": reduced(jnp.sum)}, FLOATS | COMPLEX),
        (numbers, FLOATS | INTEGERS),
        ({"scatter_add": scatter_add}, FLOATS | INTEGERS),
        (logical | {"all": reduced(jnp.all), "any": reduced(jnp.any)}, TRUTH),
        (everything, frozenset(dtypes.ALL)),
    ]


@pluggy.HookimplMarker("corefw")
def corefw_backend() -> Backend:
    """What the package offers; without JAX, the reason why it cannot be used."""
    offered = {"name": "xla", "version": "0.1.0", "devices": ("xla",)}
    try:
        import jax
    except ImportError as error:
        return Backend(**offered, unusable=f"JAX is not installed ({error})")
    from corefw.dispatch.functional_memory import memory_kernels
    from corefw_xla.runtime import XlaRuntime

    jax.config.update("jax_enable_x64", True)  # without it JAX makes float32 of float64, and int32 of int64
    import jax.numpy as jnp

    runtime = XlaRuntime(jnp)
    memory = memory_kernels(runtime)
    kernels = [runtime.kernel(op, function, taken) for ops, taken in claims() for op, function in ops.items()]
    kernels = [replace(kernel, check_shapes=kernel.op in LENIENT) for kernel in kernels]
    return Backend(
        **offered,
        kernels={"xla": memory + kernels},
        runtimes={"xla": runtime},
        compute_dtype=HALF,
        detail=jax.default_backend(),
    )
