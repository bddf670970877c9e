"""Ops that programs define: kernels by device, schemas, gradients, and the namespace in which they are found."""

import numpy as np
import pytest

import corefw
from tests.parity import import_torch

library, Tensor = corefw.library, corefw.Tensor


def scaled(x: Tensor, factor: float = 2.0, *, shift: int = 0) -> Tensor:
    """As NumPy computes it."""
    return corefw.tensor(x.numpy() * factor + shift)


@pytest.fixture
def op(request):
    made = library.custom_op(f"tests::{request.node.name.split('[')[0]}", scaled, mutates_args=())
    made.register_autograd(lambda ctx, grad: (grad * ctx.factor, None), setup_context=keep)
    made.register_fake(lambda x, factor=2.0, *, shift=0: corefw.empty_like(x))
    return made


def keep(ctx, inputs, keyword_only_inputs, output):
    ctx.factor = inputs[1]


def test_an_op_with_a_gradient(op):
    x = corefw.tensor([1.0, 2.0], requires_grad=True)
    y = op(x, 3.0, shift=1)
    assert y.tolist() == [4, 7] and y.requires_grad and not op(x.detach()).requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [3, 3]
    assert op(corefw.ones(2, 3, device="meta")).shape == (2, 3)
    found = corefw.ops.tests.test_an_op_with_a_gradient
    assert found(corefw.ones(1)).item() == found.default(corefw.ones(1)).item() == 2 and found.overloads() == [
        "default"
    ]
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        corefw.ops.tests.missing


def test_without_a_gradient():
    op = library.custom_op(
        "tests::plain", lambda x: corefw.tensor(x.numpy() + 1), mutates_args=(), schema="(Tensor x) -> Tensor"
    )
    y = op(corefw.ones(1, requires_grad=True))
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        y.sum().backward()
    with pytest.raises(NotImplementedError, match="register_fake"):
        op(corefw.ones(1, device="meta"))
    with pytest.raises(ValueError, match="namespace::name"):
        library.custom_op("plain", scaled, mutates_args=())


def test_several_results_and_changes():
    @library.custom_op("tests::halves", mutates_args=("count",))
    def halves(x: Tensor, count: Tensor) -> tuple[Tensor, Tensor]:
        count.add_(1)
        return x[:1].clone(), x[1:].clone()

    halves.register_autograd(lambda ctx, a, b: (corefw.cat([a, b]), None))
    x, count = corefw.tensor([1.0, 2.0], requires_grad=True), corefw.zeros(1)
    first, second = halves(x, count)
    (first + 3 * second).backward()
    assert x.grad.tolist() == [1, 3] and count.item() == 1


def test_libraries_of_ops():
    made = library.Library("tests", "FRAGMENT")
    made.define("power(Tensor x, float exponent=2.0, *, str? note=None) -> Tensor")
    made.impl("power", lambda x, exponent, note=None: x**exponent, "CPU")
    library.impl("tests::power", "Meta", lambda x, exponent, note=None: x.new_empty(3))
    power = corefw.ops.tests.power
    assert power(corefw.tensor(3.0)).item() == 9 and power(corefw.tensor(2.0), exponent=3.0, note="a").item() == 8
    assert power(corefw.ones(1, device="meta")).shape == (3,)
    made.define("twice(Tensor x) -> Tensor")
    made.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
    x = corefw.ones(1, requires_grad=True)
    corefw.ops.tests.twice(x).backward()
    assert x.grad.item() == 2
    with pytest.raises(RuntimeError, match="does not exist"):
        library.impl("tests::nothing", "CPU", abs)
    with pytest.raises(ValueError, match="Unsupported kind"):
        library.Library("tests", "OTHER")
    with pytest.raises(TypeError, match="unexpected"):
        power(corefw.ones(1), other=1)


def test_corefws_own_ops():
    x = np.linspace(-1, 1, 5)
    assert corefw.ops.aten.sin(corefw.tensor(x)).numpy() == pytest.approx(np.sin(x))
    with pytest.raises(OSError, match="cannot run"):
        corefw.ops.load_library("lib.so")


def annotated(torch):
    def f(
        x: torch.Tensor, y: torch.Tensor | None, sizes: list[int], n: int = 1, *, s: float = 0.5, name: str = "a",
        kind: torch.dtype | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor]: ...  # fmt: skip

    return f


@pytest.mark.oracle
def test_schemas_as_in_pytorch():
    torch = import_torch()
    ours = library.infer_schema(annotated(corefw), mutates_args=("x",))
    assert ours == torch.library.infer_schema(annotated(torch), mutates_args=("x",))


def test_what_has_no_schema():
    with pytest.raises(ValueError, match="x must have a type annotation"):
        library.infer_schema(lambda x: x, mutates_args=())
    with pytest.raises(ValueError, match="unsupported type"):
        library.infer_schema(untyped, mutates_args=())


def untyped(x: object) -> Tensor: ...
