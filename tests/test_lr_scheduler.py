"""Schedules: literal rates, PyTorch's over 60 epochs, resumption in the middle, misuse."""

import warnings

import numpy as np
import pytest

import corefw as torch
from corefw import nn

EPOCHS = 60


class Halving:
    """A callable object with an attribute that a checkpoint keeps."""

    def __init__(self, rate=0.5):
        self.rate = rate

    def __call__(self, epoch):
        return self.rate**epoch


def sequence(lib, optimizer):
    s = lib.optim.lr_scheduler
    return s.SequentialLR(
        optimizer,
        [s.LinearLR(optimizer, 0.1, total_iters=9), s.CosineAnnealingLR(optimizer, 30), s.StepLR(optimizer, 4, 0.5)],
        milestones=[10, 40],
    )


def chain(lib, optimizer):
    s = lib.optim.lr_scheduler
    return s.ChainedScheduler([s.ConstantLR(optimizer, 0.2, 7), s.ExponentialLR(optimizer, 0.95)], optimizer)


def chain_then_constant(lib, optimizer):
    s = lib.optim.lr_scheduler
    chained = chain(lib, optimizer)
    optimizer.step()  # a chain in a sequence is stepped once more when the sequence is made
    return s.SequentialLR(optimizer, [chained, s.ConstantLR(optimizer, 0.5, 3)], milestones=[20])


SCHEDULES = [
    ("LambdaLR", {"lr_lambda": lambda epoch: 0.95**epoch}),
    ("LambdaLR", {"lr_lambda": [lambda epoch: 1 / (1 + epoch), Halving(0.9)]}),
    ("MultiplicativeLR", {"lr_lambda": lambda epoch: 0.9 if epoch % 3 else 1.1}),
    ("StepLR", {"step_size": 7}),
    ("StepLR", {"step_size": 1, "gamma": 0.9}),
    ("MultiStepLR", {"milestones": [3, 10, 10, 41], "gamma": 0.3}),
    ("ConstantLR", {}),
    ("ConstantLR", {"factor": 0.25, "total_iters": 20}),
    ("LinearLR", {}),
    ("LinearLR", {"start_factor": 1.0, "end_factor": 0.1, "total_iters": 33}),
    ("ExponentialLR", {"gamma": 0.9}),
    ("PolynomialLR", {"total_iters": 40, "power": 0.9}),
    ("PolynomialLR", {"power": 2.0}),
    ("CosineAnnealingLR", {"T_max": 50, "eta_min": 0.01}),
    ("CosineAnnealingLR", {"T_max": 7}),
    ("CosineAnnealingWarmRestarts", {"T_0": 10}),
    ("CosineAnnealingWarmRestarts", {"T_0": 3, "T_mult": 2, "eta_min": 0.001}),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 5}),
    (
        "CyclicLR",
        {"base_lr": [0.01, 0.02], "max_lr": 0.2, "step_size_up": 4, "step_size_down": 9, "mode": "triangular2"},
    ),
    ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.2, "step_size_up": 6, "mode": "exp_range", "gamma": 0.97}),
    (
        "CyclicLR",
        {"base_lr": 0.1, "max_lr": 0.3, "step_size_up": 5, "scale_fn": lambda x: 1 / x, "cycle_momentum": False},
    ),
    ("OneCycleLR", {"max_lr": 0.3, "total_steps": EPOCHS + 1}),
    ("OneCycleLR", {"max_lr": [0.3, 0.1], "epochs": 8, "steps_per_epoch": 10, "anneal_strategy": "linear"}),
    ("OneCycleLR", {"max_lr": 0.3, "total_steps": 70, "three_phase": True, "base_momentum": 0.7, "pct_start": 0.25}),
    (sequence, {}),
    (chain, {}),
    (chain_then_constant, {}),
]
NAMES = [f"{name if isinstance(name, str) else name.__name__}-{i}" for i, (name, _) in enumerate(SCHEDULES)]


