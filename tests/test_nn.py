"""Modules: members, walking, state, hooks, containers."""

import copy
import pickle
from collections import OrderedDict

import pytest

import corefw as torch
from corefw import nn


def model():
    return nn.Sequential(OrderedDict(first=nn.Linear(3, 4), act=nn.ReLU(), last=nn.Linear(4, 2)))


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(2, 2)
        self.b = nn.Linear(2, 2)
        self.b.weight = self.a.weight
        self.scale = nn.Parameter(torch.ones(1))
        self.register_buffer("seen", torch.zeros(2))
        self.register_buffer("scratch", torch.zeros(2), persistent=False)

    def forward(self, x):
        return self.b(self.a(x)) * self.scale


def test_linear_is_its_formula():
    layer = nn.Linear(3, 2)
    x = torch.randn(5, 3)
    expected = x.numpy() @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
    torch_difference = abs(layer(x).detach().numpy() - expected).max()
    assert torch_difference < 1e-6
    assert nn.Linear(3, 2, bias=False).bias is None


def test_initial_range_of_linear():
    layer = nn.Linear(100, 50)
    assert float(layer.weight.abs().max()) <= 0.1 and float(layer.weight.abs().max()) > 0.09
    assert float(layer.bias.abs().max()) <= 0.1


def test_names_and_order():
    assert [n for n, _ in model().named_parameters()] == ["first.weight", "first.bias", "last.weight", "last.bias"]
    assert [n for n, _ in model().named_modules()] == ["", "first", "act", "last"]
    assert [n for n, _ in Tied().named_parameters()] == ["scale", "a.weight", "a.bias", "b.bias"]
    assert [n for n, _ in Tied().named_buffers()] == ["seen", "scratch"]


def test_state_dict_keys_and_sharing():
    tied = Tied()
    state = tied.state_dict()
    assert list(state) == ["scale", "seen", "a.weight", "a.bias", "b.weight", "b.bias"]
    state["scale"].fill_(3)
    assert tied.scale.item() == 3


