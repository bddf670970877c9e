"""Linear layers with weights of int8: against the same rounding in float64, PyTorch's, and what is refused."""

import io

import numpy as np
import pytest

import corefw as torch
from corefw.ao.quantization import default_dynamic_qconfig, per_channel_dynamic_qconfig, quantize_dynamic
from corefw.dispatch.registry import registry
from tests.parity import import_torch

nn = torch.nn
torch.zeros(1)
BACKENDS = [name for name in registry.backends if name.partition("-")[0] in ("c", "numpy")]


def f64(tensor):
    return tensor.detach().double().numpy()


def steps_of(x):
    """What eight bits make of an input: its steps as numbers, and how large they are."""
    low, high = np.float32(min(x.min(), 0)), np.float32(max(x.max(), 0))
    step = (high - low) / np.float32(255)
    zero = np.rint(-low / step)
    return (np.clip(np.rint(x / step) + zero, 0, 255) - zero).astype(float) * float(step), float(step)


@pytest.mark.parametrize("backend_name", BACKENDS)
@pytest.mark.parametrize("configuration", [default_dynamic_qconfig, per_channel_dynamic_qconfig])
@pytest.mark.parametrize(("rows", "bias"), [((1,), True), ((7,), False), ((2, 33), True)])
@pytest.mark.parametrize(("wide", "narrow"), [(70, 50), (1100, 130)])
def test_results_are_the_products_of_what_was_rounded(backend_name, configuration, rows, bias, wide, narrow):
    with torch.backend(backend_name):
        model = nn.Sequential(nn.Linear(wide, narrow, bias=bias))
        x = torch.randn(*rows, wide) + 0.5
        layer = quantize_dynamic(model, {nn.Linear: configuration})[0]
        result = layer(x)
    weight, (rounded, step) = f64(layer.weight()), steps_of(x.numpy())
    added = 0 if layer.bias() is None else f64(layer.bias())
    np.testing.assert_allclose(f64(result), rounded @ weight.T + added, rtol=1e-5, atol=1e-5)
    scale = f64(layer._packed_params.scale)
    assert np.abs(weight - f64(model[0].weight)).max() <= 0.5001 * scale.max()
    bound = step / 2 * np.abs(weight).sum(1) + np.abs(f64(x)).sum(-1, keepdims=True) * scale.max() / 2
    assert (np.abs(f64(result) - f64(model(x))) <= bound + 1e-5).all()


def test_layers_show_themselves_as_pytorchs():
    model = nn.Sequential(nn.Linear(8, 4), nn.ReLU(), nn.Sequential(nn.Linear(4, 3, bias=False)))
    quantized = quantize_dynamic(model, {nn.Linear: per_channel_dynamic_qconfig}, dtype=torch.qint8)
    first, second = (
        f"DynamicQuantizedLinear(in_features={wide}, out_features={narrow}, dtype=torch.qint8, "
        "qscheme=torch.per_channel_affine)"
        for wide, narrow in ((8, 4), (4, 3))
    )
    assert repr(quantized) == (
        f"Sequential(\n  (0): {first}\n  (1): ReLU()\n  (2): Sequential(\n    (0): {second}\n  )\n)"
    )
    assert type(model[0]) is nn.Linear and model.training and not quantized.training
    assert not list(quantized.parameters())
    assert not quantized(torch.randn(2, 8, requires_grad=True)).requires_grad
    assert quantize_dynamic(model, inplace=True) is model and type(model[2][0]) is type(quantized[0])


def test_states_are_saved_and_loaded():
    first, second = (quantize_dynamic(nn.Sequential(nn.Linear(6, 5)), {nn.Linear}) for _ in range(2))
    x = torch.randn(3, 6)
    names = ["0._packed_params.weight", "0._packed_params.scale", "0._packed_params.bias"]
    assert list(first.state_dict()) == names and first.state_dict()[names[0]].dtype is torch.int8
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file))
    assert second(x).tolist() == first(x).tolist()
    file = io.BytesIO()
    torch.save(first, file)
    file.seek(0)
    assert torch.load(file, weights_only=False)(x).tolist() == first(x).tolist()


