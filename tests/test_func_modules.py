"""corefw.func: modules as functions of their tensors."""

import pytest

import corefw
from corefw import func, nn


def test_gradients_of_a_network_are_those_of_backward():
    corefw.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    x, y = corefw.randn(5, 4), corefw.tensor([0, 2, 1, 1, 0])
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters):
        return nn.functional.cross_entropy(func.functional_call(model, parameters, (x,)), y)

    found, value = func.grad_and_value(loss)(parameters)
    nn.functional.cross_entropy(model(x), y).backward()
    for name, parameter in model.named_parameters():
        corefw.testing.assert_close(found[name], parameter.grad)
        assert parameter.node is not None and not found[name].requires_grad
    along = {name: corefw.randn_like(p) for name, p in parameters.items()}
    _, slope = func.jvp(loss, (parameters,), (along,))
    corefw.testing.assert_close(slope, sum((found[name] * along[name]).sum() for name in along))
    assert not value.requires_grad


def test_functional_call_takes_several_dictionaries():
    layer, x = nn.Linear(1, 1), corefw.ones(1)
    two, one = {"weight": corefw.full((1, 1), 2.0)}, {"bias": corefw.ones(1)}
    assert func.functional_call(layer, (two, one), x).item() == 3
    assert func.functional_call(layer, [two], (x,)).item() == 2 + layer.bias.item()
    with pytest.raises(ValueError, match=r"\['weight'\] appeared in multiple dictionaries"):
        func.functional_call(layer, (two, two), x)
    with pytest.raises(ValueError, match="to be a dict, or a list/tuple of dicts, but got <class 'int'>"):
        func.functional_call(layer, 3, x)
    with pytest.raises(RuntimeError, match="Missing key"):
        func.functional_call(layer, two, x, strict=True)


def test_states_are_stacked():
    models = [nn.BatchNorm1d(2), nn.BatchNorm1d(2)]
    parameters, buffers = func.stack_module_state(models)
    assert parameters["weight"].shape == (2, 2) and parameters["weight"].is_leaf and parameters["weight"].requires_grad
    assert list(buffers) == ["running_mean", "running_var", "num_batches_tracked"]
    assert not buffers["running_var"].requires_grad
    assert parameters["bias"][1].tolist() == models[1].bias.tolist()


def test_states_that_cannot_be_stacked_are_refused():
    with pytest.raises(RuntimeError, match="Expected at least one model, got 0"):
        func.stack_module_state([])
    with pytest.raises(RuntimeError, match="same class"):
        func.stack_module_state([nn.Linear(1, 1), nn.ReLU()])
    with pytest.raises(RuntimeError, match="same training/eval mode"):
        func.stack_module_state([nn.Linear(1, 1), nn.Linear(1, 1).eval()])
    frozen = nn.Linear(1, 1)
    frozen.weight.requires_grad_(False)
    with pytest.raises(RuntimeError, match=r"Expected weight from each model to have the same \.requires_grad"):
        func.stack_module_state([frozen, nn.Linear(1, 1)])
    with pytest.raises(RuntimeError, match="equal size"):
        func.stack_module_state([nn.Linear(1, 1), nn.Linear(1, 2)])


def test_running_statistics_are_taken_away():
    model = nn.Sequential(
        nn.Conv2d(1, 2, 1), nn.Sequential(nn.BatchNorm2d(2)), nn.InstanceNorm2d(2, track_running_stats=True)
    )
    assert func.replace_all_batch_norm_modules_(model) is model
    norm = model[1][0]
    assert norm.running_mean is None and norm.running_var is None and norm.num_batches_tracked is None
    assert not norm.track_running_stats and model[2].running_mean is not None
    assert model.eval()(corefw.randn(3, 1, 2, 2)).shape == (3, 2, 2, 2)
