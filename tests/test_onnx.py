"""Models as ONNX graphs: onnxruntime computes what they do, also for other sizes; what cannot be is refused."""

import io
import os
import sys

import numpy as np
import pytest

import corefw as torch
from corefw import nn
from corefw.nn import functional as F
from corefw.testing.checks import flat
from corefw.vision import models

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


class Classifier(nn.Module):
    """A recurrent network over tokens."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.lstm = nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(16, 3)

    def forward(self, tokens):
        output, (h, c) = self.lstm(self.embedding(tokens))
        return self.head(output[:, -1]), h, c


class GPT(nn.Module):
    """One block with two ways to write causal attention."""

    def __init__(self, width=16, heads=4, longest=32):
        super().__init__()
        self.heads = heads
        self.tokens, self.places = nn.Embedding(20, width), nn.Embedding(longest, width)
        self.norm, self.last = nn.LayerNorm(width), nn.LayerNorm(width, bias=False)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
        self.head = nn.Linear(width, 20, bias=False)
        self.head.weight = self.tokens.weight
        self.register_buffer("mask", torch.ones(longest, longest).tril().view(1, 1, longest, longest))

    def forward(self, tokens):
        batch, count = tokens.shape
        x = self.tokens(tokens) + self.places(torch.arange(count))
        width = x.shape[-1]
        parts = self.qkv(self.norm(x)).split(width, dim=2)
        q, k, v = (part.view(batch, count, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        scores = q @ k.transpose(-2, -1) * 0.5
        scores = scores.masked_fill(self.mask[:, :, :count, :count] == 0, float("-inf"))
        mixed = scores.softmax(-1) @ v + F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).contiguous().view(batch, count, width))
        return self.head(self.last(x + self.mlp(x)))


class Block(nn.Module):
    """Group and instance normalisation, resampling, a skip connection by concatenation."""

    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(2, 4, 3, stride=2, padding=1), nn.GroupNorm(2, 4), nn.SiLU())
        self.up = nn.ConvTranspose2d(4, 4, 2, stride=2)
        self.norm = nn.InstanceNorm2d(4, affine=True)

    def forward(self, x):
        low = self.down(x)
        high = self.norm(self.up(low)) + F.interpolate(low, scale_factor=2, mode="bilinear")
        return torch.cat([x, high.relu_()], 1)


def images(n, c=3, size=16):
    return torch.randn(n, c, size, size)


def tokens(batch, count):
    return torch.randint(0, 20, (batch, count))


def convolutional():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1, ceil_mode=True),
        nn.Conv2d(4, 6, 3, groups=2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(6, 5),
    )  # fmt: skip


def encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, norm_first=True, activation="gelu")
    return nn.TransformerEncoder(layer, 2)


BATCH, BOTH = {0: "batch"}, {0: "batch", 1: "steps"}
#: name -> model, an input, its dynamic axes, another input
MODELS = {
    "perceptron": (lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2), nn.Softmax(-1)),
                   lambda: torch.randn(2, 3), BATCH, lambda: torch.randn(7, 3)),
    "convolutional": (convolutional, lambda: images(2), BATCH, lambda: images(5)),
    "resnet18": (lambda: models.resnet18(num_classes=10), lambda: images(1, 3, 32), BATCH, lambda: images(3, 3, 32)),
    "encoder": (encoder, lambda: torch.randn(2, 5, 8), BOTH, lambda: torch.randn(3, 9, 8)),
    "classifier": (Classifier, lambda: tokens(2, 7), BOTH, lambda: tokens(4, 11)),
    "gru": (lambda: nn.GRU(3, 4, bidirectional=True), lambda: torch.randn(5, 2, 3), BOTH, lambda: torch.randn(8, 3, 3)),
    "rnn": (lambda: nn.RNN(3, 4, 2), lambda: torch.randn(5, 2, 3), BOTH, lambda: torch.randn(8, 3, 3)),
    "gpt": (GPT, lambda: tokens(2, 7), BOTH, lambda: tokens(4, 11)),
    "block": (Block, lambda: images(2, 2, 8), BATCH, lambda: images(3, 2, 8)),
}  # fmt: skip


def agree(program, model, *inputs):
    """The graph gives the model's outputs."""
    with torch.no_grad():
        expected = flat(model(*inputs))
    for found, wanted in zip(program(*inputs), expected, strict=True):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_models(name):
    make, given, axes, other = MODELS[name]
    torch.manual_seed(0)
    model, x = make(), given()
    fixed = torch.onnx.export(model, (x,), input_names=["x"])
    onnx.checker.check_model(fixed.model_proto, full_check=True)
    assert model.training
    agree(fixed, model.eval(), x)
    dynamic = torch.onnx.export(model, (x,), input_names=["x"], dynamic_axes={"x": axes})
    onnx.checker.check_model(dynamic.model_proto, full_check=True)
    agree(dynamic, model, x)
    agree(dynamic, model, other())
    sizes = [d.dim_param for d in dynamic.model_proto.graph.input[0].type.tensor_type.shape.dim]
    assert [sizes[axis] for axis in axes] == list(axes.values())


