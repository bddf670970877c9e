"""Weights that are computed from others: parametrizations, pruning, functional calls; PyTorch's names and values."""

import copy
import importlib

import numpy as np
import pytest

import corefw
from corefw import nn
from corefw.nn.utils import parametrizations, parametrize, prune, stateless
from tests.parity import import_torch


class Doubled(nn.Module):
    def forward(self, x):
        return x * 2

    def right_inverse(self, x):
        return x / 2


def test_a_parametrization_and_back():
    layer = nn.Linear(3, 2)
    before, original = layer.weight.detach().clone(), layer.weight
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert corefw.equal(layer.weight, before) and layer.parametrizations.weight.original is original
    assert type(layer).__name__ == "ParametrizedLinear" and isinstance(layer, nn.Linear)
    assert list(layer.state_dict()) == ["bias", "parametrizations.weight.original"]
    layer(corefw.ones(1, 3)).sum().backward()
    assert corefw.equal(original.grad, corefw.full((2, 3), 2.0))
    layer.weight = corefw.ones(2, 3)
    assert corefw.equal(original.detach(), corefw.full((2, 3), 0.5))
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert corefw.equal(layer.weight.detach(), corefw.full((2, 3), 2.0))
    assert parametrize.is_parametrized(copy.deepcopy(layer), "weight")
    parametrize.remove_parametrizations(layer, "weight")
    assert type(layer) is nn.Linear and layer.weight is original and layer.weight[0, 0].item() == 2


def test_cached_computes_once():
    layer = parametrize.register_parametrization(nn.Linear(3, 2), "bias", Doubled())
    assert layer.bias is not layer.bias
    with parametrize.cached():
        assert layer.bias is layer.bias
    assert layer.bias is not layer.bias


class Narrower(nn.Module):
    def forward(self, x):
        return x[:1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda m: parametrize.register_parametrization(m, "weights", Doubled()),
            ValueError,
            "does not have a parameter",
        ),
        (lambda m: parametrize.register_parametrization(m, "weight", Narrower()), ValueError, "may not change"),
        (lambda m: parametrize.remove_parametrizations(m, "weight"), ValueError, "does not have a parametrization"),
        (lambda m: parametrizations.orthogonal(m, "bias"), ValueError, "Expected a matrix"),
        (lambda m: parametrizations.orthogonal(m, orthogonal_map="qr"), ValueError, "has to be one of"),
        (lambda m: parametrizations.spectral_norm(m, n_power_iterations=0), ValueError, "to be positive"),
        (lambda m: nn.utils.remove_weight_norm(m), ValueError, "weight_norm of 'weight' not found"),
        (lambda m: prune.remove(m, "weight"), ValueError, "has to be pruned"),
        (lambda m: prune.l1_unstructured(m, "weight", 1.5), ValueError, "range"),
        (lambda m: prune.l1_unstructured(m, "weight", 7), ValueError, "smaller than the number"),
        (lambda m: prune.random_structured(m, "bias", 1, 0), ValueError, "multidimensional"),
        (lambda m: stateless.functional_call(m, {"weight": m.weight}, strict=True), RuntimeError, "Missing key"),
        (lambda m: nn.utils.skip_init(nn.ReLU), RuntimeError, "'device' arg"),
    ],
)
def test_misuse_is_refused(call, error, text):
    with pytest.raises(error, match=text):
        call(nn.Linear(3, 2))


