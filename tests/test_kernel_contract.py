"""What corefw does with kernels that are not as they should be, or that ask for help: each test runs a program beside
plugins that are really installed."""

import pytest


@pytest.fixture
def run(beside_plugins):
    return beside_plugins


def test_kernels_of_unknown_ops_are_listed_and_dropped(run):
    program = """
        import corefw as torch
        from corefw.cli import main
        print(torch.neg(torch.ones(1)).item())
        (newer,) = [b for b in torch.backends() if b.name == "newer"]
        print(newer.usable, newer.kernels, newer.dropped)
        main(["backends"])
    """
    first, second, *listed = run(program, "cpu.newer")
    assert (first, second) == ("8.0", "True 2 ('agglomerate', 'frobnicate')")
    assert any("dropped" in line and line.endswith("lacks: agglomerate, frobnicate") for line in listed)


TIED = """
    import warnings
    import corefw as torch
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        print((torch.ones(2) + 1).tolist())
    print(*(w.message for w in said))
"""


def test_of_equal_priorities_the_first_by_name_is_asked_and_it_is_told_how_to_choose(run):
    result, said = run(TIED, "cpu.twin")
    assert result == "[2.0, 2.0]"
    assert said == (
        "backends 'numpy' and 'twin' both offer add on cpu with priority 0: 'numpy' is asked first, by its name. "
        'Choose with COREFW_BACKENDS="cpu=twin,numpy", or for one op with COREFW_OPS="add@cpu=twin".'
    )


@pytest.mark.parametrize("choice", [{"COREFW_BACKENDS": "cpu=twin,numpy"}, {"COREFW_OPS": "add@cpu=twin"}])
def test_who_has_chosen_between_equals_is_not_warned(run, choice):
    assert run(TIED, "cpu.twin", **choice) == ["[102.0, 102.0]", ""]


def test_a_kernel_that_returns_a_foreign_array_is_refused(run):
    program = """
        import corefw as torch
        x = torch.ones(1)
        for call in (lambda: torch.neg(x), lambda: x.exp_(), lambda: x.add(x.double()), lambda: torch.exp(x.half())):
            try:
                print(call())
            except TypeError as error:
                print(type(error).__name__, error)
        print(torch.sin(torch.tensor(1.0)).item())
    """
    *refused, number = run(program, "cpu.foreign")
    assert number == "0.25"
    for op, said in zip(("neg", "exp", "add", "exp"), refused, strict=True):
        assert said == (
            f"KernelResultError {op}: its kernel on 'cpu' returned array.array, not numpy.ndarray; nothing is copied "
            "to a device unasked: return an array of the device"
        )


def test_shapes_are_checked_before_a_kernel_that_asks_for_it(run):
    program = """
        import corefw as torch
        print(torch.add(torch.ones(2), torch.ones(2)).tolist())
        for call in (lambda: torch.ones(2) + torch.ones(3), lambda: torch.ones(2).add_(torch.ones(3))):
            try:
                call()
            except ValueError as error:
                print(type(error).__name__, error)
        print(torch.nonzero(torch.ones(1)).tolist())
    """
    called, result, *refused, last = run(program, "cpu.careful")
    assert (called, result, last) == ("called with (2,) (2,)", "[2.0, 2.0]", "[1.0]")
    assert len(refused) == 2 and all(said.startswith("ShapeError") and "2" in said for said in refused)
