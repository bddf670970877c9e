"""The pytest plugin for tests and benchmarks that run on several backends: the fixture ``backend``.

    @pytest.mark.backends("acme", "torch")
    def test_softmax(benchmark, backend):
        torch = backend.module
        benchmark(torch.randn(64, 1000).softmax, 1)

Pytest imports this module wherever corefw is installed: corefw itself is imported when a test asks for the fixture.
"""

import pytest


def pytest_addoption(parser):
    """The option that chooses backends."""
    group = parser.getgroup("corefw", "corefw's backends")
    group.addoption("--backends", help="run tests with the fixture `backend` on these, as acme,torch")


def pytest_configure(config):
    """The marker of a test's backends."""
    config.addinivalue_line("markers", "backends(*names): run with the fixture `backend` being each of these")


def pytest_generate_tests(metafunc):
    """Run a test once for each backend, unless its `backend` is another fixture or parameter."""
    if _asks_for_backend.__name__ in metafunc.fixturenames:
        from corefw.testing.columns import parameters

        marker = metafunc.definition.get_closest_marker("backends")
        chosen = parameters(metafunc.config.getoption("--backends"), marker.args if marker else ())
        metafunc.parametrize("backend", chosen, indirect=True)


@pytest.fixture
def _asks_for_backend():
    """Tells by its presence that `backend` is the fixture of this file."""


@pytest.fixture
def backend(request, _asks_for_backend):
    """What computes in this test: its ``name``, ``device``, and ``module``, which is corefw, or PyTorch for "torch".

    The functions that pytest-benchmark times wait for the device, and ``extra_info`` says what was measured.
    """
    from corefw.testing.columns import of_name, watch

    with of_name(request.param) as column:
        if "benchmark" in request.fixturenames:
            watch(request.getfixturevalue("benchmark"), column)
        yield column