def pair(make):
    """A layer here and there, with the same state, and an input."""
    torch = import_torch()
    importlib.import_module("torch.nn.utils.prune")
    torch.manual_seed(0)
    ours, theirs = make(corefw), make(torch)
    ours.load_state_dict({k: corefw.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x = np.random.default_rng(0).standard_normal((4, 3)).astype("f4")
    return ours, theirs, corefw.tensor(x), torch.tensor(x)


REPARAMETRIZED = {
    "weight norm": lambda m: m.nn.utils.parametrizations.weight_norm(m.nn.Linear(3, 2)),
    "one length": lambda m: m.nn.utils.parametrizations.weight_norm(m.nn.Linear(3, 2), dim=None),
    "spectral norm": lambda m: m.nn.utils.parametrizations.spectral_norm(m.nn.Linear(3, 2), n_power_iterations=2),
    "weight norm by a hook": lambda m: m.nn.utils.weight_norm(m.nn.Linear(3, 2)),
    "spectral norm by a hook": lambda m: m.nn.utils.spectral_norm(m.nn.Linear(3, 2)),
    "orthogonal": lambda m: m.nn.utils.parametrizations.orthogonal(m.nn.Linear(3, 2)),
    "cayley": lambda m: m.nn.utils.parametrizations.orthogonal(m.nn.Linear(3, 3), orthogonal_map="cayley"),
    "exponential": lambda m: m.nn.utils.parametrizations.orthogonal(m.nn.Linear(3, 3), use_trivialization=False),
    "pruned": lambda m: m.nn.utils.prune.l1_unstructured(m.nn.Linear(3, 2), "weight", 2),
}


@pytest.mark.parametrize("name", REPARAMETRIZED)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_layers_are_pytorchs(name):
    ours, theirs, x, y = pair(REPARAMETRIZED[name])
    assert repr(ours) == repr(theirs) and list(ours.state_dict()) == list(theirs.state_dict())
    for _ in range(2):
        a, b = ours(x), theirs(y)
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-6)
        a.square().sum().backward()
        b.square().sum().backward()
    for p, q in zip(ours.parameters(), theirs.parameters(), strict=True):
        np.testing.assert_allclose(p.grad.numpy(), q.grad.numpy(), rtol=1e-4, atol=1e-5)
    for key, value in theirs.state_dict().items():
        np.testing.assert_allclose(ours.state_dict()[key].numpy(), value.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(4, 4), (5, 3), (3, 5)])
@pytest.mark.parametrize("orthogonal_map", ["matrix_exp", "cayley", "householder"])
def test_orthogonal_weights_stay_so_and_begin_as_they_are(shape, orthogonal_map):
    layer = nn.Linear(*shape[::-1])
    corefw.nn.init.orthogonal_(layer.weight)
    before = layer.weight.detach().clone()
    parametrizations.orthogonal(layer, orthogonal_map=orthogonal_map)
    assert corefw.allclose(layer.weight, before, atol=1e-5)
    optimizer = corefw.optim.SGD(layer.parameters(), lr=0.3)
    for _ in range(3):
        optimizer.zero_grad()
        layer(corefw.ones(1, shape[1])).square().sum().backward()
        optimizer.step()
    W = layer.weight.detach()
    W = W if shape[0] >= shape[1] else W.mT
    assert corefw.allclose(W.mT @ W, corefw.eye(min(shape)), atol=1e-4) and not corefw.allclose(layer.weight, before)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_hooks_are_taken_away_again():
    layer = nn.Linear(3, 2)
    before = layer.weight.detach().clone()
    for put, remove in (
        (nn.utils.weight_norm, nn.utils.remove_weight_norm),
        (lambda m: prune.identity(m, "weight"), lambda m: prune.remove(m, "weight")),
    ):
        remove(put(layer))
        assert [name for name, _ in layer.named_parameters()] == ["bias", "weight"]
        assert corefw.allclose(layer.weight, before) and not layer._hooks.get("forward_pre")


def test_pruning_goes_on_with_what_is_left():
    layer = nn.Conv2d(2, 4, 3)
    prune.ln_structured(layer, "weight", amount=2, n=1, dim=0)
    gone = layer.weight_mask.sum((1, 2, 3)) == 0
    norms = layer.weight_orig.detach().abs().sum((1, 2, 3))
    assert int(gone.sum()) == 2 and norms[gone].max() <= norms[~gone].min()
    prune.l1_unstructured(layer, "weight", amount=5)
    assert int((layer.weight_mask == 0).sum()) == 2 * 18 + 5
    assert isinstance(next(iter(layer._pruning_hooks.values()))[0], prune.PruningContainer)
    layer(corefw.ones(1, 2, 3, 3)).sum().backward()
    assert not layer.weight_orig.grad[gone].any() and prune.is_pruned(nn.Sequential(layer))


