"""Comparison of a layer with PyTorch's: same state, same inputs; outputs, gradients and buffers must agree."""

import numpy as np
import pytest

import corefw


def import_torch():
    """PyTorch; the test is skipped without it."""
    return pytest.importorskip("torch")


def to_torch(value):
    """A tensor of corefw, or an array, as PyTorch's."""
    torch = import_torch()
    if isinstance(value, corefw.Tensor):
        value = value.detach().numpy()
    return torch.from_numpy(np.array(value)) if isinstance(value, np.ndarray) else value


def to_corefw(value):
    """A tensor of PyTorch, or an array, as corefw's."""
    if isinstance(value, np.ndarray):
        return corefw.tensor(value)
    return corefw.tensor(value.detach().numpy()) if type(value).__module__.startswith("torch") else value


def _outputs(result) -> list:
    return [r for r in (result if isinstance(result, tuple) else (result,)) if r is not None]


def compare_layers(ours, theirs, *inputs, tolerance: float = 1e-5, **options) -> None:
    """Give `ours` the state of `theirs`, call both with the arrays, and compare everything that comes of it."""
    torch = import_torch()
    assert repr(ours) == repr(theirs).replace("NonDynamicallyQuantizableLinear", "Linear")
    state = theirs.state_dict()
    assert list(ours.state_dict()) == list(state)
    ours.load_state_dict({name: to_corefw(value) for name, value in state.items()})

    def floating(array):
        return isinstance(array, np.ndarray) and array.dtype.kind == "f"

    mine = [to_corefw(a).requires_grad_() if floating(a) else to_corefw(a) for a in inputs]
    yours = [to_torch(a).requires_grad_() if floating(a) else to_torch(a) for a in inputs]
    results = _outputs(ours(*mine, **{k: to_corefw(v) for k, v in options.items()}))
    expected = _outputs(theirs(*yours, **{k: to_torch(v) for k, v in options.items()}))
    assert len(results) == len(expected)
    rng = np.random.default_rng(0)
    total, wanted = 0, 0
    for a, e in zip(results, expected):
        weights = rng.normal(size=tuple(e.shape)).astype(np.float32)
        np.testing.assert_allclose(a.detach().numpy(), e.detach().numpy(), tolerance, tolerance)
        total, wanted = total + (a * corefw.tensor(weights)).sum(), wanted + (e * torch.from_numpy(weights)).sum()
    total.backward()
    wanted.backward()
    leaves = [*zip(mine, yours), *zip(ours.parameters(), theirs.parameters(), strict=True)]
    for a, e in leaves:
        if getattr(e, "grad", None) is not None:
            np.testing.assert_allclose(a.grad.numpy(), e.grad.numpy(), tolerance, 4 * tolerance)
        else:
            assert getattr(a, "grad", None) is None
    for (name, a), (_, e) in zip(ours.named_buffers(), theirs.named_buffers(), strict=True):
        np.testing.assert_allclose(a.numpy(), e.numpy(), tolerance, tolerance, err_msg=name)