def make_optimizer(lib, kind="SGD", lr=0.5, **options):
    a, b = (lib.nn.Parameter(lib.ones(1)) for _ in range(2))
    if kind == "SGD":
        options.setdefault("momentum", 0.9)
    return getattr(lib.optim, kind)([{"params": [a]}, {"params": [b], "lr": 0.05}], lr=lr, **options)


def make(lib, name, options, optimizer):
    if callable(name):
        return name(lib, optimizer)
    return getattr(lib.optim.lr_scheduler, name)(optimizer, **options)


def snapshot(optimizer, scheduler):
    """Rates and momenta of all groups, and the rates the scheduler tells."""
    groups = optimizer.param_groups
    momenta = [g["betas"][0] if "betas" in g else g["momentum"] for g in groups]
    return [float(v) for v in [*(g["lr"] for g in groups), *momenta, *scheduler.get_last_lr()]]


def run(optimizer, scheduler, epochs=EPOCHS):
    rows = [snapshot(optimizer, scheduler)]
    for _ in range(epochs):
        optimizer.step()
        scheduler.step()
        rows.append(snapshot(optimizer, scheduler))
    return np.array(rows)


@pytest.mark.parametrize(
    ("name", "options", "rates"),
    [
        ("LambdaLR", {"lr_lambda": lambda epoch: 1 / (1 + epoch)}, [1, 1 / 2, 1 / 3, 1 / 4, 1 / 5]),
        ("MultiplicativeLR", {"lr_lambda": lambda epoch: epoch}, [1, 1, 2, 6, 24]),
        ("StepLR", {"step_size": 2}, [1, 1, 0.1, 0.1, 0.01]),
        ("MultiStepLR", {"milestones": [1, 3, 3], "gamma": 0.5}, [1, 0.5, 0.5, 0.125, 0.125]),
        ("ConstantLR", {"factor": 0.5, "total_iters": 2}, [0.5, 0.5, 1, 1, 1]),
        ("LinearLR", {"start_factor": 0.5, "total_iters": 4}, [0.5, 0.625, 0.75, 0.875, 1, 1]),
        ("ExponentialLR", {"gamma": 0.5}, [1, 0.5, 0.25, 0.125]),
        ("PolynomialLR", {"total_iters": 4, "power": 2.0}, [1, 9 / 16, 1 / 4, 1 / 16, 0, 0]),
        ("CosineAnnealingLR", {"T_max": 2, "eta_min": 0.2}, [1, 0.6, 0.2, 0.6, 1, 0.6]),
        ("CosineAnnealingWarmRestarts", {"T_0": 2, "T_mult": 2}, [1, 0.5, 1, (1 + 0.5**0.5) / 2, 0.5]),
        ("CyclicLR", {"base_lr": 0, "max_lr": 1, "step_size_up": 2}, [0, 0.5, 1, 0.5, 0, 0.5, 1]),
        ("CyclicLR", {"base_lr": 0, "max_lr": 1, "step_size_up": 1, "mode": "triangular2"}, [0, 1, 0, 0.5, 0, 0.25]),
        ("OneCycleLR", {"max_lr": 1, "total_steps": 5, "pct_start": 0.4, "anneal_strategy": "linear", "div_factor": 2,
                        "final_div_factor": 2}, [0.5, 1, 0.75, 0.5, 0.25]),
    ],
)  # fmt: skip
def test_rates(name, options, rates):
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0, momentum=0.9)
    scheduler = getattr(torch.optim.lr_scheduler, name)(optimizer, **options)
    found = run(optimizer, scheduler, len(rates) - 1)[:, 0]
    np.testing.assert_allclose(found, rates, atol=1e-12)


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=NAMES)
@pytest.mark.parametrize("kind", ["SGD", "Adam"])
def test_equals_pytorch(name, options, kind):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    found, wanted = (
        run(optimizer, make(lib, name, options, optimizer))
        for lib in (torch, oracle)
        for optimizer in [make_optimizer(lib, kind)]
    )
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=NAMES)
def test_state_dict_continues_the_same_way(name, options):
    optimizer = make_optimizer(torch)
    scheduler = make(torch, name, options, optimizer)
    whole = run(optimizer, scheduler)

    optimizer = make_optimizer(torch)
    scheduler = make(torch, name, options, optimizer)
    run(optimizer, scheduler, 23)
    saved = optimizer.state_dict(), scheduler.state_dict()
    optimizer = make_optimizer(torch, lr=0.123)
    scheduler = make(torch, name, options, optimizer)
    optimizer.load_state_dict(saved[0])
    scheduler.load_state_dict(saved[1])
    np.testing.assert_array_equal(run(optimizer, scheduler, EPOCHS - 23), whole[23:])


