"""Random arrays in all layouts of memory, as strategies of hypothesis."""

import numpy as np
from hypothesis import strategies as st


def laid_out(array, layout):
    """The elements of `array` in another order of memory."""
    if layout == "strided":
        wide = np.full([2 * n + 1 for n in array.shape], 99, array.dtype)
        view = wide[tuple(slice(1, None, 2) for _ in array.shape)]
    elif layout == "backwards":
        view = np.empty_like(array)[tuple(slice(None, None, -1) for _ in array.shape)]
    elif layout == "transposed":
        view = np.empty(array.shape[::-1], array.dtype).T
    elif layout == "inside":  # rows of a larger array, at odd places
        view = np.full((*array.shape[:-1], array.shape[-1] + 3), 99, array.dtype)[..., 1:-2] if array.ndim else array
    else:
        return array
    view[...] = array
    return view


LAYOUT = st.sampled_from(("dense", "dense", "strided", "backwards", "transposed", "inside"))


@st.composite
def arrays(draw, shape, dtype="f", low=-2.0, high=2.0, layout=LAYOUT):
    """An array of random elements and layout."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.uniform(low, high, shape)
    values = values < 0 if dtype == "?" else values
    return laid_out(np.asarray(values).astype(dtype), draw(layout))


def integers(draw, shape, below, low=0):
    """An int64 array with elements from `low` to below `below`, in any layout."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return laid_out(np.asarray(rng.integers(low, below, shape)), draw(LAYOUT))
