"""Optimizers: PyTorch's arithmetic step by step, groups, state, misuse."""

import numpy as np
import pytest

import corefw as torch
from corefw import nn
from tests.optimizers import FORMULAS, gradients, states_in

OPTIONS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.05}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {"lr": 0.05}),
    ("Adam", {"lr": 0.05, "weight_decay": 0.1, "betas": (0.8, 0.9), "eps": 1e-3}),
    ("Adam", {"lr": 0.05, "amsgrad": True, "maximize": True}),
    ("AdamW", {"lr": 0.05, "weight_decay": 0.2}),
    ("Adadelta", {"lr": 1.0}),
    ("Adadelta", {"lr": 0.5, "rho": 0.7, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.2, "weight_decay": 0.1, "initial_accumulator_value": 0.3, "eps": 1e-3}),
    ("Adagrad", {"lr": 0.1, "maximize": True, "foreach": True}),
    ("Adamax", {"lr": 0.05}),
    ("Adamax", {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {"lr": 0.05}),
    ("NAdam", {"lr": 0.05, "betas": (0.8, 0.9), "weight_decay": 0.1, "momentum_decay": 0.05, "maximize": True}),
    ("NAdam", {"lr": 0.05, "weight_decay": 0.2, "decoupled_weight_decay": True}),
    ("RAdam", {"lr": 0.05}),
    ("RAdam", {"lr": 0.05, "betas": (0.8, 0.9), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"lr": 0.05, "weight_decay": 0.2, "decoupled_weight_decay": True}),
    ("RMSprop", {"lr": 0.05}),
    ("RMSprop", {"lr": 0.05, "alpha": 0.8, "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"lr": 0.05, "centered": True}),
    ("RMSprop", {"lr": 0.05, "centered": True, "momentum": 0.9, "eps": 1e-2}),
    ("Rprop", {"lr": 0.05}),
    ("Rprop", {"lr": 0.05, "etas": (0.3, 1.5), "step_sizes": (0.03, 0.1), "maximize": True}),
    ("ASGD", {"lr": 0.1}),
    ("ASGD", {"lr": 0.1, "lambd": 0.5, "alpha": 0.6, "t0": 3, "weight_decay": 0.1, "maximize": True}),
]


COMPOSED = ("Rprop", "ASGD")  # of ops, not one of their own
IN_SINGLE_PRECISION = ("NAdam", "ASGD")  # as in PyTorch: the product of its decay rates, its learning rate


def reference_step(name, options, params, grads, state):
    """The papers' formulas in plain NumPy, in float64."""
    options = {key: value for key, value in options.items() if key != "foreach"}
    sign = -1 if options.pop("maximize", False) else 1
    decay = options.pop("weight_decay", 0.01 if name == "AdamW" else 0)
    decoupled = options.pop("decoupled_weight_decay", name == "AdamW")
    for i, (p, g) in enumerate(zip(params, grads, strict=True)):
        start = p * (1 - options["lr"] * decay) if decoupled else p
        descent = sign * g if decoupled else sign * g + decay * p
        p[...] = FORMULAS[name](start, descent, state.setdefault(i, {}), **options)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_arithmetic(name, options, dtype):
    rng = np.random.default_rng(0)
    shapes = [(3, 4), (5,), ()]
    start = [rng.standard_normal(s) for s in shapes]
    ours = [nn.Parameter(torch.tensor(a, dtype=dtype)) for a in start]
    wanted = [np.array(a) for a in start]
    optimizer, state = getattr(torch.optim, name)(ours, **options), {}
    for grads in gradients(rng, shapes):
        for p, g in zip(ours, grads, strict=True):
            p.grad = torch.tensor(g, dtype=dtype)
        optimizer.step()
        reference_step(name, options, wanted, grads, state)
    tolerance = (1e-7 if name in IN_SINGLE_PRECISION else 1e-12) if dtype is torch.float64 else 2e-6
    for p, w in zip(ours, wanted, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), w, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(("name", "options"), OPTIONS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_equals_pytorch_and_shares_its_state(name, options, dtype):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    rng = np.random.default_rng(1)
    start = [rng.standard_normal(s).astype(dtype) for s in [(3, 4), (5,)]]
    ours = [nn.Parameter(torch.tensor(a)) for a in start]
    theirs = [oracle.nn.Parameter(oracle.tensor(a)) for a in start]
    a, b = getattr(torch.optim, name)(ours, **options), getattr(oracle.optim, name)(theirs, **options)
    for step, grads in enumerate(gradients(rng, [(3, 4), (5,)])):
        if step == 5:  # PyTorch's checkpoint continues here
            a = getattr(torch.optim, name)(ours, lr=1.23)
            a.load_state_dict(b.state_dict())
        for p, q, g in zip(ours, theirs, grads, strict=True):
            p.grad, q.grad = torch.tensor(g.astype(dtype)), oracle.tensor(g.astype(dtype))
        a.step()
        b.step()
        for p, q in zip(ours, theirs, strict=True):
            tolerance = 1e-5 if dtype == "f4" else 1e-12
            if name in IN_SINGLE_PRECISION and step >= 5:  # what was loaded has the parameter's dtype
                tolerance = max(tolerance, 1e-7)
            np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=tolerance, atol=tolerance / 10)
    y = b.state_dict()
    assert states_in(a.state_dict()) == states_in(y)
    fresh = getattr(torch.optim, name)(ours, **options).state_dict()
    assert set(fresh["param_groups"][0]) <= set(y["param_groups"][0]) | {"params"}


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_complex_parameters_are_stepped_by_their_parts(name, options):
    rng = np.random.default_rng(2)
    start = rng.standard_normal((3, 2))
    whole = nn.Parameter(torch.view_as_complex(torch.tensor(start)))
    halves = nn.Parameter(torch.tensor(start))
    optimizers = [getattr(torch.optim, name)([p], **options) for p in (whole, halves)]
    for g in rng.standard_normal((8, 3, 2)):
        halves.grad = torch.tensor(g)
        whole.grad = torch.view_as_complex(torch.tensor(g))
        for optimizer in optimizers:
            optimizer.step()
    np.testing.assert_allclose(torch.view_as_real(whole.detach()).numpy(), halves.detach().numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types(name, dtype):
    w = nn.Parameter(torch.ones(3, dtype=dtype))
    decay = {} if name == "Rprop" else {"weight_decay": 0.01}
    optimizer = getattr(torch.optim, name)([w], lr=10.0 if name == "Adadelta" else 0.1, **decay)
    for _ in range(3):
        w.grad = torch.tensor([1.0, -1.0, 0.5], dtype=dtype)
        optimizer.step()
    assert w.dtype is dtype and torch.isfinite(w).all() and w[0].item() < 1 < w[1].item()


@pytest.mark.parametrize(("name", "options"), OPTIONS)
def test_state_dict_round_trip_continues_the_same_way(name, options):
    def run(reload):
        torch.manual_seed(0)
        layer = nn.Linear(3, 2)
        optimizer = getattr(torch.optim, name)(layer.parameters(), **options)
        for i in range(10):
            if reload and i == 6:
                state = optimizer.state_dict()
                optimizer = getattr(torch.optim, name)(layer.parameters(), lr=0.5)
                optimizer.load_state_dict(state)
            optimizer.zero_grad()
            layer(torch.ones(2, 3)).pow(2).sum().backward()
            optimizer.step()
        return layer.weight.detach()

    assert torch.equal(run(False), run(True))


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["NAdam", "AdamW", "Adamax", "Adagrad"])
def test_a_step_rounds_as_pytorchs(name):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    start, gradient = np.random.default_rng(0).standard_normal((2, 500))
    options = {"lr": 0.01, "weight_decay": 0.1} | ({"decoupled_weight_decay": True} if name == "NAdam" else {})

    def stepped(lib):
        parameter = lib.nn.Parameter(lib.tensor(start))
        parameter.grad = lib.tensor(gradient)
        getattr(lib.optim, name)([parameter], **options).step()
        return parameter.detach().numpy()

    found, wanted = stepped(torch), stepped(oracle)
    assert np.abs(found - wanted).max() <= np.spacing(1.0) and (found != wanted).mean() < 0.05


def rosenbrock(lib, x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def minimize(lib, options, start, steps=4, halfway=None):
    """Losses and parameters of L-BFGS on Rosenbrock's function of `start`, the parameters in two pieces."""
    pieces = [lib.nn.Parameter(lib.tensor(start[:2])), lib.nn.Parameter(lib.tensor(start[2:].reshape(1, -1)))]
    optimizer = lib.optim.LBFGS(pieces, **options)

    def closure():
        optimizer.zero_grad()
        loss = rosenbrock(lib, lib.cat([p.reshape(-1) for p in pieces]))
        loss.backward()
        return loss

    found = []
    for step in range(steps):
        if step == halfway:
            state = optimizer.state_dict()
            optimizer = lib.optim.LBFGS(pieces)
            optimizer.load_state_dict(state)
        found.append(optimizer.step(closure).item())
    found += np.concatenate([p.detach().numpy().ravel() for p in pieces]).tolist()
    counts = optimizer.state[pieces[0]]
    return [*found, counts["n_iter"], counts["func_evals"]], optimizer


LBFGS_OPTIONS = [
    {"line_search_fn": "strong_wolfe"},
    {"line_search_fn": "strong_wolfe", "history_size": 3, "max_iter": 7, "lr": 0.5},
    {"line_search_fn": "strong_wolfe", "max_eval": 5},
    {"lr": 1e-3},
    {"lr": 0.1, "max_iter": 3, "history_size": 2},
]


@pytest.mark.parametrize("options", LBFGS_OPTIONS)
def test_lbfgs_equals_pytorch(options):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    start = np.array([-1.2, 1.0, 0.7, 0.2])
    (found, ours), (wanted, theirs) = minimize(torch, options, start), minimize(oracle, options, start)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-9)
    keys = set(theirs.state_dict()["state"][0])
    assert set(ours.state_dict()["state"][0]) == keys
    again = torch.optim.LBFGS([nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1, 2))])
    again.load_state_dict(theirs.state_dict())
    held = again.state_dict()["state"][0]["old_dirs"]
    assert held and all(t.dtype is torch.float32 and t.shape == (4,) for t in held)


