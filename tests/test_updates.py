"""Ops that change lists of tensors in place: what they refuse, kernels on copies, and the structs made of their
signatures."""

import importlib.machinery
import importlib.util
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import corefw as torch
from corefw import nn
from corefw.dispatch.declare import ops
from corefw.dispatch.registry import registry
from tests import loopback


def test_step_ops_refuse_what_gradients_could_not_follow():
    w, grad = torch.ones(2), torch.ones(2)
    sgd = partial(ops.sgd_step, lr=0.5, momentum=0, dampening=0, weight_decay=0, nesterov=False, first=False)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        sgd([w.clone().requires_grad_()], [grad], [], maximize=False)
    with pytest.raises(RuntimeError, match="sgd_step: the derivative is not implemented"):
        sgd([w.clone().requires_grad_() * 1], [grad], [], maximize=False)
    with torch.inference_mode():
        inferred = torch.ones(2)
        sgd([inferred], [grad], [], maximize=False)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        sgd([inferred], [grad], [], maximize=False)
    with pytest.raises(RuntimeError, match="sgd_step"):
        sgd([w], [torch.ones(3)], [], maximize=False)
    with pytest.raises(TypeError, match="element 1 in argument 'params'"):
        sgd([w, 1], [grad, grad], [], maximize=False)


def stepped(dtype, device, monkeypatch, offers):
    """A parameter after two steps of Adam by the kernels in `offers`."""
    monkeypatch.setitem(registry.kernels, ("adam_step", device), offers)
    registry.forget()
    w = nn.Parameter(torch.tensor([1.0, -2.0, 3.0]).to(device=device, dtype=dtype))
    optimizer = torch.optim.Adam([w], lr=0.25, eps=0.5)
    for _ in range(2):
        w.grad = torch.tensor([1.0, 2.0, -4.0]).to(device=device, dtype=dtype)
        optimizer.step()
    registry.forget()
    return w.detach().cpu()


def test_kernels_of_wider_dtypes_and_of_the_fallback_leave_their_results(monkeypatch):
    loopback.install()
    (kernel,) = [k for k in registry.backends["numpy"].kernels["cpu"] if k.op == "adam_step"]
    numpy = registry.backends["numpy"]
    wanted = stepped(torch.float32, "cpu", monkeypatch, [(numpy, kernel)])
    narrow = replace(kernel, dtypes=frozenset({torch.float32}))
    made = stepped(torch.bfloat16, "cpu", monkeypatch, [(numpy, narrow)])
    torch.testing.assert_close(made.float(), wanted, rtol=0.01, atol=0.01)
    monkeypatch.setattr(registry, "fallback", "cpu")
    assert torch.equal(stepped(torch.float32, "loopback", monkeypatch, []), wanted)


def test_the_structs_of_steps_are_current():
    path = Path(__file__).parent.parent / "scripts" / "make_steps"
    loader = importlib.machinery.SourceFileLoader("make_steps", str(path))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("make_steps", loader))
    loader.exec_module(module)
    for file, text in module.texts().items():
        assert file.read_text() == text, "run make generated"
