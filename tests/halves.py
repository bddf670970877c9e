"""What the tests of half types share: the levels of the C backend that this machine has, and by emulated tiles; random
operands; how near results are to those of float32 and float64."""

import numpy as np

import corefw as torch
from corefw.dispatch.registry import registry

torch.zeros(1)
LEVELS = [name for name in registry.backends if name.partition("-")[0] == "c"]
#: those that have kernels of all families
WHOLE = [level for level in LEVELS if any(kernel.op == "sum" for kernel in registry.backends[level].kernels["cpu"])]
HALVES = {"bfloat16": 2**-8, "float16": 2**-11}  # half a unit in the last place of 1


def random(dtype, *shape):
    return torch.from_numpy(np.random.standard_normal(shape)).to(getattr(torch, dtype))


def f64(tensor):
    return tensor.detach().double().numpy()


def check(result, expected, moduli, dtype, lost=2.0**-21):
    """Whether a result is the expected one rounded once, but for what sums in float32 may lose of their moduli."""
    error = np.abs(f64(result) - expected)
    assert result.dtype is getattr(torch, dtype)
    assert (error <= HALVES[dtype] * np.abs(expected) + lost * moduli + 1e-7).all(), error.max()


def near(found, exact, dtype):
    """Check that a result is an exact one rounded once, but for what float32 loses before."""
    once = HALVES[dtype] if found.dtype is getattr(torch, dtype) else 0
    lost = 3e-6 * max(1, np.abs(f64(exact)).max(initial=0))
    np.testing.assert_allclose(f64(found), f64(exact), rtol=once, atol=lost + 2.0**-25)


def rounded(function, *halves, level):
    """Check that a function of half types gives what it gives of float32, rounded where it is floating."""
    dtype = halves[0].dtype
    with torch.backend(level):
        found, wide = function(*halves), function(*(x.float() for x in halves))
    for a, b in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, wide)), strict=True):
        assert a.dtype is (dtype if b.dtype is torch.float32 else b.dtype)
        np.testing.assert_array_equal(
            *(t.to(dtype).float().numpy() for t in (a, b)), err_msg=f"{tuple(halves[0].shape)}"
        )


def check_gradients(function, operands, level, dtype):
    """Compare a function of half types, perhaps beside float32, and its gradients with those in float64."""
    leaves = [t.detach().requires_grad_(t.is_floating_point()) for t in operands]
    wide = [t.detach().double().requires_grad_() if t.requires_grad else t for t in leaves]
    wanted = [t.requires_grad for t in leaves]
    with torch.backend(level):
        y = function(*leaves)
        gradient = random(dtype, *y.shape)
        found = torch.autograd.grad(y, [t for t in leaves if t.requires_grad], gradient, allow_unused=True)
    with torch.backend("numpy"):
        exact = function(*wide)
        near(y, exact, dtype)
        exact = torch.autograd.grad(exact, [t for t in wide if t.requires_grad], gradient.double(), allow_unused=True)
    for leaf, one, other in zip([t for t, w in zip(leaves, wanted) if w], found, exact, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            assert one.dtype is leaf.dtype
            near(one, other, dtype)