@pytest.mark.parametrize("options", LBFGS_OPTIONS)
def test_lbfgs_state_continues_the_same_way(options):
    start = np.array([-1.2, 1.0, 0.7, 0.2])
    assert minimize(torch, options, start)[0] == minimize(torch, options, start, halfway=2)[0]


def test_lbfgs_finds_the_minimum():
    found, _ = minimize(torch, {"line_search_fn": "strong_wolfe", "max_iter": 100}, np.array([-1.2, 1.0, 0.7]), steps=2)
    np.testing.assert_allclose(found[2:5], 1, atol=1e-5)


def test_lbfgs_takes_complex_and_idle_parameters():
    z, idle = nn.Parameter(torch.zeros(2, dtype=torch.complex64)), nn.Parameter(torch.ones(3))
    optimizer = torch.optim.LBFGS([z, idle], line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (z - torch.tensor([1 + 2j, 3 - 1j])).abs().pow(2).sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    np.testing.assert_allclose(z.detach().numpy(), [1 + 2j, 3 - 1j], atol=1e-5)
    assert torch.equal(idle.detach(), torch.ones(3))
    at_rest = z.detach().clone()
    optimizer.step(closure)  # no gradient is left: nothing moves
    assert torch.equal(z.detach(), at_rest)


def test_checkpoints_of_numpy_arrays_and_plain_numbers():
    w = nn.Parameter(torch.ones(2))
    optimizer = torch.optim.Adam([w], lr=0.1)
    state = {"step": 3, "exp_avg": np.ones(2), "exp_avg_sq": np.full(2, 4.0)}
    optimizer.load_state_dict({"state": {0: state}, "param_groups": [{"params": [0], "lr": 0.2}]})
    assert optimizer.param_groups[0]["lr"] == 0.2 and optimizer.param_groups[0]["eps"] == 1e-8
    held = optimizer.state[w]
    assert held["exp_avg"].dtype is torch.float32 and held["exp_avg"].device == w.device
    w.grad = torch.ones(2)
    optimizer.step()
    assert held["step"].item() == 4 and state["exp_avg"].tolist() == [1, 1]


def test_a_pre_hook_may_change_the_arguments():
    w = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([w], lr=0.1)
    handle = optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: ((lambda: 7,), {}))
    assert optimizer.step() == 7
    handle.remove()
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="new_args"):
        optimizer.step()


