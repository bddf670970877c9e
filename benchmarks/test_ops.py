"""Single ops on large tensors, beside NumPy's kernels and PyTorch.

Run: python -m pytest benchmarks/test_ops.py --benchmark-enable --benchmark-group-by=func,param:case
"""

from time import perf_counter

import pytest

from corefw.benchmarks.ops import OPS

LONG = 2.0  # seconds of a call that is measured once, such as PyTorch's products of float16 without AVX512-FP16


@pytest.mark.parametrize("case", OPS)
def test_op(benchmark, framework, case):
    run = OPS[case](framework)
    begin = perf_counter()
    run()
    if perf_counter() - begin > LONG:
        benchmark.pedantic(run, rounds=1)
    else:
        benchmark(run)
