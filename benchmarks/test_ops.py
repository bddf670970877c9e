"""Single ops on large tensors, beside NumPy's kernels and PyTorch.

Run: python -m pytest benchmarks/test_ops.py --benchmark-enable --benchmark-group-by=func,param:case
"""

import pytest

from corefw.benchmarks.ops import OPS


@pytest.mark.parametrize("case", OPS)
def test_op(benchmark, framework, case):
    benchmark(OPS[case](framework))
