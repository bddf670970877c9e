"""Products in CUDA graphs: cuBLASLt multiplies in captures, cuBLAS does not."""

import numpy as np
import pytest

pytest.importorskip("cupy")

import corefw as torch
from corefw.errors import CaptureError
from corefw_cupy import cublas_lt
from tests.emulation import compiler
from tests.graphs import bits, captured

pytestmark = pytest.mark.skipif(compiler.COMPILER is None, reason="no C++ compiler")


def of(dtype, *shape):
    values = np.random.standard_normal((2, *shape))
    return torch.tensor(values[0] + 1j * values[1] if dtype.is_complex else values[0], device="cuda").to(dtype)


PRODUCTS = {
    "matrices": lambda a: a(3, 4) @ a(4, 5),
    "transposed": lambda a: a(4, 3).mT @ a(5, 4).mT,
    "batches": lambda a: a(2, 3, 4) @ a(2, 4, 5),
    "broadcast": lambda a: a(2, 3, 4) @ a(5, 4).mT,
    "vectors": lambda a: a(4) @ a(4),
    "added": lambda a: torch.addmm(a(3, 5), a(3, 4), a(4, 5), beta=0.5, alpha=2),
    "added batches": lambda a: torch.baddbmm(a(2, 1, 5), a(2, 3, 4), a(2, 4, 5), beta=2, alpha=0.5),
    "bias": lambda a: torch.nn.functional.linear(a(3, 4), a(5, 4), a(5)),
    "nothing": lambda a: torch.addmm(a(3, 5), a(3, 0), a(0, 5), beta=0.5),
}
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64, torch.complex128)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_are_captured(cuda, name, dtype):
    made = []

    def operand(*shape):
        made.append(of(dtype, *shape))
        return made[-1]

    wanted = PRODUCTS[name](operand)
    given = iter(made)
    graph, result = captured(lambda: PRODUCTS[name](lambda *shape: next(given)))
    graph.replay()
    assert bits(result) == bits(wanted)


def test_without_cublas_lt_products_are_refused(cuda, monkeypatch):
    a = of(torch.float32, 3, 3)
    monkeypatch.setattr(cublas_lt.Multiplication, "__call__", lambda *arguments, **options: False)
    with pytest.raises(CaptureError, match=r"matmul: cublasLt, which multiplies while a graph is captured, is missing"):
        captured(lambda: a @ a)


def test_cublas_is_not_captured(cuda, monkeypatch):
    """What the emulated driver says where products do not go another way."""
    a = of(torch.float32, 3, 3)
    stream = torch.cuda.Stream().queue
    stream.use()
    stream.begin_capture()
    with pytest.raises(NotImplementedError, match="calling cuBLAS API during stream capture"):
        a @ a
    stream.end_capture()
    type(stream).null.use()
