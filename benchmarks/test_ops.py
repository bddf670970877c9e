"""Single ops on large tensors, beside NumPy's kernels and PyTorch.

Run: python -m pytest benchmarks/test_ops.py --benchmark-enable --benchmark-group-by=func,param:case
"""

import pytest

SIZES = (10**4, 10**6, 10**7)
MEDIUM = (10**4, 10**6)


def sized(*operations, sizes=SIZES):
    """Rows of ops on `sizes` elements: {op: function(framework module, tensors)}."""
    return {f"{name}-{size:.0e}": (function, size) for name, function in operations for size in sizes}


def method(name, *arguments, **keywords):
    """A row that calls a method of the first tensor."""
    return name, lambda torch, x, y, m: getattr(x, name)(*arguments, **keywords)


def function(name, *arguments, **keywords):
    """A row that calls a function of `nn.functional` on the first tensor."""
    return name, lambda torch, x, y, m: getattr(torch.nn.functional, name)(x, *arguments, **keywords)


ELEMENTWISE = sized(
    ("add", lambda torch, x, y, m: x + y),
    ("add_", lambda torch, x, y, m: x.add_(y)),
    ("mul", lambda torch, x, y, m: x * y),
    ("div", lambda torch, x, y, m: x / y),
    ("mul_number", lambda torch, x, y, m: x * 2.0),
    ("addcmul", lambda torch, x, y, m: torch.addcmul(x, x, y)),
    ("maximum", lambda torch, x, y, m: torch.maximum(x, y)),
    ("less", lambda torch, x, y, m: x < y),
    ("where", lambda torch, x, y, m: torch.where(m, x, y)),
    ("masked_fill", lambda torch, x, y, m: x.masked_fill(m, 0.0)),
    method("clamp", -1.0, 1.0),
    method("exp"),
    method("tanh"),
    method("sigmoid"),
    function("relu"),
    function("gelu"),
) | sized(
    method("abs"),
    method("neg"),
    method("sqrt"),
    method("rsqrt"),
    method("square"),
    method("log"),
    method("log1p"),
    method("expm1"),
    method("erf"),
    method("sin"),
    method("cos"),
    ("pow", lambda torch, x, y, m: x.abs() ** 2.5),
    ("gelu_tanh", lambda torch, x, y, m: torch.nn.functional.gelu(x, approximate="tanh")),
    function("silu"),
    function("softplus"),
    function("leaky_relu", 0.1),
    ("atan2", lambda torch, x, y, m: torch.atan2(x, y)),
    ("isnan", lambda torch, x, y, m: x.isnan()),
    ("to_double", lambda torch, x, y, m: x.double()),
    ("to_half", lambda torch, x, y, m: x.half()),
    ("clone", lambda torch, x, y, m: x.clone()),
    sizes=MEDIUM,
)
REDUCTIONS = sized(
    method("sum"),
    method("mean"),
    method("amax"),
    method("argmax"),
    method("var"),
    method("norm"),
) | sized(
    method("prod"),
    method("logsumexp", 0),
    method("cumsum", 0),
    ("all", lambda torch, x, y, m: m.all()),
    ("sort", lambda torch, x, y, m: x.sort()),
    ("masked_select", lambda torch, x, y, m: x[m]),
    ("nonzero", lambda torch, x, y, m: m.nonzero()),
    ("dropout", lambda torch, x, y, m: torch.nn.functional.dropout(x, 0.5)),
    ("randn", lambda torch, x, y, m: torch.randn(x.shape)),
    ("rand", lambda torch, x, y, m: torch.rand(x.shape)),
    ("randperm", lambda torch, x, y, m: torch.randperm(x.shape[0])),
    ("mse_loss", lambda torch, x, y, m: torch.nn.functional.mse_loss(x, y)),
    sizes=MEDIUM,
)


