"""Graphs of programs: tracing, code that is generated, changes of graphs, and PyTorch's own graphs beside them."""

import copy
import operator
import pickle

import pytest

import corefw
from corefw.dispatch import overriding
from corefw.fx.passes.shape_prop import ShapeProp
from tests.parity import import_torch

fx, nn = corefw.fx, corefw.nn


def residual(torch):
    """The class of a model like a ResNet, of one of the two libraries."""
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self, channels):
            super().__init__()
            self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
            self.norm = nn.BatchNorm2d(channels)
            self.relu = nn.ReLU(inplace=True)
            self.scale = nn.Parameter(torch.ones(channels, 1, 1))

        def forward(self, x):
            return self.relu(self.norm(self.conv(x)) * self.scale + x)

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.stem = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU())
            self.layers = nn.ModuleList([Block(4), Block(4)])
            self.head = nn.Linear(4, 2)
            self.register_buffer("shift", torch.ones(2))

        def forward(self, x: torch.Tensor, flat: bool = True, *, power=2) -> torch.Tensor:
            x = self.stem(x)
            for layer in self.layers:
                x = layer(x)
            x = torch.flatten(x.mean((2, 3)), 1)
            first, second = self.head(x).chunk(2, dim=-1)
            y = torch.cat([first, -second], dim=1)[..., :2]
            y = y**power - self.shift + torch.full((2,), 0.5)
            y += 1
            return {"out": y, "size": (x.shape[0], x.size(1), abs(y))}

    return Residual


def formulas(torch):
    """Functions of one of the two libraries."""

    def arithmetic(a, b):
        return (a + 1) * (2 - b) / b // 3 % 2 @ a & b | a ^ b << 1 >> 2

    def comparisons(a, b):
        return a < b, a <= 1, b < 1, a == b, a != 2, ~a, +a

    def functions(x, w, n: int = 3):
        c = torch.stack([x, torch.sin(w)], 0)
        d = torch.where(c > 0, c, torch.exp(c)).sum(dim=0, keepdim=True)
        return torch.chunk(d, n), x.dtype, x.T, torch.nn.functional.conv1d(x, w, stride=2)

    def indexing(x, i):
        return x[i], x[1:, None, ..., i:-1], x[x.argmax()]

    def stars(x, *rest, flag=None, **options):
        return [x, rest[0], options["a"]]

    return arithmetic, comparisons, functions, indexing, stars


CODE = """
def forward(self, x : torch.Tensor, flat : bool = True, power = 2):
    stem_0 = getattr(self.stem, "0")(x);  x = None
    stem_1 = getattr(self.stem, "1")(stem_0);  stem_0 = None
    layers_0_conv = getattr(self.layers, "0").conv(stem_1)
    layers_0_norm = getattr(self.layers, "0").norm(layers_0_conv);  layers_0_conv = None
    layers_0_scale = getattr(self.layers, "0").scale
    mul = layers_0_norm * layers_0_scale;  layers_0_norm = layers_0_scale = None
    add = mul + stem_1;  mul = stem_1 = None
"""


def images():
    return corefw.linspace(-1, 1, 2 * 3 * 64).reshape(2, 3, 8, 8)


def test_a_residual_network():
    model = residual(corefw)().eval()
    traced = fx.symbolic_trace(model)
    assert traced.code.startswith("\n\n" + CODE)
    ours, theirs = traced(images()), model(images())
    assert ours["out"].tolist() == theirs["out"].tolist() and ours["size"][:2] == (2, 4)
    traced.graph.lint()
    assert type(traced).__name__ == "Residual" and not traced.training
    assert traced.state_dict().keys() == {*model.state_dict(), "_tensor_constant0"}
    ours["out"].sum().backward()
    assert model.layers[0].scale.grad is not None


@pytest.mark.oracle
def test_a_residual_network_as_in_pytorch():
    torch = import_torch()
    ours, theirs = (fx_of(library, residual(library)()) for library in (corefw, torch))
    assert str(ours.graph) == str(theirs.graph)
    assert ours.code == theirs.code
    assert [node.meta.keys() for node in ours.graph.nodes] == [node.meta.keys() for node in theirs.graph.nodes]


