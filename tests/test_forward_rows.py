"""Forward-mode derivatives of every row of the kit: tangents are differences of values, whatever an op's way is."""

import numpy as np
import pytest

import corefw
from corefw.autograd import forward_ad
from corefw.autograd.duals.calls import how
from corefw.dispatch.registry import registry
from corefw.testing.checks import flat
from corefw.testing.differences import differentiable
from corefw.testing.families import kit_families
from corefw.testing.properties import _differentiated, has_gradient
from corefw.testing.samples import samples, to_tensor

STEP = 1e-6


def outputs(op, sample, arrays, tangents=None):
    """The floating results of a call in which other arrays stand; their tangents if the arrays have some."""

    def given(i, array):
        if i not in arrays:
            return to_tensor(array)
        tensor = to_tensor(arrays[i])
        return tensor if tangents is None else forward_ad.make_dual(tensor, to_tensor(tangents[i]))

    called = sample.map_numbered(given)
    found = flat(op.function(*called.arguments, **called.keywords))
    floating = [t for t in found if isinstance(t, corefw.Tensor) and (t.is_floating_point() or t.is_complex())]
    if tangents is None:
        return [np.asarray(t) for t in floating]
    return [np.asarray(zeros_for_none(*forward_ad.unpack_dual(t))) for t in floating]


def zeros_for_none(primal, tangent):
    return corefw.zeros_like(primal) if tangent is None else tangent


def check_row(case, op, d):
    """The tangents of one call of an op; whether there was anything to compare."""
    sample = next((s for s in samples(case, d) if all(a.size for a in s.arrays())), None)
    if sample is None:
        return False
    arrays = {i: a for i, a in enumerate(sample.arrays()) if a.dtype.kind in "fc" and i not in case.constant}
    if not arrays or not differentiable(flat(called(op, sample))):
        return False
    rng = np.random.default_rng(0)
    tangents = {}
    for i, array in arrays.items():
        tangents[i] = rng.standard_normal(array.shape).astype(array.dtype)
        if array.dtype.kind == "c":
            tangents[i] = tangents[i] + 1j * rng.standard_normal(array.shape)
    with forward_ad.dual_level():
        found = outputs(op, sample, arrays, tangents)
    above, below = (
        outputs(op, sample, {i: a + step * tangents[i] for i, a in arrays.items()}) for step in (STEP, -STEP)
    )
    for tangent, high, low in zip(found, above, below, strict=True):
        scale = max(1.0, np.abs(high).max(initial=0.0))
        np.testing.assert_allclose(tangent, (high - low) / (2 * STEP), rtol=1e-5, atol=2e-8 * scale)
    return True


def called(op, sample):
    tensors = sample.map(to_tensor)
    return op.function(*tensors.arguments, **tensors.keywords)


@pytest.mark.parametrize("family", kit_families())
def test_tangents_are_differences_of_values(family):
    for case in kit_families()[family]:
        op = registry.declared.get(case.op)
        if op is None or op.update or not has_gradient(case, op):
            continue
        for d in _differentiated(case, op):
            try:
                check_row(case, op, d)
            except BaseException as error:
                error.add_note(f"{case.op} {d} ({how(op)})")
                raise
