"""Inference mode: tensors made in it are not changed outside of it, nor saved for a backward."""

import threading

import pytest

import corefw
from tests.functions import Square
from tests.parity import import_torch

PROGRAMS = """
r = x.is_inference(), x[0].is_inference(), x.detach().is_inference(), x.view(2, 1).is_inference()
r = x.clone().is_inference(), (x + 1).is_inference(), t.cat((x, x)).is_inference()
x.add_(1)
x.zero_()
x[0] = 1
x[0].mul_(2)
x.data.add_(1)
t.add(x, x, out=x)
x.requires_grad_()
r = x._version
r = x * w
r = x + w
r = w[i]
r = w.index_select(0, i)
r = m(t.ones(1, 2))
r = m(w[None])
r = t.addcmul(w, x, x)
r = m.weight.is_inference()
y = x.clone(); y.add_(1); r = y * w
with t.no_grad(): x.add_(1)
with t.inference_mode(): x.add_(1); r = x
with t.inference_mode(): v = w.detach()[0]; v.add_(1); r = v.is_inference(), v._version
with t.inference_mode(): w.mul_(2); r = w._version
with t.inference_mode(), t.inference_mode(False): r = t.ones(2).is_inference()
with t.inference_mode(): r = (x * w).is_inference(), w[0].is_inference(), w.detach().is_inference()
with t.inference_mode(): a, b = t.topk(x, 1); r = a.is_inference(), b.is_inference()
with t.inference_mode(): y = t.ones(2, requires_grad=True); r = y.requires_grad, (y * 2).requires_grad
with t.inference_mode(): r = [f.is_inference() for f in (t.rand(2), t.arange(2), t.tensor([1]), t.empty(2))]
with t.inference_mode(): r = [f.is_inference() for f in (x.double(), x.sum(), x.max(0)[0], t.where(x > 0, 1, 2))]
"""


def outcome(t, program):
    with t.inference_mode():
        x, m, i = t.ones(2), t.nn.Linear(2, 2), t.tensor([0])
        for p in m.parameters():
            p.detach().fill_(1)
    names = {"t": t, "x": x, "m": m, "i": i, "w": t.ones(2, requires_grad=True), "r": None}
    try:
        exec(program, names)
    except RuntimeError as error:
        return str(error)[:40]
    r = names["r"]
    return (r.tolist(), r.requires_grad) if isinstance(r, t.Tensor) else r


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS.strip().splitlines())
def test_tensors_of_inference_mode_outside_of_it(program):
    assert outcome(corefw, program) == outcome(import_torch(), program)


def test_changes_and_gradients_are_refused():
    with corefw.inference_mode():
        x = corefw.ones(2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        x.add_(1)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        corefw.ones(2, requires_grad=True) * x

    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        Square.apply(x + corefw.ones(2, requires_grad=True)) + Square.apply(_requiring(x))


def _requiring(x):
    with corefw.inference_mode():
        return x.requires_grad_()


def test_other_threads_are_not_concerned():
    found = []

    def make():
        y = corefw.ones(2)
        y.add_(1)
        found.append(y.is_inference())

    with corefw.inference_mode():
        thread = threading.Thread(target=make)
        thread.start()
        thread.join()
        found.append(corefw.ones(2).is_inference())
    found.append(corefw.ones(2).is_inference())
    assert found == [False, True, False]