def fx_of(library, what):
    """The traced module of either library."""
    return __import__(f"{library.__name__}.fx").fx.symbolic_trace(what)


@pytest.mark.oracle
@pytest.mark.parametrize("index", range(5))
def test_functions_as_in_pytorch(index):
    torch = import_torch()
    ours, theirs = (fx_of(library, formulas(library)[index]) for library in (corefw, torch))
    for a, b in (ours.code, theirs.code), (str(ours.graph), str(theirs.graph)):
        assert a == b
    assert [(n.op, n.name, len(n.users)) for n in ours.graph.nodes] == [
        (n.op, n.name, len(n.users)) for n in theirs.graph.nodes
    ]


def test_functions_compute_what_they_did():
    x, w = corefw.linspace(-1, 1, 8).reshape(1, 2, 4), corefw.ones(1, 2, 4)
    for function, arguments in zip(formulas(corefw)[2:4], ((x, w, 2), (x[0] * 0, 1))):
        ours, theirs = fx.symbolic_trace(function)(*arguments), function(*arguments)
        assert str(ours) == str(theirs)


def test_what_depends_on_values_is_refused():
    for function, text in (
        (lambda x: 1 if x > 0 else 2, "control flow"),
        (lambda x: list(x), "cannot be iterated"),
        (lambda x: 1 in x, "contains"),
    ):
        with pytest.raises(fx.proxy.TraceError, match=text):
            fx.symbolic_trace(function)
    with pytest.raises(RuntimeError, match=r"fx\.wrap"):
        fx.symbolic_trace(lambda x: len(x))
    assert not overriding.dressed  # nothing asks any more


def test_concrete_arguments():
    def choose(x, doubled, nothing=None):
        return x if nothing is None and not doubled else 2 * x

    traced = fx.symbolic_trace(choose, concrete_args={"doubled": True, "nothing": None})
    assert traced(corefw.ones(1), True).item() == 2
    with pytest.raises(AssertionError, match="doubled has been specialized to have value True"):
        traced(corefw.ones(1), False)


def test_parameters_and_attributes():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2, bias=False)
            self.plain = corefw.ones(2)

        def forward(self, x):
            return x @ self.inner.weight.t() + self.plain + self.inner.weight.shape[0]

    model = Shared()
    graph = fx.Tracer(param_shapes_constant=True).trace(model)
    assert [n.target for n in graph.nodes if n.op == "get_attr"] == ["inner.weight", "plain"]
    assert [n.args[1] for n in graph.nodes if n.target is operator.add][-1] == 2
    traced = fx.GraphModule(model, graph)
    assert traced.inner.weight is model.inner.weight and traced(corefw.ones(2)).shape == (2,)
    assert dict(traced.named_buffers()).keys() == {"plain"}


def test_changing_a_graph():
    traced = fx.symbolic_trace(lambda x, y: corefw.relu(x) + y)
    relu = next(node for node in traced.graph.nodes if node.name == "relu")
    with traced.graph.inserting_after(relu):
        sine = traced.graph.call_function(corefw.sin, (relu,))
    relu.replace_all_uses_with(sine, delete_user_cb=lambda user: user is not sine)
    traced.recompile()
    assert traced(corefw.ones(1), 1).item() == pytest.approx(1.84147, abs=1e-5)
    with traced.graph.inserting_before(sine):
        unused = corefw.neg(fx.Proxy(relu)) * 2
    assert unused.node.name == "mul" and len(traced.graph.nodes) == 8
    assert traced.graph.eliminate_dead_code() and len(traced.graph.nodes) == 6
    with pytest.raises(RuntimeError, match="still had 1 users"):
        traced.graph.erase_node(relu)
    with pytest.raises(NotImplementedError, match="does not support mutation"):
        relu.kwargs["inplace"] = True
    assert relu < sine and not sine < relu and sine.all_input_nodes == [relu] and list(relu.users) == [sine]
    sine.prepend(traced.graph.output_node())
    with pytest.raises(RuntimeError, match="before it has been defined"):
        traced.graph.lint()


