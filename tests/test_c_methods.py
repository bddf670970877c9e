"""The C backend's methods and functions in the place of the frontend's own say what these say."""

import copy
import inspect
import sys
import threading

import pytest

import corefw
from corefw import nn
from corefw.declarations._shared import factories
from corefw.dispatch import overriding
from corefw.dispatch.registry import registry
from corefw.shapes import Size

pytestmark = pytest.mark.skipif("c" not in registry.backends, reason="corefw_c is not installed")
Tensor, Generator = corefw.Tensor, corefw.Generator


def own(owner, name):
    """The frontend's own, which the backend's stands in the place of."""
    assert vars(owner)[name] is not registry.own_methods[owner, name]
    return registry.own_methods[owner, name]


def recorded():
    return corefw.ones(2, 3, requires_grad=True) * 2


def changed_view():
    """A view whose base became the result of a computation after it was taken."""
    base = corefw.zeros(4)
    view = base[1:]
    base.mul_(corefw.ones(4, requires_grad=True))
    return view


def with_gradient():
    x = corefw.ones(3, requires_grad=True)
    x.sum().backward()
    return x


TENSORS = {
    "vector": lambda: corefw.arange(4),
    "matrix": lambda: corefw.ones(2, 3),
    "number": lambda: corefw.tensor(2.5),
    "empty": lambda: corefw.zeros(2, 0, 3),
    "turned": lambda: corefw.ones(2, 3).t(),
    "part": lambda: corefw.arange(12).view(3, 4)[1:, ::2],
    "expanded": lambda: corefw.ones(1, 3).expand(4, 3),
    "half": lambda: corefw.ones(2, 2, dtype=corefw.bfloat16),
    "bool": lambda: corefw.ones(5, dtype=corefw.bool),
    "leaf": lambda: corefw.ones(2, requires_grad=True),
    "recorded": recorded,
    "view of a recorded": lambda: recorded()[0],
    "changed view": changed_view,
    "parameter": lambda: nn.Parameter(corefw.ones(2, 3)),
    "buffer": lambda: nn.Buffer(corefw.ones(2)),
    "with gradient": with_gradient,
    "meta": lambda: corefw.ones(2, 3, device="meta"),
    "uninitialized": nn.UninitializedParameter,
    "sparse": lambda: corefw.eye(2).to_sparse(),
}
WITHOUT_ARGUMENTS = ("numel", "nelement", "size", "stride", "is_contiguous", "contiguous", "data_ptr", "storage_offset")
ATTRIBUTES = ("shape", "nbytes", "is_cpu", "is_cuda", "is_meta", "requires_grad", "is_leaf", "grad_fn", "grad")


def outcome(call):
    try:
        return call()
    except Exception as error:
        return type(error), str(error)


def same(first, second):
    if isinstance(first, Tensor):
        return first is second or (first.stride() == second.stride() and first.equal(second))
    return type(first) is type(second) and first == second


@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("name", WITHOUT_ARGUMENTS)
def test_methods(name, tensor):
    tensor = TENSORS[tensor]()
    assert same(outcome(lambda: vars(Tensor)[name](tensor)), outcome(lambda: own(Tensor, name)(tensor)))


@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("name", ATTRIBUTES)
@pytest.mark.filterwarnings("ignore:The .grad attribute")
def test_attributes(name, tensor):
    tensor = TENSORS[tensor]()
    found = outcome(lambda: vars(Tensor)[name].__get__(tensor))
    assert same(found, outcome(lambda: own(Tensor, name).__get__(tensor)))


@pytest.mark.parametrize("name", ["size", "stride"])
@pytest.mark.parametrize("tensor", ["vector", "turned", "part", "number", "empty", "meta"])
@pytest.mark.parametrize("dim", [0, -1, 1, 5, None, True, "x"])
def test_dimensions(name, tensor, dim):
    tensor, method = TENSORS[tensor](), own(Tensor, name)
    assert same(outcome(lambda: getattr(tensor, name)(dim)), outcome(lambda: method(tensor, dim)))
    assert same(outcome(lambda: getattr(tensor, name)(dim=dim)), outcome(lambda: method(tensor, dim)))


def test_other_arguments():
    x = corefw.ones(1, 2, 3, 4)
    assert not x.is_contiguous(memory_format=corefw.channels_last)
    assert x.contiguous(memory_format=corefw.channels_last).stride() == (24, 1, 8, 2)
    with pytest.raises(TypeError, match="1 positional argument but 2"):
        x.numel(1)
    with pytest.raises(TypeError, match="too many arguments"):
        x.size(*range(20))


