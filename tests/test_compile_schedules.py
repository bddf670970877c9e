"""Schedulers that step inside of compiled steps: the same bits as without, and what is refused."""

import pytest

import corefw as torch
from corefw import nn
from corefw.optim import lr_scheduler
from tests.test_compile_guards import inputs, network

SCHEDULES = {
    "StepLR": lambda optimizer: lr_scheduler.StepLR(optimizer, 7, 0.5),
    "CosineAnnealingLR": lambda optimizer: lr_scheduler.CosineAnnealingLR(optimizer, 20),
    "OneCycleLR": lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.2, total_steps=60),
    "LambdaLR": lambda optimizer: lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.95**epoch),
    "CyclicLR": lambda optimizer: lr_scheduler.CyclicLR(optimizer, 0.01, 0.1, 4, cycle_momentum=False),
    "SequentialLR": lambda optimizer: lr_scheduler.SequentialLR(
        optimizer,
        [lr_scheduler.LinearLR(optimizer, 0.1, total_iters=5), lr_scheduler.ExponentialLR(optimizer, 0.9)],
        [5],
    ),
}
OPTIMIZERS = {
    "SGD": lambda parameters: torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
    "AdamW": lambda parameters: torch.optim.AdamW(parameters, lr=0.01),
}


class Training:
    """A network with its optimizer, its scheduler and a step."""

    def __init__(self, optimizer="SGD", schedule=SCHEDULES["StepLR"]):
        self.model = network()
        self.optimizer = OPTIMIZERS[optimizer](self.model.parameters())
        self.scheduler = schedule(self.optimizer)
        model, optimizer, scheduler = self.model, self.optimizer, self.scheduler

        def step(x):
            optimizer.zero_grad()
            loss = model(x).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            scheduler.step()
            return loss

        self.step = step

    def state(self):
        options = {key: value for key, value in self.optimizer.param_groups[0].items() if key != "params"}
        schedule = self.scheduler.state_dict()
        return options, {key: value for key, value in schedule.items() if isinstance(value, int | float | list)}


def refused(function, *arguments):
    """What is said of a compiled function after calls of which none was replayed."""
    compiled = torch.compile(function)
    for _ in range(6):
        compiled(*arguments)
    assert compiled.replays == 0
    return torch.explain(compiled)


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_fifty_steps_are_the_same(schedule, optimizer):
    plain, other = (Training(optimizer, SCHEDULES[schedule]) for _ in range(2))
    compiled = torch.compile(other.step)
    for seed in range(50):
        assert torch.equal(plain.step(inputs(seed)), compiled(inputs(seed)))
        assert str(plain.state()) == str(other.state())
    assert compiled.replays == 48, torch.explain(compiled)
    for a, b in zip(plain.model.parameters(), other.model.parameters()):
        assert torch.equal(a, b)


def test_an_option_that_is_zero_at_times():
    class Momenta(lr_scheduler.LRScheduler):
        def get_lr(self):
            for group in self.optimizer.param_groups:
                group["momentum"] = (0.9, 0.8, 0.0, 0.7)[self.last_epoch % 4]
            return [group["lr"] * 0.95 for group in self.optimizer.param_groups]

    plain, other = (Training("SGD", Momenta) for _ in range(2))
    compiled = torch.compile(other.step)
    for seed in range(20):
        assert torch.equal(plain.step(inputs(seed)), compiled(inputs(seed)))
    assert compiled.replays > 5


def test_averages_that_follow_the_step_of_a_scheduler():
    def averaging(training):
        average = training.model[0].weight.detach().clone()

        def step(x):
            loss = training.step(x)
            with torch.no_grad():
                average.lerp_(training.model[0].weight, 0.1)
            return loss

        return step, average

    (plain, expected), (other, average) = averaging(Training()), averaging(Training())
    compiled = torch.compile(other)
    for seed in range(12):
        assert torch.equal(plain(inputs(seed)), compiled(inputs(seed)))
    assert torch.equal(expected, average)
    assert compiled.replays == 10


