"""Names in the graph: nodes are called as PyTorch calls them, and say what they saved."""

import importlib
import warnings
from pathlib import Path

import pytest

import corefw
from corefw.dispatch.op import node_name
from corefw.dispatch.registry import registry
from corefw.testing import oracle
from corefw.testing.checks import case_dtypes, flat
from corefw.testing.families import kit_families
from corefw.testing.samples import require_gradients, samples, to_tensor
from tests.parity import import_torch

TABLE = Path(__file__).with_name("graph_names.txt")


def words(text):
    return text.split()


#: ops of which some node has another name than PyTorch's, by the reason
DIFFERENT = {
    "one node there; here a composite, whose last step is seen": words("""
        glu polar functional_unfold fold linalg_cholesky linalg_cholesky_ex cholesky pdist cdist dist lu_unpack
        linalg_lu_solve lu_solve embedding_bag aminmax special_polygamma affine_grid grid_sample block_diag diag
        binary_cross_entropy binary_cross_entropy_with_logits vdot addmv addbmm addr smooth_l1_loss huber_loss
        multi_margin_loss multilabel_margin_loss linalg_matrix_exp cholesky_inverse renorm rsub
        max_unpool1d max_pool2d avg_pool2d adaptive_max_pool2d adaptive_avg_pool2d max_unpool2d max_pool3d avg_pool3d
        adaptive_max_pool3d adaptive_avg_pool3d max_unpool3d trace linalg_householder_product ormqr channel_shuffle
        index_reduce narrow_copy unsafe_split_with_sizes unsafe_split unsafe_chunk linalg_solve linalg_solve_triangular
        cholesky_solve linalg_lstsq median nanmedian var_mean std_mean conv_tbc
    """),
    "one node here; several there, whose last is seen": words("""
        multi_head_attention_forward scaled_dot_product_attention special_ndtr linear rms_norm pad matrix_power
        max_pool1d avg_pool1d adaptive_max_pool1d adaptive_avg_pool1d rnn_tanh_cell rnn_relu_cell lstm_cell gru_cell
        rnn_tanh rnn_relu lstm gru
    """),
    "other steps here and there": words("""
        linear_cross_entropy einsum kron diff trapezoid cumulative_trapezoid fft_fft fft_ifft fft_ihfft fft_ihfft2
        fft_ihfftn repeat_interleave pairwise_distance linalg_cond vander linalg_multi_dot stft linalg_tensorinv cov
        quantile nanquantile tensordot inner
    """),
    "the node does not know how its op was called": words("celu amax amin div round squeeze"),
    "no gradient there": words("conj_physical linalg_ldl_factor_ex linalg_ldl_factor linalg_ldl_solve"),
}


def scope(module) -> dict:
    """What the expressions of the table name."""
    importlib.import_module(f"{module.__name__}.utils.checkpoint")

    def leaf(*shape):
        return (module.rand(*shape) + 0.1).requires_grad_()

    return {
        "torch": module,
        "F": module.nn.functional,
        **{"x": leaf(2, 3), "y": leaf(3, 4), "v": leaf(3), "s": leaf(()), "image": leaf(1, 2, 6, 6)},
        "z": module.ones(2, 3, dtype=module.complex64).requires_grad_(),
        "m": module.tensor([[True, False, True], [True, False, True]]),
        "i": module.tensor([0, 1]),
    }


def table() -> dict[str, str]:
    """{expression: the name of its node}."""
    lines = [line for line in TABLE.read_text().splitlines() if not line.startswith("#")]
    return {expression: name.strip() for expression, _, name in (line.partition("  ") for line in lines)}


def names(module) -> dict[str, str]:
    given = scope(module)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nodes = {expression: eval(expression, given).grad_fn for expression in table()}
    assert all(node.name().rpartition("::")[2] == type(node).__name__ for node in nodes.values())
    return {expression: type(node).__name__ for expression, node in nodes.items()}


def test_names():
    assert names(corefw) == table()


def test_a_declared_name_differs_from_the_ops():
    for op in set(registry.declared.values()):
        if op.grad_name and isinstance(op.grad_name, str):
            assert node_name(op.grad_name) != f"{op.name.title().replace('_', '')}Backward0", op.name


