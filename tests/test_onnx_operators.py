"""The table of ONNX operators: every entry, alone in a graph, computes in onnxruntime what the op computes."""

from pathlib import Path

import numpy as np
import pytest

import corefw
from corefw import dtypes
from corefw.dispatch.registry import registry
from corefw.nn import functional
from corefw.testing.checks import about, case_dtypes, flat, tensors_in
from corefw.testing.families import kit_families
from corefw.testing.samples import samples, to_tensor

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import corefw.onnx  # noqa: E402  it fills the table
from corefw.onnx.table import TABLE  # noqa: E402

#: {op: its rows}
ROWS: dict[str, list] = {}
for row in kit_families().cases():
    ROWS.setdefault(row.op, []).append(row)
#: ops without rows of their own
OTHERS = {
    "adaptive_max_pool": lambda: [
        functional.adaptive_max_pool2d(corefw.arange(48.0).sin().reshape(1, 2, 4, 6), size, return_indices=True)
        for size in ((2, 3), 1)
    ],
    "arange_at": lambda: [corefw.arange(5), corefw.arange(1.0, 2.0, 0.25)],
    "cast": lambda x: [x.int(), x.double(), x > 0, (x > 0).float()],
    "full_at": lambda: [corefw.full((2, 3), 1.5), corefw.full((), 2)],
    "zeros_at": lambda: [corefw.zeros(2, 3), corefw.ones(0, 2)],
}
#: why samples are refused
REFUSED = {
    "adaptive_max_pool": "differ in size",
    "diagonal": "without elements",
    "gru_sequence": "different lengths",
    "index_put": "behind whole dimensions",
    "lstm_sequence": "different lengths",
    "nonzero": "without dimensions",
}
#: the results of recurrences that gradients alone need are not written
RESULTS = {"lstm_sequence": 3, "gru_sequence": 2}
#: what onnxruntime has kernels for, in the order of trial
DTYPES = ("float32", "int64", "bool")


def few(op_name: str) -> list:
    """Some samples of an op's rows with elements."""
    found = []
    for case in ROWS[op_name]:
        known = {d.name for d in case_dtypes(case, registry.declared[case.op])}
        d = next((name for name in DTYPES if name in known), None)
        if d is not None:
            given = [s for s in samples(case, dtypes.of_name(d)) if all(a.size for a in s.arrays())]
            found += [(case, sample) for sample in given[:4]]
    return found


def compare(function, tensors, **options):
    """A function's graph gives its results; returns the kinds of its nodes."""
    program = corefw.onnx.export(function, tuple(tensors), do_constant_folding=False, **options)
    onnx.checker.check_model(program.model_proto, full_check=True)
    for found, wanted in zip(program(*tensors), flat(function(*tensors)), strict=True):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found.numpy(), wanted.numpy(), rtol=1e-5, atol=1e-5)
    return {node.op_type for node in program.model_proto.graph.node}


@pytest.mark.parametrize("name", [name for name in TABLE if name not in OTHERS])
def test_entries(name):
    compared = 0
    for case, sample in few(name):
        op = registry.declared[case.op]
        tensors = tensors_in(sample.map(to_tensor))

        def function(*inputs, op=op, sample=sample):
            rest = iter(inputs)
            call = sample.map(lambda array: next(rest))
            return flat(op.function(*call.arguments, **call.keywords))[: RESULTS.get(op.name)]

        with about(sample):
            try:
                compare(function, tensors)
            except corefw.onnx.OnnxExporterError as error:
                assert REFUSED.get(name, "nothing") in str(error)
            else:
                compared += 1
    assert compared


@pytest.mark.parametrize("name", OTHERS)
def test_entries_without_rows(name):
    function = OTHERS[name]
    compare(function, [corefw.tensor([[-1.5, 0.0, 2.5]])][: function.__code__.co_argcount])


def test_page_lists_the_table():
    page = (Path(__file__).resolve().parent.parent / "docs" / "onnx.md").read_text()
    rows = page.partition("| family | ops |")[2]
    assert set(rows.split("`")[1::2]) == set(TABLE)
