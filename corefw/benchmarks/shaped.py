"""Ops on tensors of given shapes: products, convolutions, normalizations, and what moves elements."""

SHAPED: dict[str, tuple] = {}


def shaped(name, *shapes):
    """A row of an op on tensors of given shapes."""
    return lambda operate: SHAPED.__setitem__(name, (operate, shapes))


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