@pytest.mark.parametrize("opset", [18, 19, 21, 23])
@pytest.mark.parametrize("name", ["convolutional", "encoder", "classifier", "block"])
def test_opsets(name, opset):
    make, given, _, _ = MODELS[name]
    model, x = make().eval(), given()
    program = torch.onnx.export(model, (x,), opset_version=opset)
    onnx.checker.check_model(program.model_proto, full_check=True)
    assert program.model_proto.opset_import[0].version == opset
    agree(program, model, x)


def test_composites_are_single_nodes():
    program = torch.onnx.export(encoder(), (torch.randn(2, 5, 8),))
    kinds = [node.op_type for node in program.model_proto.graph.node]
    assert kinds.count("LayerNormalization") == 4 and kinds.count("Gelu") == 2 and kinds.count("Softmax") == 2
    program = torch.onnx.export(Classifier(), (tokens(2, 7),))
    assert [node.op_type for node in program.model_proto.graph.node].count("LSTM") == 4


PARTS = {
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.tensor([0, 2, 1])), (3, 4)),
    "losses": (
        lambda x: F.mse_loss(x, x * 2) + F.smooth_l1_loss(x, -x) + F.binary_cross_entropy_with_logits(x, x > 0),
        (3,),
    ),
    "rms_norm": (lambda x: F.rms_norm(x, (4,)), (2, 4)),
    "normalize": (lambda x: F.normalize(x) + F.cosine_similarity(x, x.roll(1, 0), 1, 1e-8)[:, None], (3, 4)),
    "instance_norm": (lambda x: F.instance_norm(x), (2, 3, 4)),
    "interpolate": (
        lambda x: [F.interpolate(x, scale_factor=2, mode=mode) for mode in ("nearest", "nearest-exact", "bicubic")],
        (1, 2, 4, 4),
    ),
    "pads": (
        lambda x: [F.pad(x, (1, 2, 0, 1), mode) for mode in ("constant", "reflect", "replicate", "circular")],
        (1, 2, 4, 4),
    ),
    "shuffles": (lambda x: F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2).roll((1, -1), (2, 3)), (1, 4, 3, 3)),
    "attention": (
        lambda x: F.scaled_dot_product_attention(x, x, x, attn_mask=torch.ones(4, 4).tril().bool()),
        (1, 2, 4, 3),
    ),
    "indices": (
        lambda x: [x[torch.tensor([0, 2])], x[:, [1, -1]], x[[0, 1], [1, 2]], x[x[:, 0] > 0], x[..., None, ::2]],
        (3, 4),
    ),
    "statistics": (
        lambda x: [x.var(0), x.std(), x.median(0).values.shape[0] * x, x.norm(dim=1), x.softmax(0).cumsum(1)],
        (3, 4),
    ),
    "order": (lambda x: [*x.sort(1), *x.topk(2), x.argsort(0, descending=True), x.argmax(), x.max(1).indices], (3, 4)),
    "activations": (
        lambda x: [F.glu(x), F.softsign(x), F.tanhshrink(x), F.celu(x), F.selu(x), F.relu6(x), F.softmin(x, 0)],
        (4, 6),
    ),
    "einsum": (
        lambda x: torch.einsum("bhid,bhjd->bhij", x, x) + torch.tensordot(x, x, ([3], [3]))[:, :, :, 0, 0, :],
        (1, 1, 3, 4),
    ),
}


