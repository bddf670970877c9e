"""Every row of the kit, compiled: a replay on other elements gives what the op gives, gradients too, bit for bit."""

import numpy as np
import pytest

import corefw
from corefw.dispatch.registry import registry
from corefw.testing.checks import case_dtypes, flat
from corefw.testing.families import kit_families
from corefw.testing.properties import has_gradient
from corefw.testing.samples import samples, to_tensor

#: ops that look at elements, or whose results have shapes that depend on them
LOOKING = {
    *("allclose", "argwhere", "bincount", "cholesky_inverse", "coded_ctc_loss", "coded_embedding_bag"),
    *("combinations", "ctc_loss", "det", "embedding_bag", "equal", "gaussian_nll_loss", "histc", "histogram"),
    *("histogramdd", "is_nonzero", "linalg_det", "linalg_ldl_factor", "linalg_ldl_solve", "linalg_lu_factor"),
    *("linalg_matrix_exp", "linalg_slogdet", "masked_scatter", "masked_select", "nonzero", "nonzero_static"),
    *("one_hot", "pdist", "repeat_interleave", "repeated_positions", "slogdet", "unique", "unique_consecutive"),
}
#: rows whose integers have an order
ORDERED = ("embedding_bag", "coded_embedding_bag", "csr_matmul", "csr_sampled_matmul", "csr_transposed_matmul")


def reversed_elements(array):
    """The same elements in another order: inside the op's domain, as the others were."""
    return array.ravel()[::-1].reshape(array.shape).copy()


def called(op, sample, wants_gradient):
    """The results of a call, and the gradients of its floating arguments."""
    leaves = []

    def given(array):
        tensor = to_tensor(array)
        if wants_gradient and tensor.is_floating_point():
            leaves.append(tensor.requires_grad_())
        return tensor

    def compute(tensors):
        found = iter([t.clone() for t in tensors])  # a view of an argument would not be replayed
        arguments = sample.map(lambda _: next(found))
        return flat(op(*arguments.arguments, **arguments.keywords))

    return given, leaves, compute


def results(function, tensors, leaves):
    corefw.manual_seed(3)
    found = [t for t in function(tensors) if isinstance(t, corefw.Tensor)]
    floating = [t for t in found if t.requires_grad and t.is_floating_point()]
    if floating:
        weighted = [(t * corefw.linspace(0.5, 1.5, t.numel(), dtype=t.dtype).reshape(t.shape)).sum() for t in floating]
        sum(weighted[1:], weighted[0]).backward()
    return [np.array(t.detach()) for t in found], [None if t.grad is None else np.array(t.grad) for t in leaves]


def check_row(case, op, d):
    """Whether a row is replayed; None where there is nothing to replay."""
    sample = next((s for s in samples(case, d) if all(a.size for a in s.arrays())), None)
    if sample is None or not sample.arrays():
        return None
    keep = {
        i for i, a in enumerate(sample.arrays()) if i in case.constant or (case.op in ORDERED and a.dtype.kind == "i")
    }
    other = sample.map_numbered(lambda i, a: a if i in keep else reversed_elements(a))
    wants_gradient = d.is_floating_point and has_gradient(case, op)
    outcomes = []
    for compiled in (False, True):
        given, leaves, compute = called(op.function, sample, wants_gradient)
        function = corefw.compile(compute) if compiled else compute
        for arrays in (sample, sample, sample, other) if compiled else (other,):
            leaves.clear()
            found = results(function, [given(a) for a in arrays.arrays()], leaves)
        outcomes.append(found)
    (values, gradients), (replayed, replayed_gradients) = outcomes
    for expected, got in zip([*values, *gradients], [*replayed, *replayed_gradients], strict=True):
        np.testing.assert_array_equal(got, expected)
    return function.replays == 2  # the first of which may prepare others


@pytest.mark.parametrize("family", kit_families())
def test_replays_give_what_ops_give(family):
    outcomes = {}
    for case in kit_families()[family]:
        op = registry.declared.get(case.op)
        if op is None or op.update:
            continue
        for d in {corefw.float32, corefw.int64} & {*case_dtypes(case, op)}:
            try:
                outcomes.setdefault(case.op, set()).add(check_row(case, op, d))
            except BaseException as error:
                error.add_note(f"{case.op} {d}")
                raise
    looking = {name for name, found in outcomes.items() if False in found}
    assert looking == LOOKING & outcomes.keys()