def test_load_state_dict_copies():
    a, b = model(), model()
    assert str(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    assert torch.equal(a.first.weight, b.first.weight)
    with torch.no_grad():
        a.first.weight.zero_()
    assert not torch.equal(a.first.weight, b.first.weight)


def test_load_state_dict_lists_every_problem():
    state = model().state_dict()
    del state["first.bias"]
    state["extra"] = torch.zeros(1)
    state["last.weight"] = torch.zeros(5, 5)
    with pytest.raises(RuntimeError) as error:
        model().load_state_dict(state)
    text = str(error.value)
    assert 'Missing key(s) in state_dict: "first.bias"' in text
    assert 'Unexpected key(s) in state_dict: "extra"' in text
    assert "size mismatch for last.weight: copying a param with shape torch.Size([5, 5])" in text
    del state["last.weight"]
    assert model().load_state_dict(state, strict=False) == (["first.bias", "last.weight"], ["extra"])


@pytest.mark.parametrize(
    ("change", "kind"),
    [
        (lambda m: setattr(m, "weight", torch.zeros(2)), TypeError),
        (lambda m: m.register_parameter("a.b", None), KeyError),
        (lambda m: m.register_parameter("", None), KeyError),
        (lambda m: m.register_parameter("forward", None), KeyError),
        (lambda m: m.register_parameter("x", torch.zeros(1)), TypeError),
        (lambda m: m.register_parameter("x", nn.Parameter(torch.ones(1)) * 1), TypeError),
        (lambda m: m.register_buffer("x", 3), TypeError),
        (lambda m: m.add_module("x", 3), TypeError),
        (lambda m: m.missing, AttributeError),
        (lambda m: m.train(1), ValueError),
        (lambda m: m.get_submodule("nothing"), AttributeError),
        (lambda m: nn.Module()(1), NotImplementedError),
    ],
)
def test_misuse_is_refused(change, kind):
    with pytest.raises(kind):
        change(nn.Linear(2, 2))


def test_assignment_before_init_is_refused():
    class Forgetful(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"before Module\.__init__"):
        Forgetful()


def test_attributes_follow_members():
    layer = nn.Linear(2, 2)
    new = nn.Parameter(torch.zeros(2, 2))
    layer._parameters["weight"] = new
    assert layer.weight is new
    del layer.weight
    assert "weight" not in layer._parameters and not hasattr(layer, "weight")
    layer.bias = None
    assert layer.bias is None and list(layer.parameters()) == []


def test_a_plain_attribute_becomes_a_parameter_and_back():
    module = nn.Module()
    module.x = 3
    module.x = nn.Parameter(torch.ones(1))
    assert [n for n, _ in module.named_parameters()] == ["x"]
    with pytest.raises(TypeError):
        module.x = 3


def test_repr_is_the_tree():
    assert repr(model()) == (
        "Sequential(\n  (first): Linear(in_features=3, out_features=4, bias=True)\n  (act): ReLU()\n"
        "  (last): Linear(in_features=4, out_features=2, bias=True)\n)"
    )


def test_train_eval_apply_and_freeze():
    m = model()
    assert m.eval() is m and not m.first.training
    names = []
    m.apply(lambda module: names.append(type(module).__name__))
    assert names == ["Linear", "ReLU", "Linear", "Sequential"]
    m.requires_grad_(False)
    assert not m(torch.ones(1, 3)).requires_grad


def test_to_converts_floating_members_only():
    tied = Tied()
    tied.register_buffer("count", torch.tensor(3))
    tied.double()
    assert tied.a.weight.dtype == torch.float64 and tied.seen.dtype == torch.float64 and tied.count.dtype == torch.int64
    assert tied.b.weight is tied.a.weight and tied.a.weight.requires_grad and tied.a.weight.is_leaf
    tied.to(torch.float32)
    assert tied(torch.ones(1, 2)).dtype == torch.float32


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_copies_are_independent_and_keep_ties(duplicate):
    tied = Tied()
    other = duplicate(tied)
    assert other.a.weight is other.b.weight
    assert other.a.weight is not tied.a.weight
    assert torch.equal(other.a.weight, tied.a.weight)
    other._parameters["scale"] = nn.Parameter(torch.zeros(1))
    assert other.scale.item() == 0 and tied.scale.item() == 1


def test_forward_hooks_change_input_and_output():
    layer = nn.Identity()
    pre = layer.register_forward_pre_hook(lambda module, args: (args[0] + 1,))
    post = layer.register_forward_hook(lambda module, args, output: output * 10)
    assert layer(torch.ones(1)).item() == 20
    pre.remove()
    assert layer(torch.ones(1)).item() == 10
    post.remove()
    assert layer(torch.ones(1)).item() == 1


def test_full_backward_hook_sees_both_gradients():
    layer = nn.Linear(2, 1, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[2.0, 3.0]]))
    seen = []
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append((grad_input, grad_output)))
    x = torch.ones(1, 2, requires_grad=True)
    layer(x).sum().backward()
    ((grad_input, grad_output),) = seen
    assert grad_input[0].tolist() == [[2.0, 3.0]] and grad_output[0].tolist() == [[1.0]]


def test_full_backward_hook_may_replace_the_gradient():
    layer = nn.Identity()
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: (grad_input[0] * 5,))
    x = torch.ones(1, requires_grad=True)
    (layer(x * 1)).sum().backward()
    assert x.grad.item() == 5


def test_sequential_is_a_list():
    m = nn.Sequential(nn.Linear(1, 2), nn.ReLU(), nn.Linear(2, 1))
    assert len(m) == 3 and isinstance(m[-1], nn.Linear) and len(m[:2]) == 2
    m.insert(1, nn.Tanh())
    assert [type(x).__name__ for x in m] == ["Linear", "Tanh", "ReLU", "Linear"]
    del m[1]
    m[1] = nn.Sigmoid()
    assert list(m._modules) == ["0", "1", "2"] and isinstance(m[1], nn.Sigmoid)
    with pytest.raises(IndexError):
        m[3]