@pytest.mark.parametrize("name", PARTS)
def test_composites_without_entry_are_their_parts(name):
    function, shape = PARTS[name]
    torch.manual_seed(0)
    agree(exported(function, torch.randn(shape)), function, torch.randn(shape))


def test_constants_are_computed():
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4))
    kinds = lambda **o: [n.op_type for n in torch.onnx.export(model, (images(1),), **o).model_proto.graph.node]
    assert kinds() == ["Conv", "Mul", "Add"]
    assert "Sqrt" in kinds(do_constant_folding=False) and "Sqrt" in kinds(optimize=False)


def test_batch_statistics_of_training_leave_the_model_as_it_was():
    model, x = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4)), torch.randn(5, 3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    program = torch.onnx.export(model, (x,), training=torch.onnx.TrainingMode.TRAINING)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    agree(program, model, x)


# -- inputs and outputs -----------------------------------------------------------------------------------------------
class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 3))

    def forward(self, x, pair, scale=2.0, *, mask=None):
        x = x * scale + pair[0] @ self.weight - pair[1]
        return {"first": x if mask is None else x.masked_fill(mask, 0.0), "second": (x.sum(0), x)}


def names(values):
    return [value.name for value in values]


def test_names_of_inputs_and_outputs():
    model, x = Several(), torch.randn(2, 3)
    args, kwargs = (x, [x + 1, x + 2]), {"mask": x > 0}
    graph = torch.onnx.export(model, args, kwargs=kwargs).model_proto.graph
    assert names(graph.input) == ["x", "pair_0", "pair_1", "mask"]
    assert names(graph.output) == ["output_0", "output_1", "output_2"] and "weight" in names(graph.initializer)
    program = torch.onnx.export(model, args, kwargs=kwargs, input_names=["a", "b"], output_names=["y"])
    assert names(program.model_proto.graph.input) == ["a", "b", "pair_1", "mask"]
    assert names(program.model_proto.graph.output) == ["y", "output_1", "output_2"]
    found = program(*args, **kwargs)
    wanted = model(*args, **kwargs)
    for a, b in zip(found, [wanted["first"], *wanted["second"]], strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-5)
    with pytest.raises(torch.onnx.OnnxExporterError, match="takes 4 tensors"):
        program(x)


def test_functions_and_outputs_that_are_inputs_or_constants():
    def function(x):
        return x, x + 1, torch.arange(3), x

    program = torch.onnx.export(function, torch.ones(3))
    agree(program, function, torch.zeros(3))


def test_changes_in_place():
    def function(x):
        y = x * 2
        y[:, 0] = 1
        y[1:].add_(y[:1])
        y.view(-1)[2:4] *= 3
        return y.relu_()

    x = torch.randn(3, 4)
    before = x.clone()
    program = torch.onnx.export(function, x)
    assert torch.equal(x, before)
    agree(program, function, torch.randn(3, 4))


def test_mixed_dtypes_are_cast():
    def function(x, i):
        return x + i, i / 2, x.double() * i, i.float().mean(), (x > 0) & (i > 1), torch.where(x > i, x, 0.5)

    program = torch.onnx.export(function, (torch.randn(3), torch.arange(3)))
    agree(program, function, torch.randn(3), torch.arange(3) + 1)


# -- dynamic axes -----------------------------------------------------------------------------------------------------
def exported(function, *inputs, **options):
    return torch.onnx.export(function, inputs, **options)


