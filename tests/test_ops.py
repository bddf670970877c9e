"""Every property of every op, on every backend: one test per row of corefw/testing/cases, property and target."""

from corefw.dispatch.registry import registry
from corefw.testing.conformance import test_op
from corefw.testing.families import kit_families
from tests import loopback

loopback.install()

#: families, and single ops, without rows, with the reason
_ARBITRARY = "the elements are arbitrary: tests/test_creation.py"
_INPLACE = "changes its input; the rows of the op without underscore cover it, and tests/test_indexing.py"
_STREAM = "the values come from a stream: tests/test_random.py and tests/test_philox.py"
WITHOUT_ROW: dict[str, str] = {
    **dict.fromkeys(("empty", "empty_like", "empty_permuted", "empty_strided"), _ARBITRARY),
    **dict.fromkeys(("new_empty", "new_empty_strided"), _ARBITRARY),
    **dict.fromkeys(("copy_", "zero_", "scatter_", "index_reduce_"), _INPLACE),
    "embedding_renorm_": "changes its input: tests/test_embedding.py",
    "range": "warns that it is deprecated, which is an error here",
    "unique_values": "the kernel of unique and unique_consecutive",
    "view_as_complex": "takes one memory layout only: tests/test_pointwise.py",
    "select_backward": "the gradient of picking elements (amax, median, sort), tested through it",
    "distribute": "the gradient among equal elements (amax, norms), tested through it",
    **dict.fromkeys(("random", "sampling", "filling", "dropout"), _STREAM),
    "total_norm": "takes a list of tensors for one vector: tests/test_nn_utils.py and tests/test_cuda_optimizer.py",
}

__all__ = ["test_op"]


def _needs_row(op) -> bool:
    """Ops that take a place instead of tensors are called by the functions that have the rows."""
    return not any(p.kind == "dispatch_key" for p in op.parameters) and not {op.name, op.family} & WITHOUT_ROW.keys()


def test_every_op_has_a_row():
    missing = {op.name for op in registry.declared.values() if _needs_row(op)} - {
        case.op for case in kit_families().cases()
    }
    assert not missing, f"{len(missing)} ops have no row: {', '.join(sorted(missing))}"
    declared = {name for op in registry.declared.values() for name in (op.name, op.family)}
    assert not WITHOUT_ROW.keys() - declared, "an exception names what is not declared"
