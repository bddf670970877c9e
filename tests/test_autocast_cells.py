"""autocast: cells of recurrent layers, whose state may have another dtype than their input."""

import pytest

import corefw
from corefw import nn

BFLOAT16, FLOAT32 = corefw.bfloat16, corefw.float32


@pytest.mark.parametrize("state", [FLOAT32, BFLOAT16, None])
@pytest.mark.parametrize("input", [FLOAT32, BFLOAT16])
@pytest.mark.parametrize("kind", ["LSTMCell", "GRUCell"])
def test_cells_are_in_the_dtype_of_their_state(kind, input, state):
    corefw.manual_seed(0)
    cell, x, h = getattr(nn, kind)(3, 4), corefw.randn(2, 3), corefw.randn(2, 4)
    states = (h, h / 2) if kind == "LSTMCell" else h
    expected = cell(x, states if state else None)
    with corefw.autocast("cpu"):
        given = h.to(state) if state else None
        found = cell(x.to(input), (given, given / 2) if state and kind == "LSTMCell" else given)
    for one, right in zip(*(t if isinstance(t, tuple) else (t,) for t in (found, expected)), strict=True):
        assert one.dtype is (state or input)
        corefw.testing.assert_close(one.float(), right, rtol=0.02, atol=0.02)
    sum(t.float().sum() for t in (found if isinstance(found, tuple) else (found,))).backward()
    assert cell.weight_ih.grad.dtype is FLOAT32
