"""Devices over immutable arrays: views, in-place changes and copies are those of the CPU."""

import numpy as np
import pluggy
import pytest

import corefw as torch
from corefw.dispatch import plugins
from corefw.dispatch.backend import Backend
from corefw.dispatch.functional import FunctionalRuntime
from corefw.dispatch.functional_memory import memory_kernels
from corefw.dispatch.registry import registry
from corefw.errors import KernelNotFoundError


class FrozenNumPy:
    """NumPy, whose new arrays cannot be written."""

    def __getattr__(self, name):
        found = getattr(np, name)
        if not callable(found) or isinstance(found, type):
            return found

        def frozen(*arguments, **options):
            result = found(*arguments, **options)
            result.flags.writeable = False
            return result

        return frozen


class FrozenRuntime(FunctionalRuntime):
    """The memory of the device "frozen"."""

    device_type = "frozen"


class Plugin:
    """What an installed package would be."""

    @pluggy.HookimplMarker("corefw")
    def corefw_backend(self):
        """The plugin hook."""
        runtime = FrozenRuntime(FrozenNumPy())
        functions = {"add": np.add, "mul": np.multiply, "sgd_step": sgd_step}
        kernels = memory_kernels(runtime) + [runtime.kernel(op, function) for op, function in functions.items()]
        kernels.append(runtime.kernel("sum", total, (torch.float32, torch.float64)))
        return Backend("frozen", "1", ("frozen",), {"frozen": kernels}, {"frozen": runtime})


def total(input, dim, keepdim):
    return np.sum(input, dim, keepdims=keepdim)


def sgd_step(params, grads, buffers, lr, *options):
    return [param - lr * grad for param, grad in zip(params, grads, strict=True)], buffers


@pytest.fixture(scope="module", autouse=True)
def device():
    if "frozen" not in registry.backends:
        plugins.register(Plugin(), "frozen")
    return "frozen"


def tensor():
    return torch.arange(24.0, dtype=torch.float32).reshape(2, 3, 4)


VIEWS = {
    "whole": lambda x: x,
    "transposed": lambda x: x.permute(2, 0, 1),
    "part": lambda x: x[:, 1:],
    "gaps": lambda x: x[..., ::2],
    "row": lambda x: x[1],
    "element": lambda x: x[1, 2, 3],
    "transposed row": lambda x: x.transpose(0, 2)[1],
    "expanded": lambda x: x[:, :1].expand(2, 5, 4),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "flat": lambda x: x.view(-1)[3:20],
    "none": lambda x: x[:, 3:],
    "other dtype": lambda x: x.view(torch.int16)[:, 1],
    "complex": lambda x: torch.view_as_complex(x.view(2, 3, 2, 2))[1],
}


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
def test_a_view_shows_what_it_shows_on_the_cpu(view):
    mine, theirs = view(tensor().to("frozen")), view(tensor())
    assert mine.stride() == theirs.stride() and mine.storage_offset() == theirs.storage_offset()
    assert mine.cpu().tolist() == theirs.tolist()
    assert mine.clone().tolist() == theirs.tolist() and mine.contiguous().tolist() == theirs.tolist()
    assert mine.contiguous().is_contiguous()


def test_a_copy_keeps_the_order_in_memory():
    assert VIEWS["transposed"](tensor().to("frozen")).clone().stride() == (1, 12, 4)


@pytest.mark.parametrize("name", [name for name in VIEWS if name != "expanded"])
def test_writing_to_a_view_changes_the_memory(name):
    view = VIEWS[name]
    mine, theirs = tensor().to("frozen"), tensor()
    for x in (mine, theirs):
        part = view(x)
        part.copy_(torch.full(part.shape, 7).to(x.device))
        view(x).mul_(part)
    assert mine.tolist() == theirs.tolist()


def test_gradients_of_views_arrive():
    found = []
    for device in ("cpu", "frozen"):
        x = tensor().to(device).requires_grad_()
        (x[:, 1:, ::2] * x.diagonal(0, 1, 2)[0, 0]).backward(torch.ones(2, 2, 2).to(device))
        found.append(x.grad.tolist())
    assert found[0] == found[1]


def test_a_number_beyond_a_dtype_is_infinite_and_no_warning():
    """NumPy's own conversion warns, and users may make errors of warnings."""
    x = torch.tensor(70000.0, device="frozen") + torch.ones(2, dtype=torch.float16, device="frozen")
    assert x.cpu().tolist() == [torch.inf, torch.inf]


def test_a_gradient_whose_sum_is_missing_names_it():
    """A broadcast gradient is summed; a device without that sum is told so, not that the gradient is wrong."""
    x, y = (torch.ones(*shape, dtype=torch.complex64).to("frozen").requires_grad_() for shape in [(2, 3), (3,)])
    with pytest.raises(KernelNotFoundError, match=r"^sum: no kernel for frozen:0/complex64"):
        x.clone().copy_(y).backward(torch.ones(2, 3, dtype=torch.complex64).to("frozen"))


def test_a_step_changes_parameters_and_host_sees_none_of_it():
    host = np.ones(3, np.float32)
    p = torch.from_numpy(host).to("frozen").requires_grad_()
    seen = p.detach()
    p.grad = torch.full((3,), 2.0).to("frozen")
    torch.optim.SGD([p], lr=0.5).step()
    assert p.tolist() == seen.tolist() == [0.0, 0.0, 0.0] and host.tolist() == [1.0, 1.0, 1.0]


def test_a_step_that_falls_back_changes_the_parameters(monkeypatch):
    monkeypatch.setattr(registry, "fallback", "cpu")
    p = torch.ones(3).to("frozen").requires_grad_()
    p.grad = torch.full((3,), 2.0).to("frozen")
    registry.forget()
    optimizer = torch.optim.Adam([p], lr=0.5)
    optimizer.step()
    assert p.tolist() == pytest.approx([0.5, 0.5, 0.5])
    assert optimizer.state[p]["step"] == 1 and optimizer.state[p]["exp_avg"].tolist() == pytest.approx([0.2] * 3)


def test_memory_ends_where_it_ends():
    with pytest.raises(RuntimeError, match="out of bounds for the storage"):
        torch.arange(6).to("frozen").as_strided((4,), (2,))
