"""Random programs of views and in-place changes have PyTorch's values and gradients."""

import random

import numpy as np
import pytest

import corefw

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle

#: what may be done with two tensors: new tensors, and changes in place
NEW = (
    lambda a, b: a * b,
    lambda a, b: a + b,
    lambda a, b: a[0],
    lambda a, b: a[..., 1:],
    lambda a, b: a.transpose(0, -1),
    lambda a, b: a.reshape(-1) if a.is_contiguous() else a.sin(),
    lambda a, b: a.unsqueeze(0),
    lambda a, b: a.detach(),
    lambda a, b: a.expand(2, *a.shape).contiguous(),
)
CHANGES = (
    lambda a, b: a.mul_(b),
    lambda a, b: a.add_(b * 2),
    lambda a, b: a.__setitem__(0, 1.5),
    lambda a, b: a.sin_(),
    lambda a, b: a.zero_(),
)


def run(framework, seed):
    """The tensors and gradients (None if they cannot be computed) of one program, and what its steps raised."""
    rng = random.Random(seed)
    leaves = [
        framework.tensor(np.linspace(*ends, 6).reshape(2, 3).tolist(), dtype=framework.float64, requires_grad=True)
        for ends in ((0.5, 2.0), (-1.0, 1.0))
    ]
    tensors = [leaf * 1.0 for leaf in leaves]
    errors = []
    for _ in range(rng.randint(3, 12)):
        a, b = rng.choice(tensors), rng.choice(tensors)
        new, step, record = rng.random() < 0.6, rng.random(), rng.random() < 0.9
        steps = NEW if new else CHANGES
        try:
            with framework.set_grad_enabled(new or record):
                result = steps[int(step * len(steps))](a, b)
        except (RuntimeError, IndexError) as error:
            errors.append(str(error))
        else:
            tensors += [result] if new else []
    try:
        gradients = framework.autograd.grad(sum((t * t).sum() for t in tensors), leaves, allow_unused=True)
    except RuntimeError as error:
        assert "modified by an inplace operation" in str(error)
        gradients = None
    return tensors, gradients, errors


@pytest.mark.parametrize("hundred", range(4))
def test_programs(hundred):
    compared = 0
    for seed in range(100 * hundred, 100 * hundred + 100):
        tensors, gradients, errors = run(torch, seed)
        if any("single memory" in e or "leaf Variable" in e for e in errors):
            continue  # PyTorch refuses overlapping operands, and views whose base got its history later
        ours, our_gradients, our_errors = run(corefw, seed)
        assert len(our_errors) == len(errors), seed
        for a, b in zip(ours, tensors, strict=True):
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), err_msg=f"values, program {seed}")
            assert a.requires_grad == b.requires_grad, seed
        assert (our_gradients is None) == (gradients is None), seed
        for a, b in zip(our_gradients or (), gradients or (), strict=True):
            assert (a is None) == (b is None), seed
            if a is not None:
                np.testing.assert_allclose(a.numpy(), b.numpy(), err_msg=f"gradients, program {seed}")
                compared += 1
    assert compared > 30