def test_groups_have_options_of_their_own():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([{"params": [a], "lr": 1.0}, {"params": b}], lr=0.1)
    (a + b).sum().backward()
    optimizer.step()
    assert a.item() == 0 and abs(b.item() - 0.9) < 1e-6
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    assert optimizer.param_groups[2]["lr"] == 0.1 and "Parameter Group 2" in repr(optimizer)


def test_parameters_without_a_gradient_stay():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.Adam([a, b], lr=0.1)
    a.sum().backward()
    optimizer.step()
    assert b.item() == 1 and b not in optimizer.state and a.item() < 1


@pytest.mark.parametrize("name", FORMULAS)
def test_options_without_effect_are_accepted(name):
    constructor = getattr(torch.optim, name)
    w = nn.Parameter(torch.ones(1))
    accepted = {"foreach", "capturable", "differentiable", "fused"} & set(constructor([w]).defaults)
    assert {"foreach", "differentiable"} <= accepted
    accepted -= {"capturable"} if name in COMPOSED else set()
    for option in accepted:
        optimizer = constructor([w], **{option: True})
        assert optimizer.param_groups[0][option] is True
        w.grad = torch.ones(1)
        optimizer.step()
    if "fused" in accepted:
        for other in ("foreach", "differentiable"):
            with pytest.raises(RuntimeError, match="`fused`"):
                constructor([w], fused=True, **{other: True})


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        *((name, {"lr": -1.0}, "Invalid learning rate: -1.0") for name in [*FORMULAS, "LBFGS"]),
        *((name, {"lr": torch.ones(2)}, "Tensor lr must be 1-element") for name in FORMULAS),
        *((name, {"weight_decay": -1.0}, "Invalid weight_decay value: -1.0") for name in FORMULAS if name != "Rprop"),
        *((name, {"eps": -1.0}, "Invalid epsilon value: -1.0") for name in FORMULAS if name not in ("SGD", *COMPOSED)),
        *((name, {"betas": (0, 1.0)}, "Invalid beta parameter at index 1: 1.0") for name in ("Adamax", "RAdam")),
        ("NAdam", {"betas": (1.5, 0.9)}, "Invalid beta parameter at index 0: 1.5"),
        ("Adadelta", {"rho": 1.5}, "Invalid rho value: 1.5"),
        ("Adagrad", {"lr_decay": -0.1}, "Invalid lr_decay value: -0.1"),
        ("Adagrad", {"initial_accumulator_value": -0.1}, "Invalid initial_accumulator_value value: -0.1"),
        ("NAdam", {"momentum_decay": -0.1}, "Invalid momentum_decay value: -0.1"),
        ("RMSprop", {"alpha": -0.1}, "Invalid alpha value: -0.1"),
        ("RMSprop", {"momentum": -0.1}, "Invalid momentum value: -0.1"),
    ],
)  # fmt: skip
def test_wrong_options_are_refused_in_pytorch_words(name, options, message):
    with pytest.raises(ValueError, match=message):
        getattr(torch.optim, name)([nn.Parameter(torch.ones(1))], **options)


