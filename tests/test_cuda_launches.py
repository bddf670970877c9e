"""How many launches of the CuPy backend a training step takes: no more than it needs."""

import pytest

pytest.importorskip("cupy")

from benchmarks.launches import of_step

LAUNCHES = {
    "seed_mlp_sgd": 11,
    "seed_mlp_adam": 11,
    "digits_classifier_adam": 11,
    "lstm_adam": 26,
    "gpt_adamw": 149,
}


@pytest.mark.parametrize("program", LAUNCHES)
def test_launches_of_a_step(program):
    found = of_step(program)
    assert found.total() == LAUNCHES[program], found