def test_replays_beside_the_function():
    plain, other = Training(), Training()
    compiled = torch.compile(other.step, options={"check": 2})
    for seed in range(12):
        assert torch.equal(plain.step(inputs(seed)), compiled(inputs(seed)))
        assert str(plain.state()) == str(other.state())


@pytest.mark.parametrize("kind", OPTIMIZERS)
@pytest.mark.parametrize("schedule", ["StepLR", "OneCycleLR"])
def test_options_and_schedules_that_are_set_between_calls(kind, schedule):
    plain, other = (Training(kind, SCHEDULES[schedule]) for _ in range(2))
    compiled = torch.compile(other.step)
    for seed in range(30):
        for training in (plain, other) if seed % 5 == 4 else ():
            training.optimizer.load_state_dict(training.optimizer.state_dict())
            training.optimizer.param_groups[0]["lr"] = 0.3
            training.scheduler.gamma = 0.7
            training.scheduler.last_epoch += 2
            if kind == "AdamW":
                training.optimizer.param_groups[0]["betas"] = (0.8, 0.9 + seed / 1000)
        assert torch.equal(plain.step(inputs(seed)), compiled(inputs(seed)))
        assert str(plain.state()) == str(other.state())
    assert compiled.replays > 0


def test_the_end_of_a_schedule_is_an_error_as_without():
    training = Training(schedule=lambda optimizer: lr_scheduler.OneCycleLR(optimizer, 0.2, total_steps=8))
    compiled = torch.compile(training.step)
    with pytest.raises(ValueError, match="Tried to step 9 times"):
        for seed in range(9):
            compiled(inputs(seed))
    assert compiled.replays == 7


class TestRefusals:
    def test_a_look_at_the_scheduler(self):
        training = Training()

        def step(x):
            loss = training.step(x)
            return loss * 2 if training.scheduler.last_epoch > 3 else loss

        assert "it asks 'last_epoch' of a scheduler" in refused(step, inputs())

    def test_computing_with_the_rate_that_it_has_set(self):
        training = Training()

        def step(x):
            return training.step(x) * training.optimizer.param_groups[0]["lr"]

        assert "Python computes with 'lr'" in refused(step, inputs())

    def test_returning_the_rate(self):
        training = Training()

        def step(x):
            return training.step(x), training.optimizer.param_groups[0]["lr"]

        assert "returns 'lr' of an optimizer" in refused(step, inputs())

    def test_an_optimizer_that_steps_afterwards(self):
        training = Training()

        def step(x):
            loss = training.step(x)
            training.optimizer.step()
            return loss

        assert "a scheduler steps before sgd_step" in refused(step, inputs())

    def test_a_metric(self):
        training = Training(schedule=lambda optimizer: lr_scheduler.ReduceLROnPlateau(optimizer, patience=1))

        def step(x):
            loss = training.model(x).square().mean()
            loss.backward()
            training.optimizer.step()
            training.scheduler.step(loss)
            return loss

        assert "elements of a tensor are read" in refused(step, inputs())

    def test_rates_that_are_tensors(self):
        model = network()
        optimizer = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.1))
        scheduler = lr_scheduler.ExponentialLR(optimizer, 0.9)

        def step(x):
            model(x).sum().backward()
            optimizer.step()
            scheduler.step()

        said = refused(step, inputs())
        assert "elements of a tensor are read" in said or "computes with tensors" in said

    def test_rates_that_the_program_sets(self):
        training, plain = Training(), Training()
        rates = iter([0.1 / n for n in range(1, 20)])
        values = [0.1 / n for n in range(1, 20)]

        def step(x, rate):
            loss = training.step(x)
            training.optimizer.param_groups[0]["lr"] = rate[0]
            return loss

        compiled, rate = torch.compile(step), [0.1]
        for seed in range(12):
            rate[0] = next(rates)
            expected = plain.step(inputs(seed))
            plain.optimizer.param_groups[0]["lr"] = values[seed]
            assert torch.equal(compiled(inputs(seed), rate), expected)
            assert training.optimizer.param_groups[0]["lr"] == values[seed]