def test_containers_own_their_members():
    class Holder(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(1, 1)]).append(nn.Linear(1, 1))
            self.named = nn.ModuleDict({"x": nn.Linear(1, 1)})
            self.values = nn.ParameterList([torch.ones(1), torch.ones(2)])
            self.table = nn.ParameterDict({"k": torch.ones(3)})

    holder = Holder()
    names = [n for n, _ in holder.named_parameters()]
    assert names == [
        *("layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias", "named.x.weight", "named.x.bias"),
        *("values.0", "values.1", "table.k"),
    ]
    assert [p.numel() for p in holder.values] == [1, 2] and holder.table["k"].numel() == 3
    assert holder.named.pop("x").in_features == 1 and len(holder.named) == 0


ACTIVATIONS = [
    *(
        nn.ReLU,
        nn.ReLU6,
        nn.SELU,
        nn.SiLU,
        nn.Mish,
        nn.Hardsigmoid,
        nn.Hardswish,
        nn.Sigmoid,
        nn.Tanh,
        nn.LogSigmoid,
        nn.Softsign,
    ),
    *(
        nn.Tanhshrink,
        nn.ELU,
        nn.CELU,
        nn.LeakyReLU,
        nn.Hardtanh,
        nn.GELU,
        nn.GLU,
        nn.Hardshrink,
        nn.Softshrink,
        nn.Softplus,
    ),
    *(nn.PReLU, lambda: nn.Threshold(0.1, 2), lambda: nn.Softmax(1), lambda: nn.LogSoftmax(1), lambda: nn.Softmin(1)),
]


@pytest.mark.parametrize("make", ACTIVATIONS)
def test_activation_layers_equal_pytorchs(make):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    layer = make()
    x = torch.linspace(-4, 4, 24).reshape(4, 6)
    name = type(layer).__name__
    options = {k: v for k, v in vars(layer).items() if k in ("threshold", "value") and name == "Threshold"}
    options |= {"dim": layer.dim} if hasattr(layer, "dim") else {}
    other = getattr(oracle.nn, name)(**options)
    difference = abs(layer(x).detach().numpy() - other(oracle.tensor(x.numpy())).detach().numpy()).max()
    assert difference < 1e-6
    assert repr(layer) == repr(other)


INPLACE = "ReLU ReLU6 SELU SiLU Mish Hardsigmoid Hardswish ELU CELU LeakyReLU Hardtanh"


@pytest.mark.parametrize("layer", [getattr(nn, name) for name in INPLACE.split()])
def test_inplace_activations_write_into_their_input(layer):
    x, other = (torch.linspace(-7, 7, 5, requires_grad=True) for _ in range(2))
    changed, expected = x * 1, layer()(other)
    assert layer(inplace=True)(changed) is changed
    assert torch.equal(changed, expected)
    changed.sum().backward()
    expected.sum().backward()
    torch.testing.assert_close(x.grad, other.grad)


def test_losses_reduce():
    a, b = torch.tensor([1.0, 3.0]), torch.tensor([0.0, 1.0])
    assert nn.MSELoss()(a, b).item() == 2.5
    assert nn.MSELoss(reduction="sum")(a, b).item() == 5
    assert nn.MSELoss(reduction="none")(a, b).tolist() == [1, 4]
    assert nn.MSELoss(size_average=False)(a, b).item() == 5


INITIALISERS = {
    "uniform_": lambda t: nn.init.uniform_(t, -2, 3),
    "normal_": lambda t: nn.init.normal_(t, 1, 0.1),
    "xavier_uniform_": nn.init.xavier_uniform_,
    "xavier_normal_": nn.init.xavier_normal_,
    "kaiming_uniform_": nn.init.kaiming_uniform_,
    "kaiming_normal_": lambda t: nn.init.kaiming_normal_(t, mode="fan_out", nonlinearity="relu"),
    "trunc_normal_": lambda t: nn.init.trunc_normal_(t, 0, 1, -1, 1),
}
SPREAD = {
    "uniform_": 5 / 12**0.5,
    "normal_": 0.1,
    "xavier_uniform_": (2 / 150) ** 0.5,
    "xavier_normal_": (2 / 150) ** 0.5,
    "kaiming_uniform_": (2 / 50) ** 0.5,
    "kaiming_normal_": (2 / 100) ** 0.5,
    "trunc_normal_": 0.5396,
}


