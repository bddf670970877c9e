"""Signatures against PyTorch's: a call that PyTorch takes is taken here, and means the same."""

import inspect
from collections import Counter

import pytest

import corefw
from corefw.dispatch.names import forms as forms_of_ops
from tests.scripts import load
from tests.signatures import Argument, differences, forms, owners, reached

coverage = load("api_coverage")
NAMES = coverage.sections(coverage.LIST.read_text())

_SCHEMA = "the schema says so, PyTorch's Python function does as ours"
_OLD = "a form that PyTorch deprecates"
_NUMBER = "takes forms of several numbers, as PyTorch's; the signature can show one"
_EMPTY = "None means the same, which is written out here"
#: (the difference, the names that have it, why)
DOCUMENTED = [
    (
        "alpha is not the argument 2",
        "torch: add rsub sub subtract; torch.Tensor: add add_ sub sub_ subtract subtract_",
        _OLD,
    ),
    ("hermitian is not the argument 2", "torch.linalg: matrix_rank pinv", _OLD),
    (
        "out_dtype is missing",
        "torch: addmm baddbmm bmm mm; torch.Tensor: addmm baddbmm bmm mm",
        "for one product on CUDA",
    ),
    ("train is not the argument 2", "torch: alpha_dropout dropout", "there it is `training`, which means the same"),
    ("end is not the argument 0", "torch: arange", _NUMBER),
    ("high is not the argument 0", "torch: randint", _NUMBER),
    ("size is not the argument 1", "torch: randint", _NUMBER),
    ("high is not the argument 1", "torch: randint_like", _NUMBER),
    ("to is not the argument 1", "torch.Tensor: random_", _NUMBER),
    ("other is not the argument 1", "torch: max min; torch.Tensor: max min", "a tensor may stand for the dimension"),
    ("value is not the argument 3", "torch: scatter; torch.Tensor: scatter scatter_", "a number may stand for `src`"),
    (
        "unbiased is not the argument 1",
        "torch: std std_mean var var_mean; torch.Tensor: std var",
        "a bool may stand for `dim`",
    ),
    ("unbiased is None instead of True", "torch: std std_mean var var_mean; torch.Tensor: std var", _EMPTY),
    ("memory_format is torch.preserve_format instead of None", "torch: clone; torch.Tensor: clone", _EMPTY),
    ("memory_format is torch.contiguous_format instead of None", "torch: empty; torch.Tensor: resize_", _EMPTY),
    ("memory_format is torch.contiguous_format instead of 0", "torch.Tensor: contiguous", _SCHEMA),
    (
        "padding is 0 instead of 'valid'",
        "torch: conv1d conv2d conv3d; torch.nn.functional: conv1d conv2d conv3d",
        _EMPTY,
    ),
    (
        "reduction is 0 instead of 1",
        "torch: cosine_embedding_loss ctc_loss hinge_embedding_loss kl_div margin_ranking_loss triplet_margin_loss",
        _SCHEMA,
    ),
    ("dx is None instead of 1", "torch: cumulative_trapezoid trapezoid", _EMPTY),
    ("dx is None instead of 1.0", "torch: trapz", _EMPTY),
    ("dtype is None instead of 4", "torch: randint randperm tril_indices triu_indices", _EMPTY),
    ("repeats is not the argument 0", "torch: repeat_interleave", "`input` may hold the repeats, if it stands alone"),
    ("scalar is missing", "torch: result_type", "its arguments have no names here"),
    ("scalar1 is missing", "torch: result_type", "its arguments have no names here"),
    ("scalar2 is missing", "torch: result_type", "its arguments have no names here"),
    ("tensor is not the argument 1", "torch: result_type", "its arguments have no names here"),
    ("generator is not the argument 4", "torch: rrelu rrelu_; torch.nn.functional: rrelu_", "there it is `inplace`"),
    ("scale is not the argument 2", "torch.nn.functional: elu_", "there it is `inplace`, as in `elu`"),
    ("input_scale is not the argument 3", "torch.nn.functional: elu_", "named alone, as in `elu`"),
    ("stream is None instead of -1", "torch.Tensor: __dlpack__", _EMPTY),
    ("implicit is missing", "torch.Tensor: expand", "for PyTorch's own use"),
    ("input is not the argument 1", "torch.Tensor: polygamma", _SCHEMA),
    ("input is missing", "torch.Tensor: where", _SCHEMA),
    ("external is missing", "torch.cuda: Event", "events within a graph of another process are not there"),
    (
        "dp_mesh_dims is missing",
        "torch.distributed.fsdp: fully_shard",
        "`mesh` is the part of a mesh over which it cuts",
    ),
    ("device_type is not the argument 4", "torch.random: fork_rng", "private arguments come before it"),
]