def test_defaults_are_pytorch_s():
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    for name in [*FORMULAS, "LBFGS"]:
        ours = getattr(torch.optim, name)([nn.Parameter(torch.ones(1))]).defaults
        theirs = getattr(oracle.optim, name)([oracle.nn.Parameter(oracle.ones(1))]).defaults
        assert ours == {key: theirs[key] for key in ours} and set(theirs) - set(ours) <= {"decoupled_weight_decay"}


def test_a_step_is_an_in_place_change():
    w = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([w], lr=0.1)
    w.grad = torch.ones(1)
    loss = (w * w).sum()
    optimizer.step()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


OPS = {name: getattr(torch.optim, name).step_op for name in FORMULAS}


@pytest.mark.parametrize(("name", "options"), [given for given in OPTIONS if given[0] not in COMPOSED])
def test_a_step_is_one_call_of_its_op(name, options):
    """The modes see it, and what it changes is counted."""
    params = [nn.Parameter(torch.ones(2)) for _ in range(3)]
    optimizer = getattr(torch.optim, name)(params, **options)
    for p in params:
        p.grad = torch.ones(2)
    optimizer.step()
    states = [s for p in params for s in optimizer.state[p].values()]
    before = [t._version for t in (*params, *states)]
    with torch.ledger() as book:
        optimizer.step()
    assert book.count(OPS[name]) == sum(book.counts.values()) == 1
    assert [t._version for t in (*params, *states)] == [version + 1 for version in before]
    assert all(p.grad._version == 0 for p in params)