@pytest.mark.parametrize("case", [*ELEMENTWISE, *REDUCTIONS])
def test_vector(benchmark, framework, case):
    compute, size = (ELEMENTWISE | REDUCTIONS)[case]
    x, y = framework.randn(size), framework.randn(size)
    mask = framework.rand(size) < 0.5
    benchmark(compute, framework, x, y, mask)


def shaped(name, *shapes):
    """A row of an op on tensors of given shapes."""
    return lambda operate: SHAPED.__setitem__(name, (operate, shapes))


SHAPED = {}

for n in (64, 256, 512, 1024, 2048):
    shaped(f"matmul-{n}", (n, n), (n, n))(lambda torch, a, b: a @ b)
shaped("matmul_transposed-1024", (1024, 1024), (1024, 1024))(lambda torch, a, b: a @ b.t())
shaped("matvec-2048", (2048, 2048), (2048,))(lambda torch, a, b: a @ b)
shaped("bmm-64x128x64x128", (64, 128, 64), (64, 64, 128))(lambda torch, a, b: torch.bmm(a, b))
shaped("linear-64x1000x100", (64, 1000), (100, 1000), (100,))(lambda torch, *a: torch.nn.functional.linear(*a))
shaped("linear-1024x512x128", (1024, 512), (128, 512), (128,))(lambda torch, *a: torch.nn.functional.linear(*a))
shaped("add_row-1024x1024", (1024, 1024), (1024,))(lambda torch, a, b: a + b)
shaped("add_column-1024x1024", (1024, 1024), (1024, 1))(lambda torch, a, b: a + b)
shaped("transpose_copy-2048", (2048, 2048))(lambda torch, a: a.t().contiguous())
shaped("cat-1024x1024", (1024, 1024), (1024, 1024))(lambda torch, a, b: torch.cat((a, b), 1))
shaped("stack-1024x1024", (1024, 1024), (1024, 1024))(lambda torch, a, b: torch.stack((a, b)))
shaped("flip-1024x1024", (1024, 1024))(lambda torch, a: a.flip(1))
shaped("pad-32x64x32x32", (32, 64, 32, 32))(lambda torch, a: torch.nn.functional.pad(a, (1, 1, 1, 1)))
for d in (0, 1):
    shaped(f"sum_dim{d}-1000x1000", (1000, 1000))(lambda torch, a, d=d: a.sum(d))
    shaped(f"max_dim{d}-1000x1000", (1000, 1000))(lambda torch, a, d=d: a.max(d))
    shaped(f"var_dim{d}-1000x1000", (1000, 1000))(lambda torch, a, d=d: a.var(d))
    shaped(f"cumsum_dim{d}-1000x1000", (1000, 1000))(lambda torch, a, d=d: a.cumsum(d))
shaped("softmax-512x1024", (512, 1024))(lambda torch, a: a.softmax(1))
shaped("log_softmax-512x1024", (512, 1024))(lambda torch, a: a.log_softmax(1))
shaped("logsumexp-512x1024", (512, 1024))(lambda torch, a: a.logsumexp(1))
shaped("sort-512x1024", (512, 1024))(lambda torch, a: a.sort(1))
shaped("topk-512x1024", (512, 1024))(lambda torch, a: a.topk(10, 1))
shaped("layer_norm-512x1024", (512, 1024), (1024,), (1024,))(
    lambda torch, a, w, b: torch.nn.functional.layer_norm(a, (1024,), w, b)
)
shaped("group_norm-32x64x32x32", (32, 64, 32, 32), (64,), (64,))(
    lambda torch, a, w, b: torch.nn.functional.group_norm(a, 8, w, b)
)
shaped("batch_norm-32x64x32x32", (32, 64, 32, 32), (64,), (64,))(
    lambda torch, a, w, b: torch.nn.functional.batch_norm(a, None, None, w, b, True)
)
shaped("max_pool2d-32x64x32x32", (32, 64, 32, 32))(lambda torch, a: torch.nn.functional.max_pool2d(a, 2))
shaped("avg_pool2d-32x64x32x32", (32, 64, 32, 32))(lambda torch, a: torch.nn.functional.avg_pool2d(a, 2))
shaped("adaptive_avg_pool2d-32x64x32x32", (32, 64, 32, 32))(
    lambda torch, a: torch.nn.functional.adaptive_avg_pool2d(a, 1)
)
shaped("interpolate-8x16x64x64", (8, 16, 64, 64))(
    lambda torch, a: torch.nn.functional.interpolate(a, scale_factor=2, mode="bilinear")
)