@pytest.mark.oracle
def test_signatures_are_pytorchs():
    documented = {(name, text) for text, names, _ in DOCUMENTED for name in _spread(names)}
    found, compared = set(), Counter()
    for heading, names in NAMES.items():
        theirs, ours = owners(heading)
        ops = forms_of_ops(heading.removeprefix("torch").removeprefix(".") or "corefw")
        for name in names:
            function, wanted = reached(ours, name), reached(theirs, name)
            if not callable(function) or not callable(wanted):
                continue
            ways = forms(heading, name, wanted)
            compared[heading] += bool(ways)
            op, _ = ops.get(name, (None, None))
            for way in ways:
                texts = differences(function, way, op, heading == "torch.Tensor")
                found |= {(f"{heading}.{name}", text) for text in texts}
    assert found - documented == set()
    assert documented - found == set(), "these are as PyTorch's"
    assert compared.total() > 1600


def _spread(names: str) -> list[str]:
    """The dotted names of "torch: add sub; torch.Tensor: add"."""
    parts = [part.strip().partition(": ") for part in names.split(";")]
    return [f"{owner}.{name}" for owner, _, those in parts for name in those.split()]


@pytest.mark.parametrize(
    ("theirs", "text"),
    [
        ([Argument("a", 0, inspect.Parameter.empty), Argument("c", 1, None)], "c is missing"),
        ([Argument("b", 0, 1)], "b is not the argument 0"),
        ([Argument("a", 0, inspect.Parameter.empty), Argument("b", 1, 2)], "b is 1 instead of 2"),
        ([Argument("a", 0, inspect.Parameter.empty), Argument("b", None, 1)], None),
    ],
)
def test_differences_are_seen(theirs, text):
    assert differences(lambda a, b=1: None, theirs, None, False) == ([text] if text else [])


def test_forms_that_signatures_do_not_show():
    """Other names of arguments that PyTorch's functions have, and places that one signature cannot show."""
    x = corefw.arange(6.0).reshape(2, 3)
    square = corefw.eye(2) * 2
    assert corefw.equal(corefw.linalg.cholesky(input=square), corefw.linalg.cholesky(square))
    assert corefw.linalg.norm(input=x) == corefw.linalg.norm(A=x) == corefw.linalg.vector_norm(input=x)
    assert corefw.equal(corefw.linalg.eigh(input=square)[0], corefw.linalg.eigvalsh(A=square))
    assert corefw.equal(corefw.linalg.lstsq(square, b=x).solution, corefw.linalg.lstsq(A=square, B=x).solution)
    assert corefw.equal(corefw.linalg.tensorsolve(square, other=x[:, 0]), x[:, 0] / 2)
    assert corefw.equal(corefw.swapaxes(x, axis0=0, axis1=1), x.T) and corefw.equal(x.swapaxes(axis0=0, axis1=1), x.T)
    assert [len(part) for part in corefw.tensor_split(x, sections=2)] == [1, 1]
    assert [len(part) for part in x.vsplit(indices=(1,))] == [1, 1]
    assert corefw.isin(x, test_element=2.0).sum() == 1 and corefw.isin(element=2.0, test_elements=x)
    assert corefw.nn.functional.one_hot(input=corefw.tensor([1])).tolist() == [[0, 1]]
    assert corefw.equal(corefw.special.airy_ai(x=x), corefw.special.airy_ai(x))
    for fresh in (x.T.clone(memory_format=None), corefw.empty(2, 3, memory_format=None).T, x.clone().T):
        assert fresh.stride() == (1, 3)
    assert x.clone().resize_(6, memory_format=None).tolist() == [0, 1, 2, 3, 4, 5]
    assert corefw.tril_indices(2, 2, pin_memory=False).tolist() == [[0, 1, 1], [0, 0, 1]]
    points = corefw.tensor([[0.1, 0.9], [0.8, 0.2], [5.0, 5.0]])
    assert corefw.histogramdd(points, [2, 2], [0.0, 1.0, 0.0, 1.0]).hist.tolist() == [[0, 1], [1, 0]]
    log_probability, target = corefw.tensor([0.5, 0.5]).log(), corefw.tensor([0.25, 0.75])
    assert corefw.kl_div(log_probability, target).shape == (2,)
    assert corefw.kl_div(log_probability, target, 2) == corefw.nn.functional.kl_div(
        log_probability, target, reduction="sum"
    )
