"""How many launches of the CuPy backend a training step takes: no more than it needs."""

import pytest

pytest.importorskip("cupy")

from benchmarks.launches import of_step


@pytest.mark.parametrize(
    ("program", "count"),
    [
        ("seed_mlp_sgd", 11),
        ("seed_mlp_adam", 11),
        ("digits_classifier_adam", 12),
        ("lstm_adam", 34),
        ("gpt_adamw", 150),
    ],
)
def test_launches_of_a_step(program, count):
    found = of_step(program)
    assert found.total() == count, found
