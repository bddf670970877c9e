"""The rows of ops: each makes the inputs in a module with PyTorch's API, and the call to time."""

from functools import partial

from corefw.benchmarks.shaped import SHAPED
from corefw.benchmarks.vectors import VECTORS

#: those of which a row is added that goes forward and backward
DIFFERENTIATED = ("conv", "attention", "layer", "batch", "max_pool")

POSITIONS = {
    "embedding-10000x256": lambda torch, table, index: torch.nn.functional.embedding(index, table),
    "index_select-10000x256": lambda torch, table, index: table.index_select(0, index),
    "index-10000x256": lambda torch, table, index: table[index],
    "gather-8192x256": lambda torch, table, index: table.gather(0, index[:, None].expand(-1, 256)),
    "index_add-10000x256": lambda torch, table, index: table.index_add(0, index, table[:8192]),
    "scatter_add-8192": lambda torch, table, index: table[:, 0].scatter_add(0, index, table[:8192, 0]),
    "cross_entropy-8192x256": lambda torch, table, index: torch.nn.functional.cross_entropy(table[:8192], index % 256),
}


def vectors(operate, size):
    """The row of an op on two vectors and a mask."""

    def make(torch):
        return partial(operate, torch, torch.randn(size), torch.randn(size), torch.rand(size) < 0.5)

    return make


def shaped(operate, shapes):
    """The row of an op on tensors of given shapes."""

    def make(torch):
        return partial(operate, torch, *[torch.randn(*shape) for shape in shapes])

    return make


def differentiated(operate, shapes):
    """The row of an op on tensors of given shapes, and of its gradients."""

    def make(torch):
        inputs = [torch.randn(*shape).requires_grad_() for shape in shapes]
        gradient = torch.randn(*operate(torch, *inputs).shape)
        return lambda: torch.autograd.grad(operate(torch, *inputs), inputs, gradient)

    return make


def positions(operate):
    """The row of an op on a table and positions in it."""

    def make(torch):
        return partial(operate, torch, torch.randn(10000, 256), torch.randint(0, 10000, (8192,)))

    return make


def half_product(operate, dtype, size):
    """The row of a product of two square matrices of a half type."""

    def make(torch):
        a, b = (torch.randn(size, size).to(getattr(torch, dtype)) for _ in range(2))
        return partial(operate, torch, a, b)

    return make


HALF_PRODUCTS = {
    "matmul": lambda torch, a, b: a @ b,
    "linear": lambda torch, a, b: torch.nn.functional.linear(a, b),
}

OPS = {
    **{f"{op}-{size:.0e}": vectors(operate, size) for op, (operate, sizes) in VECTORS.items() for size in sizes},
    **{name: shaped(*row) for name, row in SHAPED.items()},
    **{
        f"{name} forward and backward": differentiated(*row)
        for name, row in SHAPED.items()
        if name.startswith(DIFFERENTIATED)
    },
    **{name: positions(operate) for name, operate in POSITIONS.items()},
    **{
        f"{name}_{dtype}-{size}": half_product(operate, dtype, size)
        for name, operate in HALF_PRODUCTS.items()
        for dtype in ("bfloat16", "float16")
        for size in ((512, 1024, 2048, 4096) if dtype == "bfloat16" else (512, 1024, 2048))
    },
}