def test_functional_call():
    torch = import_torch()
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    new, x = corefw.eye(2) * 3, corefw.ones(1, 2)
    before = tied[0].weight
    found = stateless.functional_call(tied, {"0.weight": new, "0.bias": corefw.zeros(2), "1.bias": corefw.zeros(2)}, x)
    assert found.tolist() == [[9, 9]] and tied[0].weight is before and tied[1].weight is before
    loose = stateless.functional_call(tied, {"0.weight": new}, (x,), tie_weights=False)
    assert not corefw.equal(loose, found)
    with pytest.raises(ValueError, match="tied"):
        stateless.functional_call(tied, {"0.weight": new, "1.weight": new * 2}, x)
    weight = corefw.ones(2, 2, requires_grad=True)
    stateless.functional_call(tied, {"0.weight": weight}, x).sum().backward()
    assert weight.grad is not None and before.grad is None
    assert torch.func.functional_call is not None


def test_skip_init_draws_nothing():
    state = corefw.get_rng_state()
    layer = nn.utils.skip_init(nn.Linear, 3, 2, dtype=corefw.float64)
    assert layer.weight.dtype is corefw.float64 and layer.weight.device.type == "cpu"
    assert corefw.equal(corefw.get_rng_state(), state)


# -- pruning ----------------------------------------------------------------------------------------------------------
WEIGHT = [[1.0, -6.0, 3.0], [-2.0, 5.0, 4.0]]


def pruned_layer():
    layer = nn.Linear(3, 2)
    layer.weight.data.copy_(corefw.tensor(WEIGHT))
    return layer


@pytest.mark.parametrize(
    ("method", "options", "mask"),
    [
        (prune.L1Unstructured, {"amount": 3}, [[0, 1, 0], [0, 1, 1]]),
        (prune.L1Unstructured, {"amount": 0.5}, [[0, 1, 0], [0, 1, 1]]),
        (prune.LnStructured, {"amount": 1, "n": 1, "dim": 0}, [[0, 0, 0], [1, 1, 1]]),
        (prune.LnStructured, {"amount": 1, "n": 2, "dim": -1}, [[0, 1, 1], [0, 1, 1]]),
        (prune.LnStructured, {"amount": 2, "n": float("inf"), "dim": 1}, [[0, 1, 0], [0, 1, 0]]),
        (prune.CustomFromMask, {"mask": corefw.tensor([[1, 0, 1], [0, 1, 1]])}, [[1, 0, 1], [0, 1, 1]]),
    ],
)
def test_pruning_methods(method, options, mask):
    """As a method of pruning is used: on a module, and on a tensor alone."""
    layer = pruned_layer()
    method.apply(layer, "weight", **options)
    assert issubclass(method, prune.BasePruningMethod)
    assert layer.weight_mask.tolist() == mask
    assert layer.weight.tolist() == (np.array(WEIGHT) * mask).tolist() and layer.weight_orig.tolist() == WEIGHT
    assert method(**options).prune(corefw.tensor(WEIGHT)).tolist() == layer.weight.tolist()


@pytest.mark.parametrize(
    ("method", "options", "whole"),
    [
        (prune.RandomUnstructured, {"amount": 4}, None),
        (prune.RandomStructured, {"amount": 2, "dim": 1}, 0),
        (prune.RandomStructured, {"amount": 1, "dim": 0}, 1),
    ],
)
def test_random_pruning(method, options, whole):
    corefw.manual_seed(0)
    seen = set()
    for _ in range(20):
        layer = pruned_layer()
        method.apply(layer, "weight", **options)
        mask = layer.weight_mask.numpy()
        if whole is None:
            assert mask.sum() == 6 - options["amount"]
        else:
            kept = mask.any(axis=whole)
            assert (mask == np.expand_dims(kept, whole)).all() and (~kept).sum() == options["amount"]
        seen.add(mask.tobytes())
    assert len(seen) > 1


def test_pruning_functions():
    layer = prune.random_unstructured(pruned_layer(), "weight", amount=2)
    assert (layer.weight_mask == 0).sum() == 2
    mask = corefw.tensor([[1, 0, 1], [0, 1, 1]])
    layer = prune.custom_from_mask(pruned_layer(), "weight", mask)
    assert layer.weight.tolist() == [[1, 0, 3], [0, 5, 4]]
    prune.remove(layer, "weight")
    assert layer.weight.tolist() == [[1, 0, 3], [0, 5, 4]] and not prune.is_pruned(layer)


