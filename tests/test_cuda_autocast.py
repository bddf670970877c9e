"""autocast and GradScaler on a GPU, or on the emulated device where there is none."""

import pytest

import corefw as torch
from corefw.dispatch.registry import registry

ACCELERATOR = "cuda" if torch.cuda.is_available() else "emulated" if "emulated" in registry.runtimes else None
pytestmark = pytest.mark.skipif(ACCELERATOR is None, reason="neither a GPU nor what emulates it")


def test_a_network_trains_in_float16():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2)).to(ACCELERATOR)
    x, target = torch.randn(6, 4).to(ACCELERATOR), (torch.arange(6) % 2).to(ACCELERATOR)
    optimizer, scaler = torch.optim.SGD(model.parameters(), 0.1), torch.amp.GradScaler(ACCELERATOR, init_scale=1024.0)
    losses = []
    for step in range(4):
        optimizer.zero_grad()
        with torch.autocast(ACCELERATOR):
            assert (
                model[1](model[0](x)).dtype is torch.float32
                and torch.ones(2, 2).mm(torch.ones(2, 2)).dtype is torch.float32
            )
            output = model(x)
            loss = torch.nn.functional.cross_entropy(output, target)
        assert output.dtype is torch.float16 and loss.dtype is torch.float32
        scaler.scale(loss * (float("inf") if step == 1 else 1)).backward()
        assert all(p.grad.dtype is torch.float32 for p in model.parameters())
        before = model[0].weight.detach().clone()
        scaler.step(optimizer)
        scaler.update()
        assert bool((before == model[0].weight).all()) is (step == 1)
        losses.append(loss.item())
    assert losses[3] < losses[0] and scaler.get_scale() == 512
