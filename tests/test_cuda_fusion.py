"""Fused CUDA functions compute what the functions of their ops compute one by one."""

import numpy as np
import pytest

pytest.importorskip("cupy")

from corefw import dtypes
from corefw.dispatch.fusion import Fusion, Part, Reduction
from corefw.dispatch.registry import registry
from corefw_cupy import elementwise, fusing
from tests.emulation import compiler, device
from tests.fusions import chain, numbers
from tests.plans import same_bits

pytestmark = pytest.mark.skipif(compiler.COMPILER is None, reason="no C++ compiler")

F32, F64, F16, BF16, BOOL = dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.bool_


def there(array):
    """A copy on the device."""
    return registry.runtimes["emulated"][1].upload(array, 0)


def here(array):
    """A copy of what lies on the device."""
    return registry.runtimes["emulated"][1].download(array)


@pytest.fixture(scope="module")
def compute():
    """A fusion's results by its kernel and by those of its ops."""
    cuda = device.cuda()
    fuse, ops = fusing.maker(cuda), elementwise.functions(cuda)

    def both(fusion, *inputs):
        given = [there(a) for a in inputs]
        values = [*given]
        for part in fusion.parts:
            operands = [values[i] for i in part.operands]
            if part.expression == "cast":
                values.append(cuda.copying.cast(operands[0], part.dtype.numpy))
            elif part.expression == "choose":
                values.append(cuda.copying.choose(*operands))
            else:
                values.append(ops[part.expression][operands[0].dtype](*operands, *part.numbers))
        shape = np.broadcast_shapes(*(a.shape for a in inputs))
        expected = [np.broadcast_to(here(values[i]), shape) for i in fusion.outputs]
        found = fuse(fusion)(*given)
        return [here(a) for a in found], expected

    return both


#: of all dtypes that compute in float32: casts, a mask that is chosen by and returned, numbers, several results
MIXED = Fusion(
    (F32, BF16, F16),
    (
        *(Part("cast", (1,), (), F32), Part("mul", (0, 3), (), F32), Part("lt", (4, 0), (), BOOL)),
        *(Part("leaky_relu", (4,), (0.1,), F32), Part("choose", (5, 6, 0), (), F32), Part("cast", (7,), (), F16)),
        *(Part("add", (8, 2), (), F16), Part("erf", (9,), (), F16), Part("cast", (10,), (), BF16)),
    ),
    (5, 6, 10, 11),
)
SHAPES = [
    ((7, 30), (7, 30), (7, 30)),
    ((7, 30), (), (1, 1)),
    ((7, 30), (30,), (7, 1)),
    ((1,), (3, 1), (3, 5)),
    ((), (), ()),
    ((0, 5), (5,), ()),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_every_broadcast(compute, shapes):
    for fusion in (chain(F32), MIXED):
        inputs = [numbers(d, shape, seed) for seed, (d, shape) in enumerate(zip(fusion.inputs, shapes, strict=True))]
        found, expected = compute(fusion, *inputs)
        for one, reference in zip(found, expected, strict=True):
            same_bits(one, reference)


@pytest.mark.parametrize("layout", [lambda a: a.T, lambda a: a[:, ::2]], ids=["columns", "steps"])
def test_inputs_that_lie_in_any_way(compute, layout):
    cuda = device.cuda()
    x, y = numbers(F64, (9, 40)), numbers(F64, 1)
    fusion = chain(F64)
    (found,) = fusing.maker(cuda)(fusion)(layout(there(x)), *[there(y)] * 2)
    _, (expected,) = compute(fusion, np.ascontiguousarray(layout(x)), y, y)
    same_bits(here(found), expected)


def test_results_in_the_memory_of_an_input(compute):
    cuda = device.cuda()
    fusion, (x, y, z) = chain(F32), (numbers(F32, (4, 50), seed) for seed in range(3))
    _, (expected,) = compute(fusion, x, y, z)
    given = [there(a) for a in (x, y, z)]
    assert fusing.maker(cuda)(fusion)(*given, out=given[1]) == ()
    same_bits(here(given[1]), expected)
    memory = there(numbers(F32, 201))
    ours, out = memory[:200].reshape(4, 50), memory[1:].reshape(4, 50)  # partly over what is read
    _, (expected,) = compute(fusion, here(ours), y, z)
    fusing.maker(cuda)(fusion)(ours, there(y), there(z), out=out)
    same_bits(here(out), expected)


def test_what_is_refused():
    fuse = fusing.maker(device.cuda())
    assert fuse(Fusion((F32,), (), (), Reduction(False, 0, (0,), False, F32))) is None
    assert fuse(Fusion((F32, F64), (Part("cast", (0,), (), F64), Part("add", (1, 2), (), F64)), (3,))) is None
    assert fuse(Fusion((F32,), (Part("isnan", (0,), (), BOOL), Part("cast", (1,), (), F32)), (2,))) is None
    assert fuse(Fusion((dtypes.int64,), (Part("neg", (0,), (), dtypes.int64),), (1,))) is None


@pytest.mark.parametrize("fusion", [chain(F64), MIXED], ids=["chain", "mixed"])
def test_nvidias_compiler_takes_it(fusion):
    nvrtc = pytest.importorskip("tests.nvrtc")
    if not nvrtc.available():
        pytest.skip("NVRTC is not installed")
    functions = fusing.maker(device.cuda())(fusion).functions.values()
    assert sum(nvrtc.compile_all([function], "sm_90", options=nvrtc.QUICK) for function in functions) == 4