def test_layers_are_chosen_by_class_and_by_name():
    def kinds(spec):
        model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)))
        found = quantize_dynamic(model, spec)
        return [type(layer) is not nn.Linear for layer in (found[0], found[1][0], found[1][1])]

    assert kinds(None) == kinds({nn.Linear}) == [True, True, True]
    assert kinds({"0"}) == [True, False, False] and kinds({"1"}) == [False, True, True]
    assert kinds({nn.Linear: default_dynamic_qconfig, "1.0": None}) == [True, False, True]
    lone = nn.Linear(2, 2)
    assert type(quantize_dynamic(lone)) is nn.Linear


def test_attention_keeps_the_weights_it_multiplies_by_itself():
    model = quantize_dynamic(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), {nn.Linear})
    assert type(model.linear1) is not nn.Linear and type(model.self_attn.out_proj) is nn.Linear
    assert model(torch.randn(3, 2, 8)).shape == (3, 2, 8)


def test_what_is_refused():
    model = nn.Sequential(nn.Linear(2, 2), nn.LSTM(2, 2))
    with pytest.raises(NotImplementedError, match="'1' is LSTM"):
        quantize_dynamic(model)
    assert type(quantize_dynamic(model, {nn.Linear})[1]) is nn.LSTM
    with pytest.raises(NotImplementedError, match="no Conv2d with weights of int8"):
        quantize_dynamic(model, {nn.Conv2d})
    with pytest.raises(NotImplementedError, match=r"model\.half"):
        quantize_dynamic(model, {nn.Linear}, dtype=torch.float16)
    with pytest.raises(RuntimeError, match=r"Unknown dtype specified for quantize_dynamic: torch\.int8"):
        quantize_dynamic(model, {nn.Linear}, dtype=torch.int8)
    with pytest.raises(NotImplementedError, match="observers of other kinds"):
        quantize_dynamic(model, {nn.Linear: "mine"})
    with pytest.raises(NotImplementedError, match="mapping"):
        quantize_dynamic(model, {nn.Linear}, mapping={})
    with pytest.raises(TypeError, match="float32"):
        quantize_dynamic(nn.Sequential(nn.Linear(2, 2)).double())
    with pytest.raises(RuntimeError, match="expected float32, int8"):
        quantize_dynamic(nn.Sequential(nn.Linear(2, 2)))(torch.zeros(1, 2, dtype=torch.float64))
    with pytest.raises(ValueError, match="quantized_linear"):
        quantize_dynamic(nn.Sequential(nn.Linear(2, 2)))(torch.zeros(1, 3))
    assert torch.quantization.quantize_dynamic is quantize_dynamic


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("per_channel", [False, True])
def test_weights_are_pytorchs_and_results_within_its_step(per_channel):
    reference = import_torch()
    ours, theirs = nn.Sequential(nn.Linear(40, 30)), reference.nn.Sequential(reference.nn.Linear(40, 30))
    ours.load_state_dict({name: torch.from_numpy(x.numpy()) for name, x in theirs.state_dict().items()})
    name = "per_channel_dynamic_qconfig" if per_channel else "default_dynamic_qconfig"
    configuration = getattr(reference.ao.quantization, name)
    quantized = reference.ao.quantization.quantize_dynamic(theirs, {reference.nn.Linear: configuration})
    layer = quantize_dynamic(ours, {nn.Linear: getattr(torch.ao.quantization, name)})[0]
    assert (layer._packed_params.weight.numpy() == quantized[0].weight().int_repr().numpy()).all()
    x = np.random.standard_normal((9, 40)).astype(np.float32)
    step = steps_of(x)[1] * 255 / 127  # PyTorch's, of seven bits
    error = np.abs(f64(layer(torch.from_numpy(x))) - quantized(reference.from_numpy(x)).numpy())
    assert (error <= step * np.abs(f64(layer.weight())).sum(1)).all()
    exact = f64(ours(torch.from_numpy(x)))
    theirs_error = np.abs(quantized(reference.from_numpy(x)).numpy() - exact).mean()
    assert np.abs(f64(layer(torch.from_numpy(x))) - exact).mean() < theirs_error
