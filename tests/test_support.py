"""`corefw support`: what a backend has and lacks is said, and how each kernel is called."""

import pytest

from corefw.cli import main
from corefw.dispatch import support
from corefw.dispatch.registry import registry


@pytest.mark.parametrize(
    ("op", "said"),
    [
        ("matmul", "matmul(input: array, other: array) -> array"),
        ("cat", "cat(tensors: list[array], dim: int) -> array"),
        ("sum", "sum(input: array, dim: tuple[int, ...] | None, keepdim: bool) -> array"),
        ("max_dim", "max_dim(input: array, dim: int, keepdim: bool) -> tuple[values: array, indices: array]"),
        ("index", "index(input: array, indices: list[array | None]) -> array"),
        (
            "scale_step",
            "scale_step(tensors: list[array] changed in place, factor: array) -> None",
        ),
    ],
)
def test_signatures_tell_arrays_lists_and_what_is_changed(op, said):
    assert support.signature(registry.declared[op]) == said


def test_counts_of_steps_are_host_arrays():
    told = support.signature(registry.declared["adam_step"])
    assert "grads: list[array], exp_avgs: list[array] changed in place" in told
    assert "steps: list[host array] changed in place" in told


def test_every_kernel_of_the_reference_is_called_as_its_signature_says():
    """Those that change arguments return nothing, all others something: the declarations are what is tested."""
    for op in support.kernel_ops():
        assert (support.signature(op).endswith("-> None")) == op.name.endswith("_step"), op


def test_what_is_missing_is_listed_with_what_it_unlocks(beside_plugins):
    program = """
        from corefw.cli import main
        main(["support", "bare"])
        main(["support", "bare", "--op", "mul"])
    """
    lines = beside_plugins(program, "bare.bare")
    at = lines.index("  primitives missing, what unlocks most first:")
    assert lines[at + 1] == "    mul(input: array, other: array) -> array"
    assert lines[at + 2].startswith("        unlocks ")
    assert lines[at + 3].startswith("  compositions that run in other ops:")
    assert "bare on bare lacks a kernel: mul(input: array, other: array) -> array" in lines


def test_what_belongs_together_is_told(capsys):
    assert main(["support", "numpy", "--op", "matmul"]) == 0
    assert "its gradient runs adjoint_matmul, matmul_adjoint" in capsys.readouterr().out
    incomplete = support.Support("x", "x", ("matmul", "softmax", "softmax_backward"), (), ()).incomplete
    assert incomplete == {"matmul": ("adjoint_matmul", "matmul_adjoint")}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(["nunpy"], "did you mean 'numpy'?"), (["numpy", "--op", "matmull"], "did you mean 'matmul'?")],
)
def test_what_is_not_there_is_refused(arguments, words, capsys):
    assert main(["support", *arguments]) == 2
    assert words in capsys.readouterr().err
