"""The memory of the device `xla`: JAX's arrays, which are never changed, under corefw's strides and views."""

import jax
import jax.numpy as jnp
import numpy as np

from corefw.dispatch.functional import FunctionalRuntime


class XlaRuntime(FunctionalRuntime):
    """Memory on JAX's default device."""

    device_type = "xla"
    library_type = jax.Array

    def from_host(self, host, index):
        return jnp.array(host)  # a copy: the host's array may change

    def library_dtype(self, dtype):
        return dtype  # JAX says it as NumPy and ml_dtypes do

    def numpy_dtype(self, dtype):
        return np.dtype(dtype)

    def updated(self, values, where, new):
        return values.at[where].set(new)  # one copy, where the adapter's own way takes two

    def synchronize(self, index=None):
        jax.block_until_ready(jax.live_arrays())