@pytest.mark.parametrize(("name", "options"), SCHEDULES, ids=NAMES)
def test_pytorch_state_continues_here(name, options):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    theirs = make_optimizer(oracle)
    before = make(oracle, name, options, theirs)
    run(theirs, before, 23)
    ours = make_optimizer(torch)
    after = make(torch, name, options, ours)
    ours.load_state_dict(theirs.state_dict())
    after.load_state_dict(before.state_dict())
    np.testing.assert_allclose(run(ours, after, 30), run(theirs, before, 30), rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("name", "options"), [s for s in SCHEDULES if isinstance(s[0], str)], ids=[n for n in NAMES if n[0].isupper()]
)
def test_last_epoch_resumes(name, options):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    rows = []
    for lib in (torch, oracle):
        optimizer = make_optimizer(lib)
        make(lib, name, options, optimizer)  # leaves "initial_lr" and the bounds in the groups
        rows.append(run(optimizer, make(lib, name, {**options, "last_epoch": 8}, optimizer), 30))
    np.testing.assert_allclose(*rows, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(("name", "options"), [s for s in SCHEDULES if isinstance(s[0], str)][:17])
def test_step_to_an_epoch(name, options):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    rows = []
    for lib in (torch, oracle):
        optimizer = make_optimizer(lib)
        scheduler = make(lib, name, options, optimizer)
        optimizer.step()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            scheduler.step(13)
        rows.append(snapshot(optimizer, scheduler))
    np.testing.assert_allclose(*rows, rtol=1e-12, atol=1e-15)


PLATEAU = [
    {},
    {"patience": 2, "factor": 0.5, "cooldown": 3},
    {"mode": "max", "patience": 3, "threshold": 0.2},
    {"mode": "max", "patience": 1, "threshold": 0.05, "threshold_mode": "abs"},
    {"mode": "min", "patience": 0, "threshold": 0.01, "threshold_mode": "abs", "min_lr": [0.1, 0.01], "eps": 1e-3},
]


def metrics():
    return [2 + np.sin(i / 5) / (1 + i / 20) for i in range(EPOCHS)]


@pytest.mark.parametrize("options", PLATEAU)
def test_plateau_equals_pytorch_and_resumes(options):
    oracle = pytest.importorskip("torch", reason="PyTorch is not installed: nothing to compare with")
    theirs, ours = make_optimizer(oracle), make_optimizer(torch)
    a = oracle.optim.lr_scheduler.ReduceLROnPlateau(theirs, **options)
    b = torch.optim.lr_scheduler.ReduceLROnPlateau(ours, **options)
    for epoch, metric in enumerate(metrics()):
        if epoch == 25:
            state = b.state_dict()
            b = torch.optim.lr_scheduler.ReduceLROnPlateau(ours)
            b.load_state_dict(state)
        a.step(metric)
        b.step(torch.tensor(metric, dtype=torch.float64))
        assert snapshot(ours, b) == snapshot(theirs, a)
    assert set(b.state_dict()) <= set(a.state_dict())


def test_plateau_literally():
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1, cooldown=2)
    rates = []
    for loss in [3, 2, 2, 2, 2, 2, 2, 2, 1]:
        scheduler.step(loss)
        rates += scheduler.get_last_lr()
    assert rates == [1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25]
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    for _ in range(6):
        scheduler.step(5)
    assert optimizer.param_groups[1]["lr"] == 0.5


