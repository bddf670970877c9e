"""Read-only memory: tensors over immutable bytes, read-only arrays and memory maps are refused as targets, and kept."""

import inspect
import subprocess
import sys

import numpy as np
import pytest

import corefw as torch
from corefw.dispatch.registry import registry
from corefw.errors import ReadOnlyError
from corefw.testing import Target, samples
from corefw.testing.checks import call, representative
from corefw.testing.families import kit_families

torch.zeros(1)
BACKENDS = [name for name in registry.backends if name in ("numpy", "c")]
backends = pytest.mark.parametrize("backend", BACKENDS)

#: more bytes than what the C backend leaves to NumPy
COUNT = 4096


def fixed(array):
    """A tensor over a read-only array of the same content."""
    memory = np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape)
    with pytest.warns(UserWarning, match="not writable"):
        return torch.from_numpy(memory)


def content(tensors):
    return [t.numpy().tobytes() for t in tensors]


# -- single tensors ---------------------------------------------------------------------------------------------------
INDEX = "torch.tensor([0])"
CHANGES = (
    "x.add_(1)",
    "x.add_(torch.ones(64, 1))",
    "x.fill_(1)",
    "x.zero_()",
    "x.copy_(torch.ones(64, 64))",
    "x.uniform_()",
    "x.relu_()",
    "x.cumsum_(0)",
    "x.scatter_(0, torch.zeros(1, 64, dtype=torch.int64), 7.0)",
    "x.scatter_add_(0, torch.zeros(1, 64, dtype=torch.int64), torch.ones(1, 64))",
    "x.scatter_reduce_(0, torch.zeros(1, 64, dtype=torch.int64), torch.ones(1, 64), 'amax')",
    f"x.index_add_(0, {INDEX}, torch.ones(1, 64))",
    f"x.index_copy_(0, {INDEX}, torch.ones(1, 64))",
    f"x.index_fill_(0, {INDEX}, 7.0)",
    f"x.index_put_(({INDEX},), torch.tensor(7.0))",
    f"x.index_put_(({INDEX},), torch.tensor(7.0), accumulate=True)",
    f"x.t().index_put_(({INDEX},), torch.tensor(7.0), accumulate=True)",
    f"x.put_({INDEX}, torch.tensor([7.0]))",
    f"x.t().put_({INDEX}, torch.tensor([7.0]))",
    "x.masked_fill_(x == 0, 7.0)",
    "x.masked_scatter_(x == 0, torch.ones(64 * 64))",
    "x.t().masked_scatter_(x.t() == 0, torch.ones(64 * 64))",
    "x.__setitem__(0, 7.0)",
    "x.__setitem__(x == 0, 7.0)",
    f"x.__setitem__({INDEX}, 7.0)",
    "x.apply_(lambda v: v + 1)",
    "torch.add(x, 1, out=x)",
    "torch.matmul(torch.ones(64, 64), torch.ones(64, 64), out=x)",
    "torch.sort(torch.ones(64, 64), out=(torch.empty(64, 64), x.view(torch.int64)))",
)


@backends
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_refused(backend, change):
    x = fixed(np.zeros((64, 64), np.int64 if "sort" in change else np.float32))
    with torch.backend(backend), pytest.raises(ReadOnlyError, match=r"read-only.*clone\(\)"):
        eval(change, {"torch": torch, "x": x})
    assert not x.numpy().any()


def test_the_error_is_what_numpy_and_pytorch_users_catch():
    assert issubclass(ReadOnlyError, ValueError) and issubclass(ReadOnlyError, RuntimeError)
    with pytest.raises(ReadOnlyError, match=r"^add_: "):
        fixed(np.zeros(3)).add_(1)


@pytest.mark.parametrize("normalise", [torch.nn.functional.batch_norm, torch.nn.functional.instance_norm])
def test_running_statistics_move_both_or_not_at_all(normalise):
    mean = torch.zeros(1)
    with pytest.raises(ReadOnlyError):
        normalise(torch.tensor([[[1.0, 3.0]]]), mean, fixed(np.ones(1, np.float32)), None, None, True)
    assert mean.item() == 0


@backends
def test_bytes_are_immutable(backend):
    with pytest.warns(UserWarning, match="not writable"):
        x = torch.frombuffer(data := bytes(range(16)), dtype=torch.uint8)
    with torch.backend(backend), pytest.raises(ReadOnlyError):
        x.scatter_(0, torch.tensor([0, 1]), 255)
    assert data == bytes(range(16))
    assert (x.clone().scatter_(0, torch.tensor([0, 1]), 255)[:3].tolist()) == [255, 255, 2]