def test_momentum_begins_for_each_parameter_by_itself():
    a, b = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([a, b], lr=0.5, momentum=0.5, dampening=0.5)
    a.grad = torch.ones(1)
    optimizer.step()
    b.grad = torch.ones(1)
    optimizer.step()
    assert [optimizer.state[p]["momentum_buffer"].item() for p in (a, b)] == [1, 1]
    assert (a.item(), b.item()) == (0, 0.5)


@pytest.mark.parametrize("name", [name for name in FORMULAS if name not in COMPOSED])
def test_steps_on_meta_tensors_count(name):
    w = nn.Parameter(torch.ones(2, device="meta"))
    optimizer = getattr(torch.optim, name)([w])
    w.grad = torch.ones(2, device="meta")
    optimizer.step()
    assert w._version == 1


@pytest.mark.parametrize("backend", [b.name for b in torch.backends() if b.usable and "cpu" in b.devices])
def test_a_gradient_of_zero_in_a_half_type_warns_of_nothing(backend):
    """eps is 0 in float16, so that a step computed in it divides 0 by 0; one that is computed in float32 does not."""
    w = nn.Parameter(torch.ones(2, dtype=torch.float16))
    w.grad = torch.zeros(2, dtype=torch.float16)
    with torch.backend(backend):
        torch.optim.Adam([w]).step()
    assert torch.isnan(w).all() if backend == "numpy" else (w == 1).all()


def test_closure_hooks_and_zero_grad():
    w = nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([w], lr=0.1)
    calls = []
    handle = optimizer.register_step_post_hook(lambda *a: calls.append(1))

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum()
        loss.backward()
        return loss

    with torch.no_grad():
        assert optimizer.step(closure).item() == 1
    handle.remove()
    optimizer.step(closure)
    assert calls == [1]
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.item() == 0
    optimizer.zero_grad()
    assert w.grad is None


W = nn.Parameter(torch.ones(1))


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda: torch.optim.SGD([], lr=0.1), ValueError),
        (lambda: torch.optim.SGD(W, lr=0.1), TypeError),
        (lambda: torch.optim.SGD([1], lr=0.1), TypeError),
        (lambda: torch.optim.SGD([W * 1], lr=0.1), ValueError),
        (lambda: torch.optim.SGD([{"params": W}, {"params": W}], lr=0.1), ValueError),
        (lambda: torch.optim.SGD([W], lr=-1), ValueError),
        (lambda: torch.optim.SGD([W], lr=1, nesterov=True), ValueError),
        (lambda: torch.optim.Adam([W], betas=(1.0, 0.9)), ValueError),
        (lambda: torch.optim.LBFGS([{"params": W}, {"params": nn.Parameter(torch.ones(1))}]), ValueError),
        (lambda: torch.optim.LBFGS([W], line_search_fn="golden").step(lambda: 0.0), RuntimeError),
        (lambda: torch.optim.Adam([W]).load_state_dict({"state": {}, "param_groups": []}), ValueError),
    ],
)
def test_misuse_is_refused(make, kind):
    with pytest.raises(kind):
        make()


def test_a_parameter_that_stands_twice_is_warned_of():
    w = nn.Parameter(torch.ones(1))
    with pytest.warns(UserWarning, match="duplicate parameters"):
        torch.optim.SGD([w, w])
