"""Models on several devices of one process: here two over host memory."""

import pytest

import corefw as torch
from corefw import nn
from corefw.nn.parallel import (
    DataParallel,
    DistributedDataParallel,
    data_parallel,
    gather,
    parallel_apply,
    replicate,
    scatter,
)
from tests import loopback


@pytest.fixture
def twice():
    """Two devices."""
    loopback.install()
    return ["loopback", "loopback"]


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))


def test_without_devices_it_is_the_model():
    plain, x = model(), torch.rand(5, 3)
    for options in ({}, {"device_ids": [0, 1]}, {"device_ids": ["cpu"]}, {"device_ids": []}):
        if torch.cuda.is_available() and options.get("device_ids") != []:
            continue
        parallel = DataParallel(plain, **options)
        assert parallel.device_ids == [] and torch.equal(parallel.eval()(x), plain.eval()(x))
        assert list(parallel.state_dict()) == [f"module.{name}" for name in plain.state_dict()]
    assert torch.equal(data_parallel(plain, x, device_ids=[]), plain(x)) and nn.DataParallel is DataParallel


def test_halves_of_a_batch_give_the_results_and_gradients_of_the_whole(twice):
    plain, x = model().eval(), torch.rand(7, 3)
    expected = plain(x)
    expected.square().sum().backward()
    there = model().eval().to("loopback")
    parallel = DataParallel(there, twice)
    found = parallel(x.to("loopback"))
    found.square().sum().backward()
    torch.testing.assert_close(found.cpu(), expected.detach(), check_stride=False)
    for mine, one in zip(there.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(mine.grad.cpu(), one.grad)


def test_a_batch_of_one_sample_uses_one_copy(twice):
    there = model().eval().to("loopback")
    x = torch.rand(1, 3)
    torch.testing.assert_close(data_parallel(there, x.to("loopback"), twice).cpu(), there.cpu()(x))


def test_parameters_elsewhere_are_refused(twice):
    with pytest.raises(RuntimeError, match=r"on device loopback:0 .*found one of them on device: cpu"):
        DataParallel(model(), twice)(torch.rand(2, 3))


def test_copies_share_what_the_model_shares_and_have_no_parameters(twice):
    network = nn.Sequential(nn.Linear(2, 2), nn.ReLU(), nn.Linear(2, 2)).to("loopback")
    network[2].weight = network[0].weight
    copies = replicate(network, twice)
    for one in copies:
        assert one[0].weight is one[2].weight and one[0].weight.requires_grad and not list(one.parameters())
    assert [p.requires_grad for p in network.parameters()] == [True] * 3 and copies[0] is not network
    assert not replicate(network, twice, detach=True)[1][0].weight.requires_grad


def test_scatter_and_gather_are_inverse(twice):
    x = torch.arange(10.0).reshape(5, 2)
    given = {"a": [x.to("loopback"), 3], "b": (None, "text")}
    parts = scatter(given, twice)
    assert [part["a"][0].tolist() for part in parts] == [x[:3].tolist(), x[3:].tolist()]
    assert [part["a"][1] for part in parts] == [3, 3] and parts[0]["b"] == (None, "text")
    whole = gather([{"x": (part["a"][0], None)} for part in parts], "cpu")
    assert torch.equal(whole["x"][0], x) and whole["x"][1] is None
    assert gather([torch.tensor(1.0), torch.tensor(2.0)], "cpu").tolist() == [1, 2]
    assert [part.shape for part in scatter(x.to("loopback"), twice, dim=1)] == [(5, 1), (5, 1)]


def test_bad_arguments(twice):
    with pytest.raises(ValueError, match="Expected a non cpu device"):
        scatter(torch.ones(2), ["cpu"])
    with pytest.raises(ValueError, match="same number of keys"):
        gather([{"a": torch.ones(1)}, {}], "cpu")
    with pytest.raises(AssertionError, match="2 modules, but 1 inputs"):
        parallel_apply([nn.ReLU(), nn.ReLU()], [torch.ones(1)])


def test_calls_side_by_side():
    def failing(x):
        raise KeyError("of a copy")

    class Records(nn.Module):
        def forward(self, x, scale=1):
            return x * scale, torch.is_grad_enabled()

    for recording in (True, False):
        with torch.set_grad_enabled(recording):
            found = parallel_apply([Records(), Records()], [torch.ones(1), (torch.ones(2),)], [{}, {"scale": 3}])
        assert [(x.tolist(), on) for x, on in found] == [([1], recording), ([3, 3], recording)]
    with pytest.raises(KeyError, match="of a copy"):
        parallel_apply([failing, Records()], [torch.ones(1), torch.ones(1)])


def test_several_processes_must_be_joined():
    with pytest.raises(ValueError, match="init_process_group"):
        DistributedDataParallel(model())