def test_a_tensor_rate_is_changed_in_place():
    rate = torch.tensor(1.0)
    optimizer = torch.optim.SGD([nn.Parameter(torch.ones(1))], lr=rate)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    scheduler.step()
    assert optimizer.param_groups[0]["lr"] is rate and rate.item() == 0.5
    assert scheduler.base_lrs[0].item() == 1 and scheduler.get_last_lr()[0] is not rate


def test_fractional_epochs_of_warm_restarts():
    optimizer = make_optimizer(torch, lr=1.0)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, T_0=2, T_mult=2)
    for epoch, rate in ((1.5, (1 - 0.5**0.5) / 2), (4.0, 0.5), (6, 1.0)):
        scheduler.step(epoch)
        assert abs(scheduler.get_last_lr()[0] - rate) < 1e-12
    with pytest.raises(ValueError, match="non-negative epoch"):
        scheduler.step(-1)


def test_callable_objects_keep_their_attributes_in_checkpoints():
    scheduler = torch.optim.lr_scheduler.LambdaLR(make_optimizer(torch), [lambda epoch: 1.0, Halving(0.25)])
    state = scheduler.state_dict()
    assert state["lr_lambdas"] == [None, {"rate": 0.25}] and "optimizer" not in state
    scale, other = Halving(0.25), Halving()
    scheduler = torch.optim.lr_scheduler.LambdaLR(make_optimizer(torch), [lambda epoch: 1.0, other])
    scheduler.load_state_dict(state)
    assert other.rate == 0.25 and state["lr_lambdas"] == [None, {"rate": 0.25}]
    cyclic = [
        torch.optim.lr_scheduler.CyclicLR(make_optimizer(torch), 0.1, 1.0, scale_fn=f) for f in (scale, Halving())
    ]
    cyclic[1].load_state_dict(cyclic[0].state_dict())
    assert cyclic[1].scale_fn(1) == 0.25


def test_order_of_steps_is_watched():
    optimizer = make_optimizer(torch)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    with pytest.warns(UserWarning, match=r"`lr_scheduler.step\(\)` before `optimizer.step\(\)`"):
        scheduler.step()
    optimizer.step()
    scheduler.step()
    with pytest.warns(UserWarning, match="get_last_lr"):
        scheduler.get_lr()
    with pytest.warns(UserWarning, match="epoch parameter"):
        scheduler.step(5)
    assert scheduler.last_epoch == 5


def test_a_subclass_that_defines_its_own_step_is_watched_too():
    class Plain(torch.optim.Optimizer):
        def step(self, closure=None):
            with torch.no_grad():
                for group in self.param_groups:
                    for p in group["params"]:
                        p.sub_(group["lr"])

    w = nn.Parameter(torch.ones(1))
    optimizer = Plain([w], {"lr": 0.5})
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for _ in range(2):
        optimizer.step()
        scheduler.step()
    assert w.item() == 0.25


def schedule(name, *arguments, **options):
    return lambda: getattr(torch.optim.lr_scheduler, name)(make_optimizer(torch), *arguments, **options)


def sequential(*schedulers, milestones=(), kind="SequentialLR"):
    def build():
        optimizer = make_optimizer(torch)
        made = [getattr(torch.optim.lr_scheduler, name)(optimizer, *rest) for name, *rest in schedulers]
        if kind == "ChainedScheduler":
            return torch.optim.lr_scheduler.ChainedScheduler(made)
        return torch.optim.lr_scheduler.SequentialLR(optimizer, made, list(milestones))

    return build


def of_two_optimizers():
    parts = [torch.optim.lr_scheduler.ExponentialLR(make_optimizer(torch), 0.5) for _ in range(2)]
    return torch.optim.lr_scheduler.ChainedScheduler(parts)


def step_past_the_end():
    optimizer = make_optimizer(torch)
    run(optimizer, torch.optim.lr_scheduler.OneCycleLR(optimizer, 1.0, total_steps=5), 6)


