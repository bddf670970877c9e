"""No op on a GPU waits for it, or copies to or from the host, unless its result's shape depends on the data."""

import pytest

from corefw.dispatch.registry import registry
from corefw.testing.checks import given, representative
from corefw.testing.families import kit_families
from corefw.testing.samples import samples
from corefw.testing.targets import Target

if "emulated" not in registry.runtimes:
    pytest.skip("there is no emulated device", allow_module_level=True)

from tests.emulation import driver

#: ops that must wait, and why; PyTorch's wait too, but for those made of `nonzero`
WAITING = {
    **dict.fromkeys(("nonzero", "argwhere", "masked_select", "unique", "unique_consecutive"), "the result's shape"),
    **dict.fromkeys(("repeated_positions", "repeat_interleave", "bincount", "one_hot"), "the result's shape"),
    **dict.fromkeys(("equal", "allclose", "is_nonzero"), "the result is a Python bool"),
    **dict.fromkeys(("tril_indices", "triu_indices", "combinations", "nonzero_static", "pdist"), "made of `nonzero`"),
    **dict.fromkeys(("rnn_tanh", "rnn_relu", "lstm", "gru"), "the row's batch sizes lie on the device"),
    "gaussian_nll_loss": "a negative variance is refused",
    **dict.fromkeys(("histc", "histogram", "histogramdd"), "without bounds, those of the elements"),
    **dict.fromkeys(
        ("cov", "istft", "linalg_lu_factor", "cholesky_inverse"),
        "weights, windows and pivots that give no result are refused",
    ),
    **dict.fromkeys(("embedding_bag", "coded_embedding_bag"), "offsets that begin or end elsewhere are refused"),
    **dict.fromkeys(("ctc_loss", "coded_ctc_loss"), "the lengths are checked"),
    **dict.fromkeys(
        ("ldl_factors", "linalg_ldl_factor", "linalg_ldl_factor_ex", "ldl_solution", "linalg_ldl_solve"),
        "the host chooses the pivots",
    ),
    "linalg_matrix_exp": "how often a matrix is halved",
}


@pytest.mark.parametrize("case", kit_families().cases(), ids=lambda case: case.op)
def test_nothing_waits(case):
    op = registry.declared[case.op]
    waited = set()
    for sample in samples(case, representative(case, op)):
        tensors = given(op.function, sample, Target("emulated", "emulated"))
        op.function(*tensors.arguments, **tensors.keywords)  # makes the constants that are kept
        tensors = given(op.function, sample, Target("emulated", "emulated"))
        driver.State.log.clear()
        op.function(*tensors.arguments, **tensors.keywords)
        waited.update(kind for kind, _ in driver.State.log)
    assert not waited or case.op in WAITING, f"{case.op}: {waited}"


def test_those_that_wait_are_ops():
    assert WAITING.keys() <= registry.declared.keys()