def test_copies_and_files():
    traced = fx.symbolic_trace(residual(corefw)().eval())
    expected = traced(images())["out"].tolist()
    for other in (copy.deepcopy(traced), copy.copy(traced), fx.GraphModule(traced, traced.graph)):
        assert other.code == traced.code and other(images())["out"].tolist() == expected
        assert other.graph is not traced.graph and other.graph.owning_module is other
    graph = pickle.loads(pickle.dumps(fx.symbolic_trace(formulas(corefw)[2]).graph))
    assert str(graph) == str(fx.symbolic_trace(formulas(corefw)[2]).graph)
    module = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    again = pickle.loads(pickle.dumps(module))
    assert again.code == module.code and again(corefw.ones(2)).tolist() == module(corefw.ones(2)).tolist()


def test_interpreters_and_transformers():
    traced = fx.symbolic_trace(residual(corefw)().eval())
    result = fx.Interpreter(traced).run(images())
    assert result["out"].tolist() == traced(images())["out"].tolist()

    class Other(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(operator.sub if target is operator.add else target, args, kwargs)

    changed = Other(fx.symbolic_trace(lambda x: corefw.exp(x) + 1)).transform()
    assert changed(corefw.zeros(1)).item() == 0
    ShapeProp(traced).propagate(images())
    meta = {node.name: node.meta.get("tensor_meta") for node in traced.graph.nodes}
    assert meta["stem_0"].shape == (2, 4, 6, 6) and meta["head"].requires_grad and meta["chunk"][1].shape == (2, 1)
    with pytest.raises(ValueError) as caught:
        fx.Interpreter(fx.symbolic_trace(lambda x: x @ x)).run(corefw.ones(2, 3))
    assert "While executing %matmul" in "".join(caught.value.__notes__)


def test_replacing_patterns():
    traced = fx.symbolic_trace(lambda x, y: corefw.relu(x * 2 + y) + corefw.relu(y * 2 + x) * 2)
    matches = fx.replace_pattern(traced, lambda a, b: corefw.relu(a * 2 + b), lambda a, b: corefw.maximum(a, b))
    assert len(matches) == 2 and traced(corefw.tensor(3.0), corefw.tensor(5.0)).item() == 15
    traced.graph.lint()
    kept = fx.symbolic_trace(lambda x: (x.neg() + 1, x.neg()))  # used outside of the pattern: no match
    assert not fx.replace_pattern(fx.symbolic_trace(shared), lambda x: x.neg() + 1, lambda x: x)
    assert len(fx.replace_pattern(kept, lambda x: x.neg() + 1, lambda x: x)) == 1


def shared(x):
    y = x.neg()
    return y + 1, y


def test_submodules():
    traced = fx.symbolic_trace(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    assert traced.add_submodule("a.b", nn.Tanh()) and not traced.delete_submodule("a.c")
    last = traced.graph.output_node()
    with traced.graph.inserting_before(last):
        last.args = (traced.graph.call_module("a.b", last.args),)
    for node in list(traced.graph.nodes):
        if node.target == "1":
            node.replace_all_uses_with(node.args[0])
            traced.graph.erase_node(node)
    traced.delete_all_unused_submodules()
    traced.recompile()
    assert [name for name, _ in traced.named_modules()] == ["", "0", "a", "a.b"]
    assert "class Sequential(torch.nn.Module)" in traced.print_readable(print_output=False)
    with pytest.raises(RuntimeError, match="nonexistent attribute"):
        traced.graph.call_module("missing")
        traced.graph.lint()


def test_threads_and_modes_find_functions_as_they_were():
    before = corefw.add.__code__
    proxy = fx.Proxy(fx.Graph().placeholder("x"))
    assert corefw.add.__code__ is not before
    assert (corefw.ones(1) + corefw.add(corefw.ones(1), 2)).item() == 4
    del proxy
    assert corefw.add(1.0, corefw.ones(1)).item() == 2 and "add" in corefw.add.__code__.co_name
    assert not overriding.dressed and overriding._asking == 0