@pytest.mark.parametrize(
    ("function", "sizes"),
    [
        (lambda x: x.reshape(x.shape[0] * x.shape[1], 4), ["batch*steps", 4]),
        (lambda x: torch.cat([x, x[:, :1]], 1), ["batch", "steps + 1", 4]),
        (lambda x: x.repeat(1, 2, 1).view(x.shape[0], -1), ["batch", "8*steps"]),
        (lambda x: x[:, x.shape[1] // 1 - 1], ["batch", 4]),
        (lambda x: x + torch.arange(x.shape[1])[:, None], ["batch", "steps", 4]),
        (lambda x: x.new_zeros(x.shape[0], 3).expand(2, -1, 3) + 1, [2, "batch", 3]),
        (lambda x: x.transpose(0, 1).flatten(1), ["steps", "4*batch"]),
        (lambda x: x.mean((0, 1)), [4]),
        (lambda x: x.sum(0) / len(x) + 2 * x.shape[1], ["steps", 4]),
        (lambda x: torch.einsum("bsd,btd->bst", x, x), ["batch", "steps", "steps"]),
    ],
)
def test_sizes_follow_the_inputs(function, sizes):
    program = exported(function, torch.randn(2, 3, 4), dynamic_axes={"x": BOTH})
    shape = program.model_proto.graph.output[0].type.tensor_type.shape.dim
    assert [d.dim_param or d.dim_value for d in shape] == sizes
    agree(program, function, torch.randn(2, 3, 4))
    agree(program, function, torch.randn(5, 9, 4))


def test_forms_of_dynamic_axes():
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    add = lambda x, y: x + y
    shared = {0: "n"}
    for options in (
        {"dynamic_axes": {"x": shared, "y": shared, "out": shared}, "output_names": ["out"]},
        {"dynamic_shapes": {"x": shared, "y": shared}},
        {"dynamic_shapes": (shared, ("n", None))},
        {"dynamic_shapes": ({0: torch.export.Dim("n"), 1: torch.export.Dim.STATIC}, {0: torch.export.Dim("n", max=9)})},
    ):
        program = exported(add, x, y, **options)
        assert program.model_proto.graph.output[0].type.tensor_type.shape.dim[0].dim_param == "n"
        agree(program, add, torch.randn(6, 3), torch.randn(6, 3))
    program = exported(lambda x: x.exp(), x, dynamic_shapes={"x": {0: torch.export.Dim.AUTO, 1: None}})
    sizes = program.model_proto.graph.output[0].type.tensor_type.shape.dim
    assert [size.dim_param or size.dim_value for size in sizes] == ["x_dim_0", 3]
    program = exported(torch.exp, x, dynamic_axes={"input_0": [1]}, input_names=["input_0"])
    assert program.model_proto.graph.input[0].type.tensor_type.shape.dim[1].dim_param == "input_0_dim_1"


def _by_size(x):
    return x.exp() if len(x) > 5 else x.log()


@pytest.mark.parametrize(
    ("function", "options", "reason"),
    [
        (_by_size, {"dynamic_axes": {"x": [0]}}, "log in one is exp in the other"),
        (nn.Flatten(0), {"dynamic_axes": {"y": [0]}}, "no input is called 'y': there are input"),
        (lambda x: x * torch.tensor([1.0] * len(x)), {"dynamic_axes": {"x": [0]}}, "constant float32"),
        (lambda x: x.reshape(2, 2), {"dynamic_axes": {"x": [0]}}, "does not take other sizes"),
        (lambda x: x[: len(x) ** 2 // 5] * 1, {"dynamic_axes": {"x": [0]}}, "no product of their sizes: 3 in one run"),
        (torch.exp, {"dynamic_axes": {"x": [1]}, "input_names": ["x"]}, "of 1 dimensions has no axis 1"),
        (torch.exp, {"opset_version": 9}, "opset_version=9: 18 to 23"),
        (torch.exp, {"input_names": ["a", "b"]}, "2 input_names for 1 inputs"),
        (lambda x: (x, x + 1), {"output_names": ["a", "a"]}, "names of their own"),
        (torch.exp, {"custom_opsets": {"mine": 1}}, "custom_opsets=.* is not done here"),
        (lambda x: 3, {}, "outputs are tensors"),
        (lambda x: None, {}, "returned no tensor"),
        (nn.AdaptiveMaxPool1d(3), {}, None),
    ],
)
def test_refused(function, options, reason):
    x = torch.tensor([0.5, 1.0, 2.0, 3.0])
    if reason is None:
        x, reason = x.reshape(1, 1, 4), r"adaptive_max_pool at .*differ in size"
    with pytest.raises(torch.onnx.OnnxExporterError, match=reason):
        exported(function, x, **options)
    assert not torch.onnx.is_in_onnx_export()


def test_elements_that_the_model_takes_are_warned_of():
    for function in (
        lambda x: x + x.sum().item(),
        lambda x: x.exp() if x.sum() > 0 else x,
        lambda x: x * len(x.tolist()),
    ):
        line = function.__code__.co_firstlineno
        with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match=f"elements of .* at .*test_onnx.py:{line}, in"):
            exported(function, torch.ones(3))
    exported(lambda x: x * torch.arange(3).sum().item(), torch.ones(3))


def test_an_op_without_entry_names_itself_and_the_line():
    def function(x):
        return x.lgamma()  # the line

    line = function.__code__.co_firstlineno + 1
    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match=rf"lgamma at .*test_onnx.py:{line}, in"):
        exported(function, torch.ones(2))
    dropout = nn.Dropout()
    with pytest.raises(torch.onnx.OnnxExporterError, match=r"bernoulli_at at .*has no entry"):
        exported(dropout, torch.ones(2), training=torch.onnx.TrainingMode.PRESERVE)
    with pytest.raises(TypeError, match="unexpected keyword argument 'opset'"):
        exported(dropout, torch.ones(2), opset=17)


@pytest.mark.parametrize("missing", ["onnx", "onnxruntime"])
def test_packages_that_are_missing(missing, monkeypatch):
    program = exported(torch.exp, torch.ones(2))
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=f"package '{missing}': install it with pip install {missing}"):
        exported(torch.exp, torch.ones(2))
        program(torch.ones(2))


# -- files ------------------------------------------------------------------------------------------------------------
def test_files(tmp_path):
    model, x = nn.Linear(40, 30), torch.randn(2, 40)
    path, file = tmp_path / "model.onnx", io.BytesIO()
    program = torch.onnx.export(model, (x,), path, verify=True)
    torch.onnx.export(model, (x,), file)
    assert os.listdir(tmp_path) == ["model.onnx"] and path.read_bytes() == file.getvalue()
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"input": x.numpy()})[0], model(x).detach().numpy(), atol=1e-5)
    before = path.read_bytes()
    with pytest.raises(torch.onnx.OnnxExporterError):
        torch.onnx.export(nn.Flatten(), (x,), path, opset_version=1)
    assert path.read_bytes() == before
    program.save(path, external_data=True)
    assert sorted(os.listdir(tmp_path)) == ["model.onnx", "model.onnx.data"]
    assert path.stat().st_size < 1000 and (tmp_path / "model.onnx.data").stat().st_size == 4 * 40 * 30
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"input": x.numpy()})[0], model(x).detach().numpy(), atol=1e-5)
    with pytest.raises(torch.onnx.OnnxExporterError, match="needs a path"):
        program.save(io.BytesIO(), external_data=True)


def test_parameters_as_inputs(tmp_path):
    model, x = nn.Linear(3, 2), torch.randn(2, 3)
    bare = torch.onnx.export(model, (x,), export_params=False).model_proto.graph
    assert names(bare.input) == ["input", "weight", "bias"] and not bare.initializer
    path = tmp_path / "model.onnx"
    torch.onnx.export(model, (x,), path, keep_initializers_as_inputs=True)
    graph = onnx.load(path).graph
    assert names(graph.input) == ["input", "weight", "bias"] and names(graph.initializer) == ["weight", "bias"]


def test_modes_of_modules_come_back():
    model = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout()))
    model[1].eval()
    with (
        pytest.raises(ZeroDivisionError),
        torch.onnx.select_model_mode_for_export(model, torch.onnx.TrainingMode.TRAINING),
    ):
        assert model[1][0].training
        1 / 0
    assert [m.training for m in model.modules()] == [True, True, False, False]