@pytest.mark.parametrize("name", INITIALISERS)
def test_initialisers_have_their_spread(name):
    torch.manual_seed(0)
    weight = nn.Parameter(torch.empty(100, 50))
    assert INITIALISERS[name](weight) is weight
    assert abs(float(weight.detach().std()) / SPREAD[name] - 1) < 0.03
    assert weight.requires_grad and weight.is_leaf


def test_an_error_names_the_layer_its_path_and_the_shapes():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(7, 2))

        def forward(self, x):
            return self.body(x)

    with pytest.raises(RuntimeError) as raised:
        Model()(torch.ones(3, 5))
    expected = "in Model.body.2 (Linear(in_features=7, out_features=2, bias=True)): got (3, 8)"
    assert raised.value.__notes__ == [expected]


def test_summary_counts_each_parameter_once_and_changes_nothing():
    tied = Tied().train()
    summary = tied.summary(torch.zeros(3, 2))
    assert [(r.path, r.parameters, r.outputs) for r in summary.rows] == [
        ("a", 6, "(3, 2)"),
        ("b", 2, "(3, 2)"),
        ("", 1, "(3, 2)"),
    ]
    assert summary.parameters == 9 and "9 parameters (9 trainable), 36 bytes" in str(summary)
    assert tied.training and not tied.a._hooks["forward"]


def test_summary_by_sizes():
    model = torch.nn.Sequential(torch.nn.Sequential(torch.nn.Linear(4, 3)), torch.nn.Linear(3, 2)).double()
    found = torch.utils.summary(model, (4,), batch_dim=0)
    assert [(row.path, row.inputs) for row in found.rows] == [
        ("0.0", "(1, 4)"),
        ("0", "(1, 4)"),
        ("1", "(1, 3)"),
        ("", "(1, 4)"),
    ]
    shallow = torch.utils.summary(model, input_data=torch.zeros(7, 4, dtype=torch.float64), depth=1)
    assert "0.0" not in str(shallow) and "(7, 4)" in str(shallow) and shallow.parameters == 23
    embedded = torch.utils.summary(torch.nn.Bilinear(2, 3, 4), [(5, 2), (5, 3)])
    assert embedded.rows[0].inputs == "((5, 2), (5, 3))"
    indexed = torch.utils.summary(torch.nn.Embedding(3, 2), (1, 4), dtypes=[torch.int64])
    assert indexed.rows[0].outputs == "(1, 4, 2)"
    for wrong in ({}, {"input_size": (1, 4), "input_data": torch.zeros(1, 4)}, {"input_size": (1, 4), "dtypes": []}):
        with pytest.raises(ValueError, match="summary: "):
            torch.utils.summary(model, **wrong)


LOSSES = {
    "L1Loss": ({}, "real"),
    "SmoothL1Loss": ({"beta": 0.5}, "real"),
    "HuberLoss": ({"delta": 0.7}, "real"),
    "MSELoss": ({}, "real"),
    "BCELoss": ({}, "probability"),
    "BCEWithLogitsLoss": ({}, "probability"),
    "KLDivLoss": ({"log_target": False}, "probability"),
    "CrossEntropyLoss": ({"label_smoothing": 0.1, "ignore_index": 1}, "class"),
    "NLLLoss": ({"ignore_index": 2}, "class"),
}


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("name", LOSSES)
def test_loss_layers_equal_pytorchs(name, reduction):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    options, kind = LOSSES[name]
    reduction = "batchmean" if (name, reduction) == ("KLDivLoss", "mean") else reduction
    torch.manual_seed(0)
    x = torch.rand(4, 3) * 0.8 + 0.1
    target = {"real": torch.randn(4, 3), "probability": torch.rand(4, 3), "class": torch.tensor([0, 2, 1, 0])}[kind]
    layer = getattr(nn, name)(reduction=reduction, **options)
    other = getattr(oracle.nn, name)(reduction=reduction, **options)
    expected = other(oracle.tensor(x.numpy()), oracle.tensor(target.numpy())).numpy()
    assert abs(layer(x, target).numpy() - expected).max() < 1e-5
    assert repr(layer) == repr(other)