def test_pruning_several_tensors_together():
    """The smallest elements of all are taken away, wherever they are; scores may say otherwise."""
    first, second = pruned_layer(), pruned_layer()
    second.weight.data.mul_(10)
    prune.global_unstructured([(first, "weight"), (second, "weight")], prune.L1Unstructured, amount=7)
    assert first.weight_mask.tolist() == [[0, 0, 0], [0, 0, 0]]
    assert second.weight_mask.tolist() == [
        [0, 1, 1],
        [1, 1, 1],
    ]
    first, second = pruned_layer(), pruned_layer()
    prune.global_unstructured(
        [(first, "weight"), (second, "weight")],
        pruning_method=prune.L1Unstructured,
        importance_scores={(first, "weight"): corefw.ones(2, 3)},
        amount=1,
    )
    assert first.weight_mask.min() == 0 or second.weight_mask.tolist()[0][0] == 0
    with pytest.raises(TypeError, match="unstructured"):
        prune.global_unstructured([(first, "weight")], prune.LnStructured, amount=1, n=1)


def test_pruning_is_pytorchs():
    theirs = import_torch()
    for name, options in (
        ("L1Unstructured", {"amount": 0.4}),
        ("LnStructured", {"amount": 0.5, "n": 2, "dim": 0}),
        ("LnStructured", {"amount": 1, "n": "fro", "dim": 1}),
    ):
        ours = getattr(prune, name)(**options).prune(corefw.tensor(WEIGHT))
        other = getattr(importlib.import_module("torch.nn.utils.prune"), name)(**options).prune(theirs.tensor(WEIGHT))
        assert ours.tolist() == other.tolist(), name


# -- parametrizations -------------------------------------------------------------------------------------------------
def test_the_list_of_parametrizations():
    layer = nn.Linear(3, 2)
    parametrize.register_parametrization(layer, "weight", Doubled())
    parametrize.register_parametrization(layer, "weight", Doubled())
    chain = layer.parametrizations.weight
    assert isinstance(chain, parametrize.ParametrizationList) and len(chain) == 2
    assert corefw.equal(chain(), chain.original * 4) and corefw.equal(layer.weight, chain())
    chain.right_inverse(corefw.full((2, 3), 8.0))
    assert corefw.equal(chain.original, corefw.full((2, 3), 2.0))
    assert corefw.equal(layer.weight, corefw.full((2, 3), 8.0))
    alone = parametrize.ParametrizationList([Doubled()], nn.Parameter(corefw.ones(2)))
    assert alone().tolist() == [1.0, 1.0] and alone.original.tolist() == [0.5, 0.5]


def test_the_type_before_parametrizations():
    layer = nn.Linear(3, 2)
    assert parametrize.type_before_parametrizations(layer) is nn.Linear
    parametrize.register_parametrization(layer, "weight", Doubled())
    assert type(layer) is not nn.Linear and parametrize.type_before_parametrizations(layer) is nn.Linear


def test_parametrizations_moved_to_another_module():
    source, target = nn.Linear(3, 2), nn.Linear(3, 2)
    parametrize.register_parametrization(source, "weight", Doubled())
    assert parametrize.transfer_parametrizations_and_params(source, target) is target
    assert parametrize.is_parametrized(target, "weight") and corefw.equal(target.weight, source.weight)
    bare = nn.Linear(3, 2)
    parametrize.transfer_parametrizations_and_params(source, bare, "weight")
    assert parametrize.is_parametrized(bare, "weight") and not parametrize.is_parametrized(bare, "bias")


def test_spectral_norm_taken_away():
    layer = nn.utils.spectral_norm(nn.Linear(3, 2))
    x = corefw.ones(1, 3)
    expected = layer.eval()(x)
    assert nn.utils.remove_spectral_norm(layer) is layer
    assert "weight_orig" not in dict(layer.named_parameters()) and corefw.allclose(layer(x), expected)
    with pytest.raises(ValueError, match="spectral_norm"):
        nn.utils.remove_spectral_norm(layer)