def test_sizes():
    size = Size((2, 3, 5))
    assert [size[0], size[-1], size[corefw.tensor(1)]] == [2, 5, 3]
    assert type(size[1:]) is Size and size[1:] == (3, 5)
    with pytest.raises(IndexError):
        size[3]


def test_attributes_are_set():
    x = corefw.ones(2)
    x.requires_grad = True
    x.grad = corefw.ones(2)
    assert x.requires_grad and x.grad.tolist() == [1, 1]
    del x.grad
    assert x.grad is None
    with pytest.raises(AttributeError):
        x.shape = (1, 2)


def test_inside_of_vmap():
    assert corefw.func.vmap(lambda x: x * x.numel() + x.size(0))(corefw.ones(2, 3)).tolist() == [[6.0] * 3] * 2


def test_modes_are_asked():
    class Names(corefw.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            heard.append(func.__name__)
            return func(*args, **kwargs or {})

    heard: list[str] = []
    x = corefw.ones(2)
    with Names():
        x.contiguous()
        x.uniform_()
    assert {"contiguous", "uniform_"} <= {*heard} and not overriding.dressed


def test_documentation():
    assert str(inspect.signature(Tensor.size)) == "(self, /, dim=None)"
    assert Tensor.size.__doc__ == own(Tensor, "size").__doc__
    assert Tensor.shape.__doc__ == own(Tensor, "shape").__doc__


# -- random numbers ---------------------------------------------------------------------------------------------------
def by_own(monkeypatch, call):
    """What a call gives where generators and tensors have their own methods."""
    with monkeypatch.context() as patch:
        for owner, name in registry.own_methods:
            if owner is Generator or name in ("uniform_", "normal_", "exponential_"):
                patch.setattr(owner, name, registry.own_methods[owner, name])
        return call()


DRAWN = {
    "rand": lambda g: corefw.rand(3, 4, generator=g),
    "rand of float64": lambda g: corefw.rand(5, dtype=corefw.float64, generator=g),
    "randn": lambda g: corefw.randn(7, generator=g),
    "randn of bfloat16": lambda g: corefw.randn(5, dtype=corefw.bfloat16, generator=g),
    "randn of complex64": lambda g: corefw.randn(5, dtype=corefw.complex64, generator=g),
    "rand of nothing": lambda g: corefw.rand(0, 2, generator=g),
    "rand of one": lambda g: corefw.rand((), generator=g),
    "rand of many": lambda g: corefw.rand(100, 100, generator=g),
    "randint": lambda g: corefw.randint(-5, 10, (2, 3), generator=g),
    "randint of int8": lambda g: corefw.randint(10, (6,), dtype=corefw.int8, generator=g),
    "randperm": lambda g: corefw.randperm(9, generator=g),
    "randperm of int32": lambda g: corefw.randperm(9, dtype=corefw.int32, generator=g),
    "uniform_": lambda g: corefw.zeros(2, 3).uniform_(-0.5, 0.5, generator=g),
    "normal_ of columns": lambda g: corefw.zeros(4, 3)[:, ::2].normal_(1, 2, generator=g),
    "normal_ of turned": lambda g: corefw.zeros(4, 3).t().normal_(generator=g),
    "geometric_": lambda g: corefw.zeros(5).geometric_(0.3, generator=g),
    "random_": lambda g: corefw.zeros(5, dtype=corefw.uint8).random_(generator=g),
    "of the history": lambda g: (corefw.ones(3, requires_grad=True) * 2).uniform_(generator=g),
}


@pytest.mark.parametrize("name", DRAWN)
def test_draws(name, monkeypatch):
    first, second = Generator().manual_seed(3), Generator().manual_seed(3)
    for _ in range(2):  # tables have their entries the second time
        drawn, expected = DRAWN[name](first), by_own(monkeypatch, lambda: DRAWN[name](second))
        assert drawn.dtype is expected.dtype and drawn.shape == expected.shape and drawn.equal(expected)
        assert drawn._version == expected._version and first.get_offset() == second.get_offset()


@pytest.mark.parametrize("draw", [
    lambda: corefw.rand(3), lambda: corefw.randperm(3), lambda: corefw.zeros(2).uniform_(),
    lambda: corefw.zeros(2).normal_(0, 2), lambda: corefw.zeros(3).exponential_(), lambda: Generator().take(1),
])  # fmt: skip
def test_no_method_in_python_runs(draw):
    """Neither before nor after a vmap."""
    corefw.func.vmap(lambda x: x + corefw.rand(1), randomness="different")(corefw.ones(2))
    draw()
    called: list[str] = []
    sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
    try:
        draw()
    finally:
        sys.setprofile(None)
    assert not {"draw", "take", "fill", "permutation", "uniform_", "normal_", "size_and_target"} & {*called}


FILLED = {
    "uniform_": [(), (-1, 1), (0.25, 0.5), (-3e4, 3e4), (2, 3)],
    "normal_": [(), (3, 0.5), (0, 0)],
    "exponential_": [(), (2.5,)],
}


@pytest.mark.parametrize(("name", "arguments"), [(name, a) for name, given in FILLED.items() for a in given])
@pytest.mark.parametrize("dtype", [corefw.float32, corefw.float64, corefw.float16])
def test_fills(name, arguments, dtype, monkeypatch):
    def filled():
        corefw.manual_seed(7)
        parameter = nn.Parameter(corefw.zeros(5, dtype=dtype))
        with corefw.no_grad():
            getattr(parameter, name)(*arguments)
        return getattr(corefw.zeros(3, 2, dtype=dtype), name)(*arguments), parameter, corefw.get_rng_state()

    filled()
    for value, expected in zip(filled(), by_own(monkeypatch, filled), strict=True):
        assert value.equal(expected) and value._version == expected._version


@pytest.mark.parametrize("call", [
    lambda x: x.uniform_(1, 0), lambda x: x.normal_(0, -1), lambda x: x.exponential_(-1), lambda x: x.uniform_(0, "1"),
    lambda x: x.long().uniform_(), lambda x: x.requires_grad_().uniform_(), lambda x: x.uniform_(nothing=1),
])  # fmt: skip
def test_fills_refused(call, monkeypatch):
    refused = outcome(lambda: call(corefw.zeros(2)))
    assert isinstance(refused, tuple) and refused == by_own(monkeypatch, lambda: outcome(lambda: call(corefw.zeros(2))))


def test_threads_share_a_stream():
    """No block is given twice, whoever else reserves some in Python meanwhile."""
    generator, taken = Generator().manual_seed(0), []
    take = own(Generator, "take")

    def by_turns():
        mine = [(take if i % 3 else Generator.take)(generator, 5, 1)[1] for i in range(3000)]
        taken.extend(mine)

    threads = [threading.Thread(target=by_turns) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [*range(0, 2 * 12000, 2)]


def test_a_locked_generator_is_waited_for():
    generator, found = Generator().manual_seed(0), []
    with generator._lock:
        thread = threading.Thread(target=lambda: found.append(generator.take(4, 1)))
        thread.start()
        thread.join(0.05)
        assert not found
    thread.join()
    assert found == [(0, 0)]


def test_the_last_block():
    generator = Generator().manual_seed(1)
    generator.set_offset((1 << 64) - 1)
    assert generator.take(8, 1) == (1, (1 << 64) - 1) and generator.get_offset() == 1


def test_other_engines_draw_themselves():
    with corefw.random.use("mt19937"):
        corefw.manual_seed(0)
        assert corefw.rand(1).item() == pytest.approx(0.4962566)
        assert corefw.zeros(1).uniform_().item() == pytest.approx(0.7682218)


# -- functions that make tensors --------------------------------------------------------------------------------------
SIZES = [(2, 3), (2,), ((2, 3),), (), (-1,), (2.0,), (True,), (1 << 70,), (0,), Size((2, 3))]
OPTIONS = [
    (None,) * 3,
    (corefw.int64, None, None),
    (float, None, None),
    (None, "meta", None),
    (None, None, corefw.strided),
]


@pytest.mark.parametrize("named", [None, {}, {"size": (2,)}, {"other": 1}])
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("sizes", SIZES)
def test_sizes_and_targets(sizes, options, named):
    found, expected = (
        outcome(lambda: function("f", sizes, copy.copy(named), *options, False))  # noqa: B023  (called at once)
        for function in (factories.size_and_target, own(factories, "size_and_target"))
    )
    assert found == expected


def test_defaults_are_heeded():
    with corefw.device("meta"):
        assert corefw.zeros(2).is_meta and corefw.empty(2).is_meta
    corefw.set_default_dtype(corefw.float64)
    try:
        assert corefw.rand(2).dtype is corefw.empty(2).dtype is corefw.float64
    finally:
        corefw.set_default_dtype(corefw.float32)


def test_memory_in_inference_mode():
    with corefw.inference_mode():
        assert corefw.empty(2).is_inference() and corefw.rand(2).is_inference()


def test_too_large_a_tensor():
    with pytest.raises(RuntimeError):
        corefw.empty(1 << 61, 4)
