"""The norm of a list of tensors, which optimizers clip by."""

from __future__ import annotations

import numpy as np

from corefw import dtypes
from corefw.dispatch.declare import ops
from corefw.dtypes import dtype
from corefw.testing.behaviour import behaviour
from corefw.testing.comparison import compare_values, host
from corefw.testing.samples import draw, to_tensor
from corefw.testing.targets import Target


@behaviour("optimizers", "total_norm", dtypes=("float32", "float64"))
def norm_of_lists(target: Target, d: dtype) -> None:
    """The norm of all elements of a list."""
    rng = np.random.default_rng(0)
    arrays = [draw(rng, shape, d, -2, 2) for shape in ((3, 4), (5,), (257,))]
    everything = np.concatenate([a.astype(np.float64).ravel() for a in arrays])
    for order in (1.0, 2.0, 3.0, np.inf):
        found = host(ops.total_norm([to_tensor(a, target.device) for a in arrays], order))
        compare_values(found, np.linalg.norm(everything, order).astype(d.numpy), 64 * dtypes.finfo(d).eps, 0)