def convolution(name, input, weight, **options):
    """A row of a 2-D convolution."""
    shaped(name, input, weight)(lambda torch, x, w: torch.nn.functional.conv2d(x, w, **options))


convolution("conv2d-32x128x16x16-128", (32, 128, 16, 16), (128, 128, 3, 3), padding=1)
convolution("conv2d-32x64x32x32-64", (32, 64, 32, 32), (64, 64, 3, 3), padding=1)
convolution("conv2d_1x1-32x64x32x32-128", (32, 64, 32, 32), (128, 64, 1, 1))
convolution("conv2d_stride2-16x64x32x32-128", (16, 64, 32, 32), (128, 64, 3, 3), padding=1, stride=2)
convolution("conv2d_depthwise-32x64x32x32", (32, 64, 32, 32), (64, 1, 3, 3), padding=1, groups=64)
convolution("conv2d_mnist-64x1x28x28-32", (64, 1, 28, 28), (32, 1, 3, 3))
shaped("conv1d-32x64x512-64", (32, 64, 512), (64, 64, 3))(
    lambda torch, x, w: torch.nn.functional.conv1d(x, w, padding=1)
)
shaped("conv_transpose2d-16x64x16x16-32", (16, 64, 16, 16), (64, 32, 4, 4))(
    lambda torch, x, w: torch.nn.functional.conv_transpose2d(x, w, stride=2, padding=1)
)
for causal in (False, True):
    shaped(f"attention{'_causal' * causal}-8x8x256x64", *[(8, 8, 256, 64)] * 3)(
        lambda torch, q, k, v, causal=causal: torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=causal
        )
    )


@pytest.mark.parametrize("case", list(SHAPED))
def test_shaped(benchmark, framework, case):
    compute, shapes = SHAPED[case]
    benchmark(compute, framework, *[framework.randn(*shape) for shape in shapes])


@pytest.mark.parametrize(
    "case", [name for name in SHAPED if name.startswith(("conv", "attention", "layer", "batch", "max_pool"))]
)
def test_shaped_with_gradients(benchmark, framework, case):
    compute, shapes = SHAPED[case]
    inputs = [framework.randn(*shape).requires_grad_() for shape in shapes]
    gradient = framework.randn(*compute(framework, *inputs).shape)

    def both():
        framework.autograd.grad(compute(framework, *inputs), inputs, gradient)

    benchmark(both)


POSITIONS = {
    "embedding-10000x256": lambda torch, table, index: torch.nn.functional.embedding(index, table),
    "index_select-10000x256": lambda torch, table, index: table.index_select(0, index),
    "index-10000x256": lambda torch, table, index: table[index],
    "gather-8192x256": lambda torch, table, index: table.gather(0, index[:, None].expand(-1, 256)),
    "index_add-10000x256": lambda torch, table, index: table.index_add(0, index, table[:8192]),
    "scatter_add-8192": lambda torch, table, index: table[:, 0].scatter_add(0, index, table[:8192, 0]),
    "cross_entropy-8192x256": lambda torch, table, index: torch.nn.functional.cross_entropy(table[:8192], index % 256),
}


@pytest.mark.parametrize("case", list(POSITIONS))
def test_positions(benchmark, framework, case):
    table, index = framework.randn(10000, 256), framework.randint(0, 10000, (8192,))
    benchmark(POSITIONS[case], framework, table, index)