def grow_the_groups():
    optimizer = make_optimizer(torch)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.0, 0.0])
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))]})
    for _ in range(2):
        scheduler.step(1.0)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: torch.optim.lr_scheduler.StepLR(3, 1), TypeError, "int is not an Optimizer"),
        (lambda: torch.optim.lr_scheduler.ReduceLROnPlateau(3), TypeError, "int is not an Optimizer"),
        (lambda: torch.optim.lr_scheduler.LRScheduler(make_optimizer(torch)), NotImplementedError, "get_lr"),
        (schedule("StepLR", 2, last_epoch=3), KeyError, "initial_lr"),
        (schedule("LambdaLR", [abs]), ValueError, "Expected 2 lr_lambdas, but got 1"),
        (schedule("MultiplicativeLR", 0.5), TypeError, "should be a function, but got float"),
        (schedule("ConstantLR", 2.0), ValueError, "between 0 and 1"),
        (schedule("LinearLR", 0), ValueError, "Starting multiplicative factor"),
        (schedule("LinearLR", 0.5, 1.5), ValueError, "Ending multiplicative factor"),
        (schedule("CosineAnnealingWarmRestarts", 0), ValueError, "T_0, but got 0"),
        (schedule("CosineAnnealingWarmRestarts", 1, 0.5), ValueError, "T_mult >= 1, but got 0.5"),
        (schedule("CosineAnnealingWarmRestarts", 1, 1, "low"), ValueError, "eta_min"),
        (schedule("CyclicLR", [0.1], 1.0), ValueError, "base_lr has 1 values, param_groups has 2"),
        (schedule("CyclicLR", 0.1, 1.0, mode="square"), ValueError, "mode is invalid"),
        (schedule("OneCycleLR", 1.0), ValueError, "total_steps OR"),
        (schedule("OneCycleLR", 1.0, 0), ValueError, "total_steps, but got 0"),
        (schedule("OneCycleLR", 1.0, epochs=2, steps_per_epoch=1.5), ValueError, "steps_per_epoch, but got 1.5"),
        (schedule("OneCycleLR", 1.0, 9, pct_start=2), ValueError, "pct_start"),
        (schedule("OneCycleLR", 1.0, 9, anneal_strategy="jump"), ValueError, "anneal_strategy"),
        (step_past_the_end, ValueError, "Tried to step 6 times"),
        (schedule("ReduceLROnPlateau", factor=1.0), ValueError, "Factor should be < 1.0"),
        (schedule("ReduceLROnPlateau", mode="up"), ValueError, "mode up is unknown"),
        (schedule("ReduceLROnPlateau", threshold_mode="x"), ValueError, "threshold mode x is unknown"),
        (schedule("ReduceLROnPlateau", min_lr=[0.0]), ValueError, "expected 2 min_lrs, got 1"),
        (grow_the_groups, RuntimeError, "number of param groups"),
        (sequential(), ValueError, "at least one scheduler"),
        (sequential(kind="ChainedScheduler"), ValueError, "at least one scheduler"),
        (sequential(("ReduceLROnPlateau",)), ValueError, "does not support `ReduceLROnPlateau`"),
        (sequential(("ReduceLROnPlateau",), kind="ChainedScheduler"), ValueError, "does not support"),
        (sequential(("StepLR", 1), milestones=[1, 2]), ValueError, "number of milestones"),
        (lambda: torch.optim.lr_scheduler.ChainedScheduler([3]), TypeError, "at index 0"),
        (of_two_optimizers, ValueError, "same optimizer"),
    ],
)
def test_misuse_is_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        make()


@pytest.mark.parametrize("name", ["CyclicLR", "OneCycleLR"])
def test_momentum_cannot_cycle_where_there_is_none(name):
    optimizer = make_optimizer(torch, "Adagrad")
    options = {"base_lr": 0.1} if name == "CyclicLR" else {"total_steps": 5}
    with pytest.raises(ValueError, match="must support momentum or beta1"):
        getattr(torch.optim.lr_scheduler, name)(optimizer, max_lr=1.0, **options)
    scheduler = getattr(torch.optim.lr_scheduler, name)(optimizer, max_lr=1.0, cycle_momentum=False, **options)
    for _ in range(3):
        optimizer.step()
        scheduler.step()
    assert optimizer.param_groups[0]["lr"] != 0.1