def test_cosine_embedding_loss():
    x, y = torch.tensor([[1.0, 0.0], [1.0, 0.0]]), torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    layer = nn.CosineEmbeddingLoss(margin=0.25, reduction="none")
    assert layer(x, y, torch.tensor([1, -1])).tolist() == [1.0, 0.75]


def test_softmax2d_is_over_the_channels():
    x = torch.randn(2, 3, 4, 4)
    assert torch.allclose(nn.Softmax2d()(x).sum(1), torch.ones(2, 4, 4))
    with pytest.raises(ValueError):
        nn.Softmax2d()(torch.ones(2, 2))


def test_unflatten_undoes_flatten():
    x = torch.arange(24).reshape(2, 3, 4)
    assert torch.equal(nn.Unflatten(1, (3, 4))(nn.Flatten()(x)), x)


def test_gains():
    gain = nn.init.calculate_gain
    assert gain("linear") == 1 and gain("tanh") == 5 / 3 and gain("relu") == 2**0.5 and gain("leaky_relu", 1.0) == 1
    with pytest.raises(ValueError):
        gain("nothing")


def test_dirac_passes_the_channels_on():
    weight = nn.init.dirac_(torch.empty(4, 2, 3), groups=2)
    x = torch.randn(1, 4, 5)
    assert torch.equal(nn.functional.conv1d(x, weight, padding=1, groups=2), x)


def test_sparse_leaves_zeros_in_each_column():
    weight = nn.init.sparse_(torch.empty(10, 4), sparsity=0.3)
    assert (weight == 0).sum(0).tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "softmin"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 3, 4), (2, 3, 4, 5)])
def test_an_implicit_dimension_is_chosen_with_a_warning(name, shape):
    x = torch.randn(shape)
    function = getattr(nn.functional, name)
    with pytest.warns(UserWarning, match=f"Implicit dimension choice for {name}"):
        found = function(x)
    assert torch.equal(found, function(x, 0 if len(shape) in (0, 1, 3) else 1))


def test_hardtanh_knows_its_former_names():
    with pytest.warns(FutureWarning, match="max_value"):
        assert nn.Hardtanh(0, max_value=0.5)(torch.tensor([-1.0, 2.0])).tolist() == [0.0, 0.5]


@pytest.mark.parametrize("kind, values", [("ParameterList", [torch.ones(1)]), ("ParameterDict", {"a": torch.ones(1)})])
def test_containers_of_parameters_compute_nothing(kind, values):
    with pytest.raises(RuntimeError, match=f"{kind} should not be called"):
        getattr(nn, kind)(values)(torch.ones(1))
    with pytest.raises(NotImplementedError, match=f"{kind}.*missing the required"):
        getattr(nn, kind)(values).forward()


@pytest.mark.parametrize("bias", [True, False])
def test_bilinear_is_its_formula(bias):
    """y[o] = sum over i, j of x1[i] weight[o, i, j] x2[j], plus bias[o]."""
    torch.manual_seed(0)
    layer = nn.Bilinear(3, 4, 2, bias=bias, dtype=torch.float64)
    assert layer.weight.shape == (2, 3, 4) and layer.weight.abs().max() <= 3**-0.5
    x1, x2 = torch.randn(5, 6, 3, dtype=torch.float64), torch.randn(5, 6, 4, dtype=torch.float64)
    expected = torch.einsum("...i,oij,...j->...o", x1, layer.weight, x2) + (layer.bias if bias else 0)
    assert torch.allclose(layer(x1, x2), expected, rtol=1e-12) and (layer.bias is None) is not bias
    assert torch.allclose(nn.functional.bilinear(x1, x2, layer.weight, layer.bias), expected, rtol=1e-12)
    assert repr(layer) == f"Bilinear(in1_features=3, in2_features=4, out_features=2, bias={bias})"
    assert torch.autograd.gradcheck(layer, (x1[0, :2].requires_grad_(), x2[0, :2].requires_grad_()))
    with pytest.raises(RuntimeError):
        layer(x1, x1)
