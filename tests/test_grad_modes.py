"""Grad modes: where gradients are recorded, by thread, generator and context."""

import threading

import pytest

import corefw as torch
from tests.leaves import leaf


@pytest.mark.parametrize(
    ("context", "enabled"),
    [
        (torch.no_grad, False),
        (torch.enable_grad, True),
        (lambda: torch.set_grad_enabled(False), False),
        (lambda: torch.set_grad_enabled(True), True),
        (torch.inference_mode, False),
        (lambda: torch.inference_mode(False), True),
    ],
)
def test_modes(context, enabled):
    with context():
        assert torch.is_grad_enabled() is enabled
        with torch.no_grad():
            assert not torch.is_grad_enabled()
            with context():
                pass
            assert not torch.is_grad_enabled()
        assert torch.is_grad_enabled() is enabled
    assert torch.is_grad_enabled()

    @context()
    def function():
        return torch.is_grad_enabled()

    assert torch.is_grad_enabled()
    assert function() is enabled
    assert function() is enabled
    assert torch.is_grad_enabled()


def test_bare_decorators_keep_names():
    @torch.no_grad
    def first():
        """First."""
        return torch.is_grad_enabled()

    @torch.inference_mode
    def second():
        return torch.is_inference_mode_enabled()

    assert (first(), second(), first.__name__, first.__doc__) == (False, True, "first", "First.")
    assert not torch.is_inference_mode_enabled()


def test_mode_survives_exceptions_and_reentry():
    context = torch.no_grad()
    with pytest.raises(ValueError), context, context:
        raise ValueError
    assert torch.is_grad_enabled()


def test_inference_mode_cannot_be_left_by_enable_grad():
    x = leaf(1.0)
    with torch.inference_mode():
        with torch.enable_grad():
            assert not (x * 2).requires_grad
        with torch.no_grad():
            assert torch.is_inference_mode_enabled()
        assert torch.is_inference_mode_enabled()
        with torch.inference_mode(False):
            assert (x * 2).requires_grad


def test_set_grad_enabled_as_a_function():
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)
    assert torch.is_grad_enabled()


def test_generators_switch_at_each_step():
    seen = []

    @torch.no_grad()
    def generator():
        try:
            seen.append(torch.is_grad_enabled())
            got = yield 1
            seen.append(torch.is_grad_enabled())
            try:
                yield got
            except KeyError:
                seen.append(torch.is_grad_enabled())
                yield "caught"
            return "done"
        finally:
            seen.append(("closed", torch.is_grad_enabled()))

    steps = generator()
    assert next(steps) == 1
    assert torch.is_grad_enabled()
    assert steps.send("sent") == "sent"
    assert steps.throw(KeyError()) == "caught"
    assert torch.is_grad_enabled()
    with pytest.raises(StopIteration) as stop:
        next(steps)
    assert stop.value.value == "done"
    assert seen == [False, False, False, ("closed", False)]
    seen.clear()
    steps = generator()
    next(steps)
    steps.close()
    assert seen == [False, ("closed", False)]


def test_mode_belongs_to_the_thread():
    found = {}

    def look():
        found["other"] = torch.is_grad_enabled()
        torch.set_grad_enabled(False)

    with torch.no_grad():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert found == {"other": True}
    assert torch.is_grad_enabled()


def test_threads_run_their_own_graphs():
    results, errors = {}, []

    def work(number):
        try:
            x = leaf(float(number))
            for _ in range(20):
                y = x
                for _ in range(100):
                    y = y * 1.0
                y.backward()
            results[number] = x.grad.item()
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert results == dict.fromkeys(range(4), 20.0)
