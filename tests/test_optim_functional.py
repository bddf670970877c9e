"""The steps of optimizers as functions, and hooks of all optimizers."""

import importlib

import numpy as np
import pytest

import corefw as torch
from corefw.optim import _functional as functional
from corefw.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

BETAS = {"beta1": 0.9, "beta2": 0.99}
#: by the function's name: the class, the states as its own and the class's, and the options
STEPS = {
    "adadelta": ("Adadelta", "square_avg acc_delta", {"lr": 0.5, "rho": 0.8, "eps": 1e-3, "weight_decay": 0.1}),
    "adagrad": ("Adagrad", "sum", {"lr": 0.1, "lr_decay": 0.1, "eps": 1e-8, "weight_decay": 0.1}),
    "adam": ("Adam", "exp_avg exp_avg_sq max_exp_avg_sq", {**BETAS, "lr": 0.1, "eps": 1e-8, "amsgrad": True}),
    "adamw": ("AdamW", "exp_avg exp_avg_sq max_exp_avg_sq", {**BETAS, "lr": 0.1, "eps": 1e-8, "amsgrad": False}),
    "adamax": ("Adamax", "exp_avg exp_inf", {**BETAS, "lr": 0.1, "eps": 1e-8, "weight_decay": 0.1}),
    "asgd": ("ASGD", "ax mu eta", {"lambd": 1e-2, "lr": 0.1, "t0": 1.0, "alpha": 0.7, "weight_decay": 0.1}),
    "nadam": ("NAdam", "exp_avg exp_avg_sq mu_product", {**BETAS, "lr": 0.1, "eps": 1e-8, "momentum_decay": 0.01}),
    "radam": ("RAdam", "exp_avg exp_avg_sq", {**BETAS, "lr": 0.1, "eps": 1e-8, "weight_decay": 0.1}),
    "rmsprop": (
        "RMSprop",
        "square_avg grad_avg momentum_buffer",
        {"lr": 0.1, "alpha": 0.9, "eps": 1e-8, "momentum": 0.5, "centered": True, "weight_decay": 0.0},
    ),
    "rprop": (
        "Rprop",
        "prev step_size",
        {"step_size_min": 1e-3, "step_size_max": 1.0, "etaminus": 0.5, "etaplus": 1.2},
    ),
    "sgd": (
        "SGD",
        "momentum_buffer",
        {"lr": 0.1, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1, "nesterov": False},
    ),
}


def of_class(options):
    """The options of a function as those of its class."""
    given = dict(options)
    for name, *parts in (("betas", "beta1", "beta2"), ("etas", "etaminus", "etaplus")):
        if parts[0] in given:
            given[name] = tuple(given.pop(part) for part in parts)
    if "step_size_min" in given:
        given["step_sizes"] = (given.pop("step_size_min"), given.pop("step_size_max"))
    return given


@pytest.mark.parametrize("maximize", [False, True])
@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_that_of_the_class(name, maximize):
    kind, states, options = STEPS[name]
    options = {**({"weight_decay": 0.1} if name in ("adam", "adamw", "nadam") else {}), **options}
    rng = np.random.default_rng(0)
    begin, grads = rng.normal(size=(2, 3)), rng.normal(size=(4, 2, 3))
    p = torch.tensor(begin, requires_grad=True)
    optimizer = getattr(torch.optim, kind)([p], maximize=maximize, **of_class(options))
    first = torch.tensor(begin)
    step = torch.tensor(0.0)
    begins = {"mu": torch.tensor(1.0), "eta": torch.tensor(options["lr"] if name == "asgd" else 0.0)}
    begins |= {"mu_product": torch.tensor(1.0), "step_size": torch.full((2, 3), 0.01, dtype=torch.float64)}
    lists = [[begins.get(state, torch.zeros(2, 3, dtype=torch.float64))] for state in states.split()]
    if name == "sgd":
        lists = [[None]]
    counts = [] if name == "sgd" else [[step]]
    function = getattr(importlib.import_module(f"corefw.optim.{name}"), name)
    assert function is getattr(functional, name)
    for gradient in grads:
        p.grad = torch.tensor(gradient)
        optimizer.step()
        function([first], [torch.tensor(gradient)], *lists, *counts, maximize=maximize, **options)
    np.testing.assert_allclose(first.numpy(), p.detach().numpy(), rtol=1e-12)
    for state, (found,) in zip(states.split(), lists):
        if state in optimizer.state[p]:
            np.testing.assert_allclose(found.numpy(), optimizer.state[p][state].numpy(), rtol=1e-6)
    assert name == "sgd" or step.item() == 4


@pytest.mark.parametrize("name", [*STEPS, "sparse_adam"])
def test_signatures_are_pytorchs(name):
    oracle = pytest.importorskip("torch.optim._functional")
    from inspect import signature

    ours, theirs = (signature(getattr(module, name)).parameters for module in (functional, oracle))
    if name == "adamw":
        ours = [parameter for parameter in ours if parameter != "options"]
        theirs = [parameter for parameter in theirs if theirs[parameter].kind is not theirs[parameter].KEYWORD_ONLY]
    assert [*ours][: len([*theirs])] == [*theirs]


def test_sparse_rows():
    table = torch.zeros(3, 2)
    gradient = torch.sparse_coo_tensor([[1, 1]], torch.ones(2, 2), (3, 2))
    mean, square = torch.zeros(3, 2), torch.zeros(3, 2)
    functional.sparse_adam([table], [gradient], [mean], [square], [1], eps=1e-8, lr=0.1, maximize=False, **BETAS)
    torch.testing.assert_close(table, torch.tensor([[0.0, 0.0], [-0.1, -0.1], [0.0, 0.0]]))
    torch.testing.assert_close(mean[1], torch.tensor([0.2, 0.2]))


def test_functions_refuse():
    p, options = torch.ones(2), {**BETAS, "lr": 0.1, "eps": 1e-8, "weight_decay": 0, "amsgrad": False}
    lists = [p], [torch.ones(2)], [torch.zeros(2)], [torch.zeros(2)], []
    with pytest.raises(RuntimeError, match="API has changed, `state_steps` argument must contain a list of singleton"):
        functional.adam(*lists, [1], maximize=False, **options)
    with pytest.raises(NotImplementedError, match="adam: a step neither has a gradient nor unscales"):
        functional.adam(*lists, [torch.tensor(0.0)], differentiable=True, maximize=False, **options)


def test_hooks_of_all_optimizers():
    seen = []
    p = torch.ones(2, requires_grad=True)
    first, second = torch.optim.SGD([p], lr=0.1), torch.optim.Adam([p])
    own = first.register_step_pre_hook(lambda *_: seen.append("own pre"))
    first.register_step_post_hook(lambda *_: seen.append("own post"))
    before = register_optimizer_step_pre_hook(lambda optimizer, args, kwargs: seen.append(("pre", optimizer)))
    after = register_optimizer_step_post_hook(lambda optimizer, args, kwargs: seen.append(("post", optimizer)))
    try:
        first.step()
        second.step()
    finally:
        before.remove()
        after.remove()
    assert seen == [("pre", first), "own pre", "own post", ("post", first), ("pre", second), ("post", second)]
    seen.clear()
    own.remove()
    first.step()
    assert seen == ["own post"]
    with register_optimizer_step_pre_hook(lambda *_: ((), {"closure": lambda: 5})):
        assert second.step() == 5
    assert second.step() is None