def test_a_name_is_kept_through_the_backward():
    x = corefw.ones(2, 3, requires_grad=True)
    zeros = corefw.zeros(1, 3, dtype=corefw.int64)
    power, image = (x + 1) ** x, corefw.nn.functional.cross_entropy(corefw.ones(1, 2, 3, requires_grad=True), zeros)
    (power.sum() + image).backward()
    assert (power.grad_fn.name(), image.grad_fn.name()) == ("PowBackward1", "NllLoss2DBackward0")
    assert repr(power).endswith("grad_fn=<PowBackward1>)")


def test_names_under_hooks_and_in_errors():
    x = corefw.ones(2, 3, requires_grad=True)
    with corefw.autograd.graph.save_on_cpu():
        y = x.prod(1)
    assert y.grad_fn.name() == "ProdBackward1"
    with (
        corefw.autograd.set_detect_anomaly(True),
        pytest.warns(UserWarning, match="Error detected in PowBackward0"),
        pytest.raises(RuntimeError, match="'PowBackward0' returned nan values"),
    ):
        ((x - 2) ** 0.5).sum().backward()
    base = x * 1
    wrong = base**2
    base.add_(1)
    with pytest.raises(RuntimeError, match="saved for PowBackward0, is at version 1; expected version 0"):
        wrong.sum().backward()


def test_nodes_lead_to_their_leaves():
    x, weight = corefw.ones(2, 3, requires_grad=True), corefw.ones(4, 3, requires_grad=True)
    node = corefw.nn.functional.linear(x * 2, weight, corefw.ones(4)).mean(0).grad_fn
    assert node.name() == "MeanBackward1" and node.next_functions[0][0].name() == "AddmmBackward0"
    (product, index), (leaf, _) = node.next_functions[0][0].next_functions[:2]
    assert type(product).__name__ == "MulBackward0" and index == 0
    assert type(leaf).__name__ == "AccumulateGrad" and repr(leaf).startswith("<AccumulateGrad object at 0x")
    assert leaf.variable is weight


def test_saved_values_by_pytorchs_names():
    x = corefw.ones(2, 3, requires_grad=True)
    node = (x**2).grad_fn
    assert node._saved_self is x and node._saved_exponent == 2
    assert {"_saved_self", "_saved_exponent", "_saved_result"} <= set(dir(node))
    assert x.sum(0).grad_fn._saved_self_sym_sizes == (2, 3)
    assert x.softmax(1).grad_fn._saved_dim == 1


@pytest.mark.oracle
def test_names_are_pytorchs():
    assert names(import_torch()) == table()


def names_of_case(torch, case):
    """(our name, PyTorch's) of each result of the first calls of a row that both can differentiate."""
    op, theirs = registry.declared[case.op], oracle._function(torch, case)
    if corefw.float32 not in case_dtypes(case, op):
        return
    for sample in samples(case, corefw.float32)[:4]:
        given = oracle._torch_sample(torch, sample)
        for value in (*given.arguments, *given.keywords.values()):
            for t in value if isinstance(value, list) else [value]:
                if isinstance(t, torch.Tensor) and t.is_floating_point():
                    t.requires_grad_()
        ours = sample.map(to_tensor)
        list(require_gradients((*ours.arguments, *ours.keywords.values())))
        try:
            expected = oracle._theirs(theirs, given)
        except (RuntimeError, TypeError):
            continue  # corefw may take more combinations of arguments
        for actual, wanted in zip(flat(op.function(*ours.arguments, **ours.keywords)), expected, strict=True):
            if isinstance(wanted, torch.Tensor) and actual.requires_grad and wanted.requires_grad:
                yield type(actual.grad_fn).__name__, type(wanted.grad_fn).__name__


@pytest.mark.oracle
def test_the_other_names_have_reasons():
    torch = import_torch()
    cases = [case for family in kit_families().values() for case in family if oracle.path(case)]
    different = {case.op for case in cases if any(ours != theirs for ours, theirs in names_of_case(torch, case))}
    assert different == {op for ops in DIFFERENT.values() for op in ops}