@backends
def test_a_memory_map_is_refused_and_the_process_lives(backend, tmp_path):
    np.zeros((64, 64), np.float32).tofile(path := tmp_path / "zeros.bin")
    program = f"""
import warnings, numpy, corefw as torch
warnings.simplefilter("ignore")
x = torch.from_numpy(numpy.memmap({str(path)!r}, numpy.float32, "r", shape=(64, 64)))
torch.zeros(1)
with torch.backend({backend!r}):
    for change in {[change for change in CHANGES if "sort" not in change]!r}:
        try:
            eval(change)
        except torch.errors.ReadOnlyError:
            continue
        raise AssertionError(change)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not any(path.read_bytes())


# -- lists of tensors -------------------------------------------------------------------------------------------------
OPTIMIZERS = {
    name: kind
    for name, kind in vars(torch.optim).items()
    if inspect.isclass(kind) and issubclass(kind, torch.optim.Optimizer) and kind is not torch.optim.Optimizer
}
OPTIONS = {"SGD": {"momentum": 0.9, "dampening": 0.5}, "RMSprop": {"momentum": 0.9, "centered": True}}
OPTIONS["Adam"] = {"amsgrad": True, "weight_decay": 0.1}


def parameters(kind):
    """Parameters with gradients, of which the second one is over read-only memory."""
    made = [torch.full((3, 4), float(i)) for i in range(3)]
    if kind == "strided":
        made[0] = made[0].t()
    made[1] = fixed(np.ones((3, 4), np.float64 if kind == "dtypes" else np.float32))
    return [torch.nn.Parameter(p) for p in made]


def with_gradients(params, sparse=False):
    for p in params:
        p.grad = torch.ones_like(p).to_sparse(1) if sparse else torch.ones_like(p)
    return params


def lists_of(kind, params):
    return [{"params": [p]} for p in params] if kind == "groups" else params


def step(optimizer, params):
    """A step of an optimizer that may want to know the loss."""
    loss = sum((p.double() ** 2).sum() for p in params).detach()
    return optimizer.step(lambda: loss) if isinstance(optimizer, torch.optim.LBFGS) else optimizer.step()


@backends
@pytest.mark.parametrize("kind", ["alike", "strided", "dtypes", "groups"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_refused_step_changes_no_parameter(backend, name, kind):
    if name == "LBFGS" and kind == "groups":
        return  # it takes one group
    params = with_gradients(parameters(kind), name == "SparseAdam")
    before = content(p.detach() for p in params)
    with torch.backend(backend):
        optimizer = OPTIMIZERS[name](lists_of(kind, params), lr=0.1, **OPTIONS.get(name, {}))
        with pytest.raises(ReadOnlyError):
            step(optimizer, params)
        assert content(p.detach() for p in params) == before
        if name == "LBFGS":
            return  # has counted its evaluation of the loss
        params[1].data = params[1].detach().clone()  # what the message says
        step(optimizer, params)
        others = with_gradients(
            [
                torch.nn.Parameter(
                    torch.from_numpy(np.frombuffer(b, p.numpy(force=True).dtype).copy()).reshape(p.shape)
                )
                for b, p in zip(before, params, strict=True)
            ],
            name == "SparseAdam",
        )
        if kind != "strided":
            step(OPTIMIZERS[name](lists_of(kind, others), lr=0.1, **OPTIONS.get(name, {})), others)
            assert content(p.detach() for p in params) == content(p.detach() for p in others)


@backends
@pytest.mark.parametrize("kind", ["alike", "strided", "dtypes"])
@pytest.mark.parametrize("clip", ["clip_grad_norm_", "clip_grad_value_"])
def test_refused_clipping_changes_no_gradient(backend, clip, kind):
    params = [torch.nn.Parameter(torch.zeros_like(p)) for p in parameters(kind)]
    for p, gradient in zip(params, parameters(kind), strict=True):
        p.grad = gradient.detach() * 9 + 9 if gradient.detach().numpy().flags.writeable else gradient.detach()
    gradients = [p.grad for p in params]
    before = content(gradients)
    with torch.backend(backend), pytest.raises(ReadOnlyError):
        getattr(torch.nn.utils, clip)(params, 0.1)
    assert content(gradients) == before


def test_a_gradient_is_not_added_to_read_only_memory():
    p = torch.zeros(3, requires_grad=True)
    p.grad = fixed(np.ones(3, np.float32))
    with pytest.raises(ReadOnlyError, match="backward"):
        (p * 2).sum().backward()
    assert p.grad.tolist() == [1, 1, 1]


# -- kernels ----------------------------------------------------------------------------------------------------------
class Allocations:
    """In place of `empty`: arrays of a known content, of which number `locked` is read-only."""

    def __init__(self, locked):
        self.locked, self.count, self.memory = locked, 0, None

    def __call__(self, shape, dtype=float):
        size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
        memory = np.full(size, 0xA5, np.uint8)
        array = memory.view(dtype).reshape(shape) if size else np.empty(shape, dtype)
        if self.count == self.locked:
            self.memory, array.flags.writeable = memory, False
        self.count += 1
        return array


@pytest.mark.skipif("c" not in BACKENDS, reason="its kernels are tested")
def test_c_kernels_write_to_no_read_only_result(monkeypatch):
    """Each result that a shim allocates is made read-only in turn: the kernel must leave it as it is."""
    modules = [m for name, m in sys.modules.items() if name.startswith("corefw_c.") and hasattr(m, "empty")]
    target, refused = Target("c", "cpu"), set()
    with target.preferred():
        for case in kit_families().cases():
            op = registry.declared[case.op]
            if not target.concerns(op):
                continue
            for sample in samples(case, representative(case, op)):
                if not all(a.size for a in sample.arrays()):
                    continue
                for locked in range(8):
                    allocations = Allocations(locked)
                    with monkeypatch.context() as patch:
                        for module in modules:
                            patch.setattr(module, "empty", allocations)
                        try:
                            call(op.function, sample, target)
                        except ReadOnlyError:
                            refused.add(op.name)
                        except ValueError:
                            pass  # NumPy's
                    if allocations.count <= locked:
                        break
                    assert (allocations.memory == 0xA5).all(), f"{op.name}: {sample}"
    assert len(refused) > 60, sorted(refused)
